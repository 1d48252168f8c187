//! Windows of paths that had little to carry.

use super::*;
use crate::cc::{CcConfig, PolypathConfig};

const FIBRE: PathId = PathId(0);
const LTE: PathId = PathId(1);

/// Fibre and LTE, as the daemon has them.
fn bench() -> Bench {
    let cc = PolypathConfig { queue_target: MS(10), ..Default::default() };
    let config = PacketConfig {
        cc: CcConfig::Polypath(cc).of_today(),
        scheduler: SchedulerConfig::EarliestCompletion,
        ..PacketConfig::default()
    };
    Bench::new(&config, &[link(100, 10), link(40, 40)])
}

impl Bench {
    /// One packet each `apart` µs until `end`; `before` each something happens.
    fn trickle(&mut self, end: Instant, apart: u64, before: impl Fn(&mut Self)) {
        let mut number = 0;
        while self.now < end {
            before(self);
            assert!(self.push(7, 0, number));
            number += 1;
            self.run_until(self.now + Duration::from_micros(apart));
        }
    }

    fn cwnd(&self, path: PathId) -> u64 {
        self.ends[0].path_stats(path).cwnd
    }

    /// 20 Mbit/s for a second: the part that the fibre carries in the first fifth of it, and after that.
    fn demand(&mut self) -> [f64; 2] {
        [200, 800].map(|ms| {
            let sent = |bench: &Self| [FIBRE, LTE].map(|path| bench.ends[0].path_stats(path).segments_sent);
            let before = sent(self);
            self.trickle(self.now + MS(ms), 400, |_| {});
            let [fibre, lte] = [0, 1].map(|path| (sent(self)[path] - before[path]) as f64);
            fibre / (fibre + lte)
        })
    }
}

#[test]
fn a_window_that_lost_while_it_was_unused_is_back_within_some_round_trips() {
    let mut bench = bench();
    bench.fill_until(at(1500), 1);
    let held = bench.cwnd(FIBRE);
    bench.run_until(at(2000));
    bench.wire.links[0].ways[0].lossy = 20;
    bench.trickle(at(8000), 10_000, |_| {});
    bench.wire.links[0].ways[0].lossy = 0;
    let (lost, small) = (bench.ends[0].stats().lost, bench.cwnd(FIBRE));
    assert!(lost > 20 && small < held / 10, "{lost} lost, {held} bytes became {small}");
    let by_fibre = bench.demand();
    assert!(by_fibre[0] > 0.85 && by_fibre[1] == 1.0, "{by_fibre:?}");
}

#[test]
fn queues_of_others_that_come_and_go_take_nothing_from_a_window_that_is_unused() {
    let mut bench = bench();
    bench.fill_until(at(1500), 1);
    bench.run_until(at(2000));
    let before = bench.cwnd(FIBRE);
    bench.trickle(at(32_000), 2000, |bench| {
        let (ms, way) = (bench.now.0 / 1_000_000 % 500, &mut bench.wire.links[0].ways[0]);
        if !(20..=250).contains(&ms) {
            way.idle = way.idle.max(bench.now + MS(30));
        }
    });
    assert_eq!((bench.cwnd(FIBRE), bench.ends[0].stats().lost), (before, 0));
    assert_eq!(bench.demand(), [1.0, 1.0]);
}
