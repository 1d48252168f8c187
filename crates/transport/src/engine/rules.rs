//! What holds for the life of the engine.

use super::config::{EngineConfig, TimeoutTakes};
use crate::cc::controller::Controller;
use crate::loss::policy::LossPolicy;
use crate::path::rtt::RtoLimits;

/// The configuration, and what controller and policy answer once and for all.
#[derive(Debug)]
pub(super) struct Rules {
    /// Each path has its share of the peer's window.
    pub divide_window: bool,
    /// Bounds of the retransmission timeout.
    pub rto: RtoLimits,
    /// What a timeout takes for lost.
    pub timeout_takes: TimeoutTakes,
    /// Timeouts in a row that fail a path; none never does.
    pub fail_after: Option<u32>,
    /// Silence fails a path while others deliver.
    pub fail_silent: bool,
    /// The loss policy probes tails.
    pub probes: bool,
    /// It has timeouts undone.
    pub undoes_timeouts: bool,
    /// One window limits all paths.
    pub one_window: bool,
    /// The controller's windows are all there is of it.
    pub window_only: bool,
    /// It goes by packet trains, and so may the scheduler.
    pub trains: bool,
    /// Some path is for what the others have no room for.
    pub spills: bool,
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
            spills: false,
        }
    }

    /// `policy` judges from now on.
    pub(super) fn follow(&mut self, policy: &dyn LossPolicy) {
        self.probes = policy.probes();
        self.undoes_timeouts = policy.undoes_timeouts();
    }
}
