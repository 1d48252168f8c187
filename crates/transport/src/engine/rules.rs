//! What the engine goes by.

use super::config::{EngineConfig, Segmentation, TimeoutTakes};
use super::lane::Lane;
use crate::cc::controller::Controller;
use crate::facts::PathView;
use crate::loss::policy::LossPolicy;
use crate::path::rtt::RtoLimits;

/// The configuration, what controller and policy answer once and for all, and what follows from the paths there are.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Rules {
    /// Each path has its share of the peer's window.
    pub divide_window: bool,
    /// Silence fails a path while others deliver.
    pub fail_silent: bool,
    /// The loss policy probes tails.
    pub probes: bool,
    /// It has timeouts undone.
    pub undoes_timeouts: bool,
    /// One window limits all paths.
    pub one_window: bool,
    /// The controller's windows are all that holds a path back.
    pub window_only: bool,
    /// It goes by packet trains, and so may the scheduler.
    pub trains: bool,
    /// It compares the delays of paths, and there are several.
    pub compares: bool,
    /// A network card cuts segments: they leave together.
    pub offload: bool,
    /// There is one path, of which each segment leaves as it has room.
    pub simple: bool,
    /// Some path is for what the others have no room for.
    pub spills: bool,
    /// The queues of others count as delay.
    pub others: bool,
    /// Bounds of the retransmission timeout.
    pub rto: RtoLimits,
    /// What a timeout takes for lost.
    pub timeout_takes: TimeoutTakes,
    /// Timeouts in a row that fail a path; none never does.
    pub fail_after: Option<u32>,
}

impl Rules {
    /// Those of `config` under `controller`.
    pub(super) fn new(config: &EngineConfig, controller: &dyn Controller) -> Self {
        Self {
            divide_window: config.divide_window,
            rto: config.rto,
            fail_after: config.fail_after,
            timeout_takes: config.timeout_takes,
            fail_silent: config.fail_silent,
            probes: false,
            undoes_timeouts: false,
            one_window: controller.total_window().is_some(),
            window_only: controller.window_only(),
            trains: controller.goes_by_trains(),
            compares: false,
            offload: config.segmentation == Segmentation::Offload,
            simple: false,
            spills: false,
            others: config.others,
        }
    }

    /// These paths are there from now on, and this is what is known of them.
    pub(super) fn consider(&mut self, controller: &dyn Controller, lanes: &[Lane], views: &[PathView]) {
        let unlimited = lanes.iter().all(|lane| lane.limit.is_none());
        self.window_only = controller.window_only() && unlimited && !self.offload;
        self.simple = lanes.len() < 2 && !self.offload;
        self.compares = controller.compares_paths() && lanes.len() > 1;
        self.spills = views.iter().any(|view| view.spill);
    }

    /// `policy` judges from now on.
    pub(super) fn follow(&mut self, policy: &dyn LossPolicy) {
        self.probes = policy.probes();
        self.undoes_timeouts = policy.undoes_timeouts();
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::{Duration, Instant, PathId, Rate};

    use super::*;
    use crate::cc::{CcConfig, Env};
    use crate::engine::config::PathConfig;
    use crate::engine::machine::Engine;
    use crate::loss::LossConfig;
    use crate::path::knowledge::KnowledgeConfig;
    use crate::sched::SchedulerConfig;

    fn engine() -> Engine {
        let second = Duration::from_secs(1);
        let config = EngineConfig {
            rto: RtoLimits { initial: second, min: second, max: second, granularity: Duration::ZERO },
            fail_after: None,
            fail_silent: false,
            divide_window: false,
            knowledge: KnowledgeConfig::default(),
            others: false,
            timeout_takes: TimeoutTakes::default(),
            segmentation: Segmentation::default(),
        };
        let controller = CcConfig::Wvegas(Default::default()).build(&Env::default());
        Engine::new(
            &config,
            controller,
            SchedulerConfig::default().build(),
            LossConfig::default().build(true),
        )
    }

    #[test]
    fn what_follows_from_a_path_goes_with_it() {
        let (now, mut engine) = (Instant::ZERO, engine());
        let follows = |engine: &Engine| (engine.rules.window_only, engine.rules.spills);
        let plain = PathConfig::default();
        let limited = PathConfig { max_rate: Some(Rate::from_mbps(1)), ..plain };
        let spilling = PathConfig { spill: true, ..plain };
        engine.add_path(now, PathId(0), &plain, 1000);
        assert_eq!(follows(&engine), (true, false));
        engine.add_path(now, PathId(1), &limited, 1000);
        engine.add_path(now, PathId(2), &spilling, 1000);
        assert_eq!(follows(&engine), (false, true));
        engine.remove_path(now, PathId(1));
        assert_eq!(follows(&engine), (true, true));
        engine.remove_path(now, PathId(2));
        assert_eq!(follows(&engine), (true, false));
        engine.set_spill(PathId(0), true);
        assert_eq!(follows(&engine), (true, true));
        engine.set_spill(PathId(0), false);
        assert_eq!(follows(&engine), (true, false));
    }
}
