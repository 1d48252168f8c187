//! Our own addresses, which come and go, and the paths that they make possible.

use std::net::SocketAddr;

use polypath_wire::Instant;

use super::path::SecurePath;
use super::reach::{Reach, Wanted};
use super::{Change, LocalInfo, PeerEvent, Security, inner};
use crate::paths::Locators;

impl Security {
    /// A local address can be used.
    pub fn local_up(&mut self, now: Instant, local: SocketAddr, info: LocalInfo) {
        self.hip.set_link(local.ip(), info.link);
        let same = self.locals.insert(local, info).is_none_or(|before| before.mtu == info.mtu);
        let on =
            |(n, p): (&u16, &SecurePath)| (p.locators.local == local && !same).then_some((*n, p.locators));
        let changed: Vec<_> = self.paths.iter().filter_map(on).collect();
        changed.into_iter().for_each(|(number, locators)| self.resize(now, number, &locators));
        self.want_anew(now);
        self.settle(now);
    }

    /// The link below a path is another one, or not what it was: what was known of its packet size is void.
    pub(super) fn resize(&mut self, now: Instant, number: u16, locators: &Locators) {
        let size = self.new_size(now, locators);
        if let Some(path) = self.paths.get_mut(&number) {
            (path.mtu, path.heart.next) = (size, now);
            self.tell_size(number);
        }
    }

    /// A local address can be used no longer: its paths are given up, the last one of a peer when
    /// there is another.
    pub fn local_down(&mut self, now: Instant, local: SocketAddr) {
        self.locals.remove(&local);
        let gone: Vec<_> =
            self.paths.iter().filter(|(_, p)| p.locators.local == local).map(|(n, _)| *n).collect();
        gone.into_iter().for_each(|number| self.abandon(now, number));
        self.want_anew(now);
        self.settle(now);
    }

    pub(super) fn local_addresses(&self) -> Vec<SocketAddr> {
        self.locals.keys().copied().collect()
    }

    /// The pairs of locators that should be paths may be others now.
    fn want_anew(&mut self, now: Instant) {
        let locals = self.local_addresses();
        for peer in self.peers.values_mut() {
            let Some(reach @ Reach::Addresses(_)) = &peer.reach else { continue };
            let pairs = reach.pairs(&locals);
            peer.wanted.retain(|w| pairs.contains(&w.locators));
            for pair in pairs {
                if !peer.wanted.iter().any(|w| w.locators == pair) {
                    peer.wanted.push(Wanted::new(pair, now));
                }
            }
        }
    }

    /// Connections use the path no longer; HIP takes it away if it is not the peer's last.
    pub(super) fn abandon(&mut self, now: Instant, number: u16) {
        let Some(path) = self.paths.get_mut(&number) else { return };
        let (peer, spi, locators) = (path.peer, path.spi(), path.locators);
        if std::mem::take(&mut path.up) {
            let inner = inner(self.ours, peer, number);
            self.changes.push_back(Change::Down(inner));
            self.events.push_back((peer, PeerEvent::PathDown(locators)));
        }
        let others = self.hip.association(peer).is_some_and(|a| a.paths().iter().any(|p| p.inbound != spi));
        if let Some(path) = self.paths.get_mut(&number).filter(|p| others && !p.gone) {
            path.gone = true;
            self.hip.remove_path(now, peer, spi);
        }
    }
}
