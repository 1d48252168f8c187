//! What a world is, and a random one.

use polypath_hop::{Change, Discipline, HopConfig, QueueLimit, Step};
use polypath_transport::cc::{CcConfig, NewRenoConfig};
use polypath_transport::sched::SchedulerConfig;
use polypath_transport::{AckConfig, AckReturn, ConnectionConfig, KnowledgeConfig, KnownPath, PathConfig};
use polypath_transport::{DupackConfig, LossConfig, Segmentation, ThresholdConfig, TimeoutTakes};
use polypath_wire::{Duration, Instant, PathId, Rate, Seed, Seq};

use crate::dice::Dice;
use crate::features::*;
use crate::happenings::{Happening, What, happenings};

/// A world. End 0 connects to end 1.
#[derive(Clone, Debug)]
pub struct Spec {
    pub seed: Seed,
    pub paths: Vec<Path>,
    pub ends: [End; 2],
    pub happenings: Vec<Happening>,
    /// No hop changes after this instant, and all are up.
    pub calm: Instant,
}

/// A path and when it is part of the connection.
#[derive(Clone, Debug)]
pub struct Path {
    /// From end 0, and from end 1.
    pub hops: [HopConfig; 2],
    pub config: PathConfig,
    pub joins: Option<Instant>,
    pub leaves: Option<Instant>,
    /// Who joins does not send before the peer proved to be there.
    pub unproved: bool,
}

/// One end with its application.
#[derive(Clone, Debug)]
pub struct End {
    pub config: ConnectionConfig,
    pub isn: Seq,
    pub clock: Clock,
    /// Bytes it sends.
    pub send: u64,
    /// Bytes of one write, and the time between two.
    pub write: (u64, Duration),
    /// Whether it writes bytes, not patterns.
    pub bytes: bool,
    /// Bytes of one read and the time between two; none reads all when told.
    pub read: Option<(u64, Duration)>,
    pub close: Close,
    pub abort: Option<Instant>,
}

/// When an end closes, once it has written everything.
#[derive(Clone, Copy, Debug)]
pub enum Close {
    AtOnce,
    AfterPeer,
    Later(Duration),
}

/// A clock that is off and drifts.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub offset: Duration,
    /// Parts per million.
    pub drift: i64,
}

impl Clock {
    pub fn local(self, world: Instant) -> Instant {
        let drifted = i128::from(world.0) * i128::from(1_000_000 + self.drift) / 1_000_000;
        Instant(drifted as u64 + self.offset.0)
    }

    /// The first instant of the world at which this clock shows `local`.
    pub fn world(self, local: Instant) -> Instant {
        let since = i128::from(local.0) - i128::from(self.offset.0);
        let mut world = Instant((since.max(0) * 1_000_000 / i128::from(1_000_000 + self.drift)) as u64);
        while self.local(world) < local {
            world.0 += 1;
        }
        world
    }
}

impl Spec {
    /// The world of `seed` without the features in `off`. Each feature draws from its own seed, so
    /// taking one away leaves the others as they were.
    pub fn generate(seed: Seed, off: Features) -> Self {
        let mut dice = Dice::new(seed.child("world"));
        let count = dice.pick(&[1, 1, 2, 2, 2, 3, 4]);
        let calm = Instant::ZERO + dice.millis(0, 30_000);
        let mut paths: Vec<_> =
            (0..count).map(|i| path(seed.child(&format!("path/{i}")), off, calm)).collect();
        if count > 1 && !off.has(PATHS) {
            membership(&mut Dice::new(seed.child("paths")), &mut paths, calm);
        }
        let mut ends = [0, 1].map(|i| end(seed.child(&format!("end/{i}")), off));
        if off.has(BOTH_WAYS) || dice.chance(0.4) {
            ends[1].send = 0;
        }
        if matches!((ends[0].close, ends[1].close), (Close::AfterPeer, Close::AfterPeer)) {
            ends[0].close = Close::AtOnce; // or both would wait for ever
        }
        let mut dice = Dice::new(seed.child("multi-route"));
        if !off.has(OPTIONS) && dice.chance(0.1) {
            ends.iter_mut().for_each(|end| (end.config.multi_route, end.config.early_data) = (true, false));
        }
        let mut dice = Dice::new(seed.child("abort"));
        if !off.has(ABORT) && dice.chance(0.08) {
            ends[dice.below(2) as usize].abort = Some(Instant::ZERO + dice.millis(0, 10_000));
            // whoever does not hear of it would look for ever whether a heartbeat is due
            ends.iter_mut().for_each(|end| end.config.knowledge = KnowledgeConfig::default());
        }
        let mut dice = Dice::new(seed.child("happenings"));
        let happenings = match !off.has(HAPPENINGS) && dice.chance(0.3) {
            true => happenings(seed.child("happenings/which"), paths.len() as u64, calm),
            false => Vec::new(),
        };
        let mut spec = Self { seed, paths, ends, happenings, calm };
        if !off.has(PROOFS) {
            spec.prove(&mut Dice::new(seed.child("proofs")));
        }
        spec
    }
}

impl Spec {
    /// When the next path joins or leaves, or something happens: so many joined and happened before, and those paths are `gone`.
    pub fn next_change(&self, joined: usize, happened: usize, gone: &[bool]) -> Option<Instant> {
        let join = self.paths.get(joined).map(|path| path.joins.unwrap_or_default());
        let happening = self.happenings.get(happened).map(|happening| happening.at);
        let stay = self.paths.iter().zip(gone).filter(|(_, gone)| !**gone);
        stay.filter_map(|(path, _)| path.leaves).chain(join).chain(happening).min()
    }

    /// At the other end of some paths that join the peer must prove to be first.
    fn prove(&mut self, dice: &mut Dice) {
        for (path, id) in self.paths.iter_mut().zip(0..) {
            let Some(joins) = path.joins.filter(|_| dice.chance(0.4)) else { continue };
            path.unproved = true;
            for end in 0..2 {
                let at = Instant(dice.between(joins.0, joins.0.max(self.calm.0)));
                self.happenings.push(Happening { at, end, what: What::Proved(PathId(id)) });
            }
        }
        self.happenings.sort_by_key(|happening| happening.at);
    }
}

/// Some paths join later, some leave; the first stays to the end.
fn membership(dice: &mut Dice, paths: &mut [Path], calm: Instant) {
    let mut joining = false;
    for path in &mut paths[1..] {
        joining |= dice.chance(0.2); // ids are given in order, so whoever follows joins later still
        path.joins = joining.then(|| Instant(dice.between(0, calm.0)));
        if dice.chance(0.15) {
            path.leaves = Some(Instant(dice.between(path.joins.map_or(0, |j| j.0), calm.0)));
        }
    }
    let mut joins: Vec<_> = paths.iter().filter_map(|p| p.joins).collect();
    joins.sort_unstable();
    for (path, at) in paths.iter_mut().filter(|p| p.joins.is_some()).zip(joins) {
        path.joins = Some(at);
        path.leaves = path.leaves.map(|l| l.max(at));
    }
}

fn path(seed: Seed, off: Features, calm: Instant) -> Path {
    let mut dice = Dice::new(seed);
    let mss = dice.pick(&[1460, 1460, 1460, 1400, 1200, 536, 8960, 200]);
    let told = dice.chance(0.3);
    let hops = [0, 1].map(|i| hop(seed.child(&format!("hop/{i}")), off, calm, mss));
    let mut config = PathConfig {
        mss,
        rate: told.then_some(hops[0].rate),
        one_way: told.then_some(hops[0].delay),
        ..PathConfig::default()
    };
    let mut dice = Dice::new(seed.child("links"));
    if !off.has(LINKS) && dice.chance(0.3) {
        know(&mut dice, &mut config);
    }
    Path { hops, config, joins: None, leaves: None, unproved: false }
}

/// What an endpoint knows of a path.
fn know(dice: &mut Dice, config: &mut PathConfig) {
    let mut rate = || Rate(dice.scale(200_000, 200_000_000));
    let (most, known) = (rate(), rate());
    let rtt = dice.millis(1, 400);
    config.max_rate = dice.chance(0.4).then_some(most);
    config.known = dice.chance(0.5).then_some(KnownPath { rate: known, rtt });
    config.round_trip = dice.chance(0.3).then_some(rtt);
    config.spill = dice.chance(0.3);
    config.link = dice.chance(0.5).then(|| dice.below(2) as u32);
    config.bottleneck = dice.chance(0.3).then(|| dice.below(2) as u32);
    config.overhead = dice.pick(&[0, 52, 100]);
    config.last_round_trip = dice.chance(0.3).then(|| dice.millis(1, 400));
}

fn hop(seed: Seed, off: Features, calm: Instant, mss: u32) -> HopConfig {
    let chance = |feature, name: &str, most: f64| {
        if off.has(feature) { 0.0 } else { Dice::new(seed.child(name)).some(most) }
    };
    let mut dice = Dice::new(seed);
    let mut hop = HopConfig {
        rate: Rate(dice.scale(100_000, 100_000_000)),
        delay: Duration::from_micros(dice.scale(100, 200_000)),
        queue: match dice.chance(0.8) {
            true => QueueLimit::Packets(dice.scale(1, 200) as u32),
            false => QueueLimit::Bytes(dice.scale(10_000, 500_000)),
        },
        loss: chance(LOSS, "loss", 0.3),
        duplication: chance(DUPLICATION, "duplication", 0.2),
        reordering: chance(REORDERING, "reordering", 0.3),
        reorder_delay: dice.millis(0, 100),
        corruption: chance(CORRUPTION, "corruption", 0.1),
        mtu: None,
        up: true,
        schedule: Vec::new(),
        ..HopConfig::default()
    };
    let mut dice = Dice::new(seed.child("mtu"));
    if !off.has(MTU) && dice.chance(0.1) {
        hop.mtu = Some(dice.between(200, u64::from(mss) + 100) as u32);
    }
    if !off.has(FLAPPING) {
        flap(&mut Dice::new(seed.child("flapping")), &mut hop, calm);
    }
    if !off.has(RATES) {
        step_rates(&mut Dice::new(seed.child("rates")), &mut hop, calm);
    }
    let mut dice = Dice::new(seed.child("queues"));
    if !off.has(QUEUES) && dice.chance(0.3) {
        hop.discipline = dice.pick(&[
            Discipline::Codel(Default::default()),
            Discipline::FqCodel(Default::default()),
            Discipline::Red(Default::default()),
        ]);
    }
    hop.schedule.sort_by_key(|step| step.at);
    hop
}

fn flap(dice: &mut Dice, hop: &mut HopConfig, calm: Instant) {
    if dice.chance(0.6) {
        return;
    }
    let (up, down) = (dice.scale(100, 10_000), dice.scale(10, 5_000));
    let mut at = Instant::ZERO + dice.millis(0, up);
    while at < calm && hop.schedule.len() < 50 {
        let back = (at + dice.millis(1, down)).min(calm);
        hop.schedule.push(Step { at, change: Change::Down });
        hop.schedule.push(Step { at: back, change: Change::Up });
        at = back + dice.millis(1, up);
    }
}

fn step_rates(dice: &mut Dice, hop: &mut HopConfig, calm: Instant) {
    if dice.chance(0.6) {
        return;
    }
    for _ in 0..dice.between(1, 10) {
        let at = Instant(dice.between(0, calm.0));
        let change = match dice.below(3) {
            0 => Change::Delay(Duration::from_micros(dice.scale(100, 200_000))),
            _ => Change::Rate(Rate(dice.scale(100_000, 100_000_000))),
        };
        hop.schedule.push(Step { at, change });
    }
}

fn end(seed: Seed, off: Features) -> End {
    let mut dice = Dice::new(seed);
    let mut end = End {
        config: ConnectionConfig { max_timeouts: 1000, ..ConnectionConfig::default() },
        isn: Seq(dice.pick(&[0, 1, u32::MAX, u32::MAX - 50_000, 0x7fff_ff00, 77])),
        clock: Clock { offset: Duration::ZERO, drift: 0 },
        send: match dice.below(10) {
            0 => dice.below(3),
            1 => dice.scale(100_000, 5_000_000),
            _ => dice.scale(1, 400_000),
        },
        write: (u64::MAX, Duration::ZERO),
        bytes: !off.has(BYTES) && dice.chance(0.4),
        read: None,
        close: dice.pick(&[
            Close::AtOnce,
            Close::AtOnce,
            Close::AfterPeer,
            Close::Later(Duration::from_millis(900)),
        ]),
        abort: None,
    };
    if !off.has(DRIFT) {
        let mut dice = Dice::new(seed.child("drift"));
        end.clock = Clock { offset: dice.millis(0, 5_000_000), drift: dice.between(0, 1000) as i64 - 500 };
    }
    if !off.has(CONFIG) {
        configure(&mut Dice::new(seed.child("config")), &mut end.config);
    }
    let mut dice = Dice::new(seed.child("algorithms"));
    if !off.has(ALGORITHMS) && dice.chance(0.5) {
        choose(&mut dice, &mut end.config);
    }
    let mut dice = Dice::new(seed.child("hosts"));
    if !off.has(HOSTS) && dice.chance(0.3) {
        host(&mut dice, &mut end.config);
    }
    let mut dice = Dice::new(seed.child("knobs"));
    if !off.has(KNOBS) && dice.chance(0.2) {
        turn(&mut dice, &mut end.config);
    }
    let mut dice = Dice::new(seed.child("options"));
    if !off.has(OPTIONS) && dice.chance(0.3) {
        opt(&mut dice, &mut end.config);
    }
    let mut dice = Dice::new(seed.child("window"));
    if !off.has(WINDOW) && dice.chance(0.4) {
        end.config.receive_buffer = dice.scale(200, 200_000);
        end.send = end.send.min(end.config.receive_buffer * 500);
    }
    let mut dice = Dice::new(seed.child("reader"));
    if !off.has(READER) && dice.chance(0.3) {
        end.read = Some((dice.scale(1_000, 100_000), dice.millis(1, 2_000)));
    }
    let mut dice = Dice::new(seed.child("writer"));
    if !off.has(WRITER) && dice.chance(0.3) {
        end.write = (dice.scale(1, 50_000).max(end.send / 200), dice.millis(0, 1_000));
    }
    end
}

/// A daemon's end, between peers.
fn host(dice: &mut Dice, config: &mut ConnectionConfig) {
    let buffer = dice.pick(&[16 << 20, 1 << 20, 200_000]);
    *config = ConnectionConfig {
        cc: CcConfig::usual().of_today(),
        acks: AckConfig::thinned(),
        scheduler: SchedulerConfig::EarliestCompletion,
        send_buffer: buffer,
        send_ahead: Some(2 << 20),
        receive_buffer: buffer,
        unread_window: Some(64 << 10),
        fail_silent: true,
        ecn: dice.chance(0.5),
        keep_alive: Duration::from_secs(dice.pick(&[0, 60])),
        max_timeouts: config.max_timeouts,
        ..ConnectionConfig::default()
    };
}

/// Rules that experiments change.
fn turn(dice: &mut Dice, config: &mut ConnectionConfig) {
    use TimeoutTakes::{Connection, Head, Path, Segment};
    config.timeout_takes = dice.pick(&[Path, Connection, Segment, Head]);
    config.repair_elsewhere = dice.chance(0.5);
    config.divide_window = dice.chance(0.3);
    config.fail_silent = dice.chance(0.3);
    config.reorder_store = dice.chance(0.2).then(|| dice.scale(10_000, 1_000_000));
    config.cc = dice.pick(&[
        CcConfig::Lia(Default::default()),
        CcConfig::Olia(Default::default()),
        CcConfig::Balia(Default::default()),
        CcConfig::Wvegas(Default::default()),
        CcConfig::MhipSimple(Default::default()),
        CcConfig::MhipTwoLevel(Default::default()),
        CcConfig::Fast(Default::default()),
        CcConfig::FastOneWindow(Default::default()),
        CcConfig::RmTcp(Default::default()),
    ]);
}

/// What few ends have, each if it goes with the rest.
fn opt(dice: &mut Dice, config: &mut ConnectionConfig) {
    let heartbeat = dice.millis(10, 2000);
    let close_late = dice.chance(0.5).then(|| dice.millis(1, 500));
    let knowledge =
        KnowledgeConfig { heartbeat, marks: dice.chance(0.5), close_late, close_on_loss: dice.chance(0.5) };
    let unread = dice.scale(1000, 100_000);
    let options: [&dyn Fn(&mut ConnectionConfig); 6] = [
        &|c| c.early_data = true,
        &|c| c.ecn = true,
        &|c| c.ack_return = AckReturn::RoundRobin,
        &|c| c.segmentation = Segmentation::Offload,
        &|c| c.knowledge = knowledge,
        &|c| (c.grow_window, c.unread_window) = (true, Some(unread)),
    ];
    for option in options {
        let mut with = config.clone();
        option(&mut with);
        if dice.chance(0.3) && with.check(None).is_ok() {
            *config = with;
        }
    }
}

/// What hosts have, or else others that they may have.
fn choose(dice: &mut Dice, config: &mut ConnectionConfig) {
    use SchedulerConfig::*;
    (config.cc, config.scheduler) = match dice.chance(0.5) {
        true => (CcConfig::usual(), EarliestCompletion),
        false => (
            dice.pick(&[
                CcConfig::Cubic(Default::default()),
                CcConfig::Bbr(Default::default()),
                CcConfig::usual(),
            ])
            .of_today(),
            dice.pick(&[EarliestCompletion, EarliestArrival, Blest, Ecf, Duplicate(Default::default())]),
        ),
    };
}

fn configure(dice: &mut Dice, config: &mut ConnectionConfig) {
    config.scheduler =
        dice.pick(&[SchedulerConfig::RoundRobin, SchedulerConfig::MinRtt, SchedulerConfig::EarliestArrival]);
    let threshold = dice.pick(&[3, 3, 3, 1, 2, 10]);
    let (partial_acks, impatient) = (dice.chance(0.8), dice.chance(0.5));
    config.loss = match dice.below(10) {
        0..4 => LossConfig::Rack(Default::default()),
        4..7 => LossConfig::Sack(ThresholdConfig { threshold }),
        _ => LossConfig::Dupack(DupackConfig { threshold, partial_acks, impatient, limited_transmit: true }),
    };
    config.cc = CcConfig::Newreno(NewRenoConfig {
        initial_window: dice.pick(&[10, 10, 1, 2, 4]),
        initial_ssthresh: dice.chance(0.2).then(|| dice.between(2, 50) as u32),
        ..NewRenoConfig::default()
    });
    config.send_buffer = dice.scale(2_000, 4_000_000);
    config.receive_buffer = dice.pick(&[4 << 20, 1 << 20, 65_535, 30_000]);
    config.sack = dice.chance(0.8);
    config.timestamps = dice.chance(0.7);
    config.window_scaling = dice.chance(0.8);
    config.delayed_ack = Duration::from_millis(dice.pick(&[0, 0, 40, 200]));
    config.min_rto = Duration::from_millis(dice.pick(&[200, 200, 1000, 50]));
    config.max_rto = Duration::from_secs(dice.pick(&[60, 4, 4, 10]));
    config.initial_rto = config.initial_rto.min(config.max_rto);
    config.clock_granularity = Duration::from_millis(dice.pick(&[0, 0, 10, 100]));
    config.path_fail_timeouts = dice.pick(&[2, 1, 3, 100]);
    config.keep_alive = Duration::from_secs(dice.pick(&[0, 0, 30, 100]));
    config.no_delay = dice.chance(0.7);
    config.max_burst = dice.pick(&[0, 0, 0, 1, 3]);
    config.acks = dice.pick(&[AckConfig::thinned(), AckConfig::Standard]);
}
