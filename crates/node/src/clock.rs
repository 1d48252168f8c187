//! The one place where OS time becomes the `now` of the pure floors.

use polypath_wire::Instant;

/// A monotonic clock that read zero when it was made. Copies read the same time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock that reads zero now.
    pub fn start() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    /// The time since the clock was started.
    pub fn now(&self) -> Instant {
        Instant(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
