//! The timers of a connection, in the table that its engine keeps.

pub(super) use crate::engine::timers::{Timer, Timers};

impl Timer {
    /// SYN or SYN-ACK again.
    pub(crate) const HANDSHAKE: Self = Self::Owner(0);
    /// Acknowledge what waits.
    pub(crate) const DELAYED_ACK: Self = Self::Owner(1);
    /// Probe a closed window (RFC 9293 §3.8.6.1).
    pub(crate) const PERSIST: Self = Self::Owner(2);
    /// Probe an idle connection (RFC 9293 §3.8.4).
    pub(crate) const KEEP_ALIVE: Self = Self::Owner(3);
    /// End of TIME-WAIT, or of a FIN-WAIT-2 that nobody waits for.
    pub(crate) const TIME_WAIT: Self = Self::Owner(4);
    /// Heartbeats on all paths.
    pub(crate) const HEARTBEAT: Self = Self::Owner(5);
}
