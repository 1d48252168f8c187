//! What was the case when a segment left: P.delivered, P.tx_in_flight, P.lost (§4.1.2).

use std::collections::VecDeque;

use polypath_wire::{Duration, Instant};

/// The state of the path after the last segment that left at an instant.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Sent {
    pub at: Instant,
    /// Bytes delivered, in flight with this segment, and lost.
    pub delivered: f64,
    pub in_flight: f64,
    pub lost: f64,
    pub app_limited: bool,
}

/// One entry for each instant at which anything left.
#[derive(Debug, Default)]
pub(super) struct SentLog(VecDeque<Sent>);

impl SentLog {
    pub(super) fn add(&mut self, sent: Sent) {
        match self.0.back_mut() {
            Some(last) if last.at == sent.at => *last = sent,
            _ => self.0.push_back(sent),
        }
    }

    /// The entry of what left at `at`, or the oldest one.
    pub(super) fn find(&self, at: Instant) -> Sent {
        let after = self.0.partition_point(|sent| sent.at <= at);
        self.0.get(after.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// Something that left at `at` was delivered: what left two round trips before it and more is not asked for any more.
    pub(super) fn forget_before(&mut self, at: Instant, srtt: Option<Duration>) {
        let oldest = at - srtt.unwrap_or(Duration::ZERO).times(2);
        while self.0.get(1).is_some_and(|sent| sent.at < oldest) {
            self.0.pop_front();
        }
    }
}
