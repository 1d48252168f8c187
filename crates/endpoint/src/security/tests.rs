//! Peers that were never met, for tests: what is sent to them comes back as theirs, as the SAs of both directions are
//! the same.

use polypath_hip::keymat::{EspKeys, Pair};
use polypath_hip::suite::EspSuite;
use polypath_hip::{Route, SaPair};

use super::*;

/// The name of peer `n`.
pub fn name(n: u16) -> Hit {
    let [a, b] = n.to_be_bytes();
    Hit([0x20, 0x01, 0, 0x22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b])
}

fn pair(n: u16) -> SaPair {
    let keys = || EspKeys { encryption: Vec::new(), authentication: Vec::new() };
    let [a, b] = n.to_be_bytes();
    SaPair {
        inbound: 0x1000 + u32::from(n),
        outbound: 0x1000 + u32::from(n),
        suite: EspSuite::Simulated,
        keys: Pair { outgoing: keys(), incoming: keys() },
        route: Route { local: ([10, 0, 0, 1], 10_500).into(), remote: ([10, 1, a, b], 10_500).into() },
        replaces: None,
        confirmed: true,
    }
}

impl Security {
    /// There is a path to peer `n`, which is the `n`th one.
    pub fn add_mirror(&mut self, now: Instant, n: u16) {
        self.on_added(now, name(n), &pair(n));
        self.bring_up(now, n + 1);
        self.settle(now);
    }

    /// Nothing waits to be looked after.
    pub fn look_after_all(&mut self, now: Instant) {
        self.settle(now);
    }

    /// Peer `n` is silent, and asked for a new association.
    pub fn renew_mirror(&mut self, now: Instant, n: u16) {
        self.renewing.insert(name(n), Renewal { since: now, doubted: 0, asked: now });
    }

    /// That path is gone.
    pub fn remove_mirror(&mut self, now: Instant, n: u16) {
        self.on_removed(pair(n).inbound);
        self.settle_for(now, name(n));
    }

    /// A packet of peer `n` that holds `payload`, and between which addresses it comes.
    pub fn sealed(&mut self, n: u16, next_header: u8, payload: &[u8]) -> (Locators, Vec<u8>) {
        let path = self.paths.get_mut(n + 1).unwrap();
        let (at, len) = (path.outbound.payload_offset(), path.outbound.sealed_len(payload.len()));
        let mut packet = vec![0; len];
        packet[at..at + payload.len()].copy_from_slice(payload);
        path.outbound.seal(&mut packet, payload.len(), next_header).unwrap();
        (path.locators, packet)
    }

    /// How many peers and paths were looked at.
    pub fn looks(&self) -> usize {
        self.peers.looks.get() + self.paths.looks.get()
    }
}
