//! The queue of others on one path: what packets wait there beyond what we have in flight.
//!
//! A packet that took long may have been alone in that. A queue that stands lets none by: so the shortest wait of late counts, as in CoDel
//! (RFC 8289 §3.1).

use polypath_wire::{Duration, Instant};

use crate::windowed::WindowedMin;

/// Waits of the last one to two of these count, or of as many round trips: CoDel's interval.
const LATELY: Duration = Duration::from_millis(100);

/// What packets of late waited behind those of others.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Others(WindowedMin<Duration>);

impl Others {
    /// A packet waited so long behind those of others, on a path with a round trip of `srtt`.
    pub(crate) fn sample(&mut self, now: Instant, wait: Duration, srtt: Duration) {
        self.0.add(now, wait, srtt.max(LATELY));
    }

    /// How long a packet waits that leaves now.
    pub(crate) fn wait(&self) -> Duration {
        self.0.value().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_queue_counts_once_it_stands_and_until_a_packet_did_not_wait() {
        let mut others = Others::default();
        let mut wait = |at: u64, wait| {
            others.sample(Instant::ZERO + MS(at), MS(wait), MS(20));
            others.wait()
        };
        assert_eq!(
            (wait(0, 0), wait(10, 40), wait(90, 40)),
            (MS(0), MS(0), MS(0)),
            "one packet was late, or two"
        );
        assert_eq!((wait(101, 40), wait(202, 30)), (MS(0), MS(30)));
        assert_eq!(wait(210, 0), MS(0));
    }

    /// Heartbeats of an idle path come once a second.
    #[test]
    fn rare_packets_tell_as_much() {
        let mut others = Others::default();
        let wait = |others: &mut Others, s: u64, wait| {
            others.sample(Instant::ZERO + MS(1000 * s), MS(wait), MS(20));
            others.wait()
        };
        assert_eq!(
            [(1, 0), (2, 500), (3, 600), (4, 9)].map(|(s, ms)| wait(&mut others, s, ms)),
            [0, 0, 500, 9].map(MS)
        );
    }
}
