//! Interrupt moderation for sockets: where packets come often, but each alone, a few are received at once. To wake up for one
//! costs more than to handle it.

use std::io;
use std::task::Context;

use polypath_wire::{Duration, Instant};

use crate::alarm::Alarm;
use crate::clock::Clock;

/// Packets to wait for, and for how long at most.
const PACKETS: u64 = 8;
const LONGEST: Duration = Duration::from_millis(1);
/// The shortest wait that is worth a timer.
const SHORTEST: Duration = Duration::from_micros(50);
/// A wait that brings fewer packets is useless: in an exchange of requests and responses each would be.
const FEW: u64 = 2;
/// Useful waits that make up for a useless one.
const SEVERAL: u32 = 8;
/// After a useless wait that nothing makes up for, none follows for this long.
const PAUSE: Duration = Duration::from_millis(100);

/// When to receive.
pub(crate) struct Moderation {
    rule: Rule,
    alarm: Alarm,
    /// The end of the present wait.
    until: Option<Instant>,
}

impl Moderation {
    /// Needs a tokio runtime.
    pub fn new() -> io::Result<Self> {
        Ok(Self { rule: Rule::new(), alarm: Alarm::new(Clock::start())?, until: None })
    }

    /// Whether to wait, until the task of `cx` is woken.
    pub fn waits(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        self.until.map_or(Ok(false), |until| self.alarm.poll(cx, until).map(|over| !over))
    }

    /// This many packets were received. Returns whether to wait before the next are.
    pub fn received(&mut self, packets: usize) -> bool {
        self.until = self.rule.received(self.alarm.now(), packets as u64, self.until.is_some());
        self.until.is_some()
    }
}

struct Rule {
    /// When packets were received last, and the time from one to the next, smoothed over `PACKETS`.
    last: Instant,
    spacing: Duration,
    /// Useful waits, less `SEVERAL` for each useless one.
    useful: u32,
    /// No wait begins before.
    paused: Instant,
}

impl Rule {
    fn new() -> Self {
        Self { last: Instant::ZERO, spacing: LONGEST, useful: 0, paused: Instant::ZERO }
    }

    /// This many packets were received, perhaps after a wait. Returns the end of the next wait, if one follows.
    fn received(&mut self, now: Instant, packets: u64, waited: bool) -> Option<Instant> {
        match (waited, packets < FEW) {
            (true, false) => self.useful = (self.useful + 1).min(4 * SEVERAL),
            (true, true) if self.useful < SEVERAL => self.paused = now + PAUSE,
            (true, true) => self.useful -= SEVERAL,
            _ => {}
        }
        if packets == 0 {
            return None;
        }
        let spacing = now.since(self.last).min(LONGEST).over(packets);
        let weight = packets.min(PACKETS);
        self.spacing = (self.spacing.times(PACKETS - weight) + spacing.times(weight)).over(PACKETS);
        self.last = now;
        let wait = self.spacing.times(PACKETS);
        let worth_it = wait >= SHORTEST && self.spacing.times(FEW) <= LONGEST && now >= self.paused;
        worth_it.then(|| now + wait.min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    struct Found {
        packets: u64,
        receipts: u64,
        waits: u64,
        longest_delay: Duration,
    }

    /// Receives packets that come with this spacing, for a second.
    fn receive(spacing: Duration) -> Found {
        let (mut rule, mut wait) = (Rule::new(), None);
        let (mut now, mut next) = (Instant::ZERO, Instant::ZERO + spacing);
        let mut found = Found { packets: 0, receipts: 0, waits: 0, longest_delay: Duration::ZERO };
        while now < Instant::ZERO + SECOND {
            now = wait.unwrap_or(next);
            let (first, mut together) = (next, 0);
            while next <= now {
                (next, together) = (next + spacing, together + 1);
            }
            if together > 0 {
                found.longest_delay = found.longest_delay.max(now.since(first));
            }
            found.packets += together;
            found.receipts += 1;
            found.waits += u64::from(wait.is_some());
            wait = rule.received(now, together, wait.is_some());
        }
        found
    }

    #[test]
    fn packets_that_come_often_are_received_eight_at_once_or_as_many_as_a_millisecond_brings() {
        for (micros, together) in [(10, 7), (50, 7), (120, 7), (240, 4), (450, 2)] {
            let Found { packets, receipts, longest_delay, .. } = receive(Duration::from_micros(micros));
            assert!(packets >= receipts * together, "{packets} in {receipts}, each {micros} µs");
            assert!(longest_delay <= LONGEST, "{longest_delay:?}");
        }
    }

    #[test]
    fn a_gap_now_and_then_changes_little() {
        let (mut rule, mut wait) = (Rule::new(), None);
        let (mut now, mut next, mut receipts) = (Instant::ZERO, Instant::ZERO, 0_u64);
        let mut packets = 0_u64;
        while now < Instant::ZERO + SECOND {
            now = wait.unwrap_or(next);
            let mut together = 0;
            while next <= now {
                (packets, together) = (packets + 1, together + 1);
                next += Duration::from_micros(if packets.is_multiple_of(200) { 5000 } else { 120 });
            }
            receipts += 1;
            wait = rule.received(now, together, wait.is_some());
        }
        assert!(packets >= 6 * receipts, "{packets} in {receipts}");
    }

    #[test]
    fn packets_that_come_seldom_or_very_often_are_received_as_they_come() {
        for spacing in [Duration::from_micros(600), Duration::from_millis(50)] {
            assert_eq!(receive(spacing).waits, 0);
        }
        assert!(receive(Duration::from_micros(3)).waits <= 1, "until their spacing is known");
    }

    #[test]
    fn an_exchange_of_requests_and_responses_is_hardly_slower() {
        for round_trip in [50, 100, 300].map(Duration::from_micros) {
            let (mut rule, mut waits, mut waited) = (Rule::new(), None, 0);
            let (mut now, mut answers) = (Instant::ZERO, 0);
            while now < Instant::ZERO + SECOND {
                // The answer to what left at `now`.
                let arrival = now + round_trip;
                while let Some(until) = waits {
                    now = until;
                    waited += 1;
                    waits = rule.received(now, u64::from(arrival <= now), true);
                    if arrival <= now {
                        break;
                    }
                }
                if now < arrival {
                    now = arrival;
                    waits = rule.received(now, 1, false);
                }
                answers += 1;
            }
            let usual = SECOND.as_micros() / round_trip.as_micros();
            assert!(answers * 100 >= usual * 97, "{answers} of {usual}, {waited} waits");
        }
    }
}
