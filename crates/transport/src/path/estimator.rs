//! All that is known of one path: configured, measured, and modelled.

use polypath_wire::{Duration, Instant, PathId, Rate};

use super::bandwidth::{Bandwidth, DeliveryMark};
use super::oneway::OneWay;
use super::peer_clock::PeerClock;
use super::rtt::{RtoLimits, RttEstimator};
use super::trains::Trains;
use super::transmission::Transmission;

const BIT_NANOS_PER_BYTE: u64 = 8 * 1_000_000_000;

/// Estimates of one path.
#[derive(Clone, PartialEq, Debug)]
#[repr(C)]
pub(crate) struct PathEstimator {
    /// Round trips.
    pub rtt: RttEstimator,
    /// Delivery rate.
    pub bandwidth: Bandwidth,
    configured_rate: Option<Rate>,
    configured_one_way: Option<Duration>,
    /// What trains show, or before them an earlier connection.
    shown_rate: Option<Rate>,
    /// Smallest round trip that others had.
    others_rtt: Option<Duration>,
    /// One-way delays.
    pub one_way: OneWay,
    /// When the bottleneck will have sent what we gave it, rounded down, and what is left of that division
    /// in bit-nanoseconds: rounding alone would be off by a millisecond after a million segments.
    idle_at: Instant,
    carry: u64,
    /// Rate of the bottleneck, for controllers that pace.
    pub trains: Trains,
    /// The same of the first flight, by the path's own acknowledgments.
    first: Trains,
}

impl PathEstimator {
    /// `rate` and `one_way` are configured or advertised, if they are known.
    pub(crate) fn new(
        limits: RtoLimits,
        rate: Option<Rate>,
        one_way: Option<Duration>,
        has_trains: bool,
    ) -> Self {
        Self {
            rtt: RttEstimator::new(limits),
            one_way: OneWay::default(),
            bandwidth: Bandwidth::new(has_trains),
            trains: Trains::default(),
            first: Trains::default(),
            shown_rate: None,
            configured_rate: rate.filter(|r| r.0 > 0),
            configured_one_way: one_way,
            others_rtt: None,
            idle_at: Instant::ZERO,
            carry: 0,
        }
    }

    /// The same; the smallest round trip that others had stands in for one of its own, and the last one makes the first timeout.
    pub(crate) fn expecting(mut self, smallest: Option<Duration>, last: Option<Duration>) -> Self {
        last.into_iter().for_each(|rtt| self.rtt.expect(rtt));
        Self { others_rtt: smallest, ..self }
    }

    /// A segment of `bytes` on the wire leaves; returns the mark it has to carry.
    pub(crate) fn on_sent(
        &mut self,
        now: Instant,
        bytes: u64,
        idle: bool,
        app_limited: bool,
    ) -> DeliveryMark {
        self.occupy(now, bytes);
        self.bandwidth.on_sent(now, idle, app_limited)
    }

    /// `bytes` were delivered by one acknowledgment, of which the `newest` left last; `rtt` is its round trip, if that is not ambiguous.
    /// Returns the rate at which they were delivered.
    #[inline]
    pub(crate) fn on_delivered(
        &mut self,
        now: Instant,
        bytes: u64,
        newest: &Transmission,
        rtt: Option<Duration>,
    ) -> Option<Rate> {
        let latest = rtt.or(self.rtt.latest());
        self.bandwidth.on_delivered(now, bytes, &newest.mark, newest.sent_at, latest)
    }

    /// `bytes` were delivered by one acknowledgment that came back by `via`; `sent` is when the newest of them left,
    /// and its round trip; none if that is ambiguous or something is missing. Returns the rate of the bottleneck.
    pub(crate) fn on_train(
        &mut self,
        now: Instant,
        bytes: u64,
        sent: Option<(Instant, Duration)>,
        via: PathId,
    ) -> Option<Rate> {
        match sent {
            Some((sent_at, rtt)) => self.trains.on_delivered(now, bytes, (sent_at, rtt), via),
            None => self.trains.interrupt(),
        }
        self.trains.rate().or_else(|| self.first.rate())
    }

    /// An acknowledgment that came by this path, `path`, tells for the first time there of `bytes` of the first flight, of which
    /// the newest left at `sent_at`. Returns the rate of the bottleneck if other trains show none.
    pub(crate) fn on_first_flight(
        &mut self,
        now: Instant,
        bytes: u64,
        sent_at: Instant,
        path: PathId,
    ) -> Option<Rate> {
        if self.trains.rate().is_some() {
            return None;
        }
        self.first.on_delivered(now, bytes, (sent_at, now.since(sent_at)), path);
        self.first.rate()
    }

    /// `bytes` on the wire leave that are no data: they keep the bottleneck busy too.
    pub(crate) fn occupy(&mut self, now: Instant, bytes: u64) {
        let Some(rate) = self.configured_rate else { return };
        if self.idle_at < now {
            (self.idle_at, self.carry) = (now, 0);
        }
        let work = bytes.saturating_mul(BIT_NANOS_PER_BYTE).saturating_add(self.carry);
        self.idle_at += Duration(work / rate.0);
        self.carry = work % rate.0;
    }

    /// Rate of the path: configured, or as delivered.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.configured_rate.or_else(|| self.bandwidth.rate())
    }

    /// The bottleneck sends at `rate`, as trains show, or as it did for an earlier connection.
    pub(crate) fn show(&mut self, rate: Rate) {
        self.shown_rate = Some(rate);
    }

    /// Rate of the bottleneck: configured, or what the path delivers or was [shown](Self::show). What was delivered tells little until the
    /// path was filled, as in slow start.
    pub(crate) fn bottleneck(&self) -> Option<Rate> {
        self.configured_rate.or_else(|| self.bandwidth.rate_of_path().max(self.shown_rate))
    }

    /// One-way delay without queueing: configured, or half the smallest round trip, which other connections measured until this one has.
    pub(crate) fn base_one_way(&self) -> Option<Duration> {
        self.configured_one_way.or_else(|| self.rtt.min().or(self.others_rtt).map(|rtt| rtt.over(2)))
    }

    /// The same delay by the peer's `clock`, unless it is configured.
    pub(crate) fn clocked_one_way(&self, clock: &PeerClock) -> Option<Duration> {
        clock.one_way(&self.one_way).filter(|_| self.configured_one_way.is_none())
    }

    /// Round trip without queueing and transmission, if configured: the way back is taken to be like the way there.
    pub(crate) fn configured_round_trip(&self) -> Option<Duration> {
        self.configured_one_way.map(|d| d.times(2))
    }

    /// When the bottleneck will have sent what we gave it. With a configured rate this is exact as long
    /// as nobody else uses the path; otherwise it is what exceeds the pipe: `in_flight / rate − min_rtt`, with the rate of the
    /// [`bottleneck`](Self::bottleneck).
    pub(crate) fn idle_at(&self, now: Instant, in_flight: u64, rate: Option<Rate>) -> Instant {
        if self.configured_rate.is_some() {
            return self.idle_at.max(now);
        }
        match (rate, self.rtt.min()) {
            (Some(rate), Some(min)) => now + (rate.transmission_time(in_flight) - min),
            _ => now,
        }
    }
}
