//! How much time the peer's clock loses.
//!
//! If it loses, what comes back fastest seems to take longer from window to window, and by the same each time. A queue on the way back
//! grows by leaps, or not for long.

use polypath_wire::{Duration, Instant};

/// What came back fastest is compared between windows of this length.
const WINDOW: Duration = Duration::from_secs(20);
/// Consecutive steps from window to window that show a drifting clock.
const STEPS: usize = 3;
/// No clock loses more in one window: 500 millionths.
const MOST: i64 = WINDOW.0 as i64 / 2000;

/// By how much a window was slower than the one before, and whether that has been reported.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Step {
    by: i64,
    reported: bool,
}

/// What the peer's clock loses, by the ways back of one path in nanoseconds.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Drift {
    /// The fastest of the present window, and when that began.
    present: Option<(i64, Instant)>,
    /// The fastest of the window before.
    last: Option<i64>,
    steps: [Step; STEPS],
}

impl Drift {
    /// A way back took `back`. What the clock has lost that was not reported before: zero unless a window ends.
    pub(crate) fn add(&mut self, now: Instant, back: i64) -> i64 {
        let (fastest, began) = *self.present.get_or_insert((back, now));
        if now.since(began) <= WINDOW {
            self.present = Some((fastest.min(back), began));
            return 0;
        }
        self.present = Some((back, now));
        if let Some(last) = self.last.replace(fastest) {
            self.steps.rotate_left(1);
            self.steps[STEPS - 1] = Step { by: fastest.saturating_sub(last), reported: false };
        }
        if self.is_steady() { self.tell() } else { 0 }
    }

    /// Whether a drifting clock explains the steps: all are positive, and the largest is at most twice the smallest.
    fn is_steady(&self) -> bool {
        let all = || self.steps.iter().map(|step| step.by);
        let (least, most) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
        least > 0 && most <= MOST && most <= 2 * least
    }

    fn tell(&mut self) -> i64 {
        let unreported = self.steps.iter_mut().filter(|step| !step.reported);
        unreported.map(|step| std::mem::replace(step, Step { reported: true, ..*step }).by).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was reported of delays of `back(s)` ns, one each second.
    fn reported(seconds: u32, back: impl Fn(u32) -> i64) -> i64 {
        let mut drift = Drift::default();
        let at = |s: u32| Instant::from_secs_f64(f64::from(s));
        (0..seconds).map(|s| drift.add(at(s), back(s))).sum()
    }

    #[test]
    fn a_clock_that_loses_is_told_but_for_the_windows_that_it_takes() {
        let lost = reported(601, |s| 1000 * i64::from(s));
        assert!((560_000..=600_000).contains(&lost), "{lost}");
        assert_eq!(reported(80, |s| 1000 * i64::from(s)), 0, "three steps take four windows");
    }

    #[test]
    fn what_is_no_clock_is_not_told() {
        assert_eq!(reported(600, |_| 1000), 0, "no drift");
        assert_eq!(reported(600, |s| -1000 * i64::from(s)), 0, "a clock that gains");
        assert_eq!(reported(600, |s| if s < 300 { 0 } else { 9_000_000 }), 0, "traffic that begins");
        assert_eq!(reported(600, |s| 1_000_000 * i64::from(s)), 0, "no clock loses so much");
        assert_eq!(
            reported(600, |s| [0, 9, 1, 7, 2][s as usize / 21 % 5] * 100_000),
            0,
            "traffic that changes"
        );
    }
}
