//! Counters of an endpoint.

use polypath_transport::DropReason;
use serde::Serialize;

/// Counters of an endpoint since it began. What reaches a connection is counted there.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct EndpointStats {
    /// Segments that came in, from any framing.
    pub segments: u64,
    /// Drops before any connection saw the segment, indexed by [`DropReason`].
    pub drops: [u64; DropReason::COUNT],
    /// Connections opened by us.
    pub connected: u64,
    /// Connections begun by peers.
    pub accepted: u64,
    /// SYNs refused because a limit of the configuration was reached.
    pub refused: u64,
    /// Paths added because a segment came from new locators.
    pub paths_joined: u64,
    /// Messages of routers that a segment was too big.
    pub too_big: u64,
    /// Resets sent in answer to segments of no connection.
    pub resets_sent: u64,
    /// Resets, and ICMP messages in their place, not sent because of their rate limit.
    pub resets_suppressed: u64,
}

impl EndpointStats {
    /// How often something was dropped for `reason`.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }
}
