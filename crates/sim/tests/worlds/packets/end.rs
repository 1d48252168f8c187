//! One end of a flow of packets.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use polypath_hop::{FairQueue, FqCodelConfig, Label};
use polypath_transport::flow::{
    Packet, PacketConfig, PacketFlow, PacketQueue, QueueStats, Refused, Tolerable,
};
use polypath_wire::{Duration, Instant};

use super::source::{Source, name};
use crate::dice::Dice;
use crate::spec::{Clock, Spec};

/// Packets that the sources of one end send at most.
const MOST: u64 = 1500;

/// Waits as in a daemon.
#[derive(Debug)]
struct Queue(FairQueue<Packet>);

impl PacketQueue for Queue {
    fn push(&mut self, now: Instant, packet: Packet) -> bool {
        let label = Label {
            size: packet.bytes.len() as u32,
            flow: packet.flow.into(),
            ecn_capable: packet.class == 1,
        };
        self.0.push(now, label, packet);
        true
    }

    fn pop(&mut self, now: Instant, tolerable: Tolerable) -> Option<Packet> {
        Some(self.0.pop(now, |packet| tolerable.of(packet))?.0)
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn forget(&mut self, now: Instant) -> bool {
        self.0.forget(now)
    }

    fn stats(&self) -> QueueStats {
        QueueStats { dropped: self.0.dropped(), marked: self.0.marked() }
    }
}

/// An end.
pub struct End {
    pub flow: PacketFlow,
    pub clock: Clock,
    allowance: Duration,
    sources: Vec<Source>,
    /// Packets that were taken, by their names.
    pub taken: BTreeMap<(u16, u64), Bytes>,
    pub too_big: u64,
    /// When each first came to this end, and those that were handed on.
    pub came: BTreeMap<(u16, u64), Instant>,
    pub out: BTreeSet<(u16, u64)>,
    highest: BTreeMap<u16, u64>,
    pub disorder: u64,
    /// Frames with packets of this end that came nowhere.
    pub lost: u64,
    /// When a packet left last, or none waited.
    pub sent: Instant,
}

impl End {
    pub fn new(spec: &Spec, i: usize) -> Self {
        let end = &spec.ends[i];
        let seed = spec.seed.child(&format!("packets/{i}"));
        let mut dice = Dice::new(seed);
        let mut config = PacketConfig {
            cc: end.config.cc.clone(),
            scheduler: end.config.scheduler.clone(),
            loss: end.config.loss.clone(),
            held: dice.pick(&[4 << 20, 4 << 20, 10_000]),
            allowance: Duration::from_millis(dice.pick(&[200, 200, 20, 1000])),
            path_fail_timeouts: end.config.path_fail_timeouts,
        };
        if config.check().is_err() {
            config = PacketConfig::default();
        }
        let queue = FairQueue::new(FqCodelConfig::default(), dice.scale(5_000, 8 << 20), seed.child("queue"));
        let now = end.clock.local(Instant::ZERO);
        let flow = PacketFlow::new(now, &config, seed.0, Box::new(Queue(queue)));
        let count = dice.between(0, 5);
        let mut sources: Vec<_> = (0..count)
            .map(|n| Source::new(seed.child(&format!("source/{n}")), n as u16, spec.calm))
            .collect();
        sources.push(Source::last(seed.child("last"), spec.calm));
        let share = MOST / sources.len() as u64;
        sources.iter_mut().for_each(|source| source.left = source.left.min(share));
        Self {
            flow,
            clock: end.clock,
            allowance: config.allowance,
            sources,
            taken: BTreeMap::new(),
            too_big: 0,
            came: BTreeMap::new(),
            out: BTreeSet::new(),
            highest: BTreeMap::new(),
            disorder: 0,
            lost: 0,
            sent: Instant::ZERO,
        }
    }

    pub fn next_event(&self) -> Option<Instant> {
        let timer = self.flow.poll_timeout().map(|at| self.clock.world(at));
        let sources = self.sources.iter().filter(|source| source.left > 0).map(|source| source.next);
        sources.chain(timer).min()
    }

    /// Timers, and what its sources send.
    pub fn work(&mut self, now: Instant) -> Result<(), String> {
        let local = self.clock.local(now);
        if self.flow.poll_timeout().is_some_and(|at| at <= local) {
            self.flow.handle_timeout(local);
        }
        for source in &mut self.sources {
            if source.left == 0 || source.next > now {
                continue;
            }
            source.next = now + source.pause;
            for _ in 0..source.burst.min(source.left) {
                let packet = source.packet();
                let bytes = packet.bytes.clone();
                match self.flow.push(local, packet) {
                    Ok(()) => _ = self.taken.insert(name(&bytes), bytes),
                    Err(Refused::TooBig) => self.too_big += 1,
                    Err(Refused::Full) => return Err("such a queue takes every packet".to_owned()),
                }
            }
        }
        Ok(())
    }

    /// What it hands on, which `peer` sent.
    pub fn hand_on(&mut self, now: Instant, peer: &Self) -> Result<(), String> {
        while let Some(packet) = self.flow.poll_deliver() {
            let (flow, number) = name(&packet.bytes);
            if peer.taken.get(&(flow, number)) != Some(&packet.bytes) || packet.flow != flow {
                return Err(format!("handed on what was not sent: {packet:?}"));
            }
            if !self.out.insert((flow, number)) {
                return Err(format!("handed on twice: {number} of {flow}"));
            }
            let came = *self.came.get(&(flow, number)).ok_or("handed on before it came")?;
            let most = Duration(self.allowance.0 + self.allowance.0 / 1000 + 1000);
            if now.since(came) > most {
                return Err(format!("{number} of {flow} was held for {:?}", now.since(came)));
            }
            let highest = self.highest.entry(flow).or_default();
            self.disorder += u64::from(number < *highest);
            *highest = number.max(*highest);
        }
        Ok(())
    }
}
