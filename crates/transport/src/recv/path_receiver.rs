//! What the receiver keeps per path: the timestamp to echo (RFC 7323 §4.3), and when to acknowledge.
//!
//! Each path has its own TS.Recent. One for the connection would discard, as too old, what a slow
//! path delivers after a fast one.

use polypath_wire::tcp::Timestamps;
use polypath_wire::{Duration, Instant, PathId};

use super::ack_clock::AckClock;
use crate::path_map::OfPath;

/// A timestamp this much older than the latest one of its path, in ticks of 1 ms, is from a previous
/// pass through sequence space (PAWS). Below it is reordering within the path. Sequence space lasts
/// longer than this up to 34 Gbit/s.
const PAWS_TOLERANCE: i32 = 1_000;

/// What was remembered longer ago says nothing: soon the clock has gone half its circle (RFC 7323 §5.5).
const OUTDATED: Duration = Duration::from_secs(24 * 86_400);

/// Receiving state of one path.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct PathReceiver {
    path: PathId,
    /// The peer has sent something acceptable on it.
    pub heard: bool,
    /// Packets on it were lost or late since data came on it last.
    pub skipped: bool,
    /// Data on it was marked (RFC 3168), and the peer did not say that it reduced its window.
    pub marked: bool,
    /// What the peer calls it, if it says so (route id of the multi-route option).
    pub route: Option<u8>,
    /// How often it was announced to the peer.
    pub announced: u32,
    /// Data bytes received, duplicates included.
    pub bytes: u64,
    /// TS.Recent, and when it was set.
    ts_recent: Option<(u32, Instant)>,
    /// When what came on it is acknowledged, if acknowledgments are thinned.
    pub clock: AckClock,
}

impl OfPath for PathReceiver {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

impl PathReceiver {
    /// Nothing has come on `path`.
    pub(crate) fn new(path: PathId) -> Self {
        Self { path, ..Self::default() }
    }

    /// Whether a segment with these timestamps is too old to be believed.
    pub(crate) fn is_old(&self, now: Instant, ts: Option<Timestamps>) -> bool {
        ts.zip(self.ts_recent).is_some_and(|(ts, (recent, at))| {
            (ts.value.wrapping_sub(recent) as i32) < -PAWS_TOLERANCE && now.since(at) < OUTDATED
        })
    }

    /// An acceptable segment arrived. `oldest_unacked`: it is the one that the next acknowledgment is
    /// about, in the sense of RFC 7323 §4.3 (2); otherwise only a missing value is filled in.
    #[inline]
    pub(crate) fn on_segment(&mut self, now: Instant, ts: Timestamps, oldest_unacked: bool) {
        let replaces = self.ts_recent.is_none_or(|(recent, at)| {
            let newer = ts.value.wrapping_sub(recent) as i32 >= 0;
            oldest_unacked && (newer || now.since(at) >= OUTDATED)
        });
        if replaces {
            self.ts_recent = Some((ts.value, now));
        }
    }

    /// TSecr for a segment that leaves on this path; none before anything arrived here.
    pub(crate) fn echo(&self) -> Option<u32> {
        self.ts_recent.map(|(value, _)| value)
    }
}
