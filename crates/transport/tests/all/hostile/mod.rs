//! Segments that nobody should send, put into an established connection: each is refused and counted,
//! and both streams arrive whole.

#![allow(clippy::unwrap_used)]

mod options;
mod script;
mod timestamps;

use polypath_transport::{
    CloseReason, Connection, ConnectionConfig, DropReason, PathConfig, Pattern, Payload, Ports, Segment,
    State,
};
use polypath_wire::tcp::{MultiRoute, SackBlock, TcpFlags, TcpOptions, Timestamps};
use polypath_wire::{Duration, Instant, PathId, Seq};
use proptest::prelude::*;

use crate::common::{Bed, CLIENT, ISN, Pair, SERVER, ms};

const LEN: u64 = 3_000_000;

/// How often each forged segment is sent to each end.
const TIMES: u64 = 20;

fn config() -> ConnectionConfig {
    ConnectionConfig { receive_buffer: 200_000, ..Default::default() }
}

/// The connection is established over `paths` paths, and data under way both ways.
fn running(config: ConnectionConfig, paths: usize) -> Pair {
    let mut pair = Pair::open(config, &[10; 2][..paths]);
    send(&mut pair);
    pair.run_for(ms(75));
    assert!(pair.received.iter().all(|got| *got > 0 && *got < LEN), "{:?}", pair.received);
    pair
}

/// Each end sends `LEN` bytes to the other, and no more.
fn send(pair: &mut Pair) {
    for end in [CLIENT, SERVER] {
        pair.write(end, LEN);
        pair.close(end);
    }
}

/// Everything arrives as if nobody had interfered: all bytes, FINs, no loss of the connection.
fn finish(pair: &mut Pair) {
    pair.run_for(Duration::from_secs(600));
    let drops = [CLIENT, SERVER].map(|end| pair.end(end).stats().drops);
    assert_eq!(pair.received, [LEN; 2], "{drops:?}");
    pair.assert_closed();
}

/// Sends what `forge` makes of a plausible segment to both ends again and again while a transfer runs,
/// then checks that the transfer was not disturbed. Returns the pair and what each end dropped.
fn attack(paths: usize, forge: impl Fn(&Pair, usize, Segment) -> Segment) -> Pair {
    let mut pair = running(config(), paths);
    for _ in 0..TIMES {
        for to in 0..2 {
            let segment = forge(&pair, to, pair.forge(to));
            pair.inject(to, 0, segment);
        }
        pair.run_for(ms(3));
    }
    finish(&mut pair);
    pair
}

/// As [`attack`], and every forged segment was counted as dropped for `reason` at both ends.
fn refused(reason: DropReason, forge: impl Fn(&Pair, usize, Segment) -> Segment) {
    for paths in [1, 2] {
        let pair = attack(paths, &forge);
        for end in pair.ends.iter().flatten() {
            assert!(end.stats().dropped(reason) >= TIMES, "{reason:?}: {:?}", end.stats().drops);
        }
    }
}

fn with_flags(mut segment: Segment, flags: TcpFlags) -> Segment {
    segment.header.flags = flags;
    segment
}

fn with_block(mut segment: Segment, start: Seq, end: Seq) -> Segment {
    segment.header.options.sack.push(SackBlock { start, end });
    segment
}

/// Bytes that are not those of the stream.
fn lies(len: u64) -> Payload {
    Pattern { key: 99, offset: 5, len }.into()
}

#[test]
fn nothing_is_dropped_without_an_attack() {
    let mut pair = running(config(), 2);
    finish(&mut pair);
    assert!(pair.ends.iter().flatten().all(|end| end.stats().drops.iter().all(|n| *n == 0)));
}

#[test]
fn data_beyond_the_window() {
    for distance in [300_000, 1 << 30, 0x7fff_ff00] {
        refused(DropReason::OutsideWindow, |_, _, mut s| {
            s.header.seq = s.header.seq.plus(distance);
            s.payload = lies(100);
            s
        });
    }
}

#[test]
fn data_from_before_the_window() {
    for distance in [100, 50_000, 0x7fff_ff00_u32] {
        refused(DropReason::Duplicate, |_, _, mut s| {
            s.header.seq = s.header.seq.plus(distance.wrapping_neg());
            s.payload = lies(100);
            s
        });
    }
}

#[test]
fn data_that_contradicts_what_is_held() {
    let mut pair = running(config(), 1);
    for to in 0..2 {
        // A true segment arrives early, then other bytes for the same place, and around it.
        let mut early = pair.forge(to);
        early.header.seq = early.header.seq.plus(60_000);
        early.payload = pair.truth(to, early.header.seq, 1000);
        let mut lie = early.clone();
        pair.inject(to, 0, early);
        lie.payload = lies(1000);
        pair.inject(to, 0, lie);
        assert_eq!(pair.end(to).stats().dropped(DropReason::OverlapMismatch), 1);
    }
    finish(&mut pair);
}

#[test]
fn acknowledgments_of_what_was_never_sent() {
    for beyond in [1, 1000, 1 << 30, 0x7f00_0000] {
        refused(DropReason::AckOfUnsent, |pair, to, mut s| {
            s.header.ack = pair.seen[to].nxt.plus(beyond);
            s
        });
    }
}

#[test]
fn acknowledgments_older_than_any_window() {
    refused(DropReason::OldAck, |pair, to, mut s| {
        s.header.ack = pair.seen[to].nxt.plus(0x8000_1000);
        s.payload = lies(100); // a blind injection (RFC 5961 §5)
        s
    });
}

#[test]
fn sack_blocks_for_what_was_never_sent() {
    refused(DropReason::BadSack, |pair, to, s| {
        let nxt = pair.seen[to].nxt;
        with_block(s, nxt.plus(10), nxt.plus(1010))
    });
    refused(DropReason::BadSack, |pair, to, s| {
        let nxt = pair.seen[to].nxt;
        with_block(s, nxt.plus(0x7000_0000), nxt.plus(0x7000_1000))
    });
}

#[test]
fn sack_blocks_that_are_no_ranges() {
    refused(DropReason::BadSack, |_, _, s| {
        let ack = s.header.ack;
        with_block(s, ack.plus(2000), ack.plus(1000))
    });
    refused(DropReason::BadSack, |_, _, s| {
        let ack = s.header.ack;
        with_block(s, ack.plus(500), ack.plus(500))
    });
}

#[test]
fn resets_outside_the_window_do_nothing() {
    for distance in [300_000, 0x7fff_ff00] {
        refused(DropReason::OutsideWindow, |_, _, mut s| {
            s.header.seq = s.header.seq.plus(distance);
            with_flags(s, TcpFlags::RST)
        });
    }
    refused(DropReason::Duplicate, |_, _, mut s| {
        s.header.seq = s.header.seq.plus(u32::MAX);
        with_flags(s, TcpFlags::RST)
    });
}

#[test]
fn resets_inside_the_window_are_challenged() {
    refused(DropReason::UnexpectedFlag, |_, _, mut s| {
        s.header.seq = s.header.seq.plus(1000);
        with_flags(s, TcpFlags::RST)
    });
    let mut pair = running(config(), 1);
    let mut reset = with_flags(pair.forge(0), TcpFlags::RST);
    reset.header.seq = reset.header.seq.plus(1000);
    let before = pair.log.len();
    pair.inject(0, 0, reset);
    assert_eq!(pair.log.len(), before + 1, "RFC 5961 §3: a challenge ACK");
}

#[test]
fn a_reset_with_the_exact_number_is_believed() {
    let mut pair = running(config(), 1);
    let reset = with_flags(pair.forge(0), TcpFlags::RST);
    pair.inject(0, 0, reset);
    assert_eq!((pair.states()[0], pair.lost(0)), (State::Closed, Some(CloseReason::Reset)));
}

#[test]
fn syns_are_challenged() {
    for flags in [TcpFlags::SYN, TcpFlags::SYN | TcpFlags::ACK] {
        refused(DropReason::UnexpectedFlag, |_, _, s| with_flags(s, flags));
        refused(DropReason::OutsideWindow, |_, _, mut s| {
            s.header.seq = s.header.seq.plus(1 << 29);
            with_flags(s, flags)
        });
        refused(DropReason::Duplicate, |_, to, mut s| {
            s.header.seq = ISN[1 - to]; // the old one again
            with_flags(s, flags)
        });
    }
}

#[test]
fn segments_without_acknowledgment_or_with_every_flag() {
    refused(DropReason::UnexpectedFlag, |_, _, s| with_flags(s, TcpFlags(0)));
    refused(DropReason::UnexpectedFlag, |_, _, s| {
        with_flags(s, TcpFlags::FIN | TcpFlags::PSH | TcpFlags::URG)
    });
    // The christmas tree has RST set: at the exact number it would be believed.
    refused(DropReason::UnexpectedFlag, |_, _, mut s| {
        s.header.seq = s.header.seq.plus(9);
        with_flags(s, TcpFlags(0xff))
    });
}

#[test]
fn windows_that_close_open_and_shrink() {
    for window in [0, 1, 7, u16::MAX] {
        attack(1, |_, _, mut s| {
            s.header.window = window;
            s
        });
    }
}

#[test]
fn a_flight_never_exceeds_the_window_of_the_peer() {
    // Scale 14 and the largest field: 1 GiB, as large as a window may be.
    let mut pair = running(config(), 1);
    let mut segment = pair.forge(0);
    segment.header.window = u16::MAX;
    segment.header.options.window_scale = Some(255); // not in a SYN: of no effect
    pair.inject(0, 0, segment);
    finish(&mut pair);
}

#[test]
fn a_flood_is_answered_a_hundred_times_a_second_at_most() {
    let forgeries: [fn(Segment) -> Segment; 3] = [
        |s| with_flags(s, TcpFlags::SYN),
        |mut s| {
            s.header.seq = s.header.seq.plus(1000);
            with_flags(s, TcpFlags::RST)
        },
        |mut s| {
            s.header.seq = s.header.seq.plus(0x4000_0000);
            s
        },
    ];
    for forge in forgeries {
        let mut pair = Pair::open(config(), &[10]);
        let before = pair.log.len();
        for _ in 0..10_000 {
            let segment = forge(pair.forge(0));
            pair.inject(0, 0, segment);
        }
        let answers = pair.log.len() - before;
        assert!((1..=110).contains(&answers), "{answers}");
    }
}

#[test]
fn empty_segments_are_not_answered() {
    let mut pair = Pair::open(config(), &[10]);
    let before = pair.log.len();
    for _ in 0..1000 {
        let segment = pair.forge(0);
        pair.inject(0, 0, segment);
    }
    assert_eq!(pair.log.len(), before);
}

#[test]
fn segments_on_paths_that_are_not_ours() {
    let mut pair = running(config(), 2);
    for path in [2, 63, 64, 255] {
        let segment = pair.forge(1);
        pair.inject(1, path, segment);
    }
    finish(&mut pair);
    assert_eq!(pair.end(1).stats().dropped(DropReason::UnknownPath), 4);
}

#[test]
fn a_fin_before_data_that_came_already() {
    let mut pair = running(config(), 1);
    for to in 0..2 {
        let mut early = pair.forge(to);
        early.header.seq = early.header.seq.plus(60_000);
        early.payload = pair.truth(to, early.header.seq, 1000);
        let mut fin = with_flags(early.clone(), TcpFlags::FIN | TcpFlags::ACK);
        fin.payload = Payload::EMPTY;
        pair.inject(to, 0, early);
        pair.inject(to, 0, fin);
        assert_eq!(pair.end(to).stats().dropped(DropReason::UnexpectedFlag), 1);
    }
    finish(&mut pair);
}

#[test]
fn islands_of_one_byte_do_not_fill_the_memory() {
    let mut pair = running(config(), 1);
    for i in 0..20_000 {
        for to in 0..2 {
            let mut island = pair.forge(to);
            island.header.seq = island.header.seq.plus(30_001 + 2 * i);
            island.payload = pair.truth(to, island.header.seq, 1);
            pair.inject(to, 0, island);
        }
    }
    for end in pair.ends.iter().flatten() {
        assert!(end.stats().dropped(DropReason::BufferFull) > 19_000, "{:?}", end.stats().drops);
        assert!(end.stats().reorder_peak < 1000, "{}", end.stats().reorder_peak);
    }
    finish(&mut pair);
}

/// And so do bytes in order that nobody reads.
#[test]
fn segments_of_one_byte_do_not_fill_the_memory() {
    const BYTES: u32 = 20_000;
    let mut pair = Pair::open(config(), &[10]);
    pair.reads = [false; 2];
    for i in 0..BYTES {
        for to in 0..2 {
            let mut crumb = pair.forge(to);
            (crumb.header.seq, crumb.header.ack) = (ISN[1 - to].plus(1 + i), ISN[to].plus(1));
            crumb.payload = pair.truth(to, crumb.header.seq, 1).to_bytes().into();
            pair.inject(to, 0, crumb);
        }
    }
    for to in 0..2 {
        let chunks: Vec<_> = std::iter::from_fn(|| pair.end(to).read(u64::MAX)).collect();
        let bytes: Vec<_> = chunks.iter().flat_map(Payload::to_bytes).collect();
        assert!(chunks.len() < 200, "{} chunks of {BYTES} bytes", chunks.len());
        let whole = Payload::from(Pattern { key: 1 - to as u32, offset: 0, len: BYTES.into() });
        assert_eq!(bytes, whole.to_bytes());
    }
}

#[test]
fn while_connecting_only_the_right_answer_counts() {
    let isn = Seq(1000);
    let forge = |flags: TcpFlags, ack: Seq| {
        let mut segment = Segment::default();
        (segment.header.flags, segment.header.ack) = (flags, ack);
        segment
    };
    let mut end =
        Connection::connect(Instant::ZERO, config(), Ports::default(), isn, &[PathConfig::default()]);
    let _ = end.poll_transmit(Instant::ZERO);
    for (flags, ack, answered) in [
        (TcpFlags::SYN | TcpFlags::ACK, isn, true),
        (TcpFlags::SYN | TcpFlags::ACK, isn.plus(2), true),
        (TcpFlags::RST | TcpFlags::ACK, isn.plus(2), false),
        (TcpFlags::RST, isn.plus(1), false),
        (TcpFlags::ACK, isn.plus(1), false),
        (TcpFlags(0), isn, false),
    ] {
        end.handle(Instant(1), PathId::FIRST, forge(flags, ack));
        assert_eq!(end.state(), State::SynSent, "{flags:?} {ack:?}");
        assert_eq!(end.poll_transmit(Instant(1)).is_some(), answered, "{flags:?} {ack:?}");
    }
    assert_eq!(end.stats().drops.iter().sum::<u64>(), 6);
}

#[test]
fn a_path_that_was_idle_for_a_month_works() {
    // Half of the timestamp clock's circle later, older timestamps are not old (RFC 7323 §5.5).
    let mut pair = Pair::open(config(), &[10]);
    pair.run_for(Duration::from_secs(30 * 86_400));
    send(&mut pair);
    finish(&mut pair);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..Default::default() })]
    #[test]
    fn any_script_leaves_the_streams_true(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        script::play(&bytes);
    }
}
