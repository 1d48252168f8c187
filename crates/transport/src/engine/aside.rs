//! What an owner accounts for itself: copies of cargo that left on another path too, answered in ways of their own. They
//! take up the path's window like anything else.

use polypath_wire::{Duration, Instant, PathId};

use super::answers::Answer;
use super::machine::Engine;
use super::timers::Timer;
use crate::facts::{AckSample, Episode, LossCause, LossEvent};
use crate::path::routes::AckedInfo;
use crate::path::transmission::Cargo;

impl Engine {
    /// `cargo` leaves on `path`, and its owner keeps account of it.
    pub(crate) fn send_aside(&mut self, now: Instant, path: PathId, cargo: Cargo) {
        self.leave::<true>(now, path, cargo, false);
        self.after_send(now, path, cargo.len);
    }

    /// `bytes` are under way on `path` by the owner's account.
    pub(crate) fn set_aside(&mut self, path: PathId, bytes: u64) {
        self.lanes.get_mut(path).into_iter().for_each(|lane| lane.aside = bytes);
    }

    /// `cargo`, which left on `path` at `sent_at` by the owner's account, was delivered; in a round trip of `rtt`, if that is known.
    pub(crate) fn delivered_aside(
        &mut self,
        now: Instant,
        path: PathId,
        answer: &Answer,
        (cargo, sent_at): (Cargo, Instant),
        rtt: Option<Duration>,
    ) {
        let len = u64::from(cargo.len);
        let info = AckedInfo { offset: cargo.key, sent_at, len, acked_at: now, via: answer.via };
        let trips = self.observers.routes.as_mut().zip(answer.reverse).zip(rtt);
        let round_trip = trips.map(|((r, rev), rtt)| r.on_round_trip(path, answer.via, rtt, rev));
        let route = self.observers.routes.as_mut().and_then(|r| r.on_acked(now, path, info));
        let lane = &mut self.lanes[path];
        lane.timeouts = 0;
        lane.stats.bytes_delivered += len;
        round_trip.or(rtt).into_iter().for_each(|rtt| lane.estimator.rtt.sample(rtt));
        let (prior_in_flight, mss) = (self.views[path].in_flight, self.views[path].mss);
        let sample = AckSample {
            newly_acked: len,
            newly_acked_segments: 1,
            rtt,
            prior_in_flight,
            route,
            window_limited: prior_in_flight + u64::from(mss) > self.controller.window(path),
            ..AckSample::default()
        };
        self.controller.on_ack(now, path, &sample, self.views.as_slice());
    }

    /// `bytes` of the owner's account on `path`, the last sent at `sent_at`, did not arrive: a loss.
    pub(crate) fn lost_aside(&mut self, now: Instant, path: PathId, bytes: u64, sent_at: Instant) {
        let event = LossEvent {
            cause: LossCause::LaterDelivered,
            episode: Episode::default(),
            bytes,
            flight_size: self.flight_size(path) + bytes,
            oldest_sent: sent_at,
        };
        self.controller.on_loss(now, path, &event, self.views.as_slice());
    }

    /// After an answer to what the owner accounts for: the retransmission timer of `path` (RFC 6298 §5.2 and 5.3).
    pub(crate) fn answered_aside(&mut self, now: Instant, path: PathId) {
        match self.lanes[path].is_outstanding() {
            true => self.timers.set(Timer::Rto(path), now + self.rto(path)),
            false => {
                self.timers.stop(Timer::Rto(path));
                self.end_pace(now, path);
            }
        }
    }
}
