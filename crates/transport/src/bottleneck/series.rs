//! Queueing delays of one path over time, in bins of equal width.

use polypath_wire::{Duration, Instant};

/// Width of a bin.
pub(crate) const BIN: Duration = Duration::from_millis(10);
/// How many bins are remembered.
const BINS: u64 = 2048;

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    sum: f32,
    count: f32,
}

/// The last 20 s of one path.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    bins: Vec<Bin>,
    /// Number of the newest bin since the start of time.
    newest: u64,
}

impl Default for Series {
    fn default() -> Self {
        Self { bins: vec![Bin::default(); BINS as usize], newest: 0 }
    }
}

impl Series {
    /// A packet that left at `at` waited for `delay`.
    pub(crate) fn add(&mut self, at: Instant, delay: Duration) {
        let number = at.0 / BIN.0;
        if number + BINS <= self.newest {
            return;
        }
        let first_new = (self.newest + 1).max((number + 1).saturating_sub(BINS));
        (first_new..=number).for_each(|n| self.bins[(n % BINS) as usize] = Bin::default());
        self.newest = self.newest.max(number);
        let bin = &mut self.bins[(number % BINS) as usize];
        bin.sum += delay.as_millis_f64() as f32;
        bin.count += 1.0;
    }

    /// Mean delays between two instants, ms, `width` bins each; NaN where nothing was measured.
    pub(crate) fn means(&self, from: Instant, to: Instant, width: u64) -> Vec<f32> {
        let width = width.max(1);
        let oldest = (self.newest + 1).saturating_sub(BINS);
        let (first, last) = (from.0 / BIN.0 / width, to.0 / BIN.0 / width);
        let mean = |n: u64| {
            let known = (n * width..(n + 1) * width).filter(|b| (oldest..=self.newest).contains(b));
            let all = known.map(|b| self.bins[(b % BINS) as usize]);
            let Bin { sum, count } =
                all.fold(Bin::default(), |a, b| Bin { sum: a.sum + b.sum, count: a.count + b.count });
            sum / count
        };
        (first..last).map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    #[test]
    fn bins_have_the_mean_of_what_left_in_them_and_none_where_nothing_did() {
        let mut series = Series::default();
        [(1000, 4), (1005, 6), (1021, 8), (1045, 2)].iter().for_each(|(t, q)| series.add(at(*t), MS(*q)));
        let narrow = series.means(at(1000), at(1050), 1);
        assert_eq!((narrow[0], narrow[2], narrow[4]), (5.0, 8.0, 2.0));
        assert!(narrow[1].is_nan() && narrow[3].is_nan());
        assert_eq!(series.means(at(1000), at(1040), 2), [5.0, 8.0]);
    }

    #[test]
    fn what_is_older_than_the_memory_is_gone() {
        let mut series = Series::default();
        series.add(at(5), MS(9));
        series.add(at(20_485), MS(3));
        assert!(series.means(at(0), at(10), 1)[0].is_nan());
        series.add(at(5), MS(9));
        assert_eq!(series.means(at(20_480), at(20_490), 1), [3.0]);
    }
}
