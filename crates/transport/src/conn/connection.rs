//! One TCP connection over any number of paths.

use polypath_wire::{Instant, PathId, Seq};

use super::config::{ConnectionConfig, PathConfig};
use super::record::{Record, RecordFilter};
use super::stats::{ConnectionStats, PathStats};
use crate::payload::Payload;
use crate::segment::{Segment, Transmit};

/// States of RFC 9293 §3.3.2 (LISTEN is the endpoint's).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed,
}

/// Why a connection ended other than by FINs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The peer reset it.
    Reset,
    /// Nothing came back for too long.
    TimedOut,
    /// We aborted it.
    Aborted,
    /// The peer refused it (RST in answer to our SYN).
    Refused,
}

/// What the application should know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// There is something to read.
    Readable,
    /// There is room to write again.
    Writable,
    /// The peer sent its FIN and all its data has become readable.
    PeerFinished,
    /// Both sides finished and all our data was acknowledged (we may linger in TIME-WAIT).
    Finished,
    /// The connection ended early.
    Lost(CloseReason),
}

/// Local and remote TCP port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Ports {
    /// Ours.
    pub local: u16,
    /// The peer's.
    pub remote: u16,
}

/// One TCP connection over any number of paths.
///
/// Four kinds of method: *inputs* ([`handle`](Self::handle), [`handle_timeout`](Self::handle_timeout),
/// [`write`](Self::write), [`close`](Self::close), …), *outputs* ([`poll_transmit`](Self::poll_transmit),
/// [`poll_timeout`](Self::poll_timeout), [`poll_event`](Self::poll_event), [`poll_record`](Self::poll_record)),
/// *reads* ([`read`](Self::read)) and *questions* ([`state`](Self::state), [`stats`](Self::stats), …).
/// After any input poll in this order: transmit until `None`, events and records until `None`, then the timeout.
#[derive(Debug)]
pub struct Connection {}

#[allow(unused_variables, clippy::todo)]
impl Connection {
    /// Opens a connection: a SYN leaves on the first path; paths beyond it join when it is answered.
    /// `isn` is the initial sequence number (RFC 6528: the driver draws it).
    pub fn connect(
        now: Instant,
        config: ConnectionConfig,
        ports: Ports,
        isn: Seq,
        paths: &[PathConfig],
    ) -> Self {
        todo!()
    }

    /// Answers the SYN `syn` that came on `path`, which indexes `paths`.
    pub fn accept(
        now: Instant,
        config: ConnectionConfig,
        ports: Ports,
        isn: Seq,
        paths: &[PathConfig],
        path: PathId,
        syn: &Segment,
    ) -> Self {
        todo!()
    }

    /// Which observations to make; none by default.
    pub fn record(&mut self, filter: RecordFilter) {
        todo!()
    }

    /// Adds a path to an open connection.
    pub fn add_path(&mut self, now: Instant, path: PathConfig) -> PathId {
        todo!()
    }

    /// Removes a path; what is in flight on it is sent again on others.
    pub fn remove_path(&mut self, now: Instant, path: PathId) {
        todo!()
    }

    /// The path carries no larger segments than `mss` bytes of payload (an ICMP message, a probe).
    pub fn path_mss(&mut self, now: Instant, path: PathId, mss: u32) {
        todo!()
    }

    /// A segment arrived on `path`.
    pub fn handle(&mut self, now: Instant, path: PathId, segment: Segment) {
        todo!()
    }

    /// `now` has reached [`poll_timeout`](Self::poll_timeout). Calling early does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        todo!()
    }

    /// The next segment to send. A segment returned counts as sent.
    #[must_use]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        todo!()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        todo!()
    }

    /// The next event for the application.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        todo!()
    }

    /// The next observation.
    #[must_use]
    pub fn poll_record(&mut self) -> Option<Record> {
        todo!()
    }

    /// Bytes that [`write`](Self::write) would take now.
    pub fn writable(&self) -> u64 {
        todo!()
    }

    /// Appends to the stream as much of `data` as the send buffer has room for; returns how many
    /// bytes were taken (0 after `close`). Patterns always fit: they are not stored.
    pub fn write(&mut self, data: Payload) -> u64 {
        todo!()
    }

    /// The next bytes of the peer's stream, at most `max`; reading opens the window.
    pub fn read(&mut self, max: u64) -> Option<Payload> {
        todo!()
    }

    /// No more writes; a FIN follows the last byte. The peer may go on sending (half-close).
    pub fn close(&mut self) {
        todo!()
    }

    /// Ends the connection at once with a RST.
    pub fn abort(&mut self, now: Instant) {
        todo!()
    }

    /// State.
    pub fn state(&self) -> State {
        todo!()
    }

    /// Counters.
    pub fn stats(&self) -> &ConnectionStats {
        todo!()
    }

    /// Number of paths ever added.
    pub fn path_count(&self) -> usize {
        todo!()
    }

    /// Counters and state of one path.
    pub fn path_stats(&self, path: PathId) -> PathStats {
        todo!()
    }
}
