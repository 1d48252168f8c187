//! The server of a hop: when a packet will have been served, and when it will arrive.

use polypath_wire::{Duration, Instant, Rate};

use crate::trace::Cursor;

const BIT_NANOS_PER_BYTE: u64 = 8 * 1_000_000_000;

/// A work-conserving server in front of a wire. It has a rate, or else whoever asks has a trace, which it is given.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// At least 1 bit/s.
    rate: Rate,
    pub delay: Duration,
    /// When it will have served everything it was given, rounded down …
    free_at: Instant,
    /// … and the rest of that division, bit-nanoseconds below `rate`.
    carry: u64,
    last_arrival: Instant,
    /// The size last divided by the rate …
    size: u32,
    /// … with this quotient and remainder.
    quotient: u64,
    remainder: u64,
}

/// Work left of the packet in service, bit-nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct Rest(u128);

impl Server {
    pub fn new(rate: Rate, delay: Duration) -> Self {
        let (free_at, last_arrival) = (Instant::ZERO, Instant::ZERO);
        let (carry, size, quotient, remainder) = Default::default();
        Self { rate: Rate(rate.0.max(1)), delay, free_at, carry, last_arrival, size, quotient, remainder }
    }

    pub fn set_rate(&mut self, rate: Rate) {
        (self.rate, self.size, self.quotient, self.remainder) = (Rate(rate.0.max(1)), 0, 0, 0);
    }

    /// bit/s.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Gives it one more packet; returns when it will be served by its rate and when it will arrive.
    #[inline(always)]
    pub fn serve(&mut self, now: Instant, size: u32) -> (Instant, Instant) {
        let (quotient, remainder) = self.divide(size);
        self.take(now, quotient, remainder)
    }

    /// The same by the `trace` if there is one.
    pub fn serve_by(&mut self, trace: &mut Option<Cursor>, now: Instant, size: u32) -> (Instant, Instant) {
        let at = self.start(trace, now);
        self.serve_from(trace, at, size)
    }

    /// When it begins with a packet that comes at `now`.
    pub fn start(&self, trace: &mut Option<Cursor>, now: Instant) -> Instant {
        match trace {
            Some(cursor) if self.is_idle(now) => cursor.start(now),
            _ => self.follow(trace).max(now),
        }
    }

    /// When it begins with a packet that waits already.
    pub fn follow(&self, trace: &mut Option<Cursor>) -> Instant {
        trace.as_mut().map_or(self.free_at, Cursor::follow)
    }

    /// Serves a packet from `at` on, which it said is its beginning.
    pub fn serve_from(&mut self, trace: &mut Option<Cursor>, at: Instant, size: u32) -> (Instant, Instant) {
        match trace {
            Some(cursor) => self.leave_at(cursor.send(size)),
            None => self.serve(at, size),
        }
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
    pub fn wait_behind(&self, trace: &Option<Cursor>, now: Instant, bytes: u64) -> Duration {
        let size = u32::try_from(bytes).unwrap_or(u32::MAX);
        let (mut ahead, mut trace) = (self.clone(), trace.clone());
        let start = ahead.follow(&mut trace).max(now);
        if size == 0 { self.wait(now) } else { ahead.serve_from(&mut trace, start, size).0.since(now) }
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
        if self.size != size {
            // 2^32 bytes are 3.4e19 bit-ns: just more than u64 holds, so sizes are capped at 2^31.
            let work = u64::from(size.min(1 << 31)) * BIT_NANOS_PER_BYTE;
            (self.size, self.quotient, self.remainder) = (size, work / self.rate.0, work % self.rate.0);
        }
        (self.quotient, self.remainder)
    }
}
