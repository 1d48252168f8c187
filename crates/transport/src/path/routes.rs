//! What R-M/TCP estimates of its routes (Rojviboonchai, Osuga and Aida, §2.2, §3.1).
//!
//! | symbol | here |
//! |---|---|
//! | OWTT_xf, OWTT_yr | `forward`, `reverse`, nanoseconds up to the peer's clock offset θ |
//! | M_xf, M_yr | what one acknowledgment says of them |
//! | AckedInfoList of (seqno, stime, length, atime, aroute) | `acked` of [`AckedInfo`] |
//! | RTT_R,avg, RTT_R,avg,min | [`Routes::rtt`], `min_rtt` |
//! | bw_R | `bandwidth` |
//!
//! The paper refers to another for the measurement of OWTT. Here timestamps give it: an acknowledgment
//! that left at the peer's TSval and came by route y says M_yr = arrival − TSval (+ θ), and the round trip
//! of the segment it answers, sent by route x, says M_xf = RTT − M_yr (− θ). Only sums of a forward and a
//! reverse time are ever used, and θ is not in them. Both are smoothed as SRTT is, by 1/8.
//!
//! An entry of the list stands for what one acknowledgment delivered on the route: one packet, unless
//! acknowledgments were lost or delayed.

use std::collections::VecDeque;

use polypath_wire::{Duration, Instant, PathId, Rate};

use crate::facts::RouteEstimate;
use crate::path_map::{OfPath, PathMap};

/// An entry of the AckedInfoList.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct AckedInfo {
    /// seqno: stream offset of the latest packet.
    pub offset: u64,
    /// stime: when it was sent.
    pub sent_at: Instant,
    /// length, bytes.
    pub len: u64,
    /// atime: when its acknowledgment arrived.
    pub acked_at: Instant,
    /// aroute: by which route.
    pub via: PathId,
}

/// The routes of one connection.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Routes {
    routes: PathMap<Route>,
}

#[derive(Clone, PartialEq, Debug, Default)]
struct Route {
    path: PathId,
    forward: Option<i64>,
    reverse: Option<i64>,
    acked: VecDeque<AckedInfo>,
    min_rtt: Option<Duration>,
    bandwidth: Option<Rate>,
    /// When the bandwidth is next estimated.
    due: Instant,
}

impl OfPath for Route {
    fn path(&self) -> PathId {
        self.path
    }
}

impl Routes {
    /// One more route.
    pub(crate) fn add(&mut self, path: PathId) {
        self.routes.insert(Route { path, ..Route::default() });
    }

    /// A route less.
    pub(crate) fn remove(&mut self, path: PathId) {
        self.routes.remove(path);
    }

    /// An acknowledgment came by `via` at the time `reverse` after its TSval, `rtt` after the segment it
    /// answers left on `route`. Returns the round trip as R-M/TCP counts it: M_xf + mean of OWTT_ir.
    pub(crate) fn on_round_trip(
        &mut self,
        route: PathId,
        via: PathId,
        rtt: Duration,
        reverse: i64,
    ) -> Duration {
        let forward = rtt.0 as i64 - reverse;
        if let Some(via) = self.routes.get_mut(via) {
            smooth(&mut via.reverse, reverse);
        }
        smooth(&mut self.routes[route].forward, forward);
        let sample = forward + self.mean_reverse().unwrap_or(reverse);
        let rtt = self.rtt(route);
        let r = &mut self.routes[route];
        r.min_rtt = r.min_rtt.into_iter().chain(rtt).min();
        Duration(sample.max(0) as u64)
    }

    /// Equation (3): OWTT_Rf + Σ OWTT_ir / N_path. A route by which no acknowledgment came does not count.
    pub(crate) fn rtt(&self, route: PathId) -> Option<Duration> {
        let sum = self.routes[route].forward? + self.mean_reverse()?;
        Some(Duration(sum.max(0) as u64))
    }

    /// Data sent on `route` was acknowledged. Once every round trip this yields a fresh estimate.
    pub(crate) fn on_acked(&mut self, now: Instant, route: PathId, info: AckedInfo) -> Option<RouteEstimate> {
        self.routes[route].acked.push_back(info);
        let rtt = self.rtt(route)?;
        let r = &mut self.routes[route];
        if r.due == Instant::ZERO {
            r.due = now + rtt; // the first round trip is not over yet
        }
        let fresh = now >= r.due;
        if fresh {
            r.due = now + rtt;
            r.bandwidth = Some(r.measure(now, rtt));
        }
        Some(RouteEstimate { rtt, min_rtt: r.min_rtt?, bandwidth: r.bandwidth?, fresh })
    }

    fn mean_reverse(&self) -> Option<i64> {
        let known = self.routes.iter().filter_map(|r| r.reverse);
        let (sum, n) = known.fold((0, 0), |(sum, n), r| (sum + r, n + 1));
        (n > 0).then(|| sum / n)
    }
}

impl Route {
    /// Steps 1 and 2, equation (4): what was acknowledged in the last round trip, over its length.
    /// Older entries are deleted.
    fn measure(&mut self, now: Instant, rtt: Duration) -> Rate {
        let recent = self.acked.iter().rev().take_while(|info| info.acked_at + rtt > now);
        let (count, bytes) = recent.fold((0, 0), |(n, bytes), info| (n + 1, bytes + info.len));
        self.acked.drain(..self.acked.len() - count);
        Rate::from_bytes_per(bytes, rtt)
    }
}

fn smooth(mean: &mut Option<i64>, sample: i64) {
    *mean = Some(mean.map_or(sample, |old| old + (sample - old) / 8));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn two() -> Routes {
        let mut routes = Routes::default();
        (0..2).for_each(|n| routes.add(PathId(n)));
        routes
    }

    fn info(ms: u64, via: u16) -> AckedInfo {
        let acked_at = Instant::ZERO + MS(ms);
        AckedInfo { offset: 0, sent_at: Instant::ZERO, len: 1000, acked_at, via: PathId(via) }
    }

    /// 10 ms out and 20 back on route 0, 30 out and 40 back on route 1, and clocks that differ.
    #[test]
    fn equation_3_adds_up_whatever_the_clocks_say() {
        for theta in [0, 9_000_000_000, -9_000_000_000] {
            let mut routes = two();
            let reverse = |ms: u64| MS(ms).0 as i64 + theta;
            routes.on_round_trip(PathId(0), PathId(1), MS(50), reverse(40));
            assert_eq!(routes.rtt(PathId(0)), Some(MS(50))); // no acknowledgment came by route 0 yet
            routes.on_round_trip(PathId(1), PathId(0), MS(50), reverse(20));
            assert_eq!(routes.rtt(PathId(0)), Some(MS(40))); // 10 + (20 + 40) / 2
            assert_eq!(routes.rtt(PathId(1)), Some(MS(60))); // 30 + (20 + 40) / 2
        }
    }

    #[test]
    fn equation_4_counts_one_round_trip() {
        let mut routes = two();
        let mut fresh = Vec::new();
        for ms in 1..=100 {
            routes.on_round_trip(PathId(0), PathId(0), MS(20), MS(10).0 as i64);
            let now = Instant::ZERO + MS(ms);
            let estimate = routes.on_acked(now, PathId(0), info(ms, 0));
            fresh.extend(estimate.filter(|e| e.fresh).map(|e| (ms, e.bandwidth)));
        }
        // one packet of 1,000 bytes a millisecond, twenty a round trip
        let expected: Vec<_> = [21, 41, 61, 81].map(|ms| (ms, Rate::from_mbps(8))).into();
        assert_eq!(fresh, expected);
        assert!(routes.routes[PathId(0)].acked.len() <= 40, "old entries are deleted");
    }

    #[test]
    fn the_smallest_average_is_remembered() {
        let mut routes = two();
        for rtt in [30, 20, 90] {
            routes.on_round_trip(PathId(0), PathId(0), MS(rtt), MS(10).0 as i64);
        }
        // forward: 20, then 20 − 10/8 = 18.75, then 18.75 + 61.25/8
        assert_eq!(routes.routes[PathId(0)].min_rtt, Some(Duration(28_750_000)));
        assert_eq!(routes.rtt(PathId(0)), Some(Duration(36_406_250)));
    }
}
