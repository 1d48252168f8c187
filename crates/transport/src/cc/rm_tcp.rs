//! R-M/TCP (Rojviboonchai, Osuga and Aida, §3.2-3.3): the window keeps the queue of each route short.
//!
//! | symbol | here |
//! |---|---|
//! | cwnd_R, ssthresh_R | `cwnd`, `ssthresh`, packets |
//! | bw_R, RTT_R,avg, RTT_R,avg,min | [`RouteEstimate`], from `path/routes.rs` |
//! | q_len_R | `Route::queue` |
//! | N_q,max, ω_qR | `queue`, `weights` |
//! | numBurst, burstInterval_R | `num_burst`; pacing by `cwnd / RTT_R,avg` in bursts of this many packets |
//! | probState | `slow_start` |
//!
//! Choices where the paper is silent: the window is set to bw × RTT_min when an estimate is fresh, that is
//! once a round trip, since the queue takes that long to show it;
//! without estimates (the peer does not know of routes) a loss halves, as in RFC 5681.

use polypath_wire::{Duration, Instant, PathId, Rate};
use serde::{Deserialize, Serialize};

use super::controller::{Controller, Phase, Snapshot};
use super::law::{Env, Law};
use super::window::no_window;
use crate::about::About;
use crate::facts::{AckSample, ConfigError, LossCause, LossEvent, Pace, PathView, RouteEstimate};
use crate::path_map::{OfPath, PathMap};

/// Parameters of R-M/TCP.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RmTcpConfig {
    /// N_q,max: packets that may queue on a route of weight 1, above 0 (§4: 20).
    pub queue: f64,
    /// ω_qR of each route, above 0; 1 for routes not named (§4: 1, 1; §4.1 tries 1, 1.5).
    pub weights: Vec<f64>,
    /// Multiply the weights by the routes' shares of the estimated bandwidth, 1 on average (§4.1's future
    /// work).
    pub tune_weights: bool,
    /// Packets that leave a route at once; 0 does not limit bursts (§3.3 gives no value; 2).
    pub num_burst: u32,
    /// Initial window, packets (RFC 2581: 2).
    pub initial_window: u32,
    /// Let a window grow only while it is full (RFC 7661). Fig. 5 lets it grow with every acknowledgment, so
    /// that a route that the receive window holds back builds up a queue whenever that opens.
    pub validate_window: bool,
}

impl Default for RmTcpConfig {
    fn default() -> Self {
        Self {
            queue: 20.0,
            weights: Vec::new(),
            tune_weights: false,
            num_burst: 2,
            initial_window: 2,
            validate_window: false,
        }
    }
}

/// R-M/TCP over all routes.
#[derive(Debug)]
pub(crate) struct RmTcp {
    config: RmTcpConfig,
    routes: PathMap<Route>,
}

#[derive(Clone, Debug)]
struct Route {
    path: PathId,
    mss: f64,
    cwnd: f64,
    ssthresh: f64,
    slow_start: bool,
    estimate: Option<RouteEstimate>,
}

impl OfPath for Route {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

impl Law for RmTcp {
    type Config = RmTcpConfig;
    const ABOUT: About = About {
        name: "rm_tcp",
        help: "Reproduction of R-M/TCP; without its multi-route option a loss halves a window",
    };

    fn check(config: &RmTcpConfig) -> Result<(), ConfigError> {
        let positive = |x: &f64| *x > 0.0 && x.is_finite();
        let queue = ConfigError::new("cc.queue", "not above 0", "the paper's is 20 packets");
        let weights = ConfigError::new("cc.weights", "not all above 0", "write for example [1, 1.5]");
        ConfigError::first(&[
            (config.initial_window == 0, no_window()),
            (!positive(&config.queue), queue),
            (!config.weights.iter().all(positive), weights),
        ])
    }

    fn build(config: RmTcpConfig, _: &Env) -> Box<dyn Controller> {
        Box::new(Self::new(config))
    }
}

impl RmTcp {
    /// Without routes.
    pub(crate) fn new(config: RmTcpConfig) -> Self {
        Self { config, routes: PathMap::default() }
    }

    /// Equation (6): N_q,max,R = ω_qR · N_q,max.
    fn threshold(&self, route: &Route) -> f64 {
        let weight = self.config.weights.get(route.path.index()).copied().unwrap_or(1.0);
        let tuned = if self.config.tune_weights { self.share(route) } else { 1.0 };
        self.config.queue * weight * tuned
    }

    /// The bandwidth of `route` over the mean of all, as far as they are known.
    fn share(&self, route: &Route) -> f64 {
        let known = self.routes.iter().filter_map(Route::bandwidth);
        let (sum, n) = known.fold((0.0, 0.0), |(sum, n), bw| (sum + bw, n + 1.0));
        match route.bandwidth() {
            Some(bw) if sum > 0.0 => bw * n / sum,
            _ => 1.0,
        }
    }
}

impl Route {
    /// bw_R, packets per second.
    fn bandwidth(&self) -> Option<f64> {
        Some(self.estimate?.bandwidth.0 as f64 / 8.0 / self.mss)
    }

    /// Equation (5): q_len_R = bw_R · (RTT_R,avg − RTT_R,avg,min), packets.
    fn queue(&self) -> Option<f64> {
        let estimate = self.estimate?;
        Some(self.bandwidth()? * (estimate.rtt - estimate.min_rtt).as_secs_f64())
    }

    /// bw_R · RTT_R,avg,min, packets.
    fn pipe(&self) -> Option<f64> {
        Some((self.bandwidth()? * self.estimate?.min_rtt.as_secs_f64()).max(2.0))
    }

    /// Fig. 5.
    fn adjust(&mut self, acked: f64, threshold: f64, may_grow: bool) {
        self.slow_start &= self.cwnd < self.ssthresh;
        let short = self.queue().is_none_or(|queue| queue <= threshold);
        match (short, self.pipe()) {
            (false, Some(pipe)) => {
                if self.estimate.is_some_and(|e| e.fresh) {
                    self.cwnd = pipe;
                    self.ssthresh = pipe;
                    self.slow_start = false;
                }
            }
            _ if !may_grow => {}
            _ if self.slow_start => self.cwnd += acked,
            _ => {
                self.cwnd += acked / self.cwnd;
                self.ssthresh = self.cwnd;
            }
        }
    }
}

impl Controller for RmTcp {
    fn on_path_added(&mut self, _: Instant, path: PathId, mss: u32) {
        self.routes.insert(Route {
            path,
            mss: f64::from(mss),
            cwnd: f64::from(self.config.initial_window.max(1)),
            ssthresh: f64::INFINITY,
            slow_start: true,
            estimate: None,
        });
    }

    fn on_path_removed(&mut self, _: Instant, path: PathId) {
        self.routes.remove(path);
    }

    fn on_mss(&mut self, path: PathId, mss: u32) {
        self.routes.get_mut(path).into_iter().for_each(|route| route.mss = f64::from(mss));
    }

    fn limit_window(&mut self, path: PathId, bytes: u64) {
        let limit = |route: &mut Route| route.cwnd = route.cwnd.min(bytes as f64 / route.mss);
        self.routes.get_mut(path).into_iter().for_each(limit);
    }

    fn on_ack(&mut self, _: Instant, path: PathId, sample: &AckSample, _: &[PathView]) {
        let Some(route) = self.routes.get_mut(path) else { return };
        route.estimate = sample.route.or(route.estimate.map(RouteEstimate::stale));
        let threshold = self.threshold(&self.routes[path]);
        let used = sample.window_limited || !self.config.validate_window;
        let may_grow = used && !sample.in_recovery;
        self.routes[path].adjust(f64::from(sample.newly_acked_segments), threshold, may_grow);
    }

    fn on_loss(&mut self, _: Instant, path: PathId, loss: &LossEvent, _: &[PathView]) {
        let Some(route) = self.routes.get_mut(path) else { return };
        route.ssthresh = route.pipe().unwrap_or(route.cwnd / 2.0).min(route.cwnd).max(2.0);
        route.slow_start = loss.cause == LossCause::Timeout;
        route.cwnd = if route.slow_start { 1.0 } else { route.ssthresh };
    }

    fn window(&self, path: PathId) -> u64 {
        self.routes.get(path).map_or(0, |route| (route.cwnd * route.mss) as u64)
    }

    /// Equation (7): numBurst packets every RTT_avg · numBurst / cwnd are cwnd packets every RTT_avg.
    fn pace(&self, path: PathId) -> Option<Pace> {
        let route = self.routes.get(path)?;
        let rate = Rate::from_bytes_per(self.window(path), route.estimate?.rtt);
        let quantum = u64::from(self.config.num_burst) * route.mss as u64;
        (quantum > 0).then_some(Pace {
            rate,
            quantum,
            credit: Duration::ZERO,
            together: 0,
            spreads_window: false,
        })
    }

    fn snapshot(&self, path: PathId) -> Snapshot {
        let Some(route) = self.routes.get(path) else { return Snapshot::default() };
        let phase = if route.slow_start { Phase::SlowStart } else { Phase::CongestionAvoidance };
        let ssthresh = route.ssthresh.is_finite().then_some((route.ssthresh * route.mss) as u64);
        let rate = route.estimate.map(|e| e.bandwidth);
        Snapshot { window: self.window(path), ssthresh, rate, phase }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rm(config: RmTcpConfig) -> RmTcp {
        let mut rm = RmTcp::new(config);
        (0..2).for_each(|path| rm.on_path_added(Instant::ZERO, PathId(path), 1000));
        rm
    }

    /// 1,250 packets/s and 40 ms without a queue.
    fn estimate(rtt_ms: u64, fresh: bool) -> RouteEstimate {
        let (rtt, min_rtt) = (Duration::from_millis(rtt_ms), Duration::from_millis(40));
        RouteEstimate { rtt, min_rtt, bandwidth: Rate::from_mbps(10), fresh }
    }

    fn ack(route: Option<RouteEstimate>) -> AckSample {
        AckSample {
            newly_acked: 1000,
            newly_acked_segments: 1,
            window_limited: true,
            route,
            ..Default::default()
        }
    }

    fn feed(rm: &mut RmTcp, route: Option<RouteEstimate>) -> u64 {
        rm.on_ack(Instant::ZERO, PathId(0), &ack(route), &[]);
        rm.window(PathId(0))
    }

    #[test]
    fn figure_5_by_hand() {
        let mut rm = rm(RmTcpConfig { initial_window: 60, ..Default::default() });
        assert_eq!(feed(&mut rm, None), 61_000); // slow start: one more per acknowledgment
        assert_eq!(feed(&mut rm, Some(estimate(56, true))), 62_000); // 1,250 · 0.016 = 20 packets: not above
        assert_eq!(feed(&mut rm, Some(estimate(57, false))), 62_000); // above, but the estimate is old
        assert_eq!(feed(&mut rm, Some(estimate(57, true))), 50_000); // 1,250 · 0.04
        assert_eq!(rm.snapshot(PathId(0)).phase, Phase::CongestionAvoidance);
        assert_eq!(feed(&mut rm, Some(estimate(40, true))), 50_020); // 1/cwnd
        assert_eq!(rm.snapshot(PathId(0)).ssthresh, Some(50_020));
    }

    #[test]
    fn an_unused_window_grows_unless_it_is_validated() {
        for (validate_window, expected) in [(false, 61_000), (true, 60_000)] {
            let mut rm = rm(RmTcpConfig { validate_window, initial_window: 60, ..Default::default() });
            let unused = AckSample { window_limited: false, ..ack(None) };
            rm.on_ack(Instant::ZERO, PathId(0), &unused, &[]);
            assert_eq!(rm.window(PathId(0)), expected);
        }
    }

    #[test]
    fn equation_5_by_hand() {
        // (Mbit/s, RTT ms, packets of 1,000 bytes): bw · (RTT − 40 ms)
        for (mbps, rtt, queue) in [(10, 40, 0.0), (10, 56, 20.0), (20, 50, 25.0), (30, 41, 3.75)] {
            let mut rm = rm(RmTcpConfig::default());
            let bandwidth = Rate::from_mbps(mbps);
            rm.routes[PathId(0)].estimate = Some(RouteEstimate { bandwidth, ..estimate(rtt, true) });
            assert!(
                (rm.routes[PathId(0)].queue().expect("it is estimated") - queue).abs() < 1e-9,
                "{mbps} {rtt}"
            );
        }
    }

    #[test]
    fn equation_6_weighs_the_thresholds() {
        let weights = vec![1.5];
        let mut rm = rm(RmTcpConfig { weights, initial_window: 60, ..Default::default() });
        let thresholds = |rm: &RmTcp| [0, 1].map(|path| rm.threshold(&rm.routes[PathId(path)]));
        assert_eq!(thresholds(&rm), [30.0, 20.0]);
        assert_eq!(feed(&mut rm, Some(estimate(64, true))), 61_000); // 30 packets
        assert_eq!(feed(&mut rm, Some(estimate(65, true))), 50_000);
        rm.config = RmTcpConfig { tune_weights: true, ..Default::default() };
        rm.routes[PathId(1)].estimate =
            Some(RouteEstimate { bandwidth: Rate::from_mbps(30), ..estimate(40, true) });
        assert_eq!(thresholds(&rm), [10.0, 30.0]); // 10 and 30 of 20 Mbit/s on average
    }

    #[test]
    fn equation_7_spreads_the_window_over_a_round_trip() {
        let mut rm = rm(RmTcpConfig { initial_window: 49, ..Default::default() });
        assert_eq!(rm.pace(PathId(0)), None);
        feed(&mut rm, Some(estimate(40, true)));
        // 50 packets of 1,000 bytes in 40 ms: two every 1.6 ms
        let pace = Pace {
            rate: Rate::from_mbps(10),
            quantum: 2000,
            credit: Duration::ZERO,
            together: 0,
            spreads_window: false,
        };
        assert_eq!(rm.pace(PathId(0)), Some(pace));
    }

    #[test]
    fn losses_leave_what_the_pipe_holds() {
        let loss = |cause| LossEvent {
            cause,
            episode: Default::default(),
            bytes: 1000,
            flight_size: 60_000,
            oldest_sent: Instant::ZERO,
        };
        let mut rm = rm(RmTcpConfig { initial_window: 80, ..Default::default() });
        rm.on_loss(Instant::ZERO, PathId(0), &loss(LossCause::LaterDelivered), &[]);
        assert_eq!(rm.window(PathId(0)), 40_000); // nothing is known: half
        rm.routes[PathId(0)].cwnd = 80.0;
        feed(&mut rm, Some(estimate(40, true)));
        rm.on_loss(Instant::ZERO, PathId(0), &loss(LossCause::LaterDelivered), &[]);
        assert_eq!(rm.window(PathId(0)), 50_000);
        rm.on_loss(Instant::ZERO, PathId(0), &loss(LossCause::Timeout), &[]);
        assert_eq!((rm.window(PathId(0)), rm.snapshot(PathId(0)).ssthresh), (1000, Some(50_000)));
    }
}
