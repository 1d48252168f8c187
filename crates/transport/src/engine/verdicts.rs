//! What the loss policy says, carried out.

use polypath_wire::{Duration, Instant, PathId};

use super::facts::{Fact, Judged};
use super::machine::Engine;
use super::timers::Timer;
use crate::facts::{Episode, LossCause, LossEvent, LostSegment};
use crate::loss::policy::{Case, Departure, Order, Verdict};

impl Engine {
    /// Lets the policy judge all paths and carries out what it says.
    #[inline(always)]
    pub(crate) fn judge(&mut self, now: Instant, order: &dyn Order) -> Judged {
        let mut judged = Judged::default();
        self.timers.stop(Timer::Recheck);
        for i in 0..self.lanes.len() {
            let (view, lane) = (&self.views.as_slice()[i], &self.lanes.as_slice()[i]);
            self.policy.judge(&Case { now, view, flight: &lane.flight, order }, &mut self.verdicts);
            if !self.verdicts.is_empty() {
                let path = self.lanes.id_at(i);
                let mut verdicts = std::mem::take(&mut self.verdicts);
                self.carry_out(now, path, &verdicts, &mut judged);
                verdicts.clear();
                self.verdicts = verdicts;
            }
        }
        judged
    }

    #[cold]
    fn carry_out(&mut self, now: Instant, path: PathId, verdicts: &[Verdict], judged: &mut Judged) {
        for verdict in verdicts {
            match *verdict {
                Verdict::Lost { what, cause, episode } => {
                    self.lose(now, path, what, (cause, episode), judged)
                }
                Verdict::Repaired(episode) => self.reduce(now, path, episode, judged),
                Verdict::Recovered(_) => self.lanes[path].recovering = None,
                Verdict::Undo(episode) => {
                    self.lanes[path].recovering = None;
                    self.controller.on_undo(now, path, episode);
                    judged.undone += 1;
                }
                Verdict::RecheckAt(at) => self.timers.set_earlier(Timer::Recheck, at),
            }
        }
        match verdicts.iter().all(|verdict| matches!(verdict, Verdict::RecheckAt(_))) {
            true => self.refresh(now, path),
            false => self.refresh_all(now), // paths may share a window
        }
    }

    /// What a tail probe repaired was lost like anything else (RFC 8985 §7.4).
    fn reduce(&mut self, now: Instant, path: PathId, episode: Episode, judged: &mut Judged) {
        self.lanes[path].recovering = Some(episode);
        self.end_start(path);
        let event = LossEvent {
            cause: LossCause::TailProbe,
            episode,
            bytes: u64::from(self.views[path].mss),
            flight_size: self.flight_size(path),
            oldest_sent: now,
        };
        self.controller.on_loss(now, path, &event, self.views.as_slice());
        judged.episodes += 1;
    }

    fn lose_window(&mut self, now: Instant, path: PathId, event: &LossEvent) {
        let before = self.controller.window(path);
        self.controller.on_loss(now, path, event, self.views.as_slice());
        if self.controller.window(path) < before {
            self.reduced_for_loss(now, path);
        }
    }

    /// `what` is lost, as the verdict on `path` says: most often it left there.
    fn lose(
        &mut self,
        now: Instant,
        path: PathId,
        what: Departure,
        (cause, episode): (LossCause, Episode),
        judged: &mut Judged,
    ) {
        let flight_size = self.flight_size(path);
        let Some(lane) = self.lanes.get_mut(what.path) else { return };
        let Some(transmission) = lane.flight.lose(what.number) else { return };
        let (bytes, sent_at) = (transmission.len(), transmission.sent_at);
        let first = self.lanes[path].recovering != Some(episode);
        self.facts.push(Fact::Lost { what, transmission, cause, episode, charged: path, first });
        self.controller.on_lost(now, path, &LostSegment { offset: what.cargo, bytes, sent_at });
        if first {
            self.lanes[path].recovering = Some(episode);
            self.end_start(path);
            if !self.lanes[path].marks.answer_for(sent_at) {
                let event = LossEvent { cause, episode, bytes, flight_size, oldest_sent: sent_at };
                self.lose_window(now, path, &event);
            }
            judged.episodes += 1;
            if self.observers.watch.closes_on_loss() {
                self.close_congested(what.path, Duration::ZERO);
            }
        }
    }
}
