//! What holds for the life of the connection.

use crate::cc::controller::Controller;
use crate::conn::config::ConnectionConfig;
use crate::path::rtt::RtoLimits;

/// The sender's part of the configuration, and what its policies answer once and for all.
#[derive(Debug)]
pub struct Rules {
    /// The handshake agreed on SACK.
    pub sack: bool,
    /// Small segments do not wait for acknowledgments (RFC 9293 §3.7.4).
    pub no_delay: bool,
    /// Each path has its share of the peer's window.
    pub divide_window: bool,
    /// Bounds of the retransmission timeout.
    pub rto: RtoLimits,
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
}

impl Rules {
    /// Before the handshake has agreed on anything.
    pub fn new(config: &ConnectionConfig, controller: &dyn Controller) -> Self {
        Self {
            sack: false,
            no_delay: config.no_delay,
            divide_window: config.divide_window,
            rto: RtoLimits {
                initial: config.initial_rto,
                min: config.min_rto,
                max: config.max_rto,
                granularity: config.clock_granularity,
            },
            fail_after: (config.path_fail_timeouts > 0).then_some(config.path_fail_timeouts),
            fail_silent: config.fail_silent,
            probes: false,
            undoes_timeouts: false,
            one_window: controller.total_window().is_some(),
            window_only: controller.window_only(),
            trains: controller.goes_by_trains(),
        }
    }
}
