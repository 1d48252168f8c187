//! A host's own clock.

use polypath_wire::{Duration, Instant};
use serde::{Deserialize, Serialize};

use polypath_wire::millis;

/// How a host's clock differs from the simulation's.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClockConfig {
    /// What it shows at the start of the run, ms.
    #[serde(with = "millis")]
    pub offset: Duration,
    /// How much faster it runs, parts per million; −1000 to 1000. Quartz keeps to about ±100.
    pub drift_ppm: f64,
}

/// Converts between the simulation's time and a host's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    offset: u64,
    /// Drift, parts per 10⁹.
    ppb: i64,
}

const BILLION: i64 = 1_000_000_000;

impl Clock {
    pub fn new(config: ClockConfig) -> Self {
        Self { offset: config.offset.0, ppb: (config.drift_ppm.clamp(-1e3, 1e3) * 1e3).round() as i64 }
    }

    /// What the clock shows at `global`; never goes back.
    #[inline]
    pub fn local(&self, global: Instant) -> Instant {
        let shown = global.0.saturating_add(self.offset);
        match self.ppb {
            0 => Instant(shown),
            _ => Instant(self.drifted(global, shown)),
        }
    }

    #[inline(never)]
    fn drifted(&self, global: Instant, shown: u64) -> u64 {
        shown.saturating_add_signed(self.drift(global.0))
    }

    /// The first instant at which the clock shows `local` or later.
    pub fn global(&self, local: Instant) -> Instant {
        let shown = local.0.saturating_sub(self.offset);
        match self.ppb {
            _ if local == Instant::MAX => local,
            0 => Instant(shown),
            _ => self.global_of(local, shown),
        }
    }

    #[inline(never)]
    fn global_of(&self, local: Instant, shown: u64) -> Instant {
        let mut global = shown.saturating_add_signed(-self.drift(shown));
        // One step of the inverse is off by the drift of the drift, below 10⁻⁶ of the span.
        global = global.saturating_add_signed(shown as i64 - (global as i64 + self.drift(global)));
        while self.local(Instant(global)) < local {
            global += 1;
        }
        while global > 0 && self.local(Instant(global - 1)) >= local {
            global -= 1;
        }
        Instant(global)
    }

    fn drift(&self, global: u64) -> i64 {
        let global = i64::try_from(global).unwrap_or(i64::MAX);
        (global / BILLION) * self.ppb + (global % BILLION) * self.ppb / BILLION
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clock(offset_ms: u64, drift_ppm: f64) -> Clock {
        Clock::new(ClockConfig { offset: Duration::from_millis(offset_ms), drift_ppm })
    }

    #[test]
    fn a_hundred_ppm_are_a_hundred_microseconds_a_second() {
        let c = clock(5, 100.0);
        assert_eq!(c.local(Instant(0)), Instant(5_000_000));
        assert_eq!(c.local(Instant(1_000_000_000)), Instant(1_005_100_000));
        assert_eq!(clock(0, -100.0).local(Instant(1_000_000_000)), Instant(999_900_000));
        assert_eq!(c.global(Instant::MAX), Instant::MAX);
    }

    proptest! {
        #[test]
        fn the_inverse_is_the_first_instant_that_shows_it(
            offset in 0u64..100_000, ppm in -1000.0..1000.0, t in 0u64..1_000_000_000_000_000,
        ) {
            let c = clock(offset, ppm);
            let global = c.global(c.local(Instant(t)));
            prop_assert!(global.0 <= t);
            prop_assert!(c.local(global) >= c.local(Instant(t)));
            prop_assert!(global.0 == 0 || c.local(Instant(global.0 - 1)) < c.local(Instant(t)));
            prop_assert!(c.local(Instant(t)) <= c.local(Instant(t + 1)));
        }
    }
}
