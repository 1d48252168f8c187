//! How long one waits for paths on which nothing arrives.

use polypath_wire::Duration;

/// Notices when nothing has arrived for too long.
#[derive(Clone, Debug)]
pub struct Patience {
    /// For how long nothing may arrive.
    limit: Duration,
    arrived: u64,
    /// When something last arrived, since the beginning.
    at: Duration,
}

impl Patience {
    pub fn new(limit: Duration) -> Self {
        Self { limit, arrived: 0, at: Duration::ZERO }
    }

    /// Takes `arrived` bytes in all at `now`, the time since the beginning; whether patience has run out.
    pub fn is_over(&mut self, now: Duration, arrived: u64) -> bool {
        if arrived > self.arrived {
            (self.arrived, self.at) = (arrived, now);
        }
        now > self.at + self.limit
    }
}

/// For people.
pub fn silent(limit: Duration) -> String {
    format!("nothing arrived for {:.0} s", limit.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_is_not_silent() {
        let (mut patience, secs) = (Patience::new(Duration::from_secs(30)), Duration::from_secs);
        assert!((0..1000).all(|n| !patience.is_over(secs(30 * n), n)), "a byte every 30 s");
        assert!(!patience.is_over(secs(30_000), 999));
        assert!(patience.is_over(secs(30_001), 999));
        assert!(!patience.is_over(secs(30_002), 1000));
    }
}
