//! Restores the order of each flow.
//!
//! A packet waits for the one before it of its flow, as its sender names that. The gap is given up at once when every path
//! that could still bring what is missing has delivered something that was sent later; else after an allowable delay, which
//! follows the measured difference of the paths' delays. What comes after that is handed on as it comes.

mod delays;

use std::collections::{BTreeMap, VecDeque};

use polypath_wire::{Duration, Instant, PathId};

use super::queue::Packet;
use delays::Delays;
pub(super) use delays::stamp_of;

/// Flows that are remembered.
const FLOWS: usize = 1024;

/// Holds packets back until those before them have come or are given up.
#[derive(Debug)]
pub(super) struct Resequencer {
    flows: BTreeMap<u16, Flow>,
    delays: Delays,
    longest: Duration,
    ready: VecDeque<Packet>,
    /// Bytes held, and at most.
    held: u64,
    most: u64,
    /// Gaps given up, and those of them after the whole delay.
    given_up: (u64, u64),
}

/// One flow.
#[derive(Debug, Default)]
struct Flow {
    /// Highest number that was handed on or given up.
    highest: Option<u64>,
    /// When a packet of it came last.
    heard: Instant,
    /// What waits, by its number.
    held: BTreeMap<u64, Held>,
}

#[derive(Debug)]
struct Held {
    packet: Packet,
    previous: u64,
    until: Instant,
}

impl Flow {
    /// The packets that wait for nothing any more are `ready`; returns their bytes.
    fn release(&mut self, ready: &mut VecDeque<Packet>) -> u64 {
        let mut bytes = 0;
        while let Some(first) = self.held.first_entry()
            && Some(first.get().previous) <= self.highest
        {
            let (number, held) = first.remove_entry();
            self.highest = self.highest.max(Some(number));
            bytes += held.packet.bytes.len() as u64;
            ready.push_back(held.packet);
        }
        bytes
    }

    /// The packet that waits first, with its number.
    fn first(&self) -> Option<(&u64, &Held)> {
        self.held.first_key_value()
    }

    /// When it has waited long enough.
    fn until(&self) -> Option<Instant> {
        self.first().map(|(_, held)| held.until)
    }
}

impl Resequencer {
    /// Holds up to `most` bytes, each packet for up to `longest`.
    pub(super) fn new(most: u64, longest: Duration) -> Self {
        Self {
            flows: BTreeMap::new(),
            delays: Delays::new(longest),
            longest,
            ready: VecDeque::new(),
            held: 0,
            most,
            given_up: (0, 0),
        }
    }

    /// A packet came on `path`, with this number and time stamp.
    pub(super) fn arrived(&mut self, now: Instant, path: PathId, (number, stamp): (u64, u16)) {
        self.delays.sample(now, path, number, stamp);
    }

    /// The path is gone.
    pub(super) fn remove_path(&mut self, path: PathId) {
        self.delays.remove(path);
    }

    /// Takes the packet `number`. `previous` is the number before it in its flow, if anybody should wait for it, and whether it has
    /// not come.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        number: u64,
        (previous, missing): (Option<u64>, bool),
        packet: Packet,
    ) {
        self.make_place(packet.flow);
        let patience = self.patience(packet.repaired);
        let flow = self.flows.entry(packet.flow).or_default();
        flow.heard = now;
        let waits = |previous: &u64| match flow.highest {
            Some(highest) => *previous > highest,
            None => missing || flow.held.contains_key(previous),
        };
        match previous.filter(waits).filter(|_| Some(number) > flow.highest) {
            Some(previous) => {
                self.held += packet.bytes.len() as u64;
                // A packet that came earlier and is next in order waits no longer because of this one.
                let behind = flow.held.range(number..).next().map(|(_, behind)| behind.until);
                let until = behind.into_iter().fold(now + patience, Instant::min);
                flow.held.insert(number, Held { packet, previous, until });
            }
            None => {
                flow.highest = flow.highest.max(Some(number));
                self.ready.push_back(packet);
                self.held -= flow.release(&mut self.ready);
            }
        }
        self.give_up_hopeless(now);
        while self.held > self.most {
            self.give_up_oldest();
        }
    }

    /// Room for one more flow: of those of which nothing waits the one that paused for longest is forgotten.
    fn make_place(&mut self, flow: u16) {
        if self.flows.len() < FLOWS || self.flows.contains_key(&flow) {
            return;
        }
        let idle = self.flows.iter().filter(|(_, flow)| flow.held.is_empty());
        match idle.min_by_key(|(_, flow)| flow.highest).map(|(id, _)| *id) {
            Some(idle) => _ = self.flows.remove(&idle),
            None => self.give_up_oldest(),
        }
    }

    /// Forgets the flows of which nothing waits and nothing came since `before`; whether any are left.
    pub(super) fn forget(&mut self, before: Instant) -> bool {
        self.flows.retain(|_, flow| !flow.held.is_empty() || flow.heard >= before);
        self.ready.shrink_to_fit();
        !self.flows.is_empty()
    }

    /// For how long a packet waits for the one before it, which goes again if it is lost, or does not.
    fn patience(&self, repaired: bool) -> Duration {
        if repaired { self.longest } else { self.delays.allowance() }
    }

    /// Gives up gaps that no path can fill any more.
    fn give_up_hopeless(&mut self, now: Instant) {
        if self.held == 0 {
            return;
        }
        let Some(delivered) = self.delays.delivered_everywhere(now) else { return };
        let hopeless = |flow: &Flow| {
            flow.first().is_some_and(|(number, held)| *number <= delivered && !held.packet.repaired)
        };
        self.give_up(hopeless, false);
    }

    /// Gives up gaps that were waited for long enough.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.give_up(|flow| flow.until().is_some_and(|until| until <= now), true);
    }

    fn give_up(&mut self, is_over: impl Fn(&Flow) -> bool, waited: bool) {
        for flow in self.flows.values_mut() {
            while is_over(flow) {
                self.held -= skip(flow, &mut self.ready);
                self.given_up.0 += 1;
                self.given_up.1 += u64::from(waited);
            }
        }
    }

    fn give_up_oldest(&mut self) {
        let waiting = self.flows.values_mut().filter(|flow| !flow.held.is_empty());
        if let Some(flow) = waiting.min_by_key(|flow| flow.first().map(|(number, _)| *number)) {
            self.held -= skip(flow, &mut self.ready);
            self.given_up.0 += 1;
        }
    }

    /// When the first gap is given up.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self.held {
            0 => None,
            _ => self.flows.values().filter_map(Flow::until).min(),
        }
    }

    /// The next packet to hand on.
    pub(super) fn pop(&mut self) -> Option<Packet> {
        self.ready.pop_front()
    }

    /// Gaps given up, and those of them that were waited for as long as is allowed.
    pub(super) fn given_up(&self) -> (u64, u64) {
        self.given_up
    }

    /// Longest that a packet waits, here as at the peer.
    pub(super) fn longest(&self) -> Duration {
        self.longest
    }

    /// For how long a gap is waited for now.
    pub(super) fn allowance(&self) -> Duration {
        self.delays.allowance()
    }
}

/// What the first packet of `flow` waits for does not come; returns the bytes that are ready.
fn skip(flow: &mut Flow, ready: &mut VecDeque<Packet>) -> u64 {
    let missing = flow.first().map(|(_, held)| held.previous);
    flow.highest = flow.highest.max(missing);
    flow.release(ready)
}

#[cfg(test)]
mod tests;
