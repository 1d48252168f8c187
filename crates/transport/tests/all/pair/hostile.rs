//! Segments that no honest peer sends: counted, answered or dropped, never believed.

use bytes::Bytes;
use polypath_transport::{ConnectionConfig, DropReason, Pattern, Segment, State};
use polypath_wire::tcp::{SackBlock, TcpFlags, TcpHeader, Timestamps};
use polypath_wire::{PathId, Seq};
use proptest::prelude::*;

use crate::common::{Bed, CLIENT, Edit, ISN, Pair, SERVER, ms, prompt};

/// A segment of the client with `data` at `offset`, acknowledging `acked`.
fn segment(pair: &mut Pair, offset: u32, acked: u32, data: &'static [u8]) -> Segment {
    let now = (pair.now.0 / 1_000_000) as u32;
    let timestamps = Some(Timestamps { value: now.wrapping_add(ISN[CLIENT].0), echo: 0 });
    let header = TcpHeader {
        src_port: 1000,
        dst_port: 2000,
        seq: ISN[CLIENT].plus(1).plus(offset),
        ack: ISN[SERVER].plus(1).plus(acked),
        flags: TcpFlags::ACK,
        window: 1000,
        options: polypath_wire::tcp::TcpOptions { timestamps, ..Default::default() },
        ..TcpHeader::default()
    };
    Segment { header, payload: Bytes::from_static(data).into(), ..Segment::default() }
}

fn drops(pair: &mut Pair, end: usize, reason: DropReason) -> u64 {
    pair.end(end).stats().dropped(reason)
}

fn read(pair: &mut Pair) -> Vec<u8> {
    std::iter::from_fn(|| pair.end(SERVER).read(u64::MAX)).flat_map(|c| c.to_bytes()).collect()
}

/// The first bytes stay, in order or not.
#[test]
fn other_bytes_for_the_same_place() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.reads[SERVER] = false;
    for (offset, data) in [(4, &b"efgh"[..]), (2, b"XXXXXX"), (0, b"abcd"), (0, b"YYYYYYYYij")] {
        let segment = segment(&mut pair, offset, 0, data);
        pair.inject(SERVER, 0, segment);
    }
    assert_eq!(
        read(&mut pair),
        b"abXXefghij"[..]
            .to_vec()
            .iter()
            .enumerate()
            .map(|(i, b)| match i {
                2 | 3 => b'X',
                _ => *b,
            })
            .collect::<Vec<_>>()
    );
    assert!(drops(&mut pair, SERVER, DropReason::OverlapMismatch) >= 2);
}

#[test]
fn data_outside_the_window() {
    let mut pair = Pair::open(prompt(), &[10]);
    for offset in [5 << 20, 1 << 30, (1 << 31) - 1, u32::MAX - 5] {
        let segment = segment(&mut pair, offset, 0, b"evil");
        pair.inject(SERVER, 0, segment);
    }
    assert_eq!(pair.end(SERVER).stats().bytes_received, 0);
    let outside = drops(&mut pair, SERVER, DropReason::OutsideWindow);
    let old = drops(&mut pair, SERVER, DropReason::Duplicate);
    assert_eq!((outside, old), (3, 1));
    assert!(pair.times(SERVER, |f| f.has(TcpFlags::ACK)).len() >= 4, "each hears where we are");
}

#[test]
fn an_acknowledgment_of_what_was_never_sent() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.write(SERVER, 5000);
    pair.run_for(ms(100));
    for acked in [5001, 1 << 20, 1 << 30] {
        let segment = segment(&mut pair, 0, acked, b"x");
        pair.inject(SERVER, 0, segment);
    }
    assert_eq!(drops(&mut pair, SERVER, DropReason::AckOfUnsent), 3);
    assert_eq!(pair.end(SERVER).stats().bytes_received, 0, "and its data does not count");
    pair.write(SERVER, 5000);
    pair.run_until_received(CLIENT, 10_000);
}

#[test]
fn sack_blocks_for_data_never_sent() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.write(SERVER, 20_000);
    pair.run_for(ms(5));
    let first = ISN[SERVER].plus(1);
    for (start, end) in [(30_000, 40_000), (5000, 5000), (6000, 5000), (19_000, 20_001), (u32::MAX - 9, 3)] {
        let mut bad = segment(&mut pair, 0, 0, b"");
        bad.header.options.sack.push(SackBlock { start: first.plus(start), end: first.plus(end) });
        pair.inject(SERVER, 0, bad);
    }
    assert!(drops(&mut pair, SERVER, DropReason::BadSack) >= 4);
    pair.run_until_received(CLIENT, 20_000);
}

/// RFC 7323 §5: an old copy from before the numbers wrapped.
#[test]
fn an_old_timestamp() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.run_for(ms(1000));
    let newer = segment(&mut pair, 0, 0, b"new");
    let mut old = segment(&mut pair, 3, 0, b"old");
    old.header.options.timestamps = Some(Timestamps { value: ISN[CLIENT].0.wrapping_add(1), echo: 0 });
    pair.reads[SERVER] = false;
    pair.inject(SERVER, 0, newer);
    pair.inject(SERVER, 0, old);
    assert_eq!(drops(&mut pair, SERVER, DropReason::OldTimestamp), 1);
    assert_eq!(read(&mut pair), b"new");
}

#[test]
fn a_path_we_do_not_have() {
    let mut pair = Pair::open(prompt(), &[10]);
    let segment = segment(&mut pair, 0, 0, b"x");
    pair.inject(SERVER, 9, segment);
    assert_eq!(drops(&mut pair, SERVER, DropReason::UnknownPath), 1);
    assert_eq!(pair.end(SERVER).stats().bytes_received, 0);
}

/// Every combination of flags, at every edge of the window, in every state that two ends can be in.
#[test]
fn no_combination_of_flags_and_numbers_panics() {
    let offsets =
        [0, 1, 999, 65_535, 4 << 20, (4 << 20) + 1, 1 << 31, (1u32 << 31) - 1, u32::MAX, u32::MAX - 1];
    for script in 0..6 {
        for flags in 0..64u8 {
            let mut pair = Pair::open(prompt(), &[10]);
            pair.reads[SERVER] = false;
            match script {
                0 => {}
                1 => pair.close(SERVER),
                2 => pair.close(CLIENT),
                3 => [CLIENT, SERVER].into_iter().for_each(|e| pair.close(e)),
                4 => pair.write(SERVER, 30_000),
                _ => pair.script(|_| Edit::Lose),
            }
            pair.run_for(ms(25));
            for offset in offsets {
                for acked in offsets {
                    let mut bad = segment(&mut pair, offset, acked, b"hello");
                    bad.header.flags = TcpFlags(flags);
                    bad.header.options.sack.push(SackBlock { start: Seq(acked), end: Seq(offset) });
                    pair.inject(SERVER, 0, bad);
                }
            }
            pair.run_for(ms(2000));
            let rst = flags & TcpFlags::RST.0 != 0;
            let state = pair.states()[SERVER];
            assert!(rst || script != 0 || state != State::Closed, "flags {flags:06b}: {state:?}");
        }
    }
}

/// A segment made up near where the connection stands.
#[derive(Clone, Debug)]
struct Forged {
    to: usize,
    flags: u8,
    offset: u32,
    acked: u32,
    len: u64,
    window: u16,
    sack: (u32, u32),
    clock: u32,
    pause: u64,
}

fn forged() -> impl Strategy<Value = Forged> {
    let near = || prop_oneof![0u32..60_000, any::<u32>(), Just(u32::MAX), Just(0)];
    let one =
        (0..2usize, 0..64u8, near(), near(), 0..3000u64, any::<u16>(), (near(), near()), near(), 0..40u64);
    one.prop_map(|(to, flags, offset, acked, len, window, sack, clock, pause)| Forged {
        to,
        flags,
        offset,
        acked,
        len,
        window,
        sack,
        clock,
        pause,
    })
}

impl Forged {
    /// Its data is what the stream has there, so that only its place can do harm.
    fn segment(&self) -> Segment {
        let (from, to) = (1 - self.to, self.to);
        let mut header = TcpHeader {
            seq: ISN[from].plus(1).plus(self.offset),
            ack: ISN[to].plus(1).plus(self.acked),
            flags: TcpFlags(self.flags),
            window: self.window,
            ..TcpHeader::default()
        };
        let first = ISN[to].plus(1);
        header.options.sack.push(SackBlock { start: first.plus(self.sack.0), end: first.plus(self.sack.1) });
        header.options.timestamps =
            Some(Timestamps { value: self.clock.wrapping_add(ISN[from].0), echo: self.clock });
        let len = if self.offset < 1 << 31 { self.len } else { 0 }; // before the stream there is nothing
        let pattern = Pattern { key: from as u32, offset: u64::from(self.offset), len };
        Segment { header, payload: pattern.into(), ..Segment::default() }
    }
}

proptest! {
    /// Whatever is thrown at a transfer, nothing panics and no wrong byte is delivered (the pair checks).
    #[test]
    fn forged_segments_do_not_change_a_byte(
        segments in prop::collection::vec(forged(), 1..60),
        sack: bool,
        timestamps: bool,
        paths in 1..3usize,
    ) {
        let config = ConnectionConfig { sack, timestamps, ..prompt() };
        let mut pair = Pair::open(config, &[10, 15][..paths]);
        for segment in segments {
            pair.write(CLIENT, 20_000);
            pair.write(SERVER, 20_000);
            pair.inject(segment.to, (segment.pause % paths as u64) as u16, segment.segment());
            pair.run_for(ms(segment.pause));
        }
        pair.run_for(ms(60_000));
    }
}

/// A receiver that acknowledges in pieces gains nothing (RFC 3465 §2.1).
#[test]
fn split_acknowledgments_do_not_inflate_the_window() {
    let windows = [1u32, 10].map(|pieces| {
        let mut pair = Pair::open(prompt(), &[10]);
        pair.write(SERVER, 100_000);
        pair.run_for(ms(5));
        let sent = pair.log.iter().filter(|f| f.is_data_of(SERVER)).map(|f| f.offset() + f.len()).max();
        let sent = sent.unwrap() as u32;
        for i in 1..=pieces {
            let ack = segment(&mut pair, 0, (u64::from(sent) * u64::from(i) / u64::from(pieces)) as u32, b"");
            pair.inject(SERVER, 0, ack);
        }
        pair.end(SERVER).path_stats(PathId(0)).cwnd
    });
    assert!(windows[1] <= windows[0] + 20_000, "{windows:?}");
}
