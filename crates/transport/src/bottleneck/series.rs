//! Queueing delays of one path over time, in bins of equal width.

use polypath_wire::{Duration, Instant};

/// Width of a bin.
pub(crate) const BIN: Duration = Duration::from_millis(5);
/// How many bins are remembered.
const BINS: u64 = 2048;

/// The delays of one bin, ms.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bin {
    sum: f32,
    count: f32,
}

impl Bin {
    /// Their mean; none if nothing was measured.
    pub(crate) fn mean(self) -> Option<f32> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

/// The last 10 s of one path.
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

    /// Whether nothing in it is of the last 10 s before `now`.
    pub(crate) fn is_old(&self, now: Instant) -> bool {
        now.0 / BIN.0 >= self.newest + BINS
    }

    /// The bins from the one that `from` is in to before the one that `to` is in.
    pub(crate) fn between(&self, from: Instant, to: Instant) -> impl Iterator<Item = Bin> {
        let known = (self.newest + 1).saturating_sub(BINS)..=self.newest;
        let bin = move |n: u64| match known.contains(&n) {
            true => self.bins[(n % BINS) as usize],
            false => Bin::default(),
        };
        (from.0 / BIN.0..to.0 / BIN.0).map(bin)
    }
}

/// The same delays in bins of twice the width, counted from the first; the last may be half as wide.
pub(crate) fn widened(bins: &[Bin]) -> Vec<Bin> {
    let join = |a: Bin, b: &Bin| Bin { sum: a.sum + b.sum, count: a.count + b.count };
    bins.chunks(2).map(|pair| pair.iter().fold(Bin::default(), join)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    fn means(bins: impl IntoIterator<Item = Bin>) -> Vec<Option<f32>> {
        bins.into_iter().map(Bin::mean).collect()
    }

    #[test]
    fn bins_have_the_mean_of_what_left_in_them_and_none_where_nothing_did() {
        let mut series = Series::default();
        [(1000, 4), (1002, 6), (1010, 8), (1022, 2)].iter().for_each(|(t, q)| series.add(at(*t), MS(*q)));
        let bins: Vec<Bin> = series.between(at(1000), at(1025)).collect();
        assert_eq!(means(widened(&bins)), [Some(5.0), Some(8.0), Some(2.0)]);
        assert_eq!(means(bins), [Some(5.0), None, Some(8.0), None, Some(2.0)]);
    }

    #[test]
    fn what_is_older_than_the_memory_is_gone() {
        let mut series = Series::default();
        series.add(at(5), MS(9));
        series.add(at(10_245), MS(3));
        assert!(!series.is_old(at(20_484)) && series.is_old(at(20_485)));
        assert_eq!(means(series.between(at(5), at(10))), [None]);
        series.add(at(5), MS(9));
        assert_eq!(means(series.between(at(10_245), at(10_250))), [Some(3.0)]);
    }
}
