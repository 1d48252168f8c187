//! The lines of `polypath status --watch --json`, as far as they tell of paths.

use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;

use super::ReplayError;

/// Counters, delays in ms and rates in Mbit/s are below these.
const MOST: u64 = 1 << 56;
const LONGEST_MS: f64 = 100_000.0;
const FASTEST_MBPS: f64 = 1e6;

/// A daemon at one moment.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    /// Seconds since 1970.
    pub time: f64,
    pub peers: Vec<Peer>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Peer {
    pub name: String,
    pub hit: String,
    /// Bytes of connections carried to it.
    pub sent: u64,
    pub paths: Vec<Look>,
}

/// A path at one moment.
#[derive(Debug, Deserialize)]
pub(super) struct Look {
    local: SocketAddr,
    remote: SocketAddr,
    pub up: bool,
    pub answers: bool,
    pub delay_ms: Option<f64>,
    pub rate_mbps: Option<f64>,
    pub sent_packets: u64,
    /// Payload of UDP.
    pub sent_bytes: u64,
    pub load: Load,
}

#[derive(Debug, Deserialize)]
pub(super) struct Load {
    /// Segments sent again by the connections that are open.
    pub again: u64,
    pub rtt_ms: Option<f64>,
}

/// The lines, in the order of their times.
pub(super) fn read(text: &str) -> Result<Vec<Line>, ReplayError> {
    let filled = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let line = |(n, line): (usize, &str)| {
        let parsed: Result<Line, _> = serde_json::from_str(line);
        match parsed.map_err(|source| ReplayError::Line { line: n + 1, source })? {
            line if line.is_sound() => Ok(line),
            _ => Err(ReplayError::Range { line: n + 1 }),
        }
    };
    let mut lines: Vec<Line> = filled.map(line).collect::<Result<_, _>>()?;
    lines.sort_by(|a, b| a.time.total_cmp(&b.time));
    lines.dedup_by(|a, b| a.time <= b.time);
    Ok(lines)
}

impl Line {
    fn is_sound(&self) -> bool {
        let counts = |look: &Look| [look.sent_packets, look.sent_bytes, look.load.again];
        let times = |look: &Look| [look.delay_ms, look.load.rtt_ms];
        let is_sound = |look: &Look| {
            counts(look).iter().all(|count| *count < MOST)
                && times(look).iter().flatten().all(|ms| (0.0..LONGEST_MS).contains(ms))
                && look.rate_mbps.is_none_or(|rate| (0.0..FASTEST_MBPS).contains(&rate))
        };
        self.peers.iter().all(|peer| peer.sent < MOST && peer.paths.iter().all(is_sound))
    }

    pub fn peer(&self, hit: &str) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.hit == hit)
    }
}

impl Look {
    /// By which a path is known again.
    pub fn ends(&self) -> (IpAddr, IpAddr) {
        (self.local.ip(), self.remote.ip())
    }

    /// Everything sent, bytes of IP.
    pub fn wire(&self) -> u64 {
        let headers = if self.local.is_ipv4() { 28 } else { 48 };
        self.sent_bytes + headers * self.sent_packets
    }
}
