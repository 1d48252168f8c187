//! Closing and resetting (RFC 9293 §3.6, §3.10.7, RFC 5961).

use polypath_transport::{CloseReason, DropReason, Segment, State};
use polypath_wire::Seq;
use polypath_wire::tcp::{TcpFlags, TcpHeader};

use crate::common::{Bed, CLIENT, Edit, Flying, ISN, Pair, SERVER, at, ms, prompt};

/// RFC 9293 §3.6, figure 12, with the state after every step of 10 ms.
#[test]
fn normal_close() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.close(CLIENT);
    pair.run_for(ms(5));
    assert_eq!(pair.states(), [State::FinWait1, State::Established]);
    pair.run_for(ms(10));
    assert_eq!(pair.states(), [State::FinWait1, State::CloseWait]);
    pair.run_for(ms(10));
    assert_eq!(pair.states(), [State::FinWait2, State::CloseWait]);
    pair.close(SERVER);
    pair.run_for(ms(5));
    assert_eq!(pair.states(), [State::FinWait2, State::LastAck]);
    pair.run_for(ms(10));
    assert_eq!(pair.states(), [State::TimeWait, State::LastAck]);
    pair.run_for(ms(10));
    assert_eq!(pair.states(), [State::TimeWait, State::Closed]);
    pair.run_for(ms(980));
    assert_eq!(pair.states(), [State::TimeWait, State::Closed], "TIME-WAIT lasts what it was told");
    pair.run_for(ms(20));
    pair.assert_closed();
}

/// §3.6, figure 13.
#[test]
fn simultaneous_close() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.close(CLIENT);
    pair.close(SERVER);
    pair.run_for(ms(5));
    assert_eq!(pair.states(), [State::FinWait1; 2]);
    pair.run_for(ms(10));
    assert_eq!(pair.states(), [State::Closing; 2]);
    pair.run_for(ms(10));
    assert_eq!(pair.states(), [State::TimeWait; 2]);
    pair.run_for(ms(1000));
    assert_eq!(pair.states(), [State::Closed; 2]);
}

/// §3.6: whoever closed goes on receiving.
#[test]
fn half_close() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.write(CLIENT, 3000);
    pair.close(CLIENT);
    pair.run_for(ms(100));
    assert_eq!(pair.states(), [State::FinWait2, State::CloseWait]);
    pair.write(SERVER, 500_000);
    pair.run_until_received(CLIENT, 500_000);
    assert_eq!(pair.states(), [State::FinWait2, State::CloseWait]);
    pair.close(SERVER);
    pair.run_for(ms(2000));
    assert_eq!((pair.states(), pair.received), ([State::Closed; 2], [500_000, 3000]));
}

/// The FIN travels with the last byte's segment or after it, once, and takes one number.
#[test]
fn a_fin_follows_the_last_byte() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.write(CLIENT, 2500);
    pair.close(CLIENT);
    pair.run_for(ms(100));
    let fin: Vec<_> = pair.log.iter().filter(|f| f.from == CLIENT && f.has(TcpFlags::FIN)).collect();
    assert_eq!(fin.len(), 1);
    assert_eq!(fin[0].offset() + fin[0].len(), 2500);
    assert_eq!(pair.log.iter().filter(|f| f.from == SERVER).map(Flying::acks).max(), Some(2501));
}

#[test]
fn every_segment_of_the_close_may_be_lost_once() {
    for victim in 0..6 {
        let mut pair = Pair::open(prompt(), &[10]);
        let mut count = 0;
        pair.script(move |_| {
            count += 1;
            if count == victim + 1 { Edit::Lose } else { Edit::Pass }
        });
        pair.write(CLIENT, 100);
        pair.close(CLIENT);
        pair.run_for(ms(30));
        pair.close(SERVER);
        pair.run_for(ms(10_000));
        assert_eq!(pair.states(), [State::Closed; 2], "segment {victim} lost");
        assert_eq!((pair.received[SERVER], pair.lost(CLIENT), pair.lost(SERVER)), (100, None, None));
    }
}

/// §3.10.7.4, eighth step, TIME-WAIT: a FIN again is acknowledged again and restarts the timer.
#[test]
fn time_wait_answers_a_fin_that_comes_again() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.close(CLIENT);
    pair.run_for(ms(50));
    let mut losses = 1;
    pair.script(move |f| {
        let last_ack = f.from == CLIENT && losses > 0;
        losses -= i32::from(last_ack);
        if last_ack { Edit::Lose } else { Edit::Pass }
    });
    pair.close(SERVER);
    pair.run_for(ms(150));
    assert_eq!(pair.states(), [State::TimeWait, State::LastAck]);
    pair.run_while(|p| p.states()[SERVER] != State::Closed);
    let answered = pair.now;
    pair.run_while(|p| p.states()[CLIENT] != State::Closed);
    assert!(pair.now.since(answered) >= ms(980), "2 MSL since the last FIN");
    assert_eq!(pair.lost(SERVER), None);
}

#[test]
fn abort_resets_the_peer() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.write(SERVER, 100_000);
    pair.run_for(ms(15));
    let now = pair.now;
    pair.end(CLIENT).abort(now);
    pair.run_for(ms(50));
    assert_eq!(pair.states(), [State::Closed; 2]);
    assert_eq!(
        (pair.lost(CLIENT), pair.lost(SERVER)),
        (Some(CloseReason::Aborted), Some(CloseReason::Reset))
    );
    assert!(pair.end(SERVER).is_closed() && pair.end(SERVER).poll_timeout().is_none());
}

/// RFC 5961 §3.2: only the next number resets; within the window it is challenged; outside, nothing.
#[test]
fn only_an_exact_reset_counts() {
    for (offset, reset, challenged) in
        [(0i32, true, false), (1, false, true), (9999, false, true), (-1, false, false)]
    {
        let mut pair = Pair::open(prompt(), &[10]);
        let seq = Seq(ISN[CLIENT].0.wrapping_add(1).wrapping_add_signed(offset));
        let header = TcpHeader { seq, flags: TcpFlags::RST, ..TcpHeader::default() };
        pair.inject(SERVER, 0, Segment { header, ..Segment::default() });
        assert_eq!(pair.lost(SERVER) == Some(CloseReason::Reset), reset, "{offset}");
        assert_eq!(!pair.times(SERVER, |f| f.has(TcpFlags::ACK)).is_empty(), challenged, "{offset}");
    }
}

/// RFC 5961 §4.2.
#[test]
fn a_syn_in_an_open_connection_is_challenged() {
    let mut pair = Pair::open(prompt(), &[10]);
    let ts = pair.end(CLIENT).stats().bytes_acked; // nothing was sent
    assert_eq!(ts, 0);
    let header = TcpHeader { seq: ISN[CLIENT].plus(500), flags: TcpFlags::SYN, ..TcpHeader::default() };
    pair.inject(SERVER, 0, Segment { header, ..Segment::default() });
    assert_eq!(pair.times(SERVER, |f| f.segment.header.flags == TcpFlags::ACK).len(), 1);
    assert_eq!(pair.states(), [State::Established; 2]);
    assert_eq!(pair.end(SERVER).stats().dropped(DropReason::UnexpectedFlag), 1);
}

/// RFC 5961 §7: challenges do not become a flood.
#[test]
fn challenges_are_limited() {
    let mut pair = Pair::open(prompt(), &[10]);
    let header = TcpHeader { seq: ISN[CLIENT].plus(500), flags: TcpFlags::SYN, ..TcpHeader::default() };
    for _ in 0..1000 {
        pair.inject(SERVER, 0, Segment { header: header.clone(), ..Segment::default() });
    }
    assert!(pair.times(SERVER, |_| true).len() <= 100);
    pair.run_for(ms(1500));
    let before = pair.times(SERVER, |_| true).len();
    pair.inject(SERVER, 0, Segment { header, ..Segment::default() });
    assert_eq!(pair.times(SERVER, |_| true).len(), before + 1, "a second later there is room again");
}

#[test]
fn nothing_happens_after_the_end() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.close(CLIENT);
    pair.close(SERVER);
    pair.run_until(at(10_000));
    let sent = pair.log.len();
    let last = pair.log.iter().rev().find(|f| f.from == CLIENT).unwrap().segment.clone();
    pair.inject(SERVER, 0, last);
    assert_eq!(pair.log.len(), sent);
    assert_eq!(pair.end(SERVER).write(polypath_transport::Pattern { key: 1, offset: 0, len: 10 }.into()), 0);
    assert_eq!(pair.end(SERVER).stats().dropped(DropReason::WrongState), 1);
}
