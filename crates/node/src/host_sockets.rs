//! A socket for every usable address of this host, as addresses come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::task::Context;
use std::time::Duration;

use polypath_endpoint::{Input, LocalInfo, Locators, Outlet};
use polypath_hip::Link;
use polypath_transport::Segment;
use polypath_wire::{Ecn, Instant};
use tokio::time::Interval;
use tracing::warn;

use crate::addresses::{Address, Watch, usable};
use crate::carrier::Carrier;
use crate::choice::{Choice, LiveChoice};
use crate::native::NativeSockets;
use crate::shaper::Shapers;
use crate::sockets::{UdpPath, UdpSockets};

/// Largest packet that is tried, bytes, however much the link itself would carry.
const MAX_MTU: u32 = 1500;
/// How often addresses are looked at without word of a change: one that could not be bound yet may be by then.
const LOOK: Duration = Duration::from_secs(2);

/// The sockets of all usable addresses.
pub struct HostSockets {
    sockets: Sockets,
    /// What waits before it is given to them.
    shapers: Shapers,
    watch: Watch,
    look: Interval,
    port: u16,
    choice: LiveChoice,
    /// The version of the choice at the last look.
    version: u64,
    /// The choice itself, by which the endpoint heard of the addresses.
    told: Choice,
    bound: BTreeMap<Address, SocketAddr>,
    /// Those that could not be bound, which was said.
    refused: BTreeSet<Address>,
}

/// How HIP and ESP travel.
enum Sockets {
    Udp(UdpSockets),
    Native(NativeSockets),
}

impl HostSockets {
    /// Binds a socket to `port` on each usable address; port 0 takes a free one on each. Needs a tokio runtime.
    pub fn bind(port: u16, choice: impl Into<LiveChoice>) -> io::Result<Self> {
        Self::open(Sockets::Udp(UdpSockets::new([])?), port, choice.into())
    }

    /// Raw sockets for IP protocols 139 and 50 on each usable address, without UDP. Needs the right to make such,
    /// and a tokio runtime.
    pub fn native(choice: impl Into<LiveChoice>) -> io::Result<Self> {
        Self::open(Sockets::Native(NativeSockets::new()), 0, choice.into())
    }

    fn open(sockets: Sockets, port: u16, choice: LiveChoice) -> io::Result<Self> {
        let mut host = Self {
            sockets,
            shapers: Shapers::new()?,
            watch: Watch::start()?,
            look: tokio::time::interval(LOOK),
            port,
            choice,
            version: 0,
            told: Choice::default(),
            bound: BTreeMap::new(),
            refused: BTreeSet::new(),
        };
        host.look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let refused = host.update(&mut Vec::new())?;
        // Loopback reaches nobody. An address that is still checked for duplicates can be bound later.
        let reaches = host.bound.keys().any(|address| address.device.is_some());
        match refused {
            Some(error) if host.bound.is_empty() || !reaches && !is_early(&error) => Err(error),
            _ => Ok(host),
        }
    }

    /// The addresses that have a socket now.
    pub fn locals(&self) -> impl Iterator<Item = SocketAddr> {
        self.bound.values().copied()
    }

    /// Takes up new addresses and drops those that are gone; tells `inbox`. The last error of binding.
    fn update(&mut self, inbox: &mut Vec<Input>) -> io::Result<Option<io::Error>> {
        self.version = self.choice.version();
        let choice = self.choice.now();
        let now = choice.of(usable()?);
        let gone: Vec<_> = self.bound.keys().filter(|a| !now.contains(a)).cloned().collect();
        for address in gone {
            if let Some(local) = self.bound.remove(&address) {
                match &mut self.sockets {
                    Sockets::Udp(sockets) => sockets.remove(local),
                    Sockets::Native(sockets) => sockets.remove(local),
                }
                inbox.push(Input::LocalDown { local });
            }
        }
        self.refused.retain(|address| now.contains(address));
        let mut refused = None;
        for address in now {
            if let Some(local) = self.bound.get(&address) {
                if info(&address, &choice) != info(&address, &self.told) {
                    inbox.push(up(&address, *local, &choice));
                }
                continue;
            }
            match self.add(&address, choice.mark) {
                Ok(local) => {
                    inbox.push(up(&address, local, &choice));
                    self.refused.remove(&address);
                    self.bound.insert(address, local);
                }
                Err(error) => {
                    if !is_early(&error) && self.refused.insert(address) {
                        warn!("{error}: no path from there; trying again");
                    }
                    refused = refused.filter(|first| !is_early(first)).or(Some(error));
                }
            }
        }
        let devices =
            self.bound.iter().filter_map(|(address, local)| Some((*local, address.device.clone()?)));
        self.shapers.set(&choice.rates, devices);
        self.told = choice;
        Ok(refused)
    }

    /// Gives the sockets what has waited for its turn.
    fn release(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while let Some((locators, ecn, payload)) = self.shapers.next() {
            match &mut self.sockets {
                Sockets::Udp(sockets) => sockets.send_datagram(Instant::ZERO, &locators, ecn, &payload),
                Sockets::Native(sockets) => sockets.send(&locators, &payload),
            }
        }
        self.shapers.wait(cx)
    }

    /// Where it is not allowed to bind to an interface, the routing table has to do.
    fn add(&mut self, address: &Address, mark: Option<u32>) -> io::Result<SocketAddr> {
        let local = SocketAddr::new(address.ip, self.port);
        let path = UdpPath { local, device: address.device.clone(), mark };
        match &mut self.sockets {
            Sockets::Native(sockets) => sockets.add(&path),
            Sockets::Udp(sockets) => match sockets.add(&path) {
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    sockets.add(&UdpPath { device: None, ..path })
                }
                result => result,
            },
        }
    }
}

/// Whether the address is there and cannot be bound yet (RFC 4862 §5.4).
fn is_early(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
}

fn up(address: &Address, local: SocketAddr, choice: &Choice) -> Input {
    Input::LocalUp { local, info: info(address, choice) }
}

fn info(address: &Address, choice: &Choice) -> LocalInfo {
    let mtu = address.mtu.map_or(MAX_MTU, |mtu| mtu.min(MAX_MTU));
    let limit = choice.limit(address);
    let spill = address.device.as_deref().is_some_and(|device| choice.spills(device));
    LocalInfo { mtu: Some(mtu), link: Link { spill, ..Link::default() }, interface: address.index, limit }
}

impl Outlet for HostSockets {
    fn send(&mut self, now: Instant, locators: &Locators, segment: &mut Box<Segment>) {
        match &mut self.sockets {
            Sockets::Udp(sockets) => sockets.send(now, locators, segment),
            Sockets::Native(_) => {} // a secure endpoint sends no segments in the clear
        }
    }
    fn send_datagram(&mut self, now: Instant, locators: &Locators, ecn: Ecn, payload: &[u8]) {
        if self.shapers.delays(locators) {
            return self.shapers.push(locators, ecn, payload.to_vec());
        }
        match &mut self.sockets {
            Sockets::Udp(sockets) => sockets.send_datagram(now, locators, ecn, payload),
            Sockets::Native(sockets) => sockets.send(locators, payload),
        }
    }
    fn send_datagram_with(
        &mut self,
        now: Instant,
        locators: &Locators,
        ecn: Ecn,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> bool,
    ) {
        if self.shapers.delays(locators) {
            let mut payload = vec![0; len];
            if write(&mut payload) {
                self.shapers.push(locators, ecn, payload);
            }
            return;
        }
        match &mut self.sockets {
            Sockets::Udp(sockets) => sockets.send_datagram_with(now, locators, ecn, len, write),
            Sockets::Native(sockets) => sockets.send_with(locators, len, write),
        }
    }
    fn is_full(&self) -> bool {
        match &self.sockets {
            Sockets::Udp(sockets) => sockets.is_full(),
            Sockets::Native(sockets) => sockets.is_full(),
        }
    }
}

impl Carrier for HostSockets {
    fn locals(&self) -> Vec<Input> {
        let choice = self.choice.now();
        self.bound.iter().map(|(address, local)| up(address, *local, &choice)).collect()
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>, inbox: &mut Vec<Input>) -> io::Result<bool> {
        let mut look = self.watch.poll_change(cx)? | (self.version != self.choice.version());
        while self.look.poll_tick(cx).is_ready() {
            look = true;
        }
        if look {
            // What fails, as for lack of descriptors, is tried at the next look.
            let _ = self.update(inbox);
        }
        match &mut self.sockets {
            Sockets::Udp(sockets) => sockets.poll_receive(cx, inbox),
            Sockets::Native(sockets) => sockets.poll_receive(cx, inbox),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.release(cx)?;
        match &mut self.sockets {
            Sockets::Udp(sockets) => sockets.poll_flush(cx),
            Sockets::Native(sockets) => sockets.poll_flush(cx),
        }
    }
}
