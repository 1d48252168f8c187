//! The outlet of a secure endpoint, for all tests of this crate: a test names [`Locators`] and [`Outlet`] above.

use polypath_transport::Segment;
use polypath_wire::{Ecn, Instant};

use super::{Locators, Outlet};

/// The UDP payloads of one turn. A segment without a cover is an error.
#[derive(Default)]
pub struct Out(pub Vec<(Locators, Vec<u8>)>);

impl Outlet for Out {
    fn send(&mut self, _: Instant, _: &Locators, _: &mut Box<Segment>) {
        panic!("a segment left in the clear");
    }
    fn send_datagram(&mut self, _: Instant, locators: &Locators, _: Ecn, payload: &[u8]) {
        self.0.push((*locators, payload.to_vec()));
    }
}
