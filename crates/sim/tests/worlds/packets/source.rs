//! What sends packets.

use polypath_transport::flow::Packet;
use polypath_wire::{Duration, Instant, Seed};

use crate::dice::Dice;

/// Bytes of a packet that say which it is.
const NAME: usize = 10;

/// Packets of one flow, in bursts.
pub struct Source {
    like: Packet,
    sizes: (u64, u64),
    pub burst: u64,
    pub pause: Duration,
    pub next: Instant,
    number: u64,
    pub left: u64,
    dice: Dice,
}

impl Source {
    pub fn new(seed: Seed, flow: u16, calm: Instant) -> Self {
        let mut dice = Dice::new(seed);
        let small = dice.scale(NAME as u64, 1500);
        let like = Packet {
            flow,
            class: dice.below(3) as u8,
            repaired: dice.chance(0.4),
            twice: dice.chance(0.2),
            ..Packet::default()
        };
        Self {
            like,
            sizes: (small, dice.between(small, 1600)),
            burst: dice.scale(1, 200),
            pause: Duration::from_micros(dice.scale(50, 3_000_000)),
            next: Instant(dice.between(0, calm.0)),
            number: 0,
            left: dice.scale(1, 600),
            dice,
        }
    }

    /// One that sends after the calm, slowly.
    pub fn last(seed: Seed, calm: Instant) -> Self {
        let next = calm + Duration::from_secs(5);
        let pause = Duration::from_secs(1);
        Self { burst: 1, pause, next, left: 40, sizes: (NAME as u64, 100), ..Self::new(seed, 99, calm) }
    }

    pub fn packet(&mut self) -> Packet {
        let len = self.dice.between(self.sizes.0, self.sizes.1) as usize;
        let mut bytes = vec![self.number as u8 ^ self.like.flow as u8; len];
        bytes[..2].copy_from_slice(&self.like.flow.to_be_bytes());
        bytes[2..NAME].copy_from_slice(&self.number.to_be_bytes());
        self.number += 1;
        self.left -= 1;
        Packet { bytes: bytes.into(), ..self.like.clone() }
    }
}

/// The flow and the number of a packet.
pub fn name(bytes: &[u8]) -> (u16, u64) {
    let number = bytes[2..NAME].try_into().map_or(0, u64::from_be_bytes);
    (u16::from_be_bytes([bytes[0], bytes[1]]), number)
}
