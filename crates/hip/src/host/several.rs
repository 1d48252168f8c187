//! Several associations with one peer at once: two programs of a host, each with its own ports, have one identity.
//!
//! An I2 from the address and port of one of the peer's paths replaces the association of that path, as RFC 7401 §4.5.4
//! has it; from elsewhere it begins another one, if [`several`](crate::HipConfig::several) are configured. A peer's
//! first association is named by the peer's HIT. Each further one gets a name that is no HIT and is never sent.

use polypath_wire::hip::{Hit, PacketView};

use super::Host;
use crate::association::Association;
use crate::event::Route;
use crate::state::State;

/// Most associations of one peer.
const MOST: usize = 32;
/// The first byte of names, from unique local addresses (RFC 4193), which are no ORCHIDs.
const NAME: u8 = 0xfd;

impl Host {
    /// The name of the association that a packet of `sender` is for, by the address that it came from, or else by its MAC.
    pub(super) fn named(&self, sender: Hit, route: Route, view: &PacketView<'_>) -> Hit {
        let is = |test: &dyn Fn(&Association) -> bool| {
            self.names_of(sender).find(|name| self.peers.get(name).is_some_and(test))
        };
        match self.others.contains_key(&sender) {
            true => is(&|a| a.is_at(route)).or_else(|| is(&|a| a.is_keyed_for(view))).unwrap_or(sender),
            false => sender,
        }
    }

    /// The name that an I2 of `peer` from `route` takes over: of the association that is there, or else of the first,
    /// unless that one stays. `None` if another association begins beside those that there are.
    pub(super) fn name_taken(&self, peer: Hit, route: Route) -> Option<Hit> {
        let at = |name: &Hit| self.peers.get(name).is_some_and(|a| a.is_at(route));
        let stands =
            |a: &Association| a.is_guest() && matches!(a.state(), State::R2Sent | State::Established);
        let first_stays = self.peers.get(&peer).is_some_and(stands);
        let beside =
            self.config.several && first_stays && self.names_of(peer).count() < MOST && route.is_udp();
        self.names_of(peer).find(at).or((!beside).then_some(peer))
    }

    /// A new name for a further association with `peer`.
    pub(super) fn new_name(&mut self, peer: Hit) -> Hit {
        let mut name = Hit(self.random.bytes());
        name.0[0] = NAME;
        self.others.entry(peer).or_default().push(name);
        name
    }

    /// The names of all associations with `peer`.
    pub fn names_of(&self, peer: Hit) -> impl Iterator<Item = Hit> {
        std::iter::once(peer).chain(self.others.get(&peer).into_iter().flatten().copied())
    }

    /// The names of all associations.
    pub fn names(&self) -> impl Iterator<Item = Hit> {
        self.peers.iter().map(|(name, _)| *name)
    }

    /// The association of that name is over.
    pub(super) fn forget_name(&mut self, peer: Hit, name: Hit) {
        if let Some(names) = self.others.get_mut(&peer) {
            names.retain(|n| *n != name);
            if names.is_empty() {
                self.others.remove(&peer);
            }
        }
    }
}
