//! A window that keeps the queue of its path filled, so that what arrives is what the path can carry: as the tool Saturator does for
//! Sprout (K. Winstein, A. Sivaraman, H. Balakrishnan, Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular
//! Networks, 2013), by the round trip; where the queue is too short for that, by its losses. It is fair to nobody.

use std::collections::BTreeMap;
use std::sync::Arc;

use polypath_transport::cc::ControllerMaker;
use polypath_transport::cc::controller::{Controller, Snapshot};
use polypath_transport::facts::{AckSample, LossEvent, PathView};
use polypath_transport::{CcConfig, External};
use polypath_wire::{Duration, Instant, PathId};

/// Added to the smallest round trip: below it the window grows, above the second it shrinks.
const QUEUED: [Duration; 2] = [Duration::from_millis(750), Duration::from_millis(1500)];
/// Segments at the start.
const INITIAL: u64 = 10;
/// The part that is left after a loss, in hundredths.
const LEFT: u64 = 85;

/// A connection's congestion control that does so.
pub fn config() -> CcConfig {
    let make: Arc<ControllerMaker> = Arc::new(|_| Box::<Saturate>::default());
    CcConfig::External(External { name: "saturate".into(), version: String::new(), maker: Some(make) })
}

#[derive(Default, Debug)]
struct Saturate {
    paths: BTreeMap<PathId, Window>,
}

#[derive(Debug)]
struct Window {
    mss: u64,
    bytes: u64,
    min_rtt: Option<Duration>,
    has_lost: bool,
}

impl Controller for Saturate {
    fn on_path_added(&mut self, _now: Instant, path: PathId, mss: u32) {
        let mss = u64::from(mss);
        self.paths.insert(path, Window { mss, bytes: INITIAL * mss, min_rtt: None, has_lost: false });
    }

    fn on_path_removed(&mut self, path: PathId) {
        self.paths.remove(&path);
    }

    fn on_mss(&mut self, path: PathId, mss: u32) {
        if let Some(window) = self.paths.get_mut(&path) {
            window.mss = u64::from(mss);
        }
    }

    fn window_only(&self) -> bool {
        true
    }

    fn limit_window(&mut self, path: PathId, bytes: u64) {
        if let Some(window) = self.paths.get_mut(&path) {
            window.bytes = window.bytes.min(bytes);
        }
    }

    fn on_ack(&mut self, _now: Instant, path: PathId, sample: &AckSample, _paths: &[PathView]) {
        let Some(window) = self.paths.get_mut(&path) else { return };
        let Some(rtt) = sample.rtt else { return };
        let least = window.min_rtt.map_or(rtt, |least| least.min(rtt));
        window.min_rtt = Some(least);
        let acked = sample.newly_acked;
        if rtt > least + QUEUED[1] {
            window.bytes = window.bytes.saturating_sub(acked / 2).max(2 * window.mss);
        } else if rtt < least + QUEUED[0] && sample.window_limited && !sample.in_recovery {
            // Twice as much a round trip until the first loss, then a quarter more.
            window.bytes += if window.has_lost { acked / 4 } else { acked };
        }
    }

    fn on_loss(&mut self, _now: Instant, path: PathId, loss: &LossEvent, _paths: &[PathView]) {
        let Some(window) = self.paths.get_mut(&path) else { return };
        window.has_lost = true;
        window.bytes = (loss.flight_size * LEFT / 100).max(2 * window.mss);
    }

    fn window(&self, path: PathId) -> u64 {
        self.paths.get(&path).map_or(0, |window| window.bytes)
    }

    fn snapshot(&self, path: PathId) -> Snapshot {
        Snapshot { window: self.window(path), ..Snapshot::default() }
    }
}
