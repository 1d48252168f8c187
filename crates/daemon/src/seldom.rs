//! What others may cause again and again is logged seldom.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two such lines of the log.
const PAUSE: Duration = Duration::from_secs(60);

/// Lines that one peer may cause at once, and the time after which it may cause one more.
const BURST: u32 = 200;
const EACH: Duration = Duration::from_secs(1);

/// Counts the lines that a peer causes.
#[derive(Debug, Default)]
pub(crate) struct Spared(Mutex<Lines>);

#[derive(Debug, Default)]
struct Lines {
    /// When the whole burst is allowed again.
    full_at: Option<Instant>,
    left_out: u64,
}

impl Spared {
    /// Whether one more line may be written; if so how many were left out before it.
    pub fn allows(&self) -> Option<u64> {
        self.allows_at(Instant::now())
    }

    fn allows_at(&self, now: Instant) -> Option<u64> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let after = lines.full_at.map_or(now, |at| at.max(now)) + EACH;
        if after > now + EACH * BURST {
            lines.left_out += 1;
            return None;
        }
        lines.full_at = Some(after);
        Some(std::mem::take(&mut lines.left_out))
    }
}

/// When there was such a line.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    /// Whether another line may follow; then it counts as written.
    pub fn allows(&self) -> bool {
        self.allows_at(Instant::now())
    }

    fn allows_at(&self, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed = last.is_none_or(|last| now.duration_since(last) >= PAUSE);
        if allowed {
            *last = Some(now);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_a_burst_of_lines_and_then_one_a_second_and_those_left_out_are_counted() {
        let (spared, now) = (Spared::default(), Instant::now());
        let lines = |after: u32| (0..1000).filter_map(|_| spared.allows_at(now + EACH * after)).collect();
        let (first, next, much_later): (Vec<_>, Vec<_>, Vec<_>) = (lines(0), lines(1), lines(1000));
        assert_eq!((first.len(), next, much_later.len()), (200, vec![800], 200));
        assert_eq!((first.iter().sum::<u64>(), much_later.iter().sum::<u64>()), (0, 999));
    }

    #[test]
    fn a_minute_has_one_line() {
        let (seldom, now) = (Seldom::default(), Instant::now());
        let lines = (0..150).filter(|second| seldom.allows_at(now + Duration::from_secs(*second)));
        assert_eq!(lines.collect::<Vec<_>>(), [0, 60, 120]);
    }
}
