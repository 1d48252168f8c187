//! A path of an association.

use polypath_wire::{Duration, Instant};

use crate::event::Route;

/// One path with its SA pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// Both ends.
    pub route: Route,
    /// The SPI of what we receive.
    pub inbound: u32,
    /// The SPI of what we send.
    pub outbound: u32,
    /// Whether the peer proved that it is there (RFC 8046 §5.4).
    pub reachable: bool,
    /// Whether the peer's address is no longer listed, or its lifetime is over: no data goes there (RFC 8046 §5.1).
    pub withdrawn: bool,
    /// Since when.
    pub(super) withdrawn_at: Option<Instant>,
    /// What the last answer on it took, from the first time that we asked; 0 if none came yet.
    pub round_trip: Duration,
    /// When the peer may next be asked whether it is where data comes from.
    pub(super) next_check: Instant,
    /// The SPIs that the peer received on before, the newest last: what it said earlier may come later and names them.
    pub(super) former: Vec<u32>,
}

impl Path {
    pub(super) fn new(
        route: Route,
        inbound: u32,
        outbound: u32,
        reachable: bool,
        round_trip: Duration,
    ) -> Self {
        Self {
            route,
            inbound,
            outbound,
            reachable,
            withdrawn: false,
            withdrawn_at: None,
            round_trip,
            next_check: Instant::ZERO,
            former: Vec::new(),
        }
    }
}
