//! A source of datagrams under way, and its sink.

use polypath_wire::{Duration, Instant, Seed};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

use crate::delay::{Datagrams, Delays};
use crate::packet::Datagram;
use crate::traffic::SourceConfig;

/// A source of datagrams in a world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SourceId(pub(crate) u32);

/// What became of a source's datagrams.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct SourceReport {
    /// What it is called.
    pub name: String,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received, duplicates and damaged ones included.
    pub received: u64,
    /// Bytes received, headers included.
    pub bytes: u64,
    /// Bytes received in each span of the world's `bin`.
    pub bins: Vec<u64>,
    /// Datagrams received after a later one, or again.
    pub out_of_order: u64,
    /// Datagrams received with flipped bits.
    pub corrupted: u64,
}

#[derive(Debug)]
pub(crate) struct Source {
    pub config: SourceConfig,
    rng: Pcg64Mcg,
    /// When the present time on ends.
    on_until: Instant,
    /// What the divisions by the rate left over, bit-nanoseconds.
    carry: u64,
    /// The number after the highest received.
    expected: u64,
    /// Which numbers were received, a bit each.
    seen: Vec<u64>,
    bin: Duration,
    watch: Option<Datagrams>,
    pub report: SourceReport,
}

impl Source {
    pub fn new(config: SourceConfig, bin: Duration, delays: bool, seed: Seed) -> Self {
        let report = SourceReport { name: config.name.clone(), ..SourceReport::default() };
        let rng = Pcg64Mcg::seed_from_u64(seed.0);
        let (on_until, watch) = (Instant::MAX, delays.then(Datagrams::default));
        let mut source =
            Self { config, rng, on_until, carry: 0, expected: 0, seen: Vec::new(), bin, watch, report };
        source.begin(source.config.start);
        source
    }

    /// When the next datagram leaves, after one that leaves `now`.
    pub fn next(&mut self, now: Instant) -> Option<Instant> {
        let mut at = now + self.interval();
        if at >= self.on_until {
            let off = self.config.pauses.map_or(Duration::ZERO, |p| p.off);
            at = self.on_until.max(now) + self.span(off);
            self.begin(at);
        }
        Some(at).filter(|at| self.config.stop.is_none_or(|stop| *at < stop))
    }

    /// Counts a datagram sent; its number.
    pub fn sent(&mut self, now: Instant) -> u64 {
        self.watch.iter_mut().for_each(|watch| watch.sent(now));
        self.report.sent += 1;
        self.report.sent - 1
    }

    /// How long datagrams were under way, if that is watched.
    pub fn delays(&self) -> Option<&Delays> {
        self.watch.as_ref().map(|watch| &watch.delays)
    }

    /// Whether the datagram `number` was received.
    pub fn has_received(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen.get(word).is_some_and(|seen| seen & bit != 0)
    }

    /// Datagrams of which no copy was received, although `under_way` of them still may.
    pub fn missing(&self, under_way: u64) -> u64 {
        let received: u64 = self.seen.iter().map(|word| u64::from(word.count_ones())).sum();
        self.report.sent - received - under_way
    }

    /// Counts a datagram received.
    pub fn received(&mut self, now: Instant, datagram: Datagram, size: u32) {
        let report = &mut self.report;
        report.received += 1;
        report.bytes += u64::from(size);
        report.corrupted += u64::from(datagram.corrupted);
        report.out_of_order += u64::from(datagram.number < self.expected);
        self.expected = self.expected.max(datagram.number + 1);
        let (word, bit) = place(datagram.number);
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        self.seen[word] |= bit;
        if let Some(watch) = &mut self.watch {
            watch.received(now, datagram.number, u64::from(size));
        }
        if self.bin > Duration::ZERO {
            let bin = (now.0 / self.bin.0) as usize;
            if bin >= report.bins.len() {
                report.bins.resize(bin + 1, 0);
            }
            report.bins[bin] += u64::from(size);
        }
    }

    fn begin(&mut self, at: Instant) {
        if let Some(pauses) = self.config.pauses {
            self.on_until = at + self.span(pauses.on);
        }
    }

    fn interval(&mut self) -> Duration {
        let rate = self.config.rate.0.max(1);
        let work = u64::from(self.config.size) * 8 * 1_000_000_000 + self.carry;
        self.carry = work % rate;
        let even = work / rate;
        if self.config.randomness == 0.0 {
            return Duration(even);
        }
        let factor = 1.0 + self.config.randomness * (self.uniform() - 0.5);
        Duration((even as f64 * factor) as u64)
    }

    /// A time on or off with this mean.
    fn span(&mut self, mean: Duration) -> Duration {
        if self.config.pauses.is_some_and(|p| p.exponential) {
            return Duration((mean.0 as f64 * -ln(1.0 - self.uniform())) as u64);
        }
        mean
    }

    /// Uniform in 0 ≤ u < 1.
    fn uniform(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Where the bit of a datagram is: the word, and the bit in it.
fn place(number: u64) -> (usize, u64) {
    ((number / 64) as usize, 1 << (number % 64))
}

/// Natural logarithm from additions, multiplications and divisions only, which IEEE 754 defines to the
/// last bit: the standard library's differs between platforms.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    // ln m = 2 artanh((m − 1) / (m + 1)), a series in squares below 1/9.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..20).rev().fold(0.0, |sum, k| sum * t * t + 1.0 / f64::from(2 * k + 1));
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * t * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_one() {
        for x in [1.0, 0.5, 0.1, 1e-9, 0.999_999, 3.0, 1e9] {
            assert!((ln(x) - f64::ln(x)).abs() < 1e-12 * f64::ln(x).abs().max(1.0), "ln {x}");
        }
    }
}
