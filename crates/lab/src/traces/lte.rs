//! A cellular link as Sprout models it (K. Winstein, A. Sivaraman, H. Balakrishnan, Stochastic Forecasts Achieve High Throughput
//! and Low Delay over Cellular Networks, NSDI 2013, §3): packets are a Poisson process whose rate λ is a Brownian motion, and
//! an outage, λ = 0, is sticky. The numbers are those of the authors' program (`src/sprout/receiver.hh` of Sprout), but for what comes after an outage: it draws λ anew, as with a step from
//! 0 the next outage would follow at once. A mean other than the usual one scales the rates.

use polypath_hop::trace::OPPORTUNITY;
use polypath_wire::Rate;

use super::Dice;

/// What the numbers below make in the mean, of 1500-byte packets.
pub(super) const MEAN: Rate = Rate(7_000_000);
/// Largest λ, packets/s.
const PEAK: f64 = 1000.0;
/// σ, packets/s/√s.
const NOISE: f64 = 200.0;
/// λz, outages that end in a second.
const LEAVE: f64 = 1.0;
/// Milliseconds from one λ to the next.
const TICK: u32 = 20;
/// √0.02.
const ROOT_OF_TICK: f64 = 0.141_421_356_237_309_5;
/// A millisecond has this many parts for each packet that is expected in it, so that packets come almost as a Poisson process.
const FINE: f64 = 8.0;

pub(super) fn draw(dice: &mut Dice, length: u32, mean: Rate) -> Vec<u32> {
    let scale = mean.0 as f64 / MEAN.0 as f64;
    let mut rate = PEAK * dice.unit();
    let mut opportunities = Vec::with_capacity((mean.0 / u64::from(OPPORTUNITY * 8)) as usize);
    for ms in 1..length {
        if ms % TICK == 0 {
            rate = next(dice, rate);
        }
        let expected = rate * scale / 1000.0;
        let parts = (expected * FINE) as u32 + 1;
        let packets = (0..parts).filter(|_| dice.unit() < expected / f64::from(parts)).count();
        opportunities.extend(std::iter::repeat_n(ms, packets));
    }
    opportunities
}

/// λ a tick later: reflected at its peak; one that falls to nothing stays there until it leaves the outage.
fn next(dice: &mut Dice, rate: f64) -> f64 {
    if rate == 0.0 {
        let leaves = dice.unit() < LEAVE * f64::from(TICK) / 1000.0;
        return if leaves { PEAK * dice.unit() } else { 0.0 };
    }
    let moved = rate + NOISE * ROOT_OF_TICK * dice.normal();
    if moved > PEAK { 2.0 * PEAK - moved } else { moved.max(0.0) }
}
