//! What a connection keeps of probes that its driver answers (RFC 9293 §3.8.4, RFC 1122 §4.2.3.6).

use std::ops::Range;

use polypath_wire::{Duration, Instant, PathId, PathSet};

/// Probes of the peer are announced at most this often. Linux answers no more often either (`tcp_invalid_ratelimit`).
const APART: Duration = Duration::from_millis(500);

/// Heartbeats with this number and above ask for the host behind the peer. A peer that does not relay returns them as any other.
pub(super) const BEHIND: u32 = 1 << 31;

/// In what form two ends ask one another whether the hosts behind them are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probes {
    /// As keep-alives (RFC 9293 §3.8.4): the peer is the host itself, and answers at once.
    KeepAlives,
    /// As numbered heartbeats (docs/protocol.md): the peer's driver relays them too. A peer that does not answers at once.
    Heartbeats,
}

/// What becomes of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The driver hears of it.
    Tell,
    /// It is answered with an earlier one of which the driver knows.
    Wait,
    /// Such a one was answered just now, and so is it.
    Answer,
}

/// Probes in both directions.
#[derive(Debug)]
pub(super) struct Relaying {
    pub probes: Probes,
    /// When a probe of the peer was last announced to the driver.
    told_at: Option<Instant>,
    /// The paths on which the peer waits for an answer, and the number of its last heartbeat.
    waiting: PathSet,
    number: u32,
    /// Numbers of our own probes since one was answered.
    unanswered: Range<u32>,
    /// When the last acceptable segment came.
    heard_at: Instant,
}

impl Relaying {
    pub(super) fn new(now: Instant, probes: Probes) -> Self {
        let unanswered = BEHIND..BEHIND;
        Self { probes, told_at: None, waiting: PathSet::EMPTY, number: 0, unanswered, heard_at: now }
    }

    /// A probe came on `path`; `number` if it is a heartbeat.
    pub(super) fn on_probe(&mut self, now: Instant, path: PathId, number: u32) -> Verdict {
        let is_fresh = self.told_at.is_some_and(|at| now < at + APART);
        if is_fresh && self.waiting.is_empty() {
            return Verdict::Answer;
        }
        self.waiting.insert(path);
        self.number = number;
        if is_fresh {
            return Verdict::Wait;
        }
        self.told_at = Some(now);
        Verdict::Tell
    }

    /// The paths on which an answer is due, and its number.
    pub(super) fn take_waiting(&mut self) -> (PathSet, u32) {
        (std::mem::replace(&mut self.waiting, PathSet::EMPTY), self.number)
    }

    /// The number of our next probe, and whether the one before it was answered.
    pub(super) fn next_probe(&mut self) -> (u32, bool) {
        let was_answered = self.unanswered.is_empty();
        let number = self.unanswered.end;
        self.unanswered.end = number.wrapping_add(1);
        (number, was_answered)
    }

    /// Heartbeat `number` was answered; whether that is news.
    pub(super) fn on_answer(&mut self, number: u32) -> bool {
        let is_news = self.unanswered.contains(&number);
        if is_news {
            self.unanswered.start = self.unanswered.end;
        }
        is_news
    }

    /// An acceptable segment came; whether it answers a keep-alive of ours.
    pub(super) fn on_heard(&mut self, now: Instant) -> bool {
        self.heard_at = now;
        let is_answer = self.probes == Probes::KeepAlives && !self.unanswered.is_empty();
        if is_answer {
            self.unanswered.start = self.unanswered.end;
        }
        is_answer
    }

    /// Whether an acceptable segment came just now.
    pub(super) fn is_busy(&self, now: Instant) -> bool {
        now < self.heard_at + APART
    }
}
