//! The server of a hop: when a packet will have been served, and when it will arrive.

use polypath_wire::{Duration, Instant, Rate};

use crate::trace::{Cursor, LinkTrace};

const BIT_NANOS_PER_BYTE: u64 = 8 * 1_000_000_000;

/// A work-conserving server in front of a wire.
#[derive(Debug)]
pub(crate) struct Server {
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
    /// Instead of the rate.
    trace: Option<Box<Cursor>>,
}

/// Work left of the packet in service, bit-nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct Rest(u128);

impl Server {
    pub fn new(rate: Rate, trace: Option<LinkTrace>, delay: Duration) -> Self {
        let (free_at, last_arrival) = (Instant::ZERO, Instant::ZERO);
        let rate = Rate(rate.0.max(1));
        let trace = trace.map(|trace| Box::new(Cursor::new(trace)));
        Self { rate, delay, free_at, carry: 0, last_arrival, memo: (0, 0, 0), trace }
    }

    pub fn set_rate(&mut self, rate: Rate) {
        (self.rate, self.memo) = (Rate(rate.0.max(1)), (0, 0, 0));
    }

    /// bit/s.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    pub fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// Gives it one more packet; returns when it will be served and when it will arrive.
    #[inline(always)]
    pub fn serve(&mut self, now: Instant, size: u32) -> (Instant, Instant) {
        if self.trace.is_some() {
            return self.serve_by_trace(now, size);
        }
        let (quotient, remainder) = self.divide(size);
        self.take(now, quotient, remainder)
    }

    /// When it begins with a packet that comes at `now`.
    pub fn start(&mut self, now: Instant) -> Instant {
        let idle = self.is_idle(now);
        match &mut self.trace {
            Some(cursor) if idle => cursor.start(now),
            _ => self.follow().max(now),
        }
    }

    /// When it begins with a packet that waits already.
    pub fn follow(&mut self) -> Instant {
        self.trace.as_mut().map_or(self.free_at, |cursor| cursor.follow())
    }

    /// Serves a packet from `at` on, which it said is its beginning.
    pub fn serve_from(&mut self, at: Instant, size: u32) -> (Instant, Instant) {
        if self.trace.is_some() { self.send_by_trace(size) } else { self.serve(at, size) }
    }

    #[inline(never)]
    fn serve_by_trace(&mut self, now: Instant, size: u32) -> (Instant, Instant) {
        self.start(now);
        self.send_by_trace(size)
    }

    #[inline(never)]
    fn send_by_trace(&mut self, size: u32) -> (Instant, Instant) {
        let served = self.trace.as_mut().map_or(self.free_at, |cursor| cursor.send(size));
        self.leave_at(served)
    }

    fn leave_at(&mut self, served: Instant) -> (Instant, Instant) {
        self.free_at = served;
        self.last_arrival = self.last_arrival.max(served + self.delay);
        (served, self.last_arrival)
    }

    /// When packets arrive that are served at the instants that `times` begin with, after a change of the delay.
    pub fn reschedule<'a>(
        &mut self,
        last_arrival: Instant,
        times: impl Iterator<Item = (Instant, &'a mut Instant)>,
    ) {
        self.last_arrival = last_arrival;
        for (served_at, arrives_at) in times {
            self.last_arrival = self.last_arrival.max(served_at + self.delay);
            *arrives_at = self.last_arrival;
        }
    }

    /// How long it has work for, with `bytes` more.
    pub fn wait_behind(&self, now: Instant, bytes: u64) -> Duration {
        let size = u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut ahead = Self { trace: self.trace.clone(), ..*self };
        let start = ahead.follow().max(now);
        if size == 0 { self.wait(now) } else { ahead.serve_from(start, size).0.since(now) }
    }

    /// Whether it has served everything it was given.
    #[inline(always)]
    pub fn is_idle(&self, now: Instant) -> bool {
        self.free_at <= now
    }

    /// When it will have served everything it was given.
    pub fn free_at(&self) -> Instant {
        self.free_at
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

    #[inline(always)]
    fn take(&mut self, now: Instant, quotient: u64, remainder: u64) -> (Instant, Instant) {
        if self.free_at < now {
            (self.free_at, self.carry) = (now, 0);
        }
        let missing = self.rate.0 - self.carry;
        let whole = remainder >= missing;
        self.carry = if whole { remainder - missing } else { self.carry + remainder };
        self.leave_at(self.free_at + Duration(quotient.saturating_add(u64::from(whole))))
    }

    /// Bit-nanoseconds of `size` bytes divided by the rate; most neighbours have the same size.
    #[inline(always)]
    fn divide(&mut self, size: u32) -> (u64, u64) {
        if self.memo.0 != size {
            // 2^32 bytes are 3.4e19 bit-ns: just more than u64 holds, so sizes are capped at 2^31.
            let work = u64::from(size.min(1 << 31)) * BIT_NANOS_PER_BYTE;
            self.memo = (size, work / self.rate.0, work % self.rate.0);
        }
        (self.memo.1, self.memo.2)
    }
}
