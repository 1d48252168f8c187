//! Parameters of a flow of packets.

use polypath_wire::Duration;
use serde::{Deserialize, Serialize};

use crate::cc::CcConfig;
use crate::engine::config::{EngineConfig, Segmentation, TimeoutTakes};
use crate::facts::ConfigError;
use crate::loss::LossConfig;
use crate::path::knowledge::KnowledgeConfig;
use crate::path::rtt::RtoLimits;
use crate::sched::SchedulerConfig;

/// Parameters of a flow of packets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PacketConfig {
    /// Congestion control over all paths.
    pub cc: CcConfig,
    /// Which path the next packet takes.
    pub scheduler: SchedulerConfig,
    /// What counts as lost.
    pub loss: LossConfig,
    /// Packets that wait for earlier ones of their flow hold at most this many bytes, above 0.
    pub held: u64,
    /// Longest that a packet waits for earlier ones of its flow, ms; the measured difference of the paths' delays is
    /// waited for if that is shorter.
    #[serde(with = "polypath_wire::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub allowance: Duration,
    /// Timeouts of a path in a row that make it fail while another works; 0 never does.
    pub path_fail_timeouts: u32,
}

impl Default for PacketConfig {
    fn default() -> Self {
        Self {
            cc: CcConfig::default(),
            scheduler: SchedulerConfig::default(),
            loss: LossConfig::default(),
            held: 4 << 20,
            allowance: Duration::from_millis(200),
            path_fail_timeouts: 2,
        }
    }
}

impl PacketConfig {
    /// Whether its parameters mean something together.
    pub fn check(&self) -> Result<(), ConfigError> {
        let empty = ConfigError::new("held", "a buffer of 0 holds nothing", "write bytes: 4194304 are 4 MiB");
        ConfigError::first(&[(self.held == 0, empty)])?;
        self.cc.check()?;
        self.loss.check(None)
    }

    /// What of it holds for the engine. Retransmission timeouts as of a connection (RFC 6298), though little goes again.
    pub(super) fn engine(&self) -> EngineConfig {
        let rto = RtoLimits {
            initial: Duration::from_secs(1),
            min: Duration::from_millis(200),
            max: Duration::from_secs(60),
            granularity: Duration::ZERO,
        };
        EngineConfig {
            rto,
            fail_after: (self.path_fail_timeouts > 0).then_some(self.path_fail_timeouts),
            fail_silent: true,
            divide_window: false,
            knowledge: KnowledgeConfig::default(),
            others: true,
            timeout_takes: TimeoutTakes::default(),
            segmentation: Segmentation::default(),
        }
    }
}
