//! What the receiver keeps per path: the timestamp to echo (RFC 7323 §4.3).
//!
//! Each path has its own TS.Recent. One for the connection would discard, as too old, what a slow
//! path delivers after a fast one.

use polypath_wire::tcp::Timestamps;

/// A timestamp this much older than the latest one of its path, in ticks of 1 ms, is from a previous
/// pass through sequence space (PAWS). Below it is reordering within the path. Sequence space lasts
/// longer than this up to 34 Gbit/s.
const PAWS_TOLERANCE: i32 = 1_000;

/// Receiving state of one path.
#[derive(Clone, Debug, Default)]
pub struct PathReceiver {
    ts_recent: Option<u32>,
    /// Data bytes received, duplicates included.
    pub bytes: u64,
}

impl PathReceiver {
    /// Whether a segment with these timestamps is too old to be believed.
    pub fn is_old(&self, ts: Option<Timestamps>) -> bool {
        match (ts, self.ts_recent) {
            (Some(ts), Some(recent)) => (ts.value.wrapping_sub(recent) as i32) < -PAWS_TOLERANCE,
            _ => false,
        }
    }

    /// An acceptable segment arrived. `oldest_unacked`: it is the one that the next acknowledgment is
    /// about, in the sense of RFC 7323 §4.3 (2); otherwise only a missing value is filled in.
    pub fn on_segment(&mut self, ts: Option<Timestamps>, oldest_unacked: bool) {
        let Some(ts) = ts else { return };
        let newer = self.ts_recent.is_none_or(|recent| ts.value.wrapping_sub(recent) as i32 >= 0);
        if self.ts_recent.is_none() || (oldest_unacked && newer) {
            self.ts_recent = Some(ts.value);
        }
    }

    /// TSecr for a segment that leaves on this path; none before anything arrived here.
    pub fn echo(&self) -> Option<u32> {
        self.ts_recent
    }
}
