//! Paths that take what the others have no room for.

use polypath_wire::Instant;

use crate::cc::controller::{Controller, Phase};
use crate::facts::{Parcel, PathState, PathView};
use crate::sched::scheduler::{Choice, Scheduler};

/// A path is full with at most this part of its window left: a window that is paced is seldom in flight as a whole.
const LEFT: i64 = 4;

/// Where `parcel` goes. What [spills](PathView::spill) takes it if all others that work are full, or none works.
pub(super) fn pick(
    scheduler: &mut dyn Scheduler,
    controller: &dyn Controller,
    now: Instant,
    parcel: &Parcel,
    paths: &[PathView],
) -> Choice {
    let (second, first): (Vec<_>, Vec<_>) = paths.iter().copied().partition(|path| path.spill);
    let mut working = first.iter().filter(|path| path.state == PathState::Active).peekable();
    if second.is_empty() || working.peek().is_none() {
        return scheduler.pick(now, parcel, paths);
    }
    match scheduler.pick(now, parcel, &first) {
        Choice::Wait(opening) if working.all(|path| is_full(controller, path)) => {
            match scheduler.pick(now, parcel, &second) {
                Choice::Wait(other) => Choice::Wait([opening, other].into_iter().flatten().min()),
                choice => choice,
            }
        }
        choice => choice,
    }
}

/// Whether a path carries what it can, as far as its controller knows: while a window doubles, it has not found out. With a window
/// below a segment, as one of all paths may be, it carries nothing.
fn is_full(controller: &dyn Controller, path: &PathView) -> bool {
    let has_little_room = path.room <= path.window as i64 / LEFT;
    let has_none = path.window < path.mss.into();
    has_none || has_little_room && controller.snapshot(path.id).phase != Phase::SlowStart
}

#[cfg(test)]
mod tests {
    use polypath_wire::{Duration, PathId};

    use super::*;
    use crate::cc::{CcConfig, Env, NewRenoConfig};
    use crate::facts::{Episode, LossCause, LossEvent};
    use crate::sched::SchedulerConfig;

    const MSS: u32 = 1000;
    const WINDOW: u64 = 40_000;

    /// A cheap path and two that spill; `in_flight` bytes are in flight on the first.
    fn paths(in_flight: u64) -> [PathView; 3] {
        [0, 1, 2].map(|n| {
            let mut view = PathView::new(PathId(n), MSS);
            (view.window, view.spill) = (WINDOW, n > 0);
            view.srtt = Some(Duration::from_millis(100 - 10 * u64::from(n)));
            view.take_up(if n == 0 { in_flight } else { 0 });
            view
        })
    }

    fn choice(past_slow_start: bool, paths: &[PathView]) -> Choice {
        let mut controller = CcConfig::Newreno(NewRenoConfig::default()).build(&Env::default());
        paths.iter().for_each(|path| controller.on_path_added(Instant::ZERO, path.id, MSS));
        if past_slow_start {
            let loss = LossEvent {
                cause: LossCause::LaterDelivered,
                episode: Episode::default(),
                bytes: 1000,
                flight_size: 20_000,
                oldest_sent: Instant::ZERO,
            };
            controller.on_loss(Instant::ZERO, PathId(0), &loss, paths);
        }
        let parcel = Parcel { len: MSS, waiting: 1 << 20, ..Parcel::default() };
        pick(&mut *SchedulerConfig::MinRtt.build(), &*controller, Instant::ZERO, &parcel, paths)
    }

    #[test]
    fn a_path_that_spills_takes_what_the_others_have_no_room_for() {
        assert_eq!(choice(true, &paths(30_000)), Choice::Send(PathId(0)), "there is room");
        assert_eq!(choice(true, &paths(WINDOW)), Choice::Send(PathId(2)), "the quicker of those that spill");
        assert_eq!(choice(false, &paths(WINDOW)), Choice::Wait(None), "slow start finds out first");
    }

    #[test]
    fn what_waits_for_its_pace_is_full_if_little_room_is_left() {
        let paced = |in_flight| {
            let mut paths = paths(in_flight);
            paths[0].earliest_send = Instant(5);
            choice(true, &paths)
        };
        assert_eq!(paced(20_000), Choice::Wait(Some(Instant(5))));
        assert_eq!(paced(32_000), Choice::Send(PathId(2)));
    }

    #[test]
    fn a_window_below_a_segment_is_full() {
        let mut small = paths(0);
        (small[0].window, small[0].room) = (999, 999);
        assert_eq!(choice(false, &small), Choice::Send(PathId(2)));
    }

    #[test]
    fn without_others_that_work_it_takes_everything() {
        let mut failed = paths(0);
        failed[0].state = PathState::Failed;
        assert_eq!(choice(false, &failed), Choice::Send(PathId(2)));
    }
}
