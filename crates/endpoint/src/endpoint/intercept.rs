//! Connections to addresses of others: a host that stands in for them asks its application about each SYN.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use polypath_transport::{Connection, ConnectionConfig, PathConfig, Ports, Segment};
use polypath_wire::tcp::MIN_HEADER_LEN;
use polypath_wire::{Instant, PathId, Seq};

use super::Endpoint;
use crate::error::OpenError;
use crate::packet::{HOST, NETWORK, unreachable};
use crate::paths::{Locators, PathTable};
use crate::slots::ConnectionHandle;

/// A SYN that waits for an [`Answer`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Incoming {
    /// The address it is for and the one it is from.
    pub locators: Locators,
    /// The port it is for and the one it is from.
    pub ports: Ports,
}

/// What a SYN is answered with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A SYN of ours: the connection opens.
    Accept,
    /// A reset: nobody listens there.
    Refuse,
    /// An ICMP message: no packet gets to that host.
    Unreachable,
    /// An ICMP message: nothing leads to that network.
    NetUnreachable,
    /// Nothing.
    Silence,
}

/// Which SYNs wait, and what their connections begin with.
#[derive(Debug)]
pub(super) struct Intercept {
    config: ConnectionConfig,
    /// Largest IP packet to and from those that connect, bytes.
    mtu: u32,
    waiting: BTreeMap<Incoming, Segment>,
    /// Those that the application has not heard of.
    news: VecDeque<Incoming>,
    /// Those that somebody else carries, with their sequence numbers, until one copy of each has come.
    withdrawn: VecDeque<(Incoming, Seq)>,
}

/// Withdrawn SYNs whose copies are noticed: more than are withdrawn between two looks at the device.
const WITHDRAWN: usize = 256;

impl Endpoint {
    /// From now on SYNs for ports without a listener, whatever the address, wait for [`answer`](Self::answer), at most
    /// [`max_half_open`](crate::EndpointConfig::max_half_open) at a time. Connections that are accepted have this
    /// configuration and segments that fit into IP packets of `mtu` bytes.
    pub fn intercept(&mut self, config: ConnectionConfig, mtu: u32) -> Result<(), OpenError> {
        config.check(None)?;
        let (waiting, news, withdrawn) = Default::default();
        self.intercept = Some(Box::new(Intercept { config, mtu, waiting, news, withdrawn }));
        Ok(())
    }

    /// The next SYN to be answered.
    #[must_use]
    pub fn poll_incoming(&mut self) -> Option<Incoming> {
        self.intercept.as_mut()?.news.pop_front()
    }

    /// Whether one waits that the application has not heard of.
    pub fn has_incoming(&self) -> bool {
        self.intercept.as_ref().is_some_and(|intercept| !intercept.news.is_empty())
    }

    /// Answers a SYN. The connection, if it is accepted; [`Event::Accepted`](super::Event::Accepted) says when it is there.
    pub fn answer(&mut self, now: Instant, incoming: &Incoming, answer: Answer) -> Option<ConnectionHandle> {
        let intercept = self.intercept.as_mut()?;
        let syn = intercept.waiting.remove(incoming)?;
        let Incoming { locators, ports } = *incoming;
        match answer {
            Answer::Accept => return self.admit(now, locators, ports, &syn),
            Answer::Refuse => self.refuse(now, locators, &syn),
            Answer::Unreachable => self.tell_unreachable(now, &locators, &syn, HOST),
            Answer::NetUnreachable => self.tell_unreachable(now, &locators, &syn, NETWORK),
            Answer::Silence => {}
        }
        None
    }

    /// Answers a SYN with an ICMP message, within the limits of resets (RFC 1812 §4.3.2.8, RFC 4443 §2.4).
    fn tell_unreachable(&mut self, now: Instant, locators: &Locators, syn: &Segment, code: [u8; 2]) {
        match self.reset_limit.allow(now) {
            true => self.replies.extend(unreachable(locators, syn, code)),
            false => self.stats.resets_suppressed += 1,
        }
    }

    /// Gives a SYN to somebody else; it waits no longer. If they `take` it, a copy that is under way to this endpoint is dropped:
    /// the connection must not be carried twice. If not, the next copy waits as the first did.
    pub fn withdraw(&mut self, incoming: &Incoming, take: impl FnOnce(&Segment) -> bool) {
        let Some(intercept) = &mut self.intercept else { return };
        let Some(syn) = intercept.waiting.remove(incoming).filter(take) else { return };
        if intercept.withdrawn.len() == WITHDRAWN {
            intercept.withdrawn.pop_front();
        }
        intercept.withdrawn.push_back((*incoming, syn.header.seq));
    }

    fn admit(
        &mut self,
        now: Instant,
        locators: Locators,
        ports: Ports,
        syn: &Segment,
    ) -> Option<ConnectionHandle> {
        self.vacate(&locators, ports);
        let is_open = self.demux.find(&locators, ports).is_some();
        if is_open || self.slots.len() >= self.config.max_connections as usize {
            self.stats.refused += 1;
            return None;
        }
        let intercept = self.intercept.as_ref()?;
        let path =
            PathConfig { mss: segment_size(intercept.mtu, locators.remote.ip()), ..Default::default() };
        let isn = self.isn.at(now, &locators, ports);
        let config = intercept.config.clone();
        let connection = Connection::accept(now, config, ports, isn, &[path], PathId::FIRST, syn);
        self.stats.accepted += 1;
        self.half_open += 1;
        let handle = self.install(connection, ports, PathTable::new([locators]), None);
        let slot = self.slots.index(handle).and_then(|index| self.slots.at(index));
        slot.into_iter().for_each(|slot| slot.half_open = true);
        Some(handle)
    }

    /// Keeps a SYN until it is answered; whether it may be one for us to answer.
    pub(super) fn hold(&mut self, locators: Locators, ports: Ports, syn: &Segment) -> bool {
        let Some(intercept) = &mut self.intercept else { return false };
        let incoming = Incoming { locators, ports };
        if intercept.was_withdrawn(&incoming, syn.header.seq) {
            return true;
        }
        let known = intercept.waiting.contains_key(&incoming);
        if !known && intercept.waiting.len() >= self.config.max_half_open as usize {
            self.stats.refused += 1;
            return true;
        }
        intercept.waiting.insert(incoming, syn.clone());
        if !known {
            intercept.news.push_back(incoming);
        }
        true
    }

    /// Opens a connection with ports that the caller chooses; one between them that only waits for late segments ends. If its other end
    /// has opened one between them too, which waits for an [`answer`](Self::answer), only one of the two goes on. `mtu`: the largest IP
    /// packet, bytes.
    pub fn connect_between(
        &mut self,
        now: Instant,
        config: ConnectionConfig,
        locators: Locators,
        ports: Ports,
        mtu: u32,
    ) -> Result<ConnectionHandle, OpenError> {
        self.vacate(&locators, ports);
        if self.demux.find(&locators, ports).is_some() || self.gives_way(&locators, ports) {
            return Err(OpenError::InUse(locators));
        }
        let path = PathConfig { mss: segment_size(mtu, locators.remote.ip()), ..Default::default() };
        self.open(now, config, ports, &[(locators, path)])
    }

    /// Whether a connection gives way to one that its other end has opened at the same time. Two hosts that stand in for one another's ends
    /// both ask here: so that they decide alike, the connection of the smaller end goes on.
    fn gives_way(&self, locators: &Locators, ports: Ports) -> bool {
        let theirs = Incoming { locators: *locators, ports };
        let is_smaller = (locators.remote.ip(), ports.remote) < (locators.local.ip(), ports.local);
        is_smaller && self.intercept.as_ref().is_some_and(|intercept| intercept.waiting.contains_key(&theirs))
    }
}

impl Intercept {
    /// Whether a SYN is the copy of one that was withdrawn; the next copy is asked about again.
    fn was_withdrawn(&mut self, incoming: &Incoming, seq: Seq) -> bool {
        let found = self.withdrawn.iter().position(|(other, _)| other == incoming);
        found.and_then(|found| self.withdrawn.remove(found)).is_some_and(|(_, other)| other == seq)
    }
}

/// What the headers of IP and TCP leave of a packet, bytes.
fn segment_size(mtu: u32, remote: IpAddr) -> u32 {
    let ip_header = if remote.is_ipv4() { 20 } else { 40 };
    mtu.saturating_sub(ip_header + MIN_HEADER_LEN as u32)
}
