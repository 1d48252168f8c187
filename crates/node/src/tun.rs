//! A host of its own behind a TUN device: what the kernel routes there reaches our TCP.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::task::{Context, Poll};

use bytes::Bytes;
use polypath_endpoint::packet::encode_packet;
use polypath_endpoint::{Input, Locators, Outlet};
use polypath_transport::Segment;
use polypath_wire::Instant;
use polypath_wire::ipv4::Ipv4View;
use polypath_wire::ipv6::Ipv6View;
use tun_rs::{AsyncDevice, DeviceBuilder, SyncDevice};

use crate::carrier::Carrier;

/// A TUN device and the host behind it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunConfig {
    /// Name of the device, at most 15 bytes.
    pub name: String,
    /// The kernel's address on the device, and the length of its network's prefix.
    pub kernel: (IpAddr, u8),
    /// The address of our host: another one in that network.
    pub host: IpAddr,
    /// Largest packet, bytes.
    pub mtu: u16,
}

impl TunConfig {
    /// Creates the device, in the network namespace of the calling thread. Needs `CAP_NET_ADMIN`.
    pub fn create(&self) -> io::Result<SyncDevice> {
        let device = DeviceBuilder::new().name(&self.name).mtu(self.mtu);
        let created = match self.kernel {
            (IpAddr::V4(address), prefix) => device.ipv4(address, prefix, None).build_sync(),
            (IpAddr::V6(address), prefix) => device.ipv6(address, prefix).build_sync(),
        };
        created.map_err(|e| io::Error::new(e.kind(), format!("TUN device `{}`: {e}", self.name)))
    }
}

/// Packets taken from each device in one round.
const PACKETS_PER_ROUND: usize = 128;
/// Packets that wait for a device before the endpoint must wait.
const MAX_PENDING: usize = 256;

/// TUN devices as a carrier of segments in IP packets: one for each route of the host behind them.
/// A device that is removed ends its route, the last one the carrier.
pub struct Tun {
    routes: Vec<Route>,
    buffer: Box<[u8]>,
    failures: u64,
}

/// A device, and the address that the host has there.
struct Route {
    device: AsyncDevice,
    host: IpAddr,
    pending: VecDeque<Bytes>,
}

impl Tun {
    /// Creates the devices of `routes` and stands behind them. Needs `CAP_NET_ADMIN` and a tokio runtime.
    pub fn open(routes: &[TunConfig]) -> io::Result<Self> {
        let devices = routes.iter().map(|config| Ok((config.create()?, config.host)));
        Self::new(devices.collect::<io::Result<Vec<_>>>()?)
    }

    /// Stands behind devices, each with the address of its host. Needs a tokio runtime.
    pub fn new(devices: impl IntoIterator<Item = (SyncDevice, IpAddr)>) -> io::Result<Self> {
        let route =
            |(device, host)| Ok(Route { device: AsyncDevice::new(device)?, host, pending: VecDeque::new() });
        let routes = devices.into_iter().map(route).collect::<io::Result<_>>()?;
        Ok(Self { routes, buffer: vec![0; 1 << 16].into(), failures: 0 })
    }

    /// Packets that a device did not take, that could not be built, or from an address of no device.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Sends `packet` on the device of the address `from`.
    fn send_from(&mut self, from: Option<IpAddr>, packet: &[u8]) {
        let sent = match self.routes.iter_mut().find(|route| Some(route.host) == from) {
            Some(route) => route.send(packet),
            None => false,
        };
        self.failures += u64::from(!sent);
    }
}

impl Route {
    /// Sends or, if the device takes no more, keeps a packet. Whether it did.
    fn send(&mut self, packet: &[u8]) -> bool {
        let sent = if self.pending.is_empty() { self.device.try_send(packet) } else { Err(full()) };
        match sent {
            Ok(_) => true,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.pending.push_back(Bytes::copy_from_slice(packet));
                true
            }
            Err(_) => false,
        }
    }

    /// Appends packets for our address to `inbox`. `true` if there may be more.
    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        inbox: &mut Vec<Input>,
    ) -> io::Result<bool> {
        for _ in 0..PACKETS_PER_ROUND {
            let Poll::Ready(len) = self.device.poll_recv(cx, buffer) else { return Ok(false) };
            let packet = &buffer[..len?];
            if addresses(packet).is_some_and(|(_, to)| to == self.host) {
                inbox.push(Input::Packet { bytes: Bytes::copy_from_slice(packet) });
            }
        }
        Ok(true)
    }

    /// Gives the device what waits, as much as it takes; returns how many packets it refused.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> u64 {
        let mut refused = 0;
        while let Some(packet) = self.pending.front() {
            let Poll::Ready(sent) = self.device.poll_send(cx, packet) else { break };
            refused += u64::from(sent.is_err());
            self.pending.pop_front();
        }
        refused
    }
}

impl Outlet for Tun {
    fn send(&mut self, _now: Instant, locators: &Locators, segment: &mut Box<Segment>) {
        let mut buffer = std::mem::take(&mut self.buffer);
        match encode_packet(locators, segment, &mut buffer) {
            Ok(len) => self.send_from(Some(locators.local.ip()), &buffer[..len]),
            Err(_) => self.failures += 1,
        }
        self.buffer = buffer;
    }

    fn send_packet(&mut self, _now: Instant, packet: Bytes) {
        self.send_from(addresses(&packet).map(|a| a.0), &packet);
    }

    fn is_full(&self) -> bool {
        self.routes.iter().any(|route| route.pending.len() > MAX_PENDING)
    }
}

impl Carrier for Tun {
    fn poll_receive(&mut self, cx: &mut Context<'_>, inbox: &mut Vec<Input>) -> io::Result<bool> {
        let (mut more, mut gone) = (false, None);
        self.routes.retain(|route| match route.poll_receive(cx, &mut self.buffer, inbox) {
            Ok(full) => {
                more |= full;
                true
            }
            Err(error) => {
                gone = Some(error);
                false
            }
        });
        match gone {
            Some(error) if self.routes.is_empty() => Err(error),
            _ => Ok(more),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.failures += self.routes.iter_mut().map(|route| route.poll_flush(cx)).sum::<u64>();
        Ok(())
    }
}

/// Source and destination.
fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match packet.first()? >> 4 {
        4 => Ipv4View::quoted(packet).ok().map(|view| (view.src().into(), view.dst().into())),
        6 => Ipv6View::quoted(packet).ok().map(|view| (view.src().into(), view.dst().into())),
        _ => None,
    }
}

fn full() -> io::Error {
    io::ErrorKind::WouldBlock.into()
}
