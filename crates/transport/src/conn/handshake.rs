//! What opening a connection keeps: what is sent, and what it agreed upon.

use polypath_wire::{Instant, PathId, Seq};

use super::config::ConnectionConfig;

/// Our timestamps count milliseconds, in nanoseconds.
pub(super) const TIMESTAMP_TICK: u64 = 1_000_000;

/// Sequence numbers and what was agreed upon.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Handshake {
    /// Our initial sequence number.
    pub isn: Seq,
    /// The peer's, with its segment size, once its SYN came.
    pub peer: Option<(Seq, u32)>,
    /// Timestamps in every segment.
    pub timestamps: bool,
    /// The multi-route option in every segment.
    pub multi_route: bool,
    /// ECN: packets may be marked, and marks are echoed.
    pub ecn: bool,
    /// Shift of the windows we advertise.
    pub our_shift: u8,
    /// Shift of the windows that the peer advertises.
    pub peer_shift: u8,
    /// Data does not wait for it (see `early.rs`).
    pub early: bool,
    /// Windows are scaled.
    pub scaling: bool,
    /// The path that the SYN or SYN-ACK goes on.
    pub path: PathId,
    /// The path of each that left, and when it did.
    pub sent: Vec<(PathId, Instant)>,
    /// Timeouts.
    pub attempts: u32,
    /// It is due.
    pub due: bool,
}

impl Handshake {
    /// Nothing agreed yet.
    pub(super) fn new(config: &ConnectionConfig, isn: Seq) -> Self {
        let fitting = (0..14).find(|s| config.receive_buffer >> s <= 65_535).unwrap_or(14);
        Self {
            isn,
            peer: None,
            timestamps: config.timestamps,
            multi_route: config.multi_route,
            ecn: config.ecn,
            scaling: config.window_scaling,
            our_shift: if config.window_scaling { fitting } else { 0 },
            peer_shift: 0,
            path: PathId::FIRST,
            sent: Vec::new(),
            attempts: 0,
            due: false,
            early: config.early_data && !config.multi_route,
        }
    }
}
