//! The seam between the connection and its schedulers.

use polypath_wire::{Duration, Instant, PathId, PathSet};

use crate::facts::{Parcel, PathState, PathView, Why};

/// Where a parcel goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// On this path.
    Send(PathId),
    /// On each of these paths, a copy each; at least one is open. One that is full gets its copy when it is open again, if
    /// that is still of use then.
    Copies(PathSet),
    /// Nowhere now; ask again after the next acknowledgment, or at this instant.
    Wait(Option<Instant>),
}

/// Chooses the path of the next parcel. Reads views and changes nothing but its own memory.
pub trait Scheduler: std::fmt::Debug + Send {
    /// Where `parcel` goes.
    fn pick(&mut self, now: Instant, parcel: &Parcel, paths: &[PathView]) -> Choice;

    /// A path left for good.
    fn on_path_removed(&mut self, _path: PathId) {}

    /// The path of a retransmission that waits for no window, where no path has room (RFC 6582 §3.2 step 3). None: the one
    /// on which it was lost.
    fn urgent(&self, _now: Instant, _parcel: &Parcel, _paths: &[PathView]) -> Option<PathId> {
        None
    }

    /// The paths that get a copy of what leaves without a choice: probes of a tail, and what is [urgent](Self::urgent).
    fn copies(&self, _paths: &[PathView]) -> PathSet {
        PathSet::EMPTY
    }

    /// Whether what is under way on a slow path leaves again on a quicker one where nothing new can leave.
    fn reinjects(&self) -> bool {
        false
    }

    /// Why [`pick`](Self::pick) has just sent `parcel` on `path`; asked only where that is observed.
    fn why(&self, now: Instant, parcel: &Parcel, paths: &[PathView], path: PathId) -> Why;
}

/// Whether `path` can take a parcel of `len` bytes now. As ever in TCP, a segment may be sent
/// while less than the window is in flight by at least that segment; or by what is to leave together, if the parcel has
/// as much.
pub fn is_open(now: Instant, path: &PathView, len: u32) -> bool {
    let least = u64::from(len).min(path.least.max(path.mss.into()));
    path.state == PathState::Active && path.room >= least as i64 && path.earliest_send <= now
}

/// An only path leaves nothing to choose.
pub(crate) fn only(now: Instant, parcel: &Parcel, path: &PathView) -> Choice {
    match is_open(now, path, parcel.len) {
        true => Choice::Send(path.id),
        false => Choice::Wait(opening(now, parcel, path)),
    }
}

/// The first open path in the order of `cost`, or when to ask again.
pub(crate) fn cheapest<C: Ord>(
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

/// Why [`cheapest`] chose `path`.
pub(crate) fn why_cheapest<C: Ord>(
    now: Instant,
    parcel: &Parcel,
    paths: &[PathView],
    path: PathId,
    mut cost: impl FnMut(&PathView) -> C,
) -> Why {
    let chosen = paths.iter().find(|p| p.id == path).map(&mut cost);
    let mut closed = paths.iter().filter(|p| p.state == PathState::Active && !is_open(now, p, parcel.len));
    match closed.any(|p| Some(cost(p)) < chosen) {
        true => Why::NextBest,
        false if has_others(now, parcel, paths, path) => Why::Best,
        false => Why::OnlyOpen,
    }
}

/// Whether a path other than `path` could take `parcel`.
pub fn has_others(now: Instant, parcel: &Parcel, paths: &[PathView], path: PathId) -> bool {
    paths.iter().any(|p| p.id != path && is_open(now, p, parcel.len))
}

/// When pacing opens the first path that has room.
pub fn next_opening(now: Instant, parcel: &Parcel, paths: &[PathView]) -> Option<Instant> {
    paths.iter().filter_map(|path| opening(now, parcel, path)).min()
}

/// When pacing opens `path`, if it has room.
pub(crate) fn opening(now: Instant, parcel: &Parcel, path: &PathView) -> Option<Instant> {
    let at = path.earliest_send;
    (at > now && is_open(at, path, parcel.len)).then_some(at)
}

/// The active path with the smallest round trip of those that are known.
pub(crate) fn quickest(paths: &[PathView]) -> Option<&PathView> {
    let known = paths.iter().filter(|p| p.state == PathState::Active && p.srtt.is_some());
    known.min_by_key(|p| (p.srtt, p.id))
}

/// `path` cannot take `parcel`, but an answer on it, or its pacing, will open it. With a window of one segment its timer ran
/// out (RFC 5681 §3.1): nobody knows whether it works.
pub(crate) fn is_busy(now: Instant, parcel: &Parcel, path: &PathView) -> bool {
    let lives = path.state == PathState::Active && path.window > u64::from(path.mss);
    let will_open = path.in_flight > 0 || opening(now, parcel, path).is_some();
    lives && will_open && !is_open(now, path, parcel.len)
}

/// Estimated arrival of `len` bytes sent now on `path`: the sender's queue, the transmission, the
/// network; as far as they are known.
pub(crate) fn arrival(now: Instant, path: &PathView, len: u32) -> Instant {
    departure(now, path, len) + path.one_way.unwrap_or(Duration::ZERO)
}

/// The same without the network: when the bottleneck will have sent it.
pub(crate) fn departure(now: Instant, path: &PathView, len: u32) -> Instant {
    let size = u64::from(len.min(path.mss) + path.overhead);
    let longer = || if path.others.is_none() { excess(path) } else { None }; // else it is part of the delay
    let transmission = path.rate.map(|rate| rate.transmission_time(size)).or_else(longer).unwrap_or_default();
    path.idle_at.max(now) + transmission
}

/// The [`arrival`], by the peer's clock where that is known: how long others wait behind a segment does not depend on the way
/// back of its acknowledgment. Nor does it take longer than what was sent before it took: where little was sent the path delivers at
/// a rate that is not its own.
pub(crate) fn clocked_arrival(now: Instant, path: &PathView, len: u32) -> Instant {
    let leaves = departure(now, path, len);
    match (path.clocked, excess(path)) {
        (Some(clocked), Some(excess)) => leaves.min(path.idle_at.max(now) + excess) + clocked,
        _ => leaves + one_way(path).unwrap_or_default(),
    }
}

/// The delay to the peer, by its clock where that is known.
pub(crate) fn one_way(path: &PathView) -> Option<Duration> {
    path.clocked.or(path.one_way)
}

/// What data took longer than the smallest packets: on a slow path that is its transmission.
pub(crate) fn excess(path: &PathView) -> Option<Duration> {
    path.srtt.zip(path.min_rtt).map(|(srtt, min)| srtt - min)
}

#[cfg(test)]
pub(super) mod bench {
    //! Paths for the tests of schedulers that wait.

    use super::*;

    /// New data.
    pub(crate) const PARCEL: Parcel = Parcel {
        offset: 0,
        len: 1000,
        retransmission: false,
        timed_out: None,
        waiting: u64::MAX,
        window: u64::MAX,
    };

    /// 20 ms, its window of 100 kB full; and 200 ms, half of its window of 100 kB free.
    pub(crate) fn two() -> [PathView; 2] {
        let path = |id, rtt, in_flight| PathView {
            srtt: Some(Duration::from_millis(rtt)),
            window: 100_000,
            in_flight,
            room: 100_000 - in_flight as i64,
            ..PathView::new(PathId(id), 1000)
        };
        [path(0, 20, 100_000), path(1, 200, 50_000)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::{DuplicateConfig, SchedulerConfig};

    fn view(id: u16, srtt: u64, room: i64) -> PathView {
        PathView { room, srtt: Some(Duration::from_millis(srtt)), ..PathView::new(PathId(id), 1000) }
    }

    #[test]
    fn before_a_rate_is_known_what_data_took_tells_of_it() {
        let ms = Duration::from_millis;
        let seen = |id, min: u64, srtt: u64| PathView {
            one_way: Some(ms(min / 2)),
            min_rtt: Some(ms(min)),
            ..view(id, srtt, 9000)
        };
        let parcel = Parcel { len: 1000, ..Parcel::default() };
        let mut scheduler = SchedulerConfig::EarliestArrival.build();
        let mut pick = |paths: &[PathView]| scheduler.pick(Instant::ZERO, &parcel, paths);
        // A modem's heartbeats take 10 ms, and a segment there 120.
        assert_eq!(pick(&[seen(0, 10, 120), seen(1, 40, 41)]), Choice::Send(PathId(1)));
        assert_eq!(pick(&[seen(0, 10, 12), seen(1, 40, 41)]), Choice::Send(PathId(0)));
    }

    #[test]
    fn a_choice_comes_with_its_reason() {
        let parcel = Parcel { len: 1000, ..Parcel::default() };
        let why = |policy: SchedulerConfig, paths: &[PathView]| {
            let mut scheduler = policy.build();
            let Choice::Send(path) = scheduler.pick(Instant::ZERO, &parcel, paths) else {
                panic!("one is open")
            };
            (path.0, scheduler.why(Instant::ZERO, &parcel, paths, path))
        };
        let both = [view(0, 20, 9000), view(1, 50, 9000)];
        let slow = [view(0, 20, 0), view(1, 50, 9000)];
        let fast = [view(0, 20, 9000), view(1, 50, 0)];
        assert_eq!(why(SchedulerConfig::MinRtt, &both), (0, Why::Best));
        assert_eq!(why(SchedulerConfig::MinRtt, &slow), (1, Why::NextBest));
        assert_eq!(why(SchedulerConfig::MinRtt, &fast), (0, Why::OnlyOpen));
        assert_eq!(why(SchedulerConfig::EarliestArrival, &both), (0, Why::Best));
        assert_eq!(why(SchedulerConfig::RoundRobin, &both), (0, Why::Turn));
        assert_eq!(why(SchedulerConfig::RoundRobin, &slow), (1, Why::OnlyOpen));
        assert_eq!(
            why(SchedulerConfig::Duplicate(DuplicateConfig { lost_only: true }), &both),
            (0, Why::Turn)
        );
    }
}
