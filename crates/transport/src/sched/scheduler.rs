//! The seam between the connection and its schedulers.

use polypath_wire::{Duration, Instant, PathId, PathSet};

use crate::facts::{Parcel, PathState, PathView};

/// Where a parcel goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// On this path.
    Send(PathId),
    /// On each of these paths, a copy each; there is at least one.
    Copies(PathSet),
    /// Nowhere now; ask again after the next acknowledgment, or at this instant.
    Wait(Option<Instant>),
}

/// Chooses the path of the next parcel. Reads views and changes nothing but its own memory.
pub trait Scheduler: std::fmt::Debug + Send {
    /// Where `parcel` goes.
    fn pick(&mut self, now: Instant, parcel: &Parcel, paths: &[PathView]) -> Choice;
}

/// Whether `path` can take a parcel of `len` bytes now. As ever in TCP, a segment may be sent
/// while less than the window is in flight by at least that segment.
pub fn is_open(now: Instant, path: &PathView, len: u32) -> bool {
    path.state == PathState::Active && path.room >= i64::from(len.min(path.mss)) && path.earliest_send <= now
}

/// An only path leaves nothing to choose.
pub fn only(now: Instant, parcel: &Parcel, path: &PathView) -> Choice {
    match is_open(now, path, parcel.len) {
        true => Choice::Send(path.id),
        false => Choice::Wait(opening(now, parcel, path)),
    }
}

/// The first open path in the order of `cost`, or when to ask again.
pub fn cheapest<C: Ord>(
    now: Instant,
    parcel: &Parcel,
    paths: &[PathView],
    mut cost: impl FnMut(&PathView) -> C,
) -> Choice {
    let open = paths.iter().filter(|p| is_open(now, p, parcel.len));
    match open.min_by_key(|p| cost(p)) {
        Some(best) => Choice::Send(best.id),
        None => Choice::Wait(next_opening(now, parcel, paths)),
    }
}

/// When pacing opens the first path that has room.
pub fn next_opening(now: Instant, parcel: &Parcel, paths: &[PathView]) -> Option<Instant> {
    paths.iter().filter_map(|path| opening(now, parcel, path)).min()
}

fn opening(now: Instant, parcel: &Parcel, path: &PathView) -> Option<Instant> {
    let at = path.earliest_send;
    (at > now && is_open(at, path, parcel.len)).then_some(at)
}

/// Estimated arrival of `len` bytes sent now on `path`: the sender's queue, the transmission, the
/// network; as far as they are known.
pub fn arrival(now: Instant, path: &PathView, len: u32) -> Instant {
    let size = u64::from(len.min(path.mss) + path.overhead);
    let transmission = path.rate.map_or(Duration::ZERO, |r| r.transmission_time(size));
    path.idle_at.max(now) + transmission + path.one_way.unwrap_or(Duration::ZERO)
}
