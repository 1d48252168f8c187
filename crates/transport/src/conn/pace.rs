//! How much waits on either side of a connection: what a writer may be ahead of the paths, and the window of a peer whose bytes go on
//! over another connection.

use polypath_wire::{Duration, Rate};

use super::connection::Connection;

/// What may be [written and not sent](super::config::ConnectionConfig::send_ahead) in any case, bytes: what a program hands over at once.
const AHEAD: u64 = 64 << 10;
/// How late a busy host may wake up a writer.
const WAKES: Duration = Duration::from_millis(2);
/// Round trips for which a window that grows is large enough. In slow start each brings twice as much as the one before, and later
/// they may take several times as long.
const TRIPS: u64 = 8;
/// The shortest round trip that this counts with: one over a wireless link may take as long later.
const TRIP: Duration = Duration::from_millis(5);

impl Connection {
    /// The pace at which bytes leave: what is under way over the round trip; if nothing is, what is written.
    pub fn pace(&self) -> Rate {
        let pace = Rate(self.engine.lanes().iter().map(|lane| lane.pace().0).sum());
        match self.shortest() {
            Some(srtt) if pace == Rate(0) => Rate::from_bytes_per(self.sender.stream.stored(), srtt),
            _ => pace,
        }
    }

    fn shortest(&self) -> Option<Duration> {
        self.engine.lanes().iter().filter_map(|lane| lane.estimator.rtt.srtt()).min()
    }

    /// Most bytes that may be [written and not sent](super::config::ConnectionConfig::send_ahead) now.
    pub(super) fn ahead(&self) -> u64 {
        let soon = || self.pace().bytes_in(self.shortest().unwrap_or_default().max(WAKES));
        self.config.send_ahead.map_or(u64::MAX, |most| soon().max(AHEAD).min(most))
    }

    /// Whether the window is as large as the receive buffer.
    pub fn is_window_open(&self) -> bool {
        self.receiver.is_open()
    }

    /// Opens a window that [grows](super::config::ConnectionConfig::grow_window) for bytes that go on at `pace`. It never shrinks.
    pub fn grow_window(&mut self, pace: Rate) {
        let trip = self.shortest().map(|srtt| srtt.max(TRIP));
        let window = trip.map_or(u64::MAX, |trip| pace.bytes_in(Duration(trip.0.saturating_mul(TRIPS))));
        if self.receiver.grow(window) {
            self.after_read();
        }
    }
}
