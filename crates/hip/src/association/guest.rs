//! Associations that peers began, and which of them are removed at the limit.

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv6Addr};

use polypath_wire::{Duration, Instant};

use super::Association;
use crate::context::Context;
use crate::state::State;

/// A peer that is there sends heartbeats more often.
const IDLE: Duration = Duration::from_secs(60);

/// How much an association is worth; the least first, and among equals the one that was used least recently.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Worth {
    /// It is over.
    Over(Instant),
    /// Nothing ever came on its SAs.
    Unused(Instant),
    /// Nothing came for [`IDLE`].
    Idle(Instant),
    /// That many come from the same address.
    Crowd(Reverse<usize>, Instant),
    /// It stays.
    High,
}

impl Worth {
    /// Whether it may be removed for another.
    pub fn is_low(self) -> bool {
        self != Self::High
    }
}

impl Association {
    /// Whether the peer began it.
    pub(crate) fn is_guest(&self) -> bool {
        self.accepted_i2.is_some()
    }

    /// The address of a peer that began; of IPv6 the /64, all of which belongs to one host.
    pub(crate) fn guest_from(&self) -> Option<IpAddr> {
        let ip = self.routes.first().filter(|_| self.is_guest())?.remote.ip();
        Some(match ip {
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
            v4 => v4,
        })
    }

    /// Its worth, if `crowd` associations come from its address.
    pub(crate) fn worth(&self, now: Instant, crowd: usize) -> Worth {
        match self.state {
            State::Closing | State::Closed | State::EFailed => Worth::Over(self.active),
            State::R2Sent | State::Established if !self.carried => Worth::Unused(self.active),
            State::R2Sent | State::Established if now.since(self.active) >= IDLE => Worth::Idle(self.active),
            State::R2Sent | State::Established if crowd > 1 => Worth::Crowd(Reverse(crowd), self.active),
            _ => Worth::High,
        }
    }

    /// Ends it without a word to the peer, to make room for another one.
    pub(crate) fn evict(&mut self, ctx: &mut Context<'_>) {
        self.go(ctx, State::Unassociated);
    }
}
