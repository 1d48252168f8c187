//! Explicit congestion notification (RFC 3168), on each path by itself.

use polypath_transport::{CcConfig, ConnectionConfig};
use polypath_wire::tcp::TcpFlags;
use polypath_wire::{Ecn, PathId};

use crate::common::{Bed, CLIENT, Edit, Flying, Pair, SERVER, at, every, ms, prompt};

const LEN: u64 = 400_000;

fn ecn() -> ConnectionConfig {
    ConnectionConfig { ecn: true, send_buffer: 64 << 20, ..prompt() }
}

fn flags(pair: &Pair, end: usize, flag: TcpFlags, path: u16) -> usize {
    let has = |f: &&Flying| f.from == end && f.path == PathId(path) && f.has(flag);
    pair.log.iter().filter(has).count()
}

/// Marks the data segments of the client on `path` for which `which` holds of the number.
fn mark(pair: &mut Pair, path: u16, which: impl Fn(u64) -> bool + 'static) {
    let mut number = 0;
    pair.script(move |f| {
        let counts = f.is_data_of(CLIENT) && f.path == PathId(path);
        number += u64::from(counts);
        if counts && which(number) { f.marked() } else { Edit::Pass }
    });
}

#[test]
fn both_ends_must_want_it() {
    for (client, server, agreed) in [(true, true, true), (true, false, false), (false, true, false)] {
        let of = |ecn| ConnectionConfig { ecn, ..prompt() };
        let mut pair = Pair::connecting(of(client), of(server), &[10]);
        pair.write(CLIENT, LEN);
        pair.run_until_received(SERVER, LEN);
        let capable = pair.log.iter().any(|f| f.segment.ecn == Ecn::Capable);
        let offered = flags(&pair, CLIENT, TcpFlags::ECE, 0) > 0;
        assert_eq!((capable, offered), (agreed, client));
        assert!(pair.log.iter().all(|f| f.segment.ecn == Ecn::None || f.len() > 0), "data only (§6.1.4)");
    }
}

/// §6.1.1.1: what drops the SYN may do so for its flags.
#[test]
fn a_second_syn_does_not_offer() {
    let mut pair = Pair::connecting(ecn(), ecn(), &[10]);
    pair.script(|f| if f.has(TcpFlags::ECE) { Edit::Lose } else { Edit::Pass });
    pair.run_until(at(5000));
    pair.write(CLIENT, LEN);
    pair.run_until_received(SERVER, LEN);
    assert!(pair.log.iter().all(|f| f.segment.ecn == Ecn::None));
}

#[test]
fn a_mark_reduces_the_window_once_and_is_told_until_the_reduction_is() {
    let mut pair = Pair::open(ecn(), &[25]);
    pair.write(CLIENT, LEN);
    mark(&mut pair, 0, |n| (60..70).contains(&n));
    pair.run_until_received(SERVER, LEN);
    pair.run_for(ms(500));
    let stats = pair.end(CLIENT).path_stats(PathId(0));
    assert_eq!((stats.marks, stats.retransmissions), (1, 0));
    assert_eq!(flags(&pair, CLIENT, TcpFlags::CWR, 0), 1);
    let echoes = pair.times(SERVER, |f| f.has(TcpFlags::ECE));
    let told = pair.times(CLIENT, |f| f.has(TcpFlags::CWR))[0];
    assert!(echoes.len() > 1 && echoes.iter().all(|echo| *echo <= told + 25), "{echoes:?} {told}");
    assert!(stats.ssthresh.is_some(), "slow start is over");
}

#[test]
fn marks_without_end_reduce_the_window_every_round_trip() {
    let mut pair = Pair::open(ecn(), &[25]);
    pair.write(CLIENT, 100 * LEN);
    pair.run_for(ms(300));
    let before = pair.end(CLIENT).path_stats(PathId(0)).cwnd;
    mark(&mut pair, 0, |_| true);
    pair.run_for(ms(600));
    let stats = pair.end(CLIENT).path_stats(PathId(0));
    assert!(stats.cwnd < before / 4, "{before} {stats:?}");
    assert!((3..=12).contains(&stats.marks), "{stats:?}");
    assert_eq!(stats.retransmissions, 0);
}

#[test]
fn marks_are_of_the_path_that_has_them() {
    let mut pair = Pair::open(ecn(), &[10, 30]);
    mark(&mut pair, 1, |n| n % 20 == 0);
    pair.write(CLIENT, 10 * LEN);
    pair.run_until_received(SERVER, 10 * LEN);
    let marks = [0, 1].map(|path| pair.end(CLIENT).path_stats(PathId(path)).marks);
    assert!(marks[0] == 0 && marks[1] > 1, "{marks:?}");
    assert_eq!(flags(&pair, SERVER, TcpFlags::ECE, 0), 0);
}

/// A lost packet and a mark of one window are one sign of congestion (§6.1.2).
#[test]
fn a_loss_and_a_mark_of_one_round_trip_reduce_the_window_once() {
    type Change = fn(&Flying) -> Edit;
    const LOST: Change = |_| Edit::Lose;
    const MARKED: Change = Flying::marked;
    let least = |edits: &'static [(u64, Change)]| {
        let mut pair = Pair::open(ecn(), &[25]);
        let mut number = 0;
        pair.script(move |f| {
            number += u64::from(f.is_data_of(CLIENT));
            let edit = edits.iter().find(|(n, _)| f.is_data_of(CLIENT) && *n == number);
            edit.map_or(Edit::Pass, |(_, edit)| edit(f))
        });
        pair.write(CLIENT, LEN);
        let mut least = u64::MAX;
        pair.run_while(|pair| {
            let stats = pair.end(CLIENT).path_stats(PathId(0));
            least = stats.ssthresh.map_or(least, |_| least.min(stats.cwnd));
            pair.received[SERVER] < LEN
        });
        least
    };
    let once = least(&[(60, LOST)]);
    for (n, both) in [&[(60, LOST), (62, MARKED)], &[(60, MARKED), (62, LOST)]].into_iter().enumerate() {
        assert!(least(both) * 10 >= once * 9, "{n}: {once}");
    }
}

/// A controller that does not answer marks does not ask for them; every other one has a smaller window after one.
#[test]
fn every_controller_answers_or_does_not_offer() {
    let answers = |cc: CcConfig| {
        let config = ConnectionConfig { cc, ..ecn() };
        let mut pair = Pair::connecting(config.clone(), config, &[25]);
        pair.write(CLIENT, 100 * LEN);
        pair.run_for(ms(500));
        let offered = flags(&pair, CLIENT, TcpFlags::ECE, 0) > 0;
        let mut left = 1;
        pair.script(move |f| match f.is_data_of(CLIENT) && f.segment.ecn == Ecn::Capable && left > 0 {
            true => {
                left -= 1;
                f.marked()
            }
            false => Edit::Pass,
        });
        let window = |pair: &mut Pair| pair.end(CLIENT).path_stats(PathId(0)).cwnd;
        let (mut before, mut reduced) = (window(&mut pair), false);
        for _ in 0..150 {
            pair.run_for(ms(1));
            let now = window(&mut pair);
            reduced |= now * 20 < before * 19;
            before = now;
        }
        (offered, reduced)
    };
    for cc in every::<CcConfig>() {
        let name = format!("{cc:?}");
        let (offered, reduced) = answers(cc);
        assert_eq!(offered, reduced, "{name}");
    }
}
