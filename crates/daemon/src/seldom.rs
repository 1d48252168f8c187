//! What others may cause again and again is logged seldom.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shortest time between two such lines of the log.
const PAUSE: Duration = Duration::from_secs(60);

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
    fn a_minute_has_one_line() {
        let (seldom, now) = (Seldom::default(), Instant::now());
        let lines = (0..150).filter(|second| seldom.allows_at(now + Duration::from_secs(*second)));
        assert_eq!(lines.collect::<Vec<_>>(), [0, 60, 120]);
    }
}
