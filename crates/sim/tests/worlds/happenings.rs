//! What happens to a connection from outside: what an endpoint tells it.

use polypath_transport::{Beside, Connection, FirstFlight, KnownPath, SchedulerConfig};
use polypath_wire::{Duration, Instant, PathId, Rate, Seed};

use crate::dice::Dice;

/// No way there and back is longer, queues aside: no path seems quicker than it is.
const LONG_TRIP: Duration = Duration::from_millis(500);

/// Happens to the connection of `end` at that time of the world.
#[derive(Clone, Debug)]
pub struct Happening {
    pub at: Instant,
    pub end: usize,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    /// It holds at most this many bytes.
    Memory(u64),
    /// The peer has another address there.
    Moved(PathId),
    /// Packets before the next one are missing there.
    Skipped(PathId),
    /// Another connection found it to lead through this bottleneck.
    Bottleneck(PathId, u32),
    /// It spills, or no longer.
    Spill(PathId, bool),
    /// Others have something under way there: at this rate, for so long.
    Beside(PathId, Option<(Rate, Duration)>),
    /// A turn in its first flight, so much later.
    Turn(PathId, KnownPath, u64, Duration),
    /// The peer proved to be at its other end.
    Proved(PathId),
    /// Another scheduler chooses the paths.
    Scheduler(SchedulerConfig),
    /// What its queues hold is known.
    Queues(PathId, Duration),
    /// A heartbeat was answered after this time.
    Answered(PathId, Duration),
    /// The peer learns that it exists.
    Announced(PathId),
}

/// Some, before `calm`; by then the memory is no longer short.
pub fn happenings(seed: Seed, paths: u64, calm: Instant) -> Vec<Happening> {
    let mut dice = Dice::new(seed);
    let mut all: Vec<Happening> = Vec::new();
    for _ in 0..dice.between(1, 40) {
        let (at, end) = (Instant(dice.between(0, calm.0)), dice.below(2) as usize);
        all.push(Happening { at, end, what: what(&mut dice, paths) });
    }
    all.sort_by_key(|happening| happening.at);
    all.extend([0, 1].map(|end| Happening { at: calm, end, what: What::Memory(u64::MAX) }));
    all
}

fn what(dice: &mut Dice, paths: u64) -> What {
    use SchedulerConfig::{Blest, EarliestArrival, EarliestCompletion, Ecf, MinRtt, RoundRobin};
    let path = PathId(dice.below(paths) as u16);
    let rate = Rate(dice.scale(100_000, 1_000_000_000));
    match dice.below(11) {
        0 => What::Memory(dice.scale(1000, 1_000_000)),
        1 => What::Moved(path),
        2 => What::Skipped(path),
        3 => What::Bottleneck(path, dice.below(3) as u32),
        4 => What::Spill(path, dice.chance(0.5)),
        5 => What::Beside(path, dice.chance(0.7).then(|| (rate, dice.millis(0, 500)))),
        6 => {
            let known = KnownPath { rate, rtt: dice.millis(1, 400) };
            What::Turn(path, known, dice.scale(1000, 1_000_000), dice.millis(0, 200))
        }
        7 => {
            What::Scheduler(dice.pick(&[RoundRobin, MinRtt, EarliestArrival, EarliestCompletion, Blest, Ecf]))
        }
        8 => What::Queues(path, dice.millis(0, 500)),
        9 => What::Answered(path, LONG_TRIP + dice.millis(0, 1000)),
        _ => What::Announced(path),
    }
}

impl What {
    pub fn happen(&self, now: Instant, to: &mut Connection) {
        match *self {
            Self::Memory(limit) => to.limit_memory(limit),
            Self::Moved(path) => to.path_moved(now, path),
            Self::Skipped(path) => to.path_skipped(path),
            Self::Bottleneck(path, bottleneck) => _ = to.path_bottleneck(now, path, bottleneck),
            Self::Spill(path, spill) => to.path_spills(path, spill),
            Self::Beside(path, beside) => {
                let beside = beside.map(|(rate, busy)| Beside { rate, busy_until: now + busy });
                to.path_beside(now, path, beside);
            }
            Self::Turn(path, known, bytes, wait) => {
                if to.starts(path).is_some() {
                    to.start_path(now, path, FirstFlight { known, at: now + wait, bytes, rate: known.rate });
                }
            }
            Self::Proved(path) => to.path_proved(now, path),
            Self::Scheduler(ref scheduler) => to.set_scheduler(scheduler.clone()),
            Self::Queues(path, wait) => to.reveal_queues(now, path, wait),
            Self::Answered(path, rtt) => to.path_answered(now, path, rtt),
            Self::Announced(path) => to.announce(now, path),
        }
    }
}
