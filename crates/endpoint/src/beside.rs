//! What connections have under way on paths that they share: each sees the queue of all.
//!
//! The bottleneck is busy until it has sent, at the rate at which the path is [known](crate::known) to deliver, what all gave it.
//! A rate that is too low would make that ever later: so no later than it takes to send what is in flight.
//!
//! Together they [measure](Meter) that rate, too.

use std::collections::BTreeMap;

use polypath_transport::{Beside, KnownPath, UnderWay};
use polypath_wire::{Duration, Instant, Rate};

use crate::meter::Meter;
use crate::paths::Locators;

/// Paths on which connections have something in flight.
#[derive(Debug, Default)]
pub(crate) struct SharedPaths(BTreeMap<Locators, SharedPath>);

/// One of them.
#[derive(Debug)]
struct SharedPath {
    /// What all gave it since nothing was in flight, and how many have something in flight.
    all: UnderWay,
    connections: u64,
    busy_until: Instant,
    rate: Option<Rate>,
    meter: Meter,
}

impl SharedPaths {
    /// A connection that had `before` under way on `path` now has `after`. If nothing was, `rate` says what the path is known to deliver.
    /// Returns what all of them measured; `rtts` tells the connection's shortest round trip there, and the known one.
    pub fn count(
        &mut self,
        now: Instant,
        path: &Locators,
        [before, after]: [UnderWay; 2],
        rate: impl FnOnce() -> Option<Rate>,
        rtts: impl FnOnce() -> [Option<Duration>; 2],
    ) -> Option<KnownPath> {
        if before == after {
            return None;
        }
        let new = || SharedPath::new(now, rate());
        let on = self.0.entry(*path).or_insert_with(new);
        // A path that the connection has given up has nothing.
        let sent = after.sent.saturating_sub(before.sent);
        on.all.sent += sent;
        on.all.delivered += after.delivered.saturating_sub(before.delivered);
        on.all.in_flight = on.all.in_flight - before.in_flight + after.in_flight;
        on.connections += u64::from(after.in_flight > 0);
        on.connections -= u64::from(before.in_flight > 0);
        if let Some(mut beside) = on.beside(now) {
            beside.on_sent(now, sent);
            on.busy_until = beside.busy_until;
        }
        let measured = on.meter.measure(now, &on.all, on.connections, rtts);
        if on.all.in_flight == 0 {
            self.0.remove(path);
        }
        measured
    }

    /// A connection that had `before` under way on `path` is no longer there.
    pub fn leave(&mut self, path: &Locators, before: UnderWay) {
        let Some(on) = self.0.get_mut(path).filter(|_| before.in_flight > 0) else { return };
        on.all.in_flight -= before.in_flight;
        on.connections -= 1;
        if on.all.in_flight == 0 {
            self.0.remove(path);
        }
    }

    /// `path` is known to deliver `rate`.
    pub fn learn(&mut self, path: &Locators, rate: Rate) {
        self.0.get_mut(path).into_iter().for_each(|on| on.rate = Some(rate));
    }

    /// What others have under way on `path` beside a connection with `own` bytes in flight, if the rate is known.
    pub fn beside(&self, now: Instant, path: &Locators, own: u64) -> Option<Beside> {
        self.0.get(path).filter(|on| on.all.in_flight > own)?.beside(now)
    }
}

impl SharedPath {
    fn new(now: Instant, rate: Option<Rate>) -> Self {
        Self { all: UnderWay::default(), connections: 0, busy_until: now, rate, meter: Meter::default() }
    }

    fn beside(&self, now: Instant) -> Option<Beside> {
        let rate = self.rate?;
        let latest = now + rate.transmission_time(self.all.in_flight);
        Some(Beside { rate, busy_until: self.busy_until.min(latest) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(last: u8) -> Locators {
        let end = |last| ([127, 0, 0, last], 7).into();
        Locators { local: end(last), remote: end(9) }
    }

    fn ms(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    fn under_way(sent: u64, in_flight: u64) -> UnderWay {
        UnderWay { sent, in_flight, delivered: sent - in_flight }
    }

    /// 1,000 bytes a millisecond.
    fn known() -> Option<Rate> {
        Some(Rate::from_mbps(8))
    }

    fn count(
        shared: &mut SharedPaths,
        now: Instant,
        counts: [UnderWay; 2],
        rate: impl FnOnce() -> Option<Rate>,
    ) {
        assert_eq!(shared.count(now, &path(1), counts, rate, || panic!("there is no queue")), None);
    }

    fn busy(shared: &SharedPaths, at: u64, own: u64) -> Option<Instant> {
        shared.beside(ms(at), &path(1), own).map(|beside| beside.busy_until)
    }

    #[test]
    fn a_path_is_busy_with_what_all_gave_it_and_no_longer_than_with_what_is_in_flight() {
        let (mut shared, none) = (SharedPaths::default(), UnderWay::default());
        count(&mut shared, ms(0), [none, under_way(3000, 3000)], known);
        count(&mut shared, ms(1), [none, under_way(2000, 2000)], || panic!("it is known"));
        assert_eq!((busy(&shared, 1, 2000), busy(&shared, 1, 5000)), (Some(ms(5)), None), "nobody else");
        // All but 1,000 bytes arrived sooner than the known rate has it.
        count(&mut shared, ms(2), [under_way(3000, 3000), under_way(3000, 0)], known);
        count(&mut shared, ms(2), [under_way(2000, 2000), under_way(2000, 1000)], known);
        assert_eq!(busy(&shared, 2, 0), Some(ms(3)));
        shared.leave(&path(1), under_way(2000, 1000));
        assert!(shared.0.is_empty());
    }

    #[test]
    fn of_a_path_with_an_unknown_rate_nothing_is_told() {
        let mut shared = SharedPaths::default();
        count(&mut shared, ms(0), [UnderWay::default(), under_way(3000, 3000)], || None);
        assert_eq!(busy(&shared, 0, 0), None);
        shared.learn(&path(1), Rate::from_mbps(8));
        count(&mut shared, ms(0), [under_way(3000, 3000), under_way(4000, 4000)], || None);
        assert_eq!(busy(&shared, 0, 0), Some(ms(1)), "what left since");
    }
}
