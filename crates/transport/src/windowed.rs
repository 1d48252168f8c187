//! A windowed minimum: the smallest value of late.

use polypath_wire::{Duration, Instant};

/// The smallest value of the last and of the present window: those of one to two windows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct WindowedMin<T> {
    /// Smallest of the last and of the present window, and when the present began.
    windows: Option<(T, T, Instant)>,
}

impl<T> Default for WindowedMin<T> {
    fn default() -> Self {
        Self { windows: None }
    }
}

impl<T: Ord + Copy> WindowedMin<T> {
    /// Adds a value; the present window ends once it is longer than `window`.
    pub(crate) fn add(&mut self, now: Instant, value: T, window: Duration) {
        self.windows = Some(match self.windows {
            None => (value, value, now),
            Some((_, present, began)) if now.since(began) > window => (present, value, now),
            Some((last, present, began)) => (last, present.min(value), began),
        });
    }

    /// The minimum; none before the first value.
    pub(crate) fn value(&self) -> Option<T> {
        self.windows.map(|(last, present, _)| last.min(present))
    }
}
