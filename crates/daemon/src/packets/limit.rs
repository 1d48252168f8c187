//! How many errors are reported (RFC 1812 §4.3.2.8, RFC 4443 §2.4).

use std::time::{Duration, Instant};

/// Errors a second, at most.
const MOST: u32 = 100;

/// Counts the errors of one second after another.
#[derive(Debug, Default)]
pub struct Limit {
    since: Option<Instant>,
    told: u32,
}

impl Limit {
    /// Whether one more may be reported.
    pub fn allows(&mut self) -> bool {
        self.allows_at(Instant::now())
    }

    fn allows_at(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.duration_since(since) >= Duration::from_secs(1)) {
            (self.since, self.told) = (Some(now), 0);
        }
        self.told += 1;
        self.told <= MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_errors() {
        let (mut limit, now) = (Limit::default(), Instant::now());
        let mut told = |at| (0..1000).filter(|_| limit.allows_at(at)).count();
        assert_eq!((told(now), told(now + Duration::from_secs(1))), (100, 100));
    }
}
