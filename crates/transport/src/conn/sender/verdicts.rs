//! What the loss policy says, carried out.

use polypath_wire::{Duration, Instant, PathId};

use super::Sender;
use super::ack::Acked;
use crate::conn::timers::{Timer, Timers};
use crate::facts::{Episode, LossCause, LossEvent};
use crate::loss::policy::Verdict;
use crate::loss::scoreboard::SentId;

impl Sender {
    /// Lets the policy judge all paths and carries out what it says.
    #[inline(always)]
    pub fn judge(&mut self, now: Instant, timers: &mut Timers, result: &mut Acked) {
        timers.stop(Timer::Recheck);
        for i in 0..self.paths.len() {
            let path = self.paths.id_at(i);
            self.policy.judge(now, path, &self.board, &self.views[path], &mut self.verdicts);
            if !self.verdicts.is_empty() {
                let mut verdicts = std::mem::take(&mut self.verdicts);
                self.carry_out(now, path, &verdicts, timers, result);
                verdicts.clear();
                self.verdicts = verdicts;
            }
        }
    }

    #[cold]
    fn carry_out(
        &mut self,
        now: Instant,
        path: PathId,
        verdicts: &[Verdict],
        timers: &mut Timers,
        result: &mut Acked,
    ) {
        for verdict in verdicts {
            match *verdict {
                Verdict::Lost { id, cause, episode } => self.lose(now, path, id, cause, episode, result),
                Verdict::Repaired(episode) => self.reduce(now, path, episode, result),
                Verdict::Recovered(_) => self.paths[path].recovering = None,
                Verdict::Undo(episode) => {
                    self.paths[path].recovering = None;
                    self.controller.on_undo(now, path, episode);
                    result.undone += 1;
                }
                Verdict::RecheckAt(at) => timers.set_earlier(Timer::Recheck, at),
            }
        }
        self.refresh(now, path);
    }

    /// What a tail probe repaired was lost like anything else (RFC 8985 §7.4).
    fn reduce(&mut self, now: Instant, path: PathId, episode: Episode, result: &mut Acked) {
        self.paths[path].recovering = Some(episode);
        let event = LossEvent {
            cause: LossCause::TailProbe,
            episode,
            bytes: u64::from(self.views[path].mss),
            flight_size: self.flight_size(path),
            oldest_sent: now,
        };
        self.controller.on_loss(now, path, &event, self.views.as_slice());
        result.episodes += 1;
    }

    fn lose(
        &mut self,
        now: Instant,
        path: PathId,
        id: SentId,
        cause: LossCause,
        episode: Episode,
        result: &mut Acked,
    ) {
        let flight_size = self.flight_size(path);
        let Some(sent) = self.board.mark_lost(id) else { return };
        self.losses.push((path, sent.offset, sent.len, cause, episode));
        self.controller.on_lost(now, path, &sent.as_lost());
        let new_episode = self.paths[path].recovering != Some(episode);
        if new_episode {
            self.paths[path].recovering = Some(episode);
            let event = LossEvent {
                cause,
                episode,
                bytes: u64::from(sent.len),
                flight_size,
                oldest_sent: sent.sent_at,
            };
            self.controller.on_loss(now, path, &event, self.views.as_slice());
            result.episodes += 1;
            if self.observers.watch.closes_on_loss() {
                self.close_congested(sent.path, Duration::ZERO);
            }
        }
        self.exceptions.urgent += u32::from(new_episode || cause == LossCause::PartialAck);
    }
}
