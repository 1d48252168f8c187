//! Time decides what is lost: RACK (RFC 8985), one instance per path.
//!
//! A segment is lost once one sent later *on the same path* was delivered and a reordering window has
//! passed since the segment should have been acknowledged too. The window is nothing until the path is
//! seen to reorder, and grows while the peer reports (RFC 2883) that what was sent again had arrived.
//!
//! | symbol | here |
//! |---|---|
//! | RACK.xmit_ts, RACK.end_seq, RACK.rtt | `Track::newest` (transmissions are numbered) |
//! | RACK.reo_wnd, RACK.min_RTT | `Track::window`, `PathView::min_rtt` |
//! | RACK.reo_wnd_mult, RACK.reo_wnd_persist | `multiplier`, `persist` |
//! | RACK.dsack_round | `growth_barred_until` |
//!
//! Deviations: the timer is set for the oldest segment that is overdue next, not for the last (§6.2,
//! step 5), so none waits for a younger one. If the peer reports as many duplicates as segments were
//! judged lost in an episode, the episode was reordering and is undone (the response of RFC 4015 to what
//! RFC 3708 detects). A probe of the tail counts as the repair of a loss if it is answered no sooner than
//! the path's smallest round trip, without waiting for later data (§7.4.2); a duplicate undoes that too.

use std::collections::VecDeque;

use polypath_wire::{Duration, Instant, PathId};
use serde::{Deserialize, Serialize};

use super::dupack::Dupack;
use super::episodes::{Begun, Episodes};
use super::policy::{Case, LossPolicy, Order, Verdict};
use super::rule::Rule;
use crate::about::About;
use crate::facts::{ConfigError, Episode, LossCause, PathView};
use crate::path::flight::Flight;
use crate::path_map::{OfPath, PathMap};

/// Episodes without a duplicate after which the window shrinks again (§6.2, step 4).
const PERSIST: u32 = 16;

/// Segments delivered after a hole that make it a loss at once, on a path never seen to reorder.
const DUP_THRESH: u32 = 3;

/// Before the first round trip is known (§7.2).
const FIRST_PROBE: Duration = Duration::from_secs(1);

/// The tail is probed no sooner. Linux waits for two ticks more than §7.2 says; without such a bound each flight between
/// neighbours sets a timer that expires for nothing.
const SHORTEST_PROBE: Duration = Duration::from_millis(5);

/// Longest that a receiver is taken to delay an acknowledgment (§7.2, WCDelAckT).
const DELAYED_ACK: Duration = Duration::from_millis(200);

/// RACK has no parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RackConfig {}

/// RACK on every path. Without SACK it is [`Dupack`].
#[derive(Debug, Default)]
pub(crate) struct Rack {
    episodes: Episodes,
    paths: PathMap<Track>,
}

/// One transmission that was delivered.
#[derive(Clone, Copy, Debug)]
struct Delivered {
    number: u64,
    rtt: Duration,
}

/// What became of the segments of an episode, which may be over: duplicates are reported later.
#[derive(Clone, Copy, Debug)]
struct Tally {
    episode: Episode,
    /// Judged lost in it, and those of them that the peer says it had received before.
    lost: u32,
    duplicates: u32,
}

#[derive(Debug)]
struct Track {
    path: PathId,
    /// The latest transmission that the path's own acknowledgments cover.
    newest: Option<Delivered>,
    /// Later ones, which the path's own acknowledgments have not covered as evidence; of those before all that is in flight only the last.
    ahead: VecDeque<Delivered>,
    reordering: bool,
    multiplier: u64,
    persist: u32,
    growth_barred_until: Option<u64>,
    tally: Option<Tally>,
    /// Transmission that probes the tail, while it is out.
    probe: Option<u64>,
}

impl OfPath for Track {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

impl Track {
    fn new(path: PathId) -> Self {
        Self {
            path,
            newest: None,
            ahead: VecDeque::new(),
            reordering: false,
            multiplier: 1,
            persist: 0,
            growth_barred_until: None,
            tally: None,
            probe: None,
        }
    }
}

impl LossPolicy for Rack {
    fn judge(&mut self, case: &Case<'_>, out: &mut Vec<Verdict>) {
        let Case { now, view, flight, order } = *case;
        let path = case.path();
        let recovering = self.episodes.present(path).is_some();
        let track = self.track(path);
        track.learn(now, flight, view);
        track.adapt(flight, order);
        let window = track.window(view, flight.vouched(), recovering);
        let evidence = track.newest;
        if self.probe_answered(case) {
            let begun = self.begin(path, flight);
            self.count_lost(path);
            out.push(Verdict::Repaired(begun.episode));
        }
        if let Some(newest) = evidence {
            self.lose_overdue(case, newest, window, out);
        }
        self.end_recovery(path, flight, out);
    }

    fn on_timeout(&mut self, case: &Case<'_>) -> Episode {
        self.track(case.path()).probe = None;
        self.begin(case.path(), case.flight).episode
    }

    fn on_undo(&mut self, path: PathId) {
        self.track(path).tally = None;
        self.episodes.forget(path);
    }

    fn on_path_removed(&mut self, path: PathId) {
        self.paths.remove(path);
        self.episodes.remove(path);
    }

    fn probes(&self) -> bool {
        true
    }

    fn undoes_timeouts(&self) -> bool {
        true
    }

    fn probe_after(&self, view: &PathView, flight: &Flight) -> Option<Duration> {
        let probing = self.paths.get(view.id).is_some_and(|track| track.probe.is_some());
        if probing || self.episodes.present(view.id).is_some() || flight.vouched() > 0 {
            return None;
        }
        let single = flight.in_flight() <= u64::from(view.mss);
        let delay = if single { DELAYED_ACK } else { Duration::ZERO };
        Some(view.srtt.map_or(FIRST_PROBE, |srtt| srtt.times(2).max(SHORTEST_PROBE) + delay))
    }

    fn on_probe(&mut self, path: PathId, flight: &Flight) {
        self.track(path).probe = Some(flight.next_number());
    }
}

impl Rule for Rack {
    type Config = RackConfig;
    const ABOUT: About =
        About { name: "rack", help: "Selective acknowledgments and time, per path (RFC 8985)" };

    fn check(_: &RackConfig, _: Option<Duration>) -> Result<(), ConfigError> {
        Ok(())
    }

    fn build(_: RackConfig, sack: bool) -> Box<dyn LossPolicy> {
        if sack { Box::new(Self::default()) } else { Dupack::build(Default::default(), sack) }
    }
}

impl Rack {
    fn track(&mut self, path: PathId) -> &mut Track {
        self.paths.or_insert(path, Track::new)
    }

    /// Whether the answer to a probe says that the probe itself repaired a loss.
    fn probe_answered(&mut self, case: &Case<'_>) -> bool {
        let (path, fresh) = (case.path(), case.flight.fresh());
        let recovering = self.episodes.present(path).is_some();
        let Some((number, answer)) = fresh.newest else { return false };
        if self.track(path).probe.take_if(|probe| *probe <= number).is_none() {
            return false;
        }
        let soon = case.view.min_rtt.is_some_and(|min| case.now.since(answer.sent_at) < min);
        answer.retransmitted() && !soon && fresh.duplicates == 0 && !recovering
    }

    fn begin(&mut self, path: PathId, flight: &Flight) -> Begun {
        let begun = self.episodes.begin(path, flight.next_number());
        self.track(path).tally = Some(Tally { episode: begun.episode, lost: 0, duplicates: 0 });
        begun
    }

    fn count_lost(&mut self, path: PathId) {
        self.track(path).tally.iter_mut().for_each(|t| t.lost += 1);
    }

    /// Step 5: what was sent before `newest`, and should have been acknowledged more than `window` ago.
    fn lose_overdue(&mut self, case: &Case<'_>, newest: Delivered, window: Duration, out: &mut Vec<Verdict>) {
        let (path, flight, limit) = (case.path(), case.flight, newest.rtt + window);
        for (number, sent) in flight.iter().take_while(|(number, _)| *number < newest.number) {
            if sent.sent_at + limit > case.now {
                out.push(Verdict::RecheckAt(sent.sent_at + limit));
                break;
            }
            let present = self.episodes.present(path).filter(|begun| number < begun.until);
            let begun = present.unwrap_or_else(|| self.begin(path, flight));
            self.count_lost(path);
            let what = case.departure(number, sent.cargo.key);
            out.push(Verdict::Lost { what, cause: LossCause::LaterDelivered, episode: begun.episode });
        }
    }

    fn end_recovery(&mut self, path: PathId, flight: &Flight, out: &mut Vec<Verdict>) {
        let track = self.track(path);
        if let Some(tally) = track.tally.take_if(|t| t.lost > 0 && t.duplicates >= t.lost) {
            self.episodes.forget(path);
            return out.push(Verdict::Undo(tally.episode));
        }
        if let Some(begun) = self.episodes.end_if(path, |begun| begun.is_over(flight)) {
            self.track(path).calm_down();
            out.push(Verdict::Recovered(begun.episode));
        }
    }
}

impl Track {
    /// Steps 1 to 3: what was delivered last, and whether anything came out of order.
    fn learn(&mut self, now: Instant, flight: &Flight, view: &PathView) {
        let fresh = flight.fresh();
        self.reordering |= fresh.reordered;
        if let Some((number, sent)) = &fresh.newest {
            let rtt = now.since(sent.sent_at);
            // sent again and answered too soon: this answers the transmission before
            let ambiguous =
                sent.reinjected || sent.retransmitted() && view.min_rtt.is_some_and(|min| rtt < min);
            let last = self.ahead.back().or(self.newest.as_ref());
            if !ambiguous && last.is_none_or(|last| last.number < *number) {
                self.ahead.push_back(Delivered { number: *number, rtt });
            }
        }
        while let Some(covered) = self.ahead.pop_front_if(|d| d.number < flight.covered()) {
            self.newest = Some(covered);
        }
        let settled = flight.first_number();
        while self.ahead.get(1).is_some_and(|next| next.number < settled) {
            self.ahead.pop_front(); // nothing older is left that it could be evidence of
        }
    }

    /// Step 4, but for its end: the peer reports that it had what we sent again.
    fn adapt(&mut self, flight: &Flight, order: &dyn Order) {
        self.growth_barred_until.take_if(|until| order.una() >= *until);
        let duplicates = flight.fresh().duplicates;
        if duplicates == 0 {
            return;
        }
        self.tally.iter_mut().for_each(|t| t.duplicates += duplicates);
        if self.growth_barred_until.is_none() {
            self.growth_barred_until = Some(order.nxt());
            self.multiplier += 1;
            self.persist = PERSIST;
        }
    }

    /// How much later than expected an acknowledgment may come.
    fn window(&self, view: &PathView, delivered_after: u32, recovering: bool) -> Duration {
        let hasty = recovering || delivered_after >= DUP_THRESH;
        if !self.reordering && hasty {
            return Duration::ZERO;
        }
        let quarter = view.min_rtt.unwrap_or_default().over(4);
        quarter.times(self.multiplier).min(view.srtt.unwrap_or_default())
    }

    /// Step 4, its end: one more recovery without a duplicate.
    fn calm_down(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiplier = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::bandwidth::DeliveryMark;
    use crate::path::transmission::{Cargo, History, Transmission};

    fn send(flight: &mut Flight) -> u64 {
        let cargo = Cargo { key: 0, len: 1000, history: History::Once };
        flight.push(Transmission::new(cargo, Instant::ZERO, DeliveryMark::default()))
    }

    /// An acknowledgment, on the path itself or another one, tells that `number` arrived.
    fn deliver(flight: &mut Flight, track: &mut Track, number: u64, by_own: bool) {
        flight.begin_account();
        flight.deliver(number, false);
        if by_own {
            flight.vouch(|_| true);
        }
        flight.trim();
        track.learn(Instant::ZERO + DELAYED_ACK, flight, &PathView::new(PathId(0), 1000));
    }

    #[test]
    fn between_neighbours_a_tail_is_probed_later_than_two_round_trips() {
        let mut flight = Flight::new(false);
        send(&mut flight);
        send(&mut flight);
        let after = |millis| {
            let mut view = PathView::new(PathId(0), 1000);
            view.srtt = Some(Duration::from_millis(millis));
            Rack::default().probe_after(&view, &flight)
        };
        assert_eq!([0, 1, 20].map(after), [5, 5, 40].map(|ms| Some(Duration::from_millis(ms))));
    }

    #[test]
    fn what_was_delivered_before_all_that_is_in_flight_takes_no_room() {
        let (mut flight, mut track) = (Flight::new(false), Track::new(PathId(0)));
        for by_own in [false, true] {
            for _ in 0..1000 {
                let number = send(&mut flight);
                deliver(&mut flight, &mut track, number, by_own);
                assert!(track.ahead.len() <= 2, "{number}: {}", track.ahead.len());
            }
        }
        let missing = send(&mut flight);
        let later = send(&mut flight);
        deliver(&mut flight, &mut track, later, false);
        assert!(track.newest.is_none_or(|newest| newest.number < missing));
        deliver(&mut flight, &mut track, later, true);
        assert_eq!((track.newest.map(|newest| newest.number), track.ahead.len()), (Some(later), 0));
    }
}
