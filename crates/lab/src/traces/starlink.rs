//! A link over satellites that are assigned anew every 15 s, everywhere at once: latency and throughput change at these instants
//! (N. Mohan and others, A Multifaceted Look at Starlink Performance, WWW 2024; H. B. Tanveer and others, Making Sense of
//! Constellations, CoNEXT 2023). 100 to 200 Mbit/s are promised, more than 300 Mbit/s were seen (F. Michel and others, A First Look at Starlink
//! Performance, IMC 2022). How long the pause is and how the rate trembles in between are our choice.

use polypath_wire::Rate;

use super::{Dice, Filled};

/// The middle of what is promised.
pub(super) const MEAN: Rate = Rate(150_000_000);
/// Milliseconds between two assignments.
const INTERVAL: u32 = 15_000;
/// The rate of an interval over the mean, least and span.
const LEAST: f64 = 0.5;
const SPAN: f64 = 1.0;
/// Milliseconds without a packet at an assignment, least and span.
const PAUSE: (u32, u64) = (30, 71);
/// The rate changes each time this many milliseconds have passed, by at most this share above or below the rate of the interval.
const TREMBLE: (u32, f64) = (100, 0.15);

pub(super) fn draw(dice: &mut Dice, length: u32, mean: Rate) -> Vec<u32> {
    let mean = mean.0 as f64 / 1000.0; // bits a millisecond
    let first = dice.below(u64::from(INTERVAL)) as u32; // the intervals do not begin when we do
    let (mut interval, mut rate, mut resumes) = (LEAST + SPAN * dice.unit(), 1.0, 0);
    let mut filled = Filled::default();
    for ms in 1..length {
        if ms % INTERVAL == first {
            interval = LEAST + SPAN * dice.unit();
            resumes = ms + PAUSE.0 + dice.below(PAUSE.1) as u32;
        }
        if ms % TREMBLE.0 == 0 {
            rate = 1.0 + TREMBLE.1 * (2.0 * dice.unit() - 1.0);
        }
        if ms >= resumes {
            filled.carry(ms, mean * interval * rate);
        }
    }
    filled.opportunities
}
