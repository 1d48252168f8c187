//! The covers that there are.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bytes::BytesMut;
use polypath_transport::{PathConfig, PathStats};
use polypath_wire::hip::Hit;
use polypath_wire::{Ecn, Instant};

use crate::cover::{Cargo, Change, Cover, Inner, Plain};
use crate::outlet::Outlet;
use crate::paths::Locators;
use crate::security::Security;

/// The cover of one endpoint.
#[derive(Debug)]
pub(super) enum AnyCover {
    Plain(Plain),
    /// HIP and ESP.
    Secure(Box<Security>),
}

impl AnyCover {
    /// HIP and ESP, if the cover is secure.
    pub fn security(&self) -> Option<&Security> {
        match self {
            Self::Plain(_) => None,
            Self::Secure(security) => Some(security),
        }
    }

    /// The same to change it.
    pub fn security_mut(&mut self) -> Option<&mut Security> {
        match self {
            Self::Plain(_) => None,
            Self::Secure(security) => Some(security),
        }
    }
}

/// Asks the cover that there is.
macro_rules! ask {
    ($any:ident.$question:ident($($said:expr),*)) => {
        match $any {
            AnyCover::Plain(cover) => cover.$question($($said),*),
            AnyCover::Secure(cover) => cover.$question($($said),*),
        }
    };
}

impl Cover for AnyCover {
    fn open(&mut self, now: Instant, outer: &Locators, ecn: Ecn, bytes: BytesMut) -> Option<Inner> {
        ask!(self.open(now, outer, ecn, bytes))
    }

    #[inline]
    fn seal(&mut self, now: Instant, path: &Locators, cargo: Cargo<'_>, outlet: &mut impl Outlet) {
        ask!(self.seal(now, path, cargo, outlet));
    }

    #[inline]
    fn transmit(&mut self, now: Instant, outlet: &mut impl Outlet) {
        ask!(self.transmit(now, outlet));
    }

    fn poll(&mut self) -> Option<Change> {
        ask!(self.poll())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        ask!(self.poll_timeout())
    }

    fn handle_timeout(&mut self, now: Instant) {
        ask!(self.handle_timeout(now));
    }

    fn concerned(&self, now: Instant) -> BTreeSet<Hit> {
        ask!(self.concerned(now))
    }

    fn measured(&mut self, now: Instant, path: &Locators, stats: &PathStats) {
        ask!(self.measured(now, path, stats));
    }

    fn quiet(&mut self, name: Hit) {
        ask!(self.quiet(name));
    }

    fn note_other(&mut self) {
        ask!(self.note_other());
    }

    #[inline]
    fn has_news(&self) -> bool {
        ask!(self.has_news())
    }

    #[inline]
    fn authenticates(&self) -> bool {
        ask!(self.authenticates())
    }

    fn peer_at(&self, remote: IpAddr) -> Option<Hit> {
        ask!(self.peer_at(remote))
    }

    fn takes_early_data(&self, remote: IpAddr) -> bool {
        ask!(self.takes_early_data(remote))
    }

    fn outer(&self, path: &Locators) -> Option<Locators> {
        ask!(self.outer(path))
    }

    fn is_up(&self, path: &Locators) -> bool {
        ask!(self.is_up(path))
    }

    fn config_of(&self, path: &Locators) -> Option<PathConfig> {
        ask!(self.config_of(path))
    }

    fn live_paths(&self, name: Hit) -> Vec<Locators> {
        ask!(self.live_paths(name))
    }

    fn knows_sizes(&self, name: Hit) -> bool {
        ask!(self.knows_sizes(name))
    }
}
