//! Segments that leave together, as on hosts with segmentation offload (Linux: `tcp_tso_autosize`, `tcp_tso_should_defer`). New data
//! waits until a whole piece may leave: what the rate carries in a millisecond, or a third of the window.
//!
//! It does not wait
//!
//! - if nothing left for a millisecond,
//! - if no acknowledgment is near: nothing is in flight, or the oldest segment left less than half a round trip ago,
//! - during a loss episode,
//! - if it is sent again, or all that is written may leave (`is_open`).
//!
//! Not as in Linux: the end of what is written does not wait for more, and a piece does not wait for the peer's window.

use polypath_wire::{Duration, Instant, PathId, Rate};

use super::lane::Lane;
use super::machine::Engine;
use crate::facts::{Pace, PathView};

/// Most bytes of a piece, and of a buffer that pieces are cut from.
const LARGEST: u64 = 1 << 16;
/// A piece may be as long as `LARGEST`, halved for each of these in the smallest round trip (`tcp_tso_rtt_log`), and longer by that.
const NEAR: Duration = Duration::from_micros(512);
/// Nothing waits that long after the last segment.
const PATIENCE: Duration = Duration::from_millis(1);
/// Nothing waits where this part of the window has room.
const PART: u64 = 3;

impl Engine {
    /// `len` bytes leave on `path`, which has not heard of it.
    pub(super) fn cut(&mut self, now: Instant, path: PathId, len: u32) {
        let most = self.piece(path).min(self.views[path].room.max(0) as u64);
        let view = &self.views[path];
        self.lanes[path].piece.take(now, len.into(), most, buffer(view));
    }

    /// Bytes that must have room on `path` before new data leaves.
    pub(super) fn held(&self, now: Instant, path: PathId) -> u64 {
        let (view, lane) = (&self.views[path], &self.lanes[path]);
        let leaves = lane.piece.goes_on(now) || lane.recovering.is_some();
        if leaves || now > lane.piece.at + PATIENCE || !expects_answer(now, view, lane) {
            return 0;
        }
        self.piece(path).min(view.window / PART)
    }

    /// The next piece of `path`, bytes.
    fn piece(&self, path: PathId) -> u64 {
        let (view, lane) = (&self.views[path], &self.lanes[path]);
        let mss = u64::from(view.mss.max(1));
        let rate = self.controller.pace(path).map(|pace| pace.rate).or_else(|| self.rate(view));
        let near = view.min_rtt.map_or(0, |rtt| LARGEST.checked_shr((rtt.0 / NEAR.0) as u32).unwrap_or(0));
        let bytes = rate.map_or(LARGEST, |rate| (rate.bytes_in(Pace::GRAIN) + near).min(LARGEST));
        let whole = Pace::whole(bytes, mss);
        whole.min(buffer(view).saturating_sub(lane.piece.cut).max(mss))
    }

    /// The rate of a window that is not paced: twice the window in a round trip while it may double, else a fifth more.
    fn rate(&self, view: &PathView) -> Option<Rate> {
        let doubles = self.controller.snapshot(view.id).ssthresh.is_none_or(|limit| view.window < limit / 2);
        let window = if doubles { 2 * view.window } else { view.window + view.window / 5 };
        view.srtt.map(|srtt| Rate::from_bytes_per(window, srtt))
    }
}

/// The whole segments of a buffer, bytes.
fn buffer(view: &PathView) -> u64 {
    let mss = u64::from(view.mss.max(1));
    Pace::whole(LARGEST, mss)
}

/// Whether an acknowledgment should come soon.
fn expects_answer(now: Instant, view: &PathView, lane: &Lane) -> bool {
    let oldest = lane.flight.iter().next();
    let soon = |sent_at: Instant| view.srtt.is_none_or(|srtt| now >= sent_at + srtt.over(2));
    oldest.is_some_and(|(_, oldest)| soon(oldest.sent_at))
}
