//! ADDR, the allowable delay due to reordering (Polishchuk and Gurtov, §IV.D): what arrives after all within this
//! time of being reported missing was late, not lost, and the path gets back what it had.
//!
//! | text | here |
//! |---|---|
//! | ADDR | `allowance`, from the report of the congestion on |
//! | "the missing sequence number has arrived … and the corresponding ACK arrives" | every segment judged lost in the episode is acknowledged, cumulatively or selectively |
//! | "cwnd and ssthresh … returned to the values prior" | [`Verdict::Undo`], which the controller carries out |
//!
//! ADDR is smaller than the smallest round trip time (`LossConfig::check` sees to it), so no
//! retransmission can be answered in time: whatever is acknowledged was the original.
//!
//! The text speaks of one missing number. Where an episode has several, all of them must arrive.

use polypath_wire::{Duration, Instant, PathId};

use super::policy::{Case, LossPolicy, Order, Verdict};
use crate::about::About;
use crate::facts::{ConfigError, Episode, PathView};
use crate::path::flight::Flight;
use crate::path_map::{OfPath, PathMap};

/// Gives another policy second thoughts.
#[derive(Debug)]
pub(crate) struct Addr {
    inner: Box<dyn LossPolicy>,
    allowance: Duration,
    /// Episodes that may still prove to be reordering.
    doubts: Vec<Doubt>,
    /// The last episode seen on each path: only its beginning is a report of congestion.
    latest: PathMap<Latest>,
}

#[derive(Debug)]
struct Latest {
    path: PathId,
    episode: Option<Episode>,
}

impl OfPath for Latest {
    fn path(&self) -> PathId {
        self.path
    }
}

#[derive(Debug)]
struct Doubt {
    path: PathId,
    episode: Episode,
    until: Instant,
    /// Keys of what is missing.
    missing: Vec<u64>,
}

impl Addr {
    /// Name and help.
    pub(crate) const ABOUT: About = About {
        name: "addr",
        help: "Another policy, `inner`, whose losses may still arrive within an allowable delay: ADDR of mHIP",
    };

    /// Whether `allowance` means something where the smallest round trip is `min_rtt`, if that is known.
    pub(super) fn check(allowance: Duration, min_rtt: Option<Duration>) -> Result<(), ConfigError> {
        let wrong = |reason, remedy| ConfigError::new("loss.allowance", reason, remedy);
        let nothing = wrong("0 allows nothing", "write a time in ms, or leave ADDR out");
        let long = wrong("not below the smallest round trip time", "write a shorter time, in ms");
        ConfigError::first(&[
            (allowance == Duration::ZERO, nothing),
            (min_rtt.is_some_and(|rtt| allowance >= rtt), long),
        ])
    }

    /// What `inner` judges lost may still arrive within `allowance`.
    pub(crate) fn new(inner: Box<dyn LossPolicy>, allowance: Duration) -> Self {
        Self { inner, allowance, doubts: Vec::new(), latest: PathMap::default() }
    }

    /// The episode of `path` in which nothing is missing any more, if there is one.
    fn resolved(&mut self, now: Instant, path: PathId, order: &dyn Order) -> Option<Episode> {
        self.doubts.retain(|d| now <= d.until);
        let arrived = |d: &Doubt| d.path == path && d.missing.iter().all(|key| order.has_arrived(*key));
        let i = self.doubts.iter().position(arrived)?;
        Some(self.doubts.swap_remove(i).episode)
    }

    fn remember(&mut self, now: Instant, path: PathId, episode: Episode, key: u64) {
        if let Some(doubt) = self.doubts.iter_mut().find(|d| d.path == path && d.episode == episode) {
            return doubt.missing.push(key);
        }
        let latest = self.latest.or_insert(path, |path| Latest { path, episode: None });
        if latest.episode.replace(episode) != Some(episode) {
            let until = now + self.allowance;
            self.doubts.push(Doubt { path, episode, until, missing: vec![key] });
        }
    }
}

impl LossPolicy for Addr {
    fn judge(&mut self, case: &Case<'_>, out: &mut Vec<Verdict>) {
        let (now, path) = (case.now, case.path());
        if let Some(episode) = self.resolved(now, path, case.order) {
            self.inner.on_undo(path);
            return out.push(Verdict::Undo(episode));
        }
        let before = out.len();
        self.inner.judge(case, out);
        for verdict in &out[before..] {
            if let Verdict::Lost { what, episode, .. } = *verdict {
                self.remember(now, path, episode, what.cargo);
            }
        }
    }

    fn recovers(&self, case: &Case<'_>) -> bool {
        self.inner.recovers(case)
    }

    fn on_timeout(&mut self, case: &Case<'_>) -> Episode {
        self.doubts.retain(|d| d.path != case.path());
        self.inner.on_timeout(case)
    }

    fn on_undo(&mut self, path: PathId) {
        self.inner.on_undo(path);
    }

    fn on_path_removed(&mut self, path: PathId) {
        self.latest.remove(path);
        self.inner.on_path_removed(path);
    }

    fn probes(&self) -> bool {
        self.inner.probes()
    }

    fn probe_after(&self, view: &PathView, flight: &Flight) -> Option<Duration> {
        self.inner.probe_after(view, flight)
    }

    fn on_probe(&mut self, path: PathId, flight: &Flight) {
        self.inner.on_probe(path, flight);
    }

    fn limited_transmit(&self) -> u32 {
        self.inner.limited_transmit()
    }

    fn holds_timer(&self, path: PathId) -> bool {
        self.inner.holds_timer(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::dupack::Dupack;
    use crate::loss::policy::bench::Stream;

    const A: PathId = PathId(0);
    const MS: fn(u64) -> Instant = |n| Instant(n * 1_000_000);

    /// Ten segments of 10 bytes, of which the first is missing: three duplicates report it at 100 ms.
    fn reported(allowance: u64) -> (Addr, Stream) {
        let mut stream = Stream::new(1, 10);
        stream.duplicates = 3;
        let mut addr = Addr::new(Box::new(Dupack::new(Default::default())), Duration::from_millis(allowance));
        lost(&stream.judge(&mut addr, MS(100), A), &stream, 0, 1);
        stream.lose(0);
        (addr, stream)
    }

    fn lost(verdicts: &[Verdict], stream: &Stream, n: usize, number: u32) {
        let [Verdict::Lost { what, episode, .. }] = *verdicts else { panic!("{verdicts:?}") };
        assert_eq!((what, episode), (stream.departure(n), Episode(number)));
    }

    #[test]
    fn what_arrives_in_time_was_reordering() {
        let (mut addr, mut stream) = reported(50);
        assert_eq!(stream.judge(&mut addr, MS(120), A), []);
        stream.ack_up_to(40);
        assert_eq!(stream.judge(&mut addr, MS(150), A), [Verdict::Undo(Episode(1))]);
        // and the next report is a new episode
        stream.duplicates = 3;
        lost(&stream.judge(&mut addr, MS(160), A), &stream, 4, 2);
    }

    #[test]
    fn what_arrives_later_was_lost() {
        let (mut addr, mut stream) = reported(50);
        stream.ack_up_to(100);
        assert_eq!(stream.judge(&mut addr, MS(151), A), [Verdict::Recovered(Episode(1))]);
    }

    #[test]
    fn a_timeout_leaves_no_doubt() {
        let (mut addr, mut stream) = reported(50);
        addr.on_timeout(&stream.case(A, &PathView::new(A, 10)));
        stream.ack_up_to(40);
        assert_eq!(stream.judge(&mut addr, MS(110), A), []);
    }
}
