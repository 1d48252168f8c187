//! What changed between two looks at a daemon.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use polypath_daemon::{PathStatus, PeerStatus, Status};

/// Rates that are kept of each path.
const KEPT: usize = 60;

/// A path, by its peer's name and its ends.
type Key = (String, SocketAddr, SocketAddr);

/// The last looks.
#[derive(Default)]
pub struct History {
    /// The last one, and when it was.
    pub status: Option<Status>,
    at: Duration,
    /// Mbit/s in both directions together, the newest last.
    rates: BTreeMap<Key, VecDeque<f64>>,
    pub rows: Vec<Row>,
}

/// What is shown of a path.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    pub peer: String,
    pub interface: String,
    pub ends: String,
    pub path: PathStatus,
    /// Sent and received, Mbit/s.
    pub up: f64,
    pub down: f64,
    /// Of what all paths carry, 0 to 1.
    pub share: f64,
    /// Segments sent again, of those sent, 0 to 1.
    pub again: f64,
    /// Packets received a second that a queue marked.
    pub marked: f64,
    /// The last rates, kbit/s.
    pub line: Vec<u64>,
}

impl History {
    /// A look at `at` since the first.
    pub fn see(&mut self, at: Duration, status: &Status) {
        let seconds = at.saturating_sub(self.at).as_secs_f64();
        let before = self.status.replace(status.clone());
        let before: BTreeMap<Key, PathStatus> = before
            .iter()
            .flat_map(Status::paths)
            .map(|(peer, path)| (key(peer, path), path.clone()))
            .collect();
        self.rows = status
            .paths()
            .map(|(peer, path)| row(status, peer, path, before.get(&key(peer, path)), seconds))
            .collect();
        let sum: f64 = self.rows.iter().map(|row| row.up + row.down).sum();
        for row in &mut self.rows {
            row.share = if sum > 0.0 { (row.up + row.down) / sum } else { 0.0 };
            let rates = self.rates.entry((row.peer.clone(), row.path.local, row.path.remote)).or_default();
            rates.push_back(row.up + row.down);
            while rates.len() > KEPT {
                rates.pop_front();
            }
            row.line = rates.iter().map(|rate| (rate * 1e3) as u64).collect();
        }
        let shown = |key: &Key| {
            self.rows.iter().any(|r| (&r.peer, r.path.local, r.path.remote) == (&key.0, key.1, key.2))
        };
        self.rates.retain(|key, _| shown(key));
        self.at = at;
    }
}

fn key(peer: &PeerStatus, path: &PathStatus) -> Key {
    (peer.name.clone(), path.local, path.remote)
}

fn row(
    status: &Status,
    peer: &PeerStatus,
    path: &PathStatus,
    before: Option<&PathStatus>,
    seconds: f64,
) -> Row {
    let before = before.unwrap_or(path);
    let a_second = |now: u64, before: u64| match seconds > 0.0 {
        true => now.saturating_sub(before) as f64 / seconds,
        false => 0.0,
    };
    let rate = |now, before| 8e-6 * a_second(now, before);
    let packets = path.sent_packets.saturating_sub(before.sent_packets);
    let again = path.load.again.saturating_sub(before.load.again);
    let interface = status.interface_of(path);
    Row {
        peer: peer.name.clone(),
        interface: interface.map_or("-".to_owned(), |one| one.name.clone()),
        ends: format!("{} → {}", path.local.ip(), path.remote.ip()),
        up: rate(path.sent_bytes, before.sent_bytes),
        down: rate(path.received_bytes, before.received_bytes),
        share: 0.0,
        again: again as f64 / packets.max(1) as f64,
        marked: a_second(path.marked_packets, before.marked_packets),
        path: path.clone(),
        line: Vec::new(),
    }
}
