//! Any bytes as a script of forged segments: no panic, no wrong byte, no endless answers.

use polypath_transport::{AckConfig, ConnectionConfig};
use polypath_wire::Seq;
use polypath_wire::tcp::{MultiRoute, SackBlock, TcpFlags, Timestamps};

use crate::common::{Bed, ISN, Pair, ms};

/// Answers to one segment, at most: what it lets the sender send, and acknowledgments.
const MOST_ANSWERS: usize = 2000;

/// Plays `script` against a connection under way.
///
/// The forger knows everything and may send anything but data that contradicts the stream and was not
/// there before: no TCP can tell such data from the peer's. He may well bring the transfer to a halt.
pub fn play(script: &[u8]) {
    let mut script = script.iter().copied();
    let Some(kind) = script.next() else { return };
    let config = ConnectionConfig {
        receive_buffer: if kind & 1 == 0 { 200_000 } else { 3_000 },
        sack: kind & 2 == 0,
        timestamps: kind & 4 == 0,
        window_scaling: kind & 8 == 0,
        acks: if kind & 64 == 0 { AckConfig::thinned() } else { AckConfig::Standard },
        ..Default::default()
    };
    let paths = 1 + usize::from(kind >> 4 & 3);
    // Whoever knows all before the handshake has it to himself: it is done.
    let mut pair = Pair::open(config, &[10; 4][..paths]);
    for end in 0..2 {
        pair.write(end, 400_000);
        pair.close(end);
    }
    pair.run_for(ms(5));
    while let Some(op) = script.next() {
        if op < 32 {
            pair.run_for(ms(u64::from(op) * 4));
            continue;
        }
        forged(&mut pair, op, &mut || script.next().unwrap_or(0));
    }
    pair.run_for(ms(20_000));
}

/// One forged segment: `op` says in what it differs from a plausible one.
fn forged(pair: &mut Pair, op: u8, byte: &mut impl FnMut() -> u8) {
    let to = usize::from(op & 1);
    let mut segment = pair.forge(to);
    let header = &mut segment.header;
    if op & 2 != 0 {
        header.seq = near(byte, &[header.seq, pair.seen[1 - to].nxt, ISN[1 - to]]);
    }
    if op & 4 != 0 {
        header.ack = near(byte, &[header.ack, pair.seen[to].nxt, ISN[to]]);
    }
    if op & 8 != 0 {
        let flags = byte();
        header.flags = TcpFlags(flags);
        header.window = u16::from(byte()) << (flags >> 4);
    }
    if op & 16 != 0 {
        for _ in 0..byte() & 3 {
            let start = near(byte, &[header.ack, pair.seen[to].nxt, ISN[to]]);
            header.options.sack.push(SackBlock { start, end: near(byte, &[start, header.ack]) });
        }
    }
    if op & 32 != 0 {
        let ts = header.options.timestamps.unwrap_or_default();
        let value = near(byte, &[Seq(ts.value)]).0;
        header.options.timestamps =
            (byte() > 20).then_some(Timestamps { value, echo: near(byte, &[Seq(ts.echo)]).0 });
        header.options.multi_route = Some(MultiRoute { route: byte(), reply: None });
    }
    let path = if op & 64 != 0 { byte() & 3 } else { 0 };
    if op & 128 != 0 {
        segment.payload = pair.truth(to, segment.header.seq, u64::from(byte()) * 8);
    }
    let before = pair.log.len();
    pair.inject(to, path.into(), segment);
    let answers = pair.log.len() - before;
    assert!(answers <= MOST_ANSWERS, "{answers} answers to one segment");
}

/// A number near one of `anchors`: within 128, 32768 or anywhere.
fn near(byte: &mut impl FnMut() -> u8, anchors: &[Seq]) -> Seq {
    let kind = byte();
    let anchor = anchors[usize::from(kind >> 4) % anchors.len()];
    let distance = match kind & 15 {
        0..=4 => i32::from(byte() as i8),
        5..=9 => i32::from(byte() as i8) * 1448,
        10..=14 => i32::from(byte() as i8) << 8,
        _ => i32::from(byte() as i8) << 24,
    };
    anchor.plus(distance as u32)
}
