//! Head-of-line blocking: data that came early waits for what comes before it.

use std::ops::Add;

use polypath_wire::Duration;

/// Head-of-line blocking at the receiver, since the connection began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Blocking {
    /// Time during which it held data that the application could not read, since an earlier byte was missing.
    pub time: Duration,
    /// Out-of-order delay, summed over all bytes: how long each was held so, byte·ns.
    pub byte_ns: u128,
}

impl Blocking {
    /// No data came early.
    pub const NONE: Self = Self { time: Duration::ZERO, byte_ns: 0 };

    /// With `bytes` held for `span` more.
    pub(super) fn after(self, bytes: u64, span: Duration) -> Self {
        let span = if bytes > 0 { span } else { Duration::ZERO };
        self + Self { time: span, byte_ns: u128::from(bytes) * u128::from(span.as_nanos()) }
    }
}

impl Add for Blocking {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { time: self.time + other.time, byte_ns: self.byte_ns + other.byte_ns }
    }
}
