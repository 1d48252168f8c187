//! Shared bottleneck detection by summary statistics of one-way delays (RFC 8382).
//!
//! | symbol | here |
//! |---|---|
//! | T, N, M, F | [`T`], [`N`], [`M`], [`F`] |
//! | E_T(OWD), num_T, skew_base_T, var_base_T | `Interval` |
//! | skew_est, var_est, freq_est, pkt_loss | `Summary`, with the weights of §4.1 and without the noise of §4.2 |
//! | c_s, c_h, p_l, p_f, p_mad, p_s, p_d, p_v | constants of §2.2 |
//!
//! Grouping is §3.3.1. Two paths are as alike as the share of the last [`HELD`] intervals in which they were grouped together
//! (§3.3.2 proposes 90 %), and nothing is said before 2·M intervals.
//!
//! For p_l the text has no value; 0.05 is ours.

use std::collections::VecDeque;

use polypath_wire::{Duration, Instant, PathId};

use super::detector::Detector;
use crate::path_map::PathMap;

/// The base interval.
pub(crate) const T: Duration = Duration::from_millis(350);
/// Intervals of oscillation and loss.
pub(crate) const N: usize = 50;
/// Intervals of skewness and variability.
pub(crate) const M: usize = 30;
/// Of these the latest that weigh the same.
pub(crate) const F: usize = 20;
const C_S: f64 = 0.1;
const C_H: f64 = 0.3;
const P_L: f64 = 0.05;
const P_F: f64 = 0.1;
const P_MAD: f64 = 0.1;
const P_S: f64 = 0.15;
const P_D: f64 = 0.1;
const P_V: f64 = 0.7;
/// Intervals over which groups must hold.
pub(crate) const HELD: usize = 10;

/// What one interval counted.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    /// Samples, and their sum, ms.
    count: f64,
    sum: f64,
    skew_base: f64,
    /// None while no bottleneck was found on the path (§4.2).
    var_base: Option<f64>,
    crossed: bool,
    lost: f64,
    delivered: f64,
}

/// The statistics of one path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Summary {
    skew: f64,
    var: f64,
    freq: f64,
    loss: f64,
}

#[derive(Debug, Default)]
struct Path {
    present: Interval,
    /// Sum of distances from the last interval's mean, ms.
    deviation: f64,
    /// The latest first.
    past: VecDeque<Interval>,
    /// E_T of the last interval that had samples, and the mean of the last M.
    last_mean: Option<f64>,
    mean: Option<f64>,
    /// On which side of the mean the last significant crossing ended.
    above: Option<bool>,
    /// PB: a bottleneck was found in the last interval.
    bottleneck: bool,
    summary: Summary,
    /// Its group in the last intervals, if it had one, the latest first.
    groups: VecDeque<Option<usize>>,
}

/// The method.
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    paths: PathMap<(PathId, Path)>,
    began: Option<Instant>,
    intervals: u64,
}

impl Detector for Statistics {
    fn on_delay(&mut self, path: PathId, _: Instant, queueing: Duration, _: Duration) {
        self.path(path).sample(queueing.as_millis_f64());
    }

    fn on_delivered(&mut self, path: PathId, packets: u32) {
        self.path(path).present.delivered += f64::from(packets);
    }

    fn on_loss(&mut self, path: PathId, _: Instant) {
        self.path(path).present.lost += 1.0;
    }

    fn forget(&mut self, path: PathId) {
        self.paths.remove(path);
    }

    fn advance(&mut self, now: Instant) {
        let mut from = *self.began.get_or_insert(now);
        while now.since(from) >= T {
            from += T;
            self.intervals += 1;
            self.paths.iter_mut().for_each(|(_, path)| path.end_interval());
            let groups = group(self.paths.as_slice());
            self.paths.iter_mut().zip(groups).for_each(|((_, path), group)| path.join(group));
        }
        self.began = Some(from);
    }

    fn likeness(&mut self, _: Instant, _: Instant, (a, b): (PathId, PathId)) -> Option<f64> {
        let groups = |path| self.paths.get(path).into_iter().flat_map(|(_, path)| &path.groups);
        let together = groups(a).zip(groups(b)).filter(|(a, b)| a.is_some() && a == b).count();
        (self.intervals >= 2 * M as u64).then_some(together as f64 / HELD as f64)
    }
}

impl Statistics {
    fn path(&mut self, path: PathId) -> &mut Path {
        &mut self.paths.or_insert(path, |id| (id, Path::default())).1
    }
}

impl Path {
    fn sample(&mut self, delay: f64) {
        self.present.count += 1.0;
        self.present.sum += delay;
        match self.mean {
            Some(mean) if delay < mean => self.present.skew_base += 1.0,
            Some(mean) if delay > mean => self.present.skew_base -= 1.0,
            _ => {}
        }
        self.deviation += self.last_mean.map_or(0.0, |mean| (delay - mean).abs());
    }

    fn end_interval(&mut self) {
        let mut ended = std::mem::take(&mut self.present);
        let deviation = std::mem::take(&mut self.deviation);
        ended.var_base = self.bottleneck.then_some(deviation);
        if ended.count > 0.0 {
            let mean = ended.sum / ended.count;
            self.last_mean = Some(mean);
            ended.crossed = self.bottleneck && self.crosses(mean);
        }
        self.past.push_front(ended);
        self.past.truncate(N);
        let means = self.past.iter().take(M).filter(|i| i.count > 0.0).map(|i| i.sum / i.count);
        let (sum, count) = means.fold((0.0, 0.0), |(sum, count), mean| (sum + mean, count + 1.0));
        self.mean = (count > 0.0).then(|| sum / count);
        self.summary = self.summed_up();
        let Summary { skew, loss, .. } = self.summary;
        self.bottleneck = ended.count > 0.0 && (skew < C_S || (skew < C_H && self.bottleneck) || loss > P_L);
    }

    /// The interval that ended found it in `group`.
    fn join(&mut self, group: Option<usize>) {
        self.groups.push_front(group);
        self.groups.truncate(HELD);
    }

    /// Whether the mean of an interval crosses the long-term one by p_v · var_est, seen from the last crossing (§3.2.4).
    fn crosses(&mut self, mean: f64) -> bool {
        let Some(long) = self.mean else { return false };
        let far = P_V * self.summary.var;
        let side = if mean > long + far { Some(true) } else { (mean < long - far).then_some(false) };
        let crossed = side.is_some() && self.above.is_some() && side != self.above;
        self.above = side.or(self.above);
        crossed
    }

    fn summed_up(&self) -> Summary {
        let weight = |n: usize| if n < F { M - F + 1 } else { M - n } as f64;
        let recent = || self.past.iter().take(M).enumerate();
        let weighted = |of: &dyn Fn(&Interval) -> f64| recent().map(|(n, i)| weight(n) * of(i)).sum::<f64>();
        let samples = weighted(&|i| i.count);
        let of_valid = weighted(&|i| if i.var_base.is_some() { i.count } else { 0.0 });
        let all = |of: fn(&Interval) -> f64| self.past.iter().map(of).sum::<f64>();
        let (lost, delivered) = (all(|i| i.lost), all(|i| i.delivered));
        let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        Summary {
            skew: ratio(weighted(&|i| i.skew_base), samples),
            var: ratio(weighted(&|i| i.var_base.unwrap_or(0.0)), of_valid),
            freq: all(|i| f64::from(u8::from(i.crossed))) / N as f64,
            loss: ratio(lost, lost + delivered),
        }
    }
}

/// The group of each path that has a bottleneck: divided in turn by freq_est, var_est, skew_est and, where it is high, by
/// pkt_loss (§3.3.1).
fn group(paths: &[(PathId, Path)]) -> Vec<Option<usize>> {
    let found = |n: &usize| paths[*n].1.bottleneck;
    let summary = |n: usize| paths[n].1.summary;
    let mut groups: Vec<Vec<usize>> = vec![(0..paths.len()).filter(found).collect()];
    groups = divided(groups, |n| summary(n).freq, |_| P_F);
    groups = divided(groups, |n| summary(n).var, |highest| P_MAD * highest);
    groups = divided(groups, |n| summary(n).skew, |_| P_S);
    groups = groups
        .into_iter()
        .flat_map(|group| match group.iter().any(|n| summary(*n).loss > P_L) {
            true => divided(vec![group], |n| summary(n).loss, |highest| P_D * highest),
            false => vec![group],
        })
        .collect();
    let mut of = vec![None; paths.len()];
    groups.iter().enumerate().for_each(|(g, group)| group.iter().for_each(|n| of[*n] = Some(g)));
    of
}

/// Each group sorted from the highest to the lowest value and cut where two neighbours differ by `threshold` of the higher.
fn divided(
    groups: Vec<Vec<usize>>,
    value: impl Fn(usize) -> f64,
    threshold: impl Fn(f64) -> f64,
) -> Vec<Vec<usize>> {
    let mut parts = Vec::new();
    for mut group in groups {
        group.sort_by(|a, b| value(*b).total_cmp(&value(*a)));
        let cut = |a: &usize, b: &usize| value(*a) - value(*b) < threshold(value(*a)).max(f64::MIN_POSITIVE);
        parts.extend(group.chunk_by(cut).map(<[usize]>::to_vec));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `intervals` of T with a sample every 10 ms on each path: delays in ms at a time in ms.
    fn fed(intervals: u64, delays: &[fn(u64) -> f64]) -> Statistics {
        let mut s = Statistics::default();
        s.advance(Instant::ZERO);
        for ms in (0..intervals * 350).step_by(10) {
            let now = Instant::ZERO + Duration::from_millis(ms);
            s.advance(now);
            for (path, delay) in (0..).map(PathId).zip(delays) {
                s.on_delay(path, now, Duration::from_secs_f64(delay(ms) / 1e3), Duration::ZERO);
                s.on_delivered(path, 1);
            }
        }
        s.advance(Instant::ZERO + Duration::from_millis(intervals * 350));
        s
    }

    /// Nine tenths of the samples 1 ms above the mean's other side.
    fn mostly_high(ms: u64) -> f64 {
        if (ms / 10).is_multiple_of(10) { 0.0 } else { 10.0 }
    }

    fn mostly_low(ms: u64) -> f64 {
        10.0 - mostly_high(ms)
    }

    #[test]
    fn skewness_counts_samples_below_the_mean_less_those_above() {
        let s = fed(80, &[mostly_high, mostly_low]);
        let path = |n: u16| &s.paths[PathId(n)].1;
        let skew = |n: u16| path(n).summary.skew;
        assert!((skew(0) + 0.8).abs() < 0.01 && (skew(1) - 0.8).abs() < 0.01, "{} {}", skew(0), skew(1));
        assert!(path(0).bottleneck && !path(1).bottleneck);
    }

    #[test]
    fn variability_is_the_mean_distance_from_the_last_mean() {
        let s = fed(80, &[mostly_high]);
        // mean 9: nine of ten are 1 away and one is 9 away
        let var = s.paths[PathId(0)].1.summary.var;
        assert!((var - 1.8).abs() < 0.05, "{var}");
    }

    #[test]
    fn oscillations_are_counted_that_leave_the_mean_by_more_than_the_variability() {
        fn slow(ms: u64) -> f64 {
            mostly_high(ms) + if (ms / 3500).is_multiple_of(2) { 0.0 } else { 30.0 }
        }
        let s = fed(120, &[slow]);
        // one crossing each 10 intervals
        let freq = s.paths[PathId(0)].1.summary.freq;
        assert!((freq - 0.1).abs() < 0.021, "{freq}");
    }

    #[test]
    fn paths_with_like_statistics_are_grouped_and_others_are_not() {
        fn wider(ms: u64) -> f64 {
            1.5 * mostly_high(ms)
        }
        let mut s = fed(100, &[mostly_high, mostly_high, wider, mostly_low]);
        let mut like = |a, b| s.likeness(Instant::ZERO, Instant::ZERO, (PathId(a), PathId(b)));
        assert_eq!(
            [like(0, 1), like(0, 2), like(0, 3), like(3, 3)],
            [Some(1.0), Some(0.0), Some(0.0), Some(0.0)]
        );
        assert_eq!(
            fed(59, &[mostly_high, mostly_high]).likeness(
                Instant::ZERO,
                Instant::ZERO,
                (PathId(0), PathId(1))
            ),
            None
        );
    }

    #[test]
    fn the_groups_of_a_path_that_is_gone_say_nothing_of_the_next_in_its_place() {
        let (mut s, next) = (fed(100, &[mostly_high, mostly_high]), PathId(PathId::PLACES as u16));
        let mut like = |a| s.likeness(Instant::ZERO, Instant::ZERO, (a, PathId(1)));
        assert_eq!((like(PathId(0)), like(next)), (Some(1.0), Some(0.0)));
        s.forget(PathId(0));
        s.on_delivered(next, 1);
        let mut like = |a| s.likeness(Instant::ZERO, Instant::ZERO, (a, PathId(1)));
        assert_eq!((like(PathId(0)), like(next)), (Some(0.0), Some(0.0)));
    }
}
