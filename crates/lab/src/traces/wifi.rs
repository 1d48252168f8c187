//! A channel that several stations share, each sending many frames as one A-MPDU, which arrive together (IEEE 802.11n). The rate
//! of the radio is one of the eight of two streams at 20 MHz with the long guard interval (IEEE 802.11n, MCS 8 to 15), and
//! moves a step up or down as the sender probes. A transmission lasts 4 ms, below the standard's 5.484 ms: 43 frames of 1500
//! bytes at most, fewer than the 64 of a block acknowledgment. How often the rate moves, how often others have the channel, and
//! what a transmission costs beside its data are our choice; a mean other than the usual one scales the rates.

use polypath_wire::Rate;

use super::{Dice, Filled};

/// What the numbers below make in the mean.
pub(super) const MEAN: Rate = Rate(37_000_000);
/// Mbit/s with MCS 8 to 15, guard interval 800 ns.
const RADIO: [f64; 8] = [13.0, 26.0, 39.0, 52.0, 78.0, 104.0, 117.0, 130.0];
/// Milliseconds until the rate may move.
const PROBE: f64 = 100.0;
/// A transmission, ms.
const LASTS: f64 = 4.0;
/// Milliseconds that a transmission costs beside its data: contention, preamble, acknowledgment.
const COST: f64 = 0.25;
/// Another station has the next turn with this probability.
const OTHERS: f64 = 0.5;

pub(super) fn draw(dice: &mut Dice, length: u32, mean: Rate) -> Vec<u32> {
    let scale = mean.0 as f64 / MEAN.0 as f64;
    let mut step = dice.below(RADIO.len() as u64) as usize;
    let (mut now, mut probe) = (0.0, PROBE); // ms
    let mut filled = Filled::default();
    loop {
        while now >= probe {
            step = moved(dice, step);
            probe += PROBE;
        }
        now += COST + LASTS;
        if now >= f64::from(length) {
            return filled.opportunities;
        }
        filled.carry(now as u32, RADIO[step] * 1000.0 * scale * LASTS);
        while dice.unit() < OTHERS {
            now += COST + LASTS * (0.5 + 0.5 * dice.unit());
        }
    }
}

/// A step up, a step down, or none.
fn moved(dice: &mut Dice, step: usize) -> usize {
    match dice.below(3) {
        0 => step.saturating_sub(1),
        1 => (step + 1).min(RADIO.len() - 1),
        _ => step,
    }
}
