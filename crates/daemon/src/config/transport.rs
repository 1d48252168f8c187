//! How a connection of the TCP lane is spread over the paths.

use polypath_transport::sched::DuplicateConfig;
use polypath_transport::{CcConfig, ConnectionConfig, SchedulerConfig};
use polypath_wire::Duration;
use serde::{Deserialize, Serialize};

/// `[tunnel] transport`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Polypath's: paths as HIP has them, the earliest completion, the controller of `[lane] cc`.
    #[default]
    Polypath,
    /// R-M/TCP (Rojviboonchai, Osuga, Aida), in its distribution mode: the multi-route option in every segment, new data on each path in
    /// turn, a window for each path from its estimated bandwidth and queue. A connection whose other end does not agree stays on the path it
    /// began on.
    RmTcp,
}

impl Transport {
    /// The same configuration with this transport.
    pub(super) fn over(self, config: ConnectionConfig) -> ConnectionConfig {
        match self {
            Self::Polypath => config,
            Self::RmTcp => ConnectionConfig {
                multi_route: true,
                delayed_ack: Duration::ZERO,
                scheduler: SchedulerConfig::Duplicate(DuplicateConfig { lost_only: true }),
                cc: rm_tcp(config.cc),
                ..config
            },
        }
    }
}

/// The parameters in `cc` if it is R-M/TCP; else the paper's.
///
/// Windows grow whether they are used or not, as there: equation (7) paces each so that it is never full, and with `validate_window` it would
/// stay as it is.
fn rm_tcp(cc: CcConfig) -> CcConfig {
    match cc {
        CcConfig::RmTcp(_) => cc,
        _ => CcConfig::RmTcp(Default::default()),
    }
}
