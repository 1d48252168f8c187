//! The server of a hop: when a packet will have been served, and when it will arrive.

use polypath_wire::{Duration, Instant, Rate};

const BIT_NANOS_PER_BYTE: u64 = 8 * 1_000_000_000;

/// A work-conserving server in front of a wire.
#[derive(Debug)]
pub(super) struct Server {
    /// At least 1 bit/s.
    rate: Rate,
    pub delay: Duration,
    /// When it will have served everything it was given, rounded down …
    free_at: Instant,
    /// … and the rest of that division, bit-nanoseconds below `rate`.
    carry: u64,
    last_arrival: Instant,
    /// The size last divided by the rate, and the quotient and the remainder.
    memo: (u32, u64, u64),
}

/// Work left of the packet in service, bit-nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Rest(u128);

impl Server {
    pub fn new(rate: Rate, delay: Duration) -> Self {
        let (free_at, last_arrival) = (Instant::ZERO, Instant::ZERO);
        let rate = Rate(rate.0.max(1));
        Self { rate, delay, free_at, carry: 0, last_arrival, memo: (0, 0, 0) }
    }

    pub fn set_rate(&mut self, rate: Rate) {
        *self = Self { rate: Rate(rate.0.max(1)), memo: (0, 0, 0), ..*self };
    }

    /// Gives it one more packet; returns when it will be served and when it will arrive.
    pub fn serve(&mut self, now: Instant, size: u32) -> (Instant, Instant) {
        let (quotient, remainder) = self.divide(size);
        self.take(now, quotient, remainder)
    }

    /// Whether it has served everything it was given.
    pub fn is_idle(&self, now: Instant) -> bool {
        self.free_at <= now
    }

    /// How long it has work for.
    pub fn wait(&self, now: Instant) -> Duration {
        self.free_at.since(now)
    }

    /// Takes everything back but the `Rest` of the packet in service, served by `in_service`.
    pub fn interrupt(&mut self, at: Instant, in_service: Option<Instant>, last_arrival: Instant) -> Rest {
        let left = in_service.map_or(0, |end| end.since(at).0);
        (self.free_at, self.carry, self.last_arrival) = (at, 0, last_arrival);
        Rest(u128::from(left) * u128::from(self.rate.0))
    }

    /// Goes on with the packet it was interrupted in.
    pub fn resume(&mut self, at: Instant, Rest(work): Rest) -> (Instant, Instant) {
        let rate = u128::from(self.rate.0);
        let quotient = u64::try_from(work / rate).unwrap_or(u64::MAX);
        self.take(at, quotient, (work % rate) as u64)
    }

    /// Forgets all its work.
    pub fn reset(&mut self, at: Instant) {
        (self.free_at, self.carry, self.last_arrival) = (at, 0, at);
    }

    fn take(&mut self, now: Instant, quotient: u64, remainder: u64) -> (Instant, Instant) {
        if self.free_at < now {
            (self.free_at, self.carry) = (now, 0);
        }
        let missing = self.rate.0 - self.carry;
        let whole = remainder >= missing;
        self.carry = if whole { remainder - missing } else { self.carry + remainder };
        self.free_at += Duration(quotient.saturating_add(u64::from(whole)));
        self.last_arrival = self.last_arrival.max(self.free_at + self.delay);
        (self.free_at, self.last_arrival)
    }

    /// Bit-nanoseconds of `size` bytes divided by the rate; most neighbours have the same size.
    fn divide(&mut self, size: u32) -> (u64, u64) {
        if self.memo.0 != size {
            // 2^32 bytes are 3.4e19 bit-ns: just more than u64 holds, so sizes are capped at 2^31.
            let work = u64::from(size.min(1 << 31)) * BIT_NANOS_PER_BYTE;
            self.memo = (size, work / self.rate.0, work % self.rate.0);
        }
        (self.memo.1, self.memo.2)
    }
}
