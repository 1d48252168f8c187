//! Earliest arrival that can wait: no segment takes a path on which it would hold up all that follow.
//!
//! Earliest arrival skips a path whose window is full. Where the next best is much slower, that is wrong in two
//! cases: when the peer's window ends before the segment has arrived, so that the quicker paths run dry behind it
//! (BLEST: Ferlin, Alay, Mehani and Boreli, IFIP Networking 2016), and when the quicker paths would have
//! delivered all that is left before it (ECF: Lim, Nahum, Towsley and Gibbens, CoNEXT 2017). Then it is better to wait
//! for the next acknowledgment on a quicker path.
//!
//! A path may seem quick because its acknowledgments come back by another one. So what is left goes by an open path that, by the
//! peer's clock, delivers all of it sooner.
//!
//! Once nothing new can leave, copies of what a slow path still carries leave on a quicker one (`engine/reinject.rs`).

use polypath_wire::{Duration, Instant, PathId, Rate};

use super::earliest_arrival::EarliestArrival;
use super::scheduler::{
    Choice, Scheduler, arrival, clocked_arrival, is_busy, is_open, next_opening, one_way,
};
use crate::about::About;
use crate::facts::{Parcel, PathState, PathView, Why};

/// Earliest arrival, unless waiting for a quicker path delivers more.
#[derive(Debug, Default)]
pub(crate) struct EarliestCompletion;

impl EarliestCompletion {
    /// Name and help.
    pub(crate) const ABOUT: About = About {
        name: "earliest_completion",
        help: "The same, but a slow path holds up no other: it waits, and sends copies at the end",
    };
}

impl Scheduler for EarliestCompletion {
    fn pick(&mut self, now: Instant, parcel: &Parcel, paths: &[PathView]) -> Choice {
        let choice = EarliestArrival.pick(now, parcel, paths);
        let Choice::Send(id) = choice else { return choice };
        if parcel.retransmission {
            return choice;
        }
        let id = finisher(now, parcel, id, paths).unwrap_or(id);
        match is_obstacle(now, parcel, id, paths) {
            true => Choice::Wait(next_opening(now, parcel, paths)),
            false => Choice::Send(id),
        }
    }

    /// Behind a queue of its own path it would hold up all that the others deliver meanwhile.
    fn urgent(&self, now: Instant, parcel: &Parcel, paths: &[PathView]) -> Option<PathId> {
        let lives = |p: &&PathView| p.state == PathState::Active && parcel.timed_out != Some(p.id);
        paths.iter().filter(lives).min_by_key(|p| (arrival(now, p, parcel.len), p.id)).map(|p| p.id)
    }

    fn reinjects(&self) -> bool {
        true
    }

    fn why(&self, now: Instant, parcel: &Parcel, paths: &[PathView], path: PathId) -> Why {
        EarliestArrival.why(now, parcel, paths, path)
    }
}

/// The open path that by the peer's clock is the quickest, and would have delivered all that is left before `parcel` arrived
/// on `path`.
fn finisher(now: Instant, parcel: &Parcel, path: PathId, paths: &[PathView]) -> Option<PathId> {
    let arrives = |p: &PathView| clocked_arrival(now, p, parcel.len);
    let open = paths.iter().filter(|p| is_open(now, p, parcel.len));
    let quickest = open.min_by_key(|p| (arrives(p), p.id)).filter(|p| p.id != path)?;
    let end = arrives(paths.iter().find(|p| p.id == path)?);
    (capacity(quickest, arrives(quickest), end) > parcel.waiting).then_some(quickest.id)
}

/// Whether `parcel` on `path` would hold up what the quicker paths can send.
fn is_obstacle(now: Instant, parcel: &Parcel, path: PathId, paths: &[PathView]) -> bool {
    let Some(path) = paths.iter().find(|p| p.id == path) else { return false };
    let arrives = clocked_arrival(now, path, parcel.len);
    let opens = |p: &PathView| p.earliest_send.max(now);
    let quicker = || {
        let sooner = move |p: &&PathView| clocked_arrival(opens(p), p, parcel.len) < arrives;
        paths.iter().filter(move |p| is_busy(now, parcel, p)).filter(sooner)
    };
    if quicker().next().is_none() {
        return false;
    }
    let back = quicker().filter_map(one_way).min().unwrap_or(Duration::ZERO);
    let sent =
        quicker().chain([path]).map(|p| capacity(p, opens(p), arrives + back)).fold(0, u64::saturating_add);
    let last = |p: &PathView| capacity(p, clocked_arrival(opens(p), p, parcel.len), arrives);
    let delivered = quicker().map(last).fold(0, u64::saturating_add);
    sent.min(parcel.waiting) > parcel.window || delivered > parcel.waiting
}

/// Bytes that leave on `path` between two instants, by its rate or by a window each round trip: where little was
/// sent of late, little was delivered.
fn capacity(path: &PathView, from: Instant, to: Instant) -> u64 {
    let windows = path.srtt.map_or(Rate(0), |srtt| Rate::from_bytes_per(path.window, srtt));
    path.rate.unwrap_or(windows).max(windows).bytes_in(to.since(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARCEL: Parcel =
        Parcel { offset: 0, len: 1000, retransmission: false, timed_out: None, waiting: u64::MAX, window: 0 };

    /// 80 Mbit/s, 10 ms one way, its window of 100 kB full; and 8 Mbit/s, 100 ms, open.
    fn paths() -> [PathView; 2] {
        let path = |id, mbps, one_way, room| PathView {
            rate: Some(Rate::from_mbps(mbps)),
            one_way: Some(Duration::from_millis(one_way)),
            in_flight: 100_000,
            window: 100_000,
            room,
            ..PathView::new(PathId(id), 1000)
        };
        [path(0, 80, 10, 0), path(1, 8, 100, 100_000)]
    }

    fn pick(parcel: &Parcel, paths: &[PathView]) -> Choice {
        EarliestCompletion.pick(Instant::ZERO, parcel, paths)
    }

    /// It arrives after 101 ms, its acknowledgment comes back with another one after 10 ms more: 1.11 MB by the quicker path, and
    /// 0.111 MB behind it.
    #[test]
    fn waits_if_the_window_ends_before_an_acknowledgment() {
        for (window, choice) in [(1_220_000, Choice::Wait(None)), (1_222_000, Choice::Send(PathId(1)))] {
            assert_eq!(pick(&Parcel { window, ..PARCEL }, &paths()), choice, "{window}");
        }
    }

    /// Pacing holds the quicker path, which has room, until it would no longer be sooner.
    #[test]
    fn does_not_wait_for_a_path_that_opens_late() {
        let until = |ms: u64| Choice::Wait(Some(Instant(ms * 1_000_000)));
        let send = Choice::Send(PathId(1));
        for (held, waiting, choice) in [(80, 10_000, until(80)), (80, 500_000, send), (95, 10_000, send)] {
            let parcel = Parcel { waiting, window: u64::MAX, ..PARCEL };
            let mut paths = paths();
            (paths[0].room, paths[0].in_flight) = (100_000, 0);
            paths[0].earliest_send = Instant(held * 1_000_000);
            assert_eq!(pick(&parcel, &paths), choice, "{held} ms, {waiting} bytes");
        }
    }

    /// As before, but no more is left than the window takes.
    #[test]
    fn what_fits_the_window_does_not_wait_for_it() {
        let parcel = Parcel { window: 1_000_000, waiting: 950_000, ..PARCEL };
        assert_eq!(pick(&parcel, &paths()), Choice::Send(PathId(1)));
        assert_eq!(pick(&Parcel { waiting: 1_050_000, ..parcel }, &paths()), Choice::Wait(None));
    }

    /// The quicker path delivers the first of them after 10.1 ms, and then 10 kB a millisecond: 909 kB until 101 ms.
    #[test]
    fn waits_if_the_quicker_path_delivers_all_that_is_left_sooner() {
        for (waiting, choice) in [(908_000, Choice::Wait(None)), (910_000, Choice::Send(PathId(1)))] {
            assert_eq!(pick(&Parcel { waiting, window: u64::MAX, ..PARCEL }, &paths()), choice, "{waiting}");
        }
    }

    /// It seems to take 100 ms, since its acknowledgments come back in 10, and takes 190.
    #[test]
    fn a_slow_path_holds_up_others_for_as_long_as_it_takes() {
        let mut paths = paths();
        paths[1].clocked = Some(Duration::from_millis(190));
        for (window, choice) in [(2_210_000, Choice::Wait(None)), (2_212_000, Choice::Send(PathId(1)))] {
            assert_eq!(pick(&Parcel { window, ..PARCEL }, &paths), choice, "{window}");
        }
    }

    /// It delivers 0.8 Mbit/s, as it is hardly used: 10 ms for a segment. None took longer than 2 ms more than the smallest packet.
    #[test]
    fn a_path_that_is_hardly_used_is_not_taken_to_be_slow() {
        let ms = Duration::from_millis;
        let mut paths = paths();
        paths[1] = PathView {
            rate: Some(Rate(800_000)),
            clocked: Some(ms(100)),
            srtt: Some(ms(202)),
            min_rtt: Some(ms(200)),
            window: 20_000,
            room: 20_000,
            ..paths[1]
        };
        for (waiting, choice) in [(910_000, Choice::Wait(None)), (930_000, Choice::Send(PathId(1)))] {
            assert_eq!(pick(&Parcel { waiting, window: u64::MAX, ..PARCEL }, &paths), choice, "{waiting}");
        }
    }

    /// It seems to take 5 ms and takes 190, in which the other, open one delivers 1.8 MB.
    #[test]
    fn what_is_left_goes_where_the_clock_says_that_it_arrives_first() {
        let mut paths = paths();
        (paths[0].room, paths[1].in_flight) = (100_000, 0);
        (paths[1].one_way, paths[1].clocked) =
            (Some(Duration::from_millis(5)), Some(Duration::from_millis(190)));
        for (waiting, path) in [(1_700_000, 0), (1_900_000, 1)] {
            assert_eq!(
                pick(&Parcel { waiting, window: u64::MAX, ..PARCEL }, &paths),
                Choice::Send(PathId(path))
            );
        }
    }

    /// The first path, whose window is full, delivers all that is left before the open one does, to which the clock points.
    #[test]
    fn what_is_left_waits_for_a_path_that_is_quicker_than_any_open_one() {
        let [quick, seems] = paths();
        let open =
            PathView { id: PathId(2), one_way: Some(Duration::from_millis(50)), in_flight: 0, ..seems };
        let seems = PathView {
            in_flight: 0,
            one_way: Some(Duration::from_millis(5)),
            clocked: Some(Duration::from_millis(190)),
            ..seems
        };
        for (waiting, choice) in [(100_000, Choice::Wait(None)), (2_000_000, Choice::Send(PathId(1)))] {
            let parcel = Parcel { waiting, window: u64::MAX, ..PARCEL };
            assert_eq!(pick(&parcel, &[quick, seems, open]), choice, "{waiting}");
        }
    }

    #[test]
    fn a_window_each_round_trip_is_a_rate_too() {
        let mut paths = paths();
        paths[0].rate = Some(Rate::from_mbps(1));
        let parcel = Parcel { window: 1_000_000, ..PARCEL };
        assert_eq!(pick(&parcel, &paths), Choice::Send(PathId(1)));
        (paths[0].window, paths[0].srtt) = (200_000, Some(Duration::from_millis(20)));
        assert_eq!(pick(&parcel, &paths), Choice::Wait(None));
    }

    #[test]
    fn what_is_sent_again_never_waits() {
        let lost = Parcel { retransmission: true, ..PARCEL };
        assert_eq!(pick(&lost, &paths()), Choice::Send(PathId(1)));
    }

    #[test]
    fn what_waits_for_no_window_goes_where_it_arrives_first() {
        let lost = Parcel { retransmission: true, ..PARCEL };
        let urgent = |parcel: &Parcel| EarliestCompletion.urgent(Instant::ZERO, parcel, &paths());
        assert_eq!(urgent(&lost), Some(PathId(0)), "although its window is full");
        assert_eq!(urgent(&Parcel { timed_out: Some(PathId(0)), ..lost }), Some(PathId(1)));
    }

    /// Nothing in flight there would ever open it.
    #[test]
    fn does_not_wait_for_a_path_that_is_not_busy() {
        let mut paths = paths();
        paths[0].in_flight = 0;
        assert_eq!(pick(&PARCEL, &paths), Choice::Send(PathId(1)));
        (paths[0].in_flight, paths[0].window) = (1000, 1000);
        assert_eq!(pick(&PARCEL, &paths), Choice::Send(PathId(1)), "its timer ran out");
        (paths[0].window, paths[0].state) = (100_000, PathState::Failed);
        assert_eq!(pick(&PARCEL, &paths), Choice::Send(PathId(1)));
    }
}
