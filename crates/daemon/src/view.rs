//! Everything that a status is made of.

use std::sync::Arc;

use polypath_node::{GatewayStats, LiveChoice};

use crate::device::Device;
use crate::lane::Lane;
use crate::quota::Quotas;

/// What tells how a daemon is. Clones see the same daemon.
#[derive(Clone)]
pub(crate) struct View {
    pub lane: Arc<Lane>,
    pub device: Device,
    pub choice: LiveChoice,
    pub quotas: Quotas,
    pub gateway: Arc<GatewayStats>,
    /// Connections that the lane has room for.
    pub places: usize,
}
