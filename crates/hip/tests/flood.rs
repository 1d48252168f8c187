//! 10,000 I1 and as many bogus I2 a second: memory stays flat, and a friend gets in meanwhile.
//! Alone in its process, whose memory it reads.
#![allow(clippy::unwrap_used, reason = "test helpers")]

#[path = "common/pair.rs"]
mod pair;

use std::net::SocketAddr;

use pair::*;
use polypath_hip::*;
use polypath_wire::hip::{PacketType, PacketView, Param};
use polypath_wire::{Checksum, Duration, Instant};

/// Between two packets of each kind.
const GAP: Duration = Duration::from_micros(100);

/// A flood from addresses and HITs that are never the same.
struct Flood {
    i1: Vec<u8>,
    i2: Vec<u8>,
    count: u32,
}

impl Flood {
    fn new() -> Self {
        let mut other = Pair::quick();
        other.hosts[1] = Host::new(identity(KeyKind::P256, 2), quick(), [99; 32], 100, Instant::ZERO);
        let sent = other.established().sent;
        let of = |which| sent.iter().find(|s| s.packet_type() == which).unwrap().payload.clone();
        Self { i1: of(PacketType::I1), i2: of(PacketType::I2), count: 0 }
    }

    /// An I1, and an I2 that answers no puzzle of ours, or one of ours wrongly; whether an R1 came.
    fn strike(&mut self, host: &mut Host, now: Instant) -> bool {
        self.count += 1;
        let remote = SocketAddr::from((self.count.wrapping_mul(2_654_435_761).to_be_bytes(), 10_500));
        let route = Route { local: address(1, 0), remote };
        self.i1[4 + 16..4 + 20].copy_from_slice(&self.count.to_be_bytes());
        host.handle(now, route, &self.i1);
        let r1 = std::iter::from_fn(|| host.poll_transmit()).last();
        let i2 = match &r1 {
            Some(r1) if self.count.is_multiple_of(2) => self.guess(&r1.payload),
            _ => self.i2.clone(),
        };
        host.handle(now, route, &i2);
        while host.poll_transmit().is_some() {}
        r1.is_some()
    }

    /// An I2 with the puzzle of `r1` and a solution that nobody worked for.
    fn guess(&self, r1: &[u8]) -> Vec<u8> {
        let puzzle = PacketView::new(&r1[4..]).unwrap().values().unwrap();
        let puzzle = puzzle.into_iter().find_map(|p| if let Param::Puzzle(p) = p { Some(p) } else { None });
        let puzzle = puzzle.unwrap();
        let mut packet = polypath_wire::hip::Packet::parse(&PacketView::new(&self.i2[4..]).unwrap()).unwrap();
        packet.sender = PacketView::new(&self.i1[4..]).unwrap().sender();
        for param in &mut packet.params {
            if let Param::Solution(s) = param {
                (s.difficulty, s.opaque) = (puzzle.difficulty, puzzle.opaque);
                s.random.clone_from(&puzzle.random);
            }
        }
        [&[0; 4], &packet.emit(Checksum::Unused).unwrap()[..]].concat()
    }
}

/// Pages that this process holds.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn memory_stays_flat_and_a_friend_gets_in() {
    let mut pair = Pair::quick();
    let mut flood = Flood::new();
    let at = |n: u32| Instant::ZERO + GAP.times(n.into());
    let mut answered = 0;
    let strike = |pair: &mut Pair, flood: &mut Flood, n| flood.strike(&mut pair.hosts[1], at(n));
    for n in 0..20_000 {
        answered += u32::from(strike(&mut pair, &mut flood, n));
    }
    let before = resident();
    for n in 20_000..60_000 {
        answered += u32::from(strike(&mut pair, &mut flood, n));
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 64, "{grown} pages more after 40,000 I1 and 40,000 I2");
    assert!(answered > 50_000, "strangers get R1s: {answered}");
    assert_eq!(pair.hosts[1].associations().count(), 0, "nothing is kept about strangers");
    assert!(pair.hosts[1].dropped(DropReason::Puzzle) > 50_000);

    // The flood goes on while a friend connects.
    pair.now = at(60_000);
    pair.connect(0);
    let mut n = 60_000;
    while !pair.is_up() && n < 200_000 {
        strike(&mut pair, &mut flood, n);
        pair.run(GAP);
        n += 1;
    }
    assert!(pair.is_up(), "{:?} after {} s of flood", pair.states(), (n - 60_000) / 10_000);
    pair.assert_sas_match();
    let r1 = pair.sent.iter().find(|s| s.packet_type() == PacketType::R1).unwrap();
    let view = PacketView::new(r1.packet()).unwrap();
    let Some(Param::Puzzle(puzzle)) =
        view.values().unwrap().into_iter().find(|p| matches!(p, Param::Puzzle(_)))
    else {
        panic!()
    };
    assert!(puzzle.difficulty >= 12, "the friend worked for it: {}", puzzle.difficulty);
}
