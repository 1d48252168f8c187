//! Parameters of an endpoint whose segments travel in ESP.

use polypath_hip::HipConfig;
use polypath_wire::{Duration, Ecn, millis};
use serde::{Deserialize, Serialize};

/// Associations, their SAs and their paths.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SecurityConfig {
    /// The Host Identity Protocol.
    pub hip: HipConfig,
    /// Packets the replay window of an SA holds, 64 to 65,536 (RFC 4303 §3.4.3: 64).
    pub replay_window: u32,
    /// Packets of an SA after which its path gets new keys (2²⁹: see `EspConfig`).
    pub rekey_after: u64,
    /// Time between two heartbeats of a path, ms; at least 1. At most 15 s keeps NAT bindings
    /// alive (RFC 5770 §4.10).
    #[serde(with = "millis")]
    pub heartbeat: Duration,
    /// Heartbeats in a row without any packet from the peer after which a path is sought anew; 2 or more.
    pub missed_heartbeats: u32,
    /// Pause before locators that gave no path are tried again, ms; doubles, to 16 times this.
    #[serde(with = "millis")]
    pub retry: Duration,
    /// Largest IP packet of a path whose local address came without an MTU, bytes.
    pub mtu: u32,
    /// Data may leave marked as ECN-capable (RFC 3168), on paths that were found to leave the mark alone, and arriving marks are echoed.
    pub ecn: bool,
    /// Suites that do not protect may be used: in simulations only.
    pub simulation: bool,
}

impl Default for SecurityConfig {
    fn default() -> Self {
        Self {
            hip: HipConfig::default(),
            replay_window: 1024,
            rekey_after: 1 << 29,
            heartbeat: Duration::from_secs(1),
            missed_heartbeats: 4,
            retry: Duration::from_secs(2),
            mtu: 1500,
            ecn: false,
            simulation: false,
        }
    }
}

impl SecurityConfig {
    /// The ECN field of the answer to a heartbeat that arrived with `ecn`. One that arrived marked is answered without ECT, so that a path
    /// that marks every packet is not proved.
    pub(super) fn answer_ecn(&self, ecn: Ecn) -> Ecn {
        if self.ecn && ecn == Ecn::Capable { Ecn::Capable } else { Ecn::None }
    }
}
