//! Ways through the network.

use polypath_endpoint::{Locators, Trail};

use crate::topology::{HopId, NodeId};

/// A route in one direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RouteId(pub u32);

/// Hops from one node to another. What each packet needs stands first, in one line of the cache.
#[derive(Clone, PartialEq, Debug)]
#[repr(C, align(64))]
pub(crate) struct Route {
    /// Where it begins in the network's steps.
    pub first: u32,
    pub to: NodeId,
    /// Where the far end's last segment from here went.
    pub trail: Trail,
    pub hops: Box<[HopId]>,
    /// The locators as the far end sees them.
    pub locators: Locators,
}

/// A path between two hosts: a route there, and the same hops back.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Path {
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Its locators as its beginning sees them.
    pub locators: Locators,
    pub(crate) there: RouteId,
}
