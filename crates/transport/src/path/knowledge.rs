//! What is learnt of a path while the connection lasts (Polishchuk and Gurtov, §III.B.2 and 4): heartbeats on every
//! path at an interval, and between them one marked packet a round trip.
//!
//! | text | here |
//! |---|---|
//! | expected delivery time | own queue + transmission + network delay, by the path's model at departure |
//! | actual arrival time | from the acknowledgment that covers the marked packet |
//! | late by more than a preset value | [`KnowledgeConfig::close_late`] |
//! | the path is closed; probes | `PathState::Congested`; heartbeats, the first in time reopens it |
//!
//! Both kinds of probe measure the *excess*: what a packet took beyond the smallest round trip and
//! beyond the wait behind our own packets, which the model knows. It is the queue of others, and is added
//! to the delay of the path. Lateness is the excess beyond the one that was expected at departure.
//!
//! The text has delivery times; without synchronised clocks the round trip stands for them, which is the
//! same as long as the way back does not queue.

use polypath_wire::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::facts::ConfigError;

/// How paths are watched. By default not at all: estimates come from round trips and deliveries.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct KnowledgeConfig {
    /// Interval of heartbeats on every path while data is under way, ms; zero sends none.
    #[serde(with = "polypath_wire::millis")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub heartbeat: Duration,
    /// Mark one packet per path and round trip and correct the path's delay by it.
    pub marks: bool,
    /// Close a path whose marked packet is late by more than this, ms, unless it is the last one open;
    /// none never does.
    #[serde(with = "polypath_wire::maybe_millis")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub close_late: Option<Duration>,
    /// Close a path on which a loss episode begins, unless it is the last one open.
    pub close_on_loss: bool,
}

impl KnowledgeConfig {
    /// Whether its parameters mean something together.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.closes() && self.heartbeat == Duration::ZERO {
            return Err(ConfigError::new(
                "knowledge",
                "only heartbeats reopen a path that was closed, and they have no interval",
                "add for example heartbeat = 100, in ms",
            ));
        }
        if self.close_late == Some(Duration::ZERO) {
            return Err(ConfigError::new(
                "knowledge",
                "every packet is late by more than 0",
                "write for example close_late = 50, in ms",
            ));
        }
        Ok(())
    }

    fn closes(&self) -> bool {
        self.close_late.is_some() || self.close_on_loss
    }

    /// Whether packets are marked.
    pub fn marks_packets(&self) -> bool {
        self.marks || self.close_late.is_some()
    }
}

/// A packet whose delivery is expected.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Expected {
    /// Number of the marked transmission, or of the heartbeat.
    number: u64,
    sent: Instant,
    /// How long it waits behind what we sent before.
    wait: Duration,
    /// The excess that was expected.
    excess: Duration,
}

impl Expected {
    fn excess(&self, now: Instant, floor: Duration) -> Duration {
        now.since(self.sent) - floor - self.wait
    }
}

/// What is known of one path beyond the estimator's model of it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Knowledge {
    excess: Duration,
    mark: Option<Expected>,
    heartbeat: Option<Expected>,
    fastest_heartbeat: Option<Duration>,
    /// While closed: the largest excess with which a heartbeat reopens the path.
    tolerated: Option<Duration>,
}

impl Knowledge {
    /// Somebody sees how much longer than modelled a packet takes now.
    pub(crate) fn reveal(&mut self, excess: Duration) {
        self.excess = excess;
    }

    /// How much longer than modelled packets take lately.
    pub(crate) fn excess(&self) -> Duration {
        self.excess
    }

    /// Transmission `tx` leaves, to wait behind our own for `wait`: it is marked unless another one is.
    pub(crate) fn on_sent(&mut self, now: Instant, tx: u64, wait: Duration) {
        if self.mark.is_none() {
            self.mark = Some(Expected { number: tx, sent: now, wait, excess: self.excess });
        }
    }

    /// Transmissions up to `highest` were delivered; `fastest` is the smallest round trip. Returns by how
    /// much the marked one was late, if it was among them.
    pub(crate) fn on_delivered(&mut self, now: Instant, highest: u64, fastest: Duration) -> Option<Duration> {
        let mark = self.mark.take_if(|m| m.number <= highest)?;
        self.excess = mark.excess(now, fastest);
        Some(self.excess - mark.excess)
    }

    /// Heartbeat `number` leaves.
    pub(crate) fn on_heartbeat_sent(&mut self, now: Instant, number: u64, wait: Duration) {
        self.heartbeat = Some(Expected { number, sent: now, wait, excess: self.excess });
    }

    /// Heartbeat `number` came back; `round_trip` is twice the configured one-way delay. Returns whether the path, if
    /// it was closed, is free again.
    pub(crate) fn on_heartbeat(&mut self, now: Instant, number: u64, round_trip: Option<Duration>) -> bool {
        let Some(beat) = self.heartbeat.take_if(|h| h.number == number) else { return false };
        let took = now.since(beat.sent) - beat.wait;
        let fastest = self.fastest_heartbeat.map_or(took, |f| f.min(took));
        self.fastest_heartbeat = Some(fastest);
        self.excess = beat.excess(now, round_trip.map_or(fastest, |t| t.min(fastest)));
        self.tolerated.take_if(|t| self.excess <= *t).is_some()
    }

    /// The path is closed: a packet was late, or lost.
    pub(crate) fn close(&mut self, config: &KnowledgeConfig, expected: Duration) {
        self.tolerated = Some(expected + config.close_late.unwrap_or_default());
        self.mark = None;
    }

    /// The path is open again without a heartbeat in time.
    pub(crate) fn reopen(&mut self) {
        self.tolerated = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const AT: fn(u64) -> Instant = |ms| Instant(ms * 1_000_000);

    fn closing() -> KnowledgeConfig {
        KnowledgeConfig { heartbeat: MS(200), close_late: Some(MS(50)), ..Default::default() }
    }

    /// A path of 120 ms: what others queue there shows in the mark, our own queue does not.
    #[test]
    fn a_mark_measures_the_queue_of_others() {
        let mut path = Knowledge::default();
        path.on_sent(AT(0), 7, MS(30));
        path.on_sent(AT(1), 8, MS(31)); // one mark at a time
        assert_eq!(path.on_delivered(AT(140), 6, MS(120)), None);
        assert_eq!(path.on_delivered(AT(190), 7, MS(120)), Some(MS(40)));
        assert_eq!(path.excess(), MS(40));
        // it was expected the second time: nothing is late
        path.on_sent(AT(200), 9, MS(0));
        assert_eq!(path.on_delivered(AT(360), 12, MS(120)), Some(MS(0)));
    }

    #[test]
    fn the_first_heartbeat_in_time_reopens() {
        let (mut path, config) = (Knowledge::default(), closing());
        path.close(&config, MS(10)); // 10 ms were expected and 50 are tolerated
        let beat = |path: &mut Knowledge, sent: u64, took: u64| {
            path.on_heartbeat_sent(AT(sent), sent, MS(0));
            path.on_heartbeat(AT(sent + took), sent, Some(MS(120)))
        };
        assert!(!beat(&mut path, 0, 181));
        assert!(beat(&mut path, 200, 180));
        assert_eq!(path.excess(), MS(60));
        assert!(!beat(&mut path, 400, 120), "it is open already");
        assert_eq!(path.excess(), MS(0));
    }

    #[test]
    fn a_heartbeat_of_before_is_not_taken_for_the_present_one() {
        let mut path = Knowledge::default();
        path.on_heartbeat_sent(AT(0), 1, MS(0));
        path.on_heartbeat_sent(AT(200), 2, MS(0));
        path.on_heartbeat(AT(250), 1, None);
        assert_eq!(path.excess(), MS(0));
    }

    #[test]
    fn closing_without_heartbeats_is_refused() {
        let config = KnowledgeConfig { heartbeat: Duration::ZERO, ..closing() };
        assert_eq!(config.check().map_err(|e| e.key), Err("knowledge"));
        assert_eq!(closing().check(), Ok(()));
    }
}
