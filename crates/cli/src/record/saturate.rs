//! A window that keeps the queue of its path filled, so that what arrives is what the path can carry: as the tool Saturator does for
//! Sprout (K. Winstein, A. Sivaraman, H. Balakrishnan, Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular
//! Networks, 2013), by the round trip; where the queue is too short for that, by its losses. It is fair to nobody.

use std::sync::Arc;

use polypath_transport::cc::ControllerMaker;
use polypath_transport::cc::{Controller, Snapshot};
use polypath_transport::facts::{AckSample, LossEvent, PathView};
use polypath_transport::path_map::PathMap;
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
    paths: PathMap<(PathId, Window)>,
}

#[derive(Debug)]
struct Window {
    mss: u64,
    bytes: u64,
    min_rtt: Option<Duration>,
    has_lost: bool,
}

impl Controller for Saturate {
    fn heeds_marks(&self) -> bool {
        false
    }

    fn on_path_added(&mut self, _now: Instant, path: PathId, mss: u32) {
        let mss = u64::from(mss);
        let window = Window { mss, bytes: INITIAL * mss, min_rtt: None, has_lost: false };
        self.paths.insert((path, window));
    }

    fn on_path_removed(&mut self, _: Instant, path: PathId) {
        self.paths.remove(path);
    }

    fn on_mss(&mut self, path: PathId, mss: u32) {
        if let Some((_, window)) = self.paths.get_mut(path) {
            window.mss = u64::from(mss);
        }
    }

    fn window_only(&self) -> bool {
        true
    }

    fn limit_window(&mut self, path: PathId, bytes: u64) {
        if let Some((_, window)) = self.paths.get_mut(path) {
            window.bytes = window.bytes.min(bytes);
        }
    }

    fn on_ack(&mut self, _now: Instant, path: PathId, sample: &AckSample, _paths: &[PathView]) {
        let Some((_, window)) = self.paths.get_mut(path) else { return };
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
        let Some((_, window)) = self.paths.get_mut(path) else { return };
        window.has_lost = true;
        window.bytes = (loss.flight_size * LEFT / 100).max(2 * window.mss);
    }

    fn window(&self, path: PathId) -> u64 {
        self.paths.get(path).map_or(0, |(_, window)| window.bytes)
    }

    fn snapshot(&self, path: PathId) -> Snapshot {
        Snapshot { window: self.window(path), ..Snapshot::default() }
    }
}

#[cfg(test)]
mod tests {
    use polypath_lab::run::{Keep, run};
    use polypath_lab::shelf::Place;
    use polypath_lab::spec::{Supplied, from_document};

    use super::*;

    /// Rates of a link in turn, Mbit/s, two seconds each.
    const STEPS: [u32; 6] = [4, 12, 8, 20, 6, 14];
    const SPEC: &str = r#"
        version = 1
        title = "A path whose rate steps"
        duration = "24s"
        [[link]]
        from = "a"
        to = "b"
        rate = { trace = "steps" }
        delay = "15ms"
        queue = "300kB"
        [[flow]]
        name = "fill"
        from = "a"
        to = "b"
        secure = true
        connection = { send_buffer = 67108864, receive_buffer = 67108864, cc = { algorithm = "external", name = "saturate" } }
        [[figure]]
        kind = "time"
        title = "carried"
        metric = "carried"
        bin = "1s"
        series = [{ link = "a->b" }]
    "#;

    fn opportunities() -> String {
        let (mut lines, mut bits) = (String::new(), 0);
        for ms in 1..=STEPS.len() as u32 * 2000 {
            bits += STEPS[(ms as usize - 1) / 2000] * 1000;
            while bits >= 12_000 {
                bits -= 12_000;
                lines += &format!("{ms}\n");
            }
        }
        lines
    }

    #[test]
    fn a_path_whose_rate_steps_is_kept_full_in_every_second() {
        let CcConfig::External(External { maker: Some(make), .. }) = config() else {
            panic!("{:?}", config())
        };
        let supplied =
            Supplied { controllers: [("saturate".to_owned(), make)].into(), ..Supplied::default() };
        let steps = Place::Texts([("steps".to_owned(), opportunities())].into());
        let experiment = from_document(&SPEC.parse().unwrap(), "steps", &steps, &supplied);
        let experiment = experiment.unwrap_or_else(|e| panic!("{e}"));
        let ran = run(&experiment.cells[0], 1, &Keep::default()).unwrap();
        let carried = &ran.timeline.courses[0].series[0];
        assert_eq!(carried.len(), 24);
        for (second, carried) in carried.iter().enumerate().skip(1) {
            let rate = f64::from(STEPS[second / 2 % STEPS.len()]);
            assert!((carried / 1e6 / rate - 1.0).abs() < 0.05, "second {second}: {carried} of {rate} Mbit/s");
        }
    }
}
