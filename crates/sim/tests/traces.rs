//! Hashes of whole traces: every observation of both hosts and every event at every hop, of worlds that together take
//! most ways through the connection. A change that is not meant to change behaviour leaves the table as it is; one that
//! is meant to says so in its commit and renews it: `INSTA_UPDATE=always cargo test -p polypath-sim --test traces`.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod common;

use std::fmt::Write;

use common::{assert_conserved, hop, secs};
use polypath_endpoint::SecurityConfig;
use polypath_sim::{
    Change, ClockConfig, FlowConfig, HopConfig, HostConfig, Step, Via, World, WorldConfig, identity,
};
use polypath_transport::AckReturn;
use polypath_transport::KnowledgeConfig;
use polypath_transport::cc::FastConfig;
use polypath_transport::cc::{CcConfig, MhipSimpleConfig, NewRenoConfig, RmTcpConfig};
use polypath_transport::sched::{DuplicateConfig, SchedulerConfig};
use polypath_transport::{AckConfig, ConnectionConfig, KnownPath, PathConfig, RecordFilter};
use polypath_transport::{LossConfig, ThresholdConfig};
use polypath_wire::{Duration, Rate, Seed};

const MB: u64 = 1_000_000;
const MS: fn(u64) -> Duration = Duration::from_millis;

/// A transfer between two hosts over one link a path.
struct Transfer {
    hops: Vec<HopConfig>,
    config: ConnectionConfig,
    bytes: u64,
    /// The paths' rates and delays are known from the start.
    told: bool,
    /// What an earlier connection measured of the first path.
    known: Option<KnownPath>,
    /// When the connection is aborted.
    stop: Option<f64>,
    /// In ESP, with new keys after this many packets.
    rekey_after: Option<u64>,
}

impl Transfer {
    fn over(hops: &[HopConfig], config: ConnectionConfig) -> Self {
        let (hops, told, known, stop, rekey_after) = (hops.to_vec(), false, None, None, None);
        Self { hops, config, bytes: 2 * MB, told, known, stop, rekey_after }
    }

    fn hosts(&self, world: &mut World) -> [polypath_sim::NodeId; 2] {
        let mut config = HostConfig::default();
        config.endpoint.record = RecordFilter { packets: true, state: true, events: true };
        [("a", 0), ("b", 7)].map(|(name, seconds)| {
            let clock = ClockConfig { offset: Duration::from_secs(seconds), drift_ppm: seconds as f64 };
            let config = HostConfig { clock, ..config.clone() };
            match self.rekey_after {
                Some(rekey_after) => {
                    let security = SecurityConfig { rekey_after, ..SecurityConfig::default() };
                    let identity = identity(Seed(1).child(name));
                    world.secure_host(name, config, security, identity).unwrap()
                }
                None => world.host(name, config).unwrap(),
            }
        })
    }

    /// Runs it to the end: a line of the table.
    fn line(self, name: &str) -> String {
        let mut world = World::new(WorldConfig { seed: Seed(7), ..WorldConfig::default() });
        let [a, b] = self.hosts(&mut world);
        let mut paths = Vec::new();
        for (n, there) in self.hops.iter().enumerate() {
            let back = HopConfig { loss: there.loss / 2.0, ..there.clone() };
            let link = world.link(a, b, there.clone(), back).unwrap();
            let path = PathConfig {
                rate: self.told.then_some(there.rate),
                one_way: self.told.then_some(there.delay),
                known: self.known.filter(|_| n == 0),
                ..PathConfig::default()
            };
            paths.push((world.path(a, b, &[Via::Link(link)]).unwrap(), path));
        }
        let (sender, receiver) = (self.config.clone(), self.config);
        let (bytes, stop) = (Some(self.bytes), self.stop.map(secs));
        let flow = FlowConfig { paths, bytes, stop, sender, receiver, ..FlowConfig::default() };
        let flow = world.flow(flow).unwrap();
        world.trace(false, true);
        world.run(secs(100.0));
        assert_conserved(&world);
        let report = world.flow_report(flow);
        assert!(!report.corrupted, "{name}");
        assert_eq!(report.finished.is_some(), self.stop.is_none(), "{name}: {report:?}");
        let trace = world.take_trace().unwrap();
        format!("{name:<46} {:>6} rows {:032x}", trace.len(), trace.hash())
    }
}

fn lossy(hop: HopConfig) -> HopConfig {
    let (loss, reordering, reorder_delay) = (0.01, 0.01, MS(2));
    HopConfig { loss, reordering, reorder_delay, duplication: 0.002, ..hop }
}

/// Up, and down from `from` to `to`, s.
fn cut(hop: HopConfig, from: f64, to: f64) -> HopConfig {
    let step = |at, change| Step { at: secs(at), change };
    HopConfig { schedule: vec![step(from, Change::Down), step(to, Change::Up)], ..hop }
}

fn plain() -> ConnectionConfig {
    ConnectionConfig::default()
}

fn todays() -> ConnectionConfig {
    let (cc, acks) = (CcConfig::default().of_today(), AckConfig::thinned());
    ConnectionConfig { cc, acks, fail_silent: true, ..plain() }
}

/// Of TCP alone.
fn ordinary() -> Vec<(&'static str, Transfer)> {
    let one = [hop(20, 20, 40)];
    let newreno = LossConfig::Dupack(Default::default());
    let newreno = ConnectionConfig { sack: false, timestamps: false, loss: newreno, ..plain() };
    let (receive_buffer, keep_alive) = (20_000, Duration::from_secs(5));
    let small = ConnectionConfig { receive_buffer, keep_alive, no_delay: false, max_burst: 2, ..plain() };
    let counting = ConnectionConfig { loss: LossConfig::Sack(ThresholdConfig { threshold: 3 }), ..plain() };
    let narrow = HopConfig { mtu: Some(1000), ..hop(20, 20, 40) };
    let known = Some(KnownPath { rate: Rate::from_mbps(20), rtt: MS(40) });
    vec![
        ("one path", Transfer::over(&one, plain())),
        ("one path, loss and reordering", Transfer::over(&[lossy(one[0].clone())], plain())),
        ("one path, loss, NewReno", Transfer::over(&[lossy(one[0].clone())], newreno)),
        ("one path, loss, counting", Transfer::over(&[lossy(one[0].clone())], counting)),
        ("one path, loss, as today's hosts", Transfer::over(&[lossy(one[0].clone())], todays())),
        ("one path, known", Transfer { known, ..Transfer::over(&one, todays()) }),
        ("one path, small window", Transfer::over(&one, small)),
        ("one path, smaller than told", Transfer::over(&[narrow], plain())),
        ("one path, two seconds down", Transfer::over(&[cut(one[0].clone(), 0.4, 2.4)], plain())),
        ("one path, aborted", Transfer { stop: Some(0.5), ..Transfer::over(&one, plain()) }),
        ("one path, no bytes", Transfer { bytes: 0, ..Transfer::over(&one, plain()) }),
    ]
}

/// Of several paths.
fn multipath() -> Vec<(&'static str, Transfer)> {
    let two = [hop(20, 20, 40), hop(8, 50, 30)];
    let three = [lossy(two[0].clone()), lossy(two[1].clone()), hop(4, 5, 10)];
    let dying = [cut(two[0].clone(), 0.5, 6.5), two[1].clone()];
    let with = |scheduler| ConnectionConfig { scheduler, ..plain() };
    let turns = ConnectionConfig { ack_return: AckReturn::RoundRobin, ..with(SchedulerConfig::RoundRobin) };
    let completion = ConnectionConfig { scheduler: SchedulerConfig::EarliestCompletion, ..todays() };
    let arrival = with(SchedulerConfig::EarliestArrival);
    let addr = LossConfig::Addr {
        allowance: MS(9),
        inner: Box::new(LossConfig::HeadDupacks(ThresholdConfig { threshold: 9 })),
    };
    let secure = |hops: &[HopConfig], rekey| {
        let hops = Transfer::over(hops, completion.clone());
        Transfer { rekey_after: Some(rekey), ..hops }
    };
    vec![
        ("three paths, loss, round robin", Transfer::over(&three, turns)),
        ("three paths, loss, min rtt", Transfer::over(&three, with(SchedulerConfig::MinRtt))),
        (
            "three paths, loss, ADDR and SMART",
            Transfer::over(&three, ConnectionConfig { loss: addr, ..plain() }),
        ),
        ("three paths, loss, as today's hosts", Transfer::over(&three, completion.clone())),
        ("two paths, told, earliest arrival", Transfer { told: true, ..Transfer::over(&two, arrival) }),
        ("two paths, the first down for a while", Transfer::over(&dying, plain())),
        ("the same as today's hosts", Transfer::over(&dying, completion.clone())),
        ("two paths, aborted", Transfer { stop: Some(0.5), ..Transfer::over(&two, plain()) }),
        ("two paths in ESP, new keys", secure(&two, 300)),
        (
            "two paths in ESP, the first down for a while",
            Transfer { bytes: 6 * MB, ..secure(&dying, 1 << 20) },
        ),
    ]
}

/// Of the papers' systems.
fn papers() -> Vec<(&'static str, Transfer)> {
    let two = [hop(20, 20, 40), hop(8, 50, 30)];
    let lossy = [lossy(two[0].clone()), lossy(two[1].clone())];
    let every = |cc| ConnectionConfig { cc, delayed_ack: Duration::ZERO, ..plain() };
    let heartbeat = MS(100);
    let watched = KnowledgeConfig { heartbeat, marks: true, close_late: Some(MS(30)), close_on_loss: true };
    let simple = CcConfig::MhipSimple(MhipSimpleConfig::default());
    let simple = ConnectionConfig { knowledge: watched, ..every(simple) };
    let two_level = every(CcConfig::MhipTwoLevel(NewRenoConfig::default()));
    let two_level = ConnectionConfig { divide_window: true, receive_buffer: 100_000, ..two_level };
    let rm_tcp = ConnectionConfig { multi_route: true, ..every(CcConfig::RmTcp(RmTcpConfig::default())) };
    let copies = |lost_only| ConnectionConfig {
        scheduler: SchedulerConfig::Duplicate(DuplicateConfig { lost_only }),
        ack_return: AckReturn::RoundRobin,
        ..rm_tcp.clone()
    };
    let fast = FastConfig { alpha: 20, ..FastConfig::default() };
    vec![
        ("mHIP, one window, watched paths", Transfer::over(&lossy, simple)),
        ("mHIP, two levels, divided window", Transfer::over(&lossy, two_level)),
        ("R-M/TCP", Transfer::over(&lossy, rm_tcp.clone())),
        ("R-M/TCP, duplication", Transfer::over(&lossy, copies(false))),
        ("R-M/TCP, duplication of what is lost", Transfer::over(&lossy, copies(true))),
        ("FAST on each path", Transfer::over(&two, every(CcConfig::Fast(fast)))),
        ("FAST, one window", Transfer::over(&lossy, every(CcConfig::FastOneWindow(fast)))),
    ]
}

#[test]
fn traces_are_what_they_were() {
    let mut table = String::new();
    for (name, transfer) in [ordinary(), multipath(), papers()].into_iter().flatten() {
        writeln!(table, "{}", transfer.line(name)).unwrap();
    }
    insta::assert_snapshot!(table);
}
