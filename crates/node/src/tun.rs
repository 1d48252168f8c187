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

/// Packets taken from the device in one round.
const PACKETS_PER_ROUND: usize = 128;
/// Packets that wait for the device before the endpoint is told to wait.
const MAX_PENDING: usize = 256;

/// A TUN device as a carrier of segments in IP packets.
pub struct Tun {
    device: AsyncDevice,
    host: IpAddr,
    buffer: Box<[u8]>,
    pending: VecDeque<Bytes>,
    failures: u64,
}

impl Tun {
    /// Creates the device of `config` and stands behind it. Needs `CAP_NET_ADMIN` and a tokio runtime.
    pub fn open(config: &TunConfig) -> io::Result<Self> {
        Self::new(config.create()?, config.host)
    }

    /// Stands behind a device with the address `host`. Needs a tokio runtime.
    pub fn new(device: SyncDevice, host: IpAddr) -> io::Result<Self> {
        let device = AsyncDevice::new(device)?;
        let buffer = vec![0; 1 << 16].into();
        Ok(Self { device, host, buffer, pending: VecDeque::new(), failures: 0 })
    }

    /// Packets the device did not take, or that could not be built.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Sends or, if the device takes no more, keeps a packet.
    fn send_bytes(&mut self, packet: &[u8]) {
        let sent = if self.pending.is_empty() { self.device.try_send(packet) } else { Err(full()) };
        match sent {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.pending.push_back(Bytes::copy_from_slice(packet));
            }
            Err(_) => self.failures += 1,
        }
    }
}

impl Outlet for Tun {
    fn send(&mut self, _now: Instant, locators: &Locators, segment: &mut Box<Segment>) {
        let mut buffer = std::mem::take(&mut self.buffer);
        match encode_packet(locators, segment, &mut buffer) {
            Ok(len) => self.send_bytes(&buffer[..len]),
            Err(_) => self.failures += 1,
        }
        self.buffer = buffer;
    }

    fn send_packet(&mut self, _now: Instant, packet: Bytes) {
        self.send_bytes(&packet);
    }

    fn is_full(&self) -> bool {
        self.pending.len() > MAX_PENDING
    }
}

impl Carrier for Tun {
    fn poll_receive(&mut self, cx: &mut Context<'_>, inbox: &mut Vec<Input>) -> io::Result<bool> {
        for _ in 0..PACKETS_PER_ROUND {
            let Poll::Ready(len) = self.device.poll_recv(cx, &mut self.buffer) else { return Ok(false) };
            let packet = &self.buffer[..len?];
            if destination(packet) == Some(self.host) {
                inbox.push(Input::Packet { bytes: Bytes::copy_from_slice(packet) });
            }
        }
        Ok(true)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while let Some(packet) = self.pending.front() {
            match self.device.poll_send(cx, packet) {
                Poll::Pending => break,
                Poll::Ready(Err(_)) => self.failures += 1,
                Poll::Ready(Ok(_)) => {}
            }
            self.pending.pop_front();
        }
        Ok(())
    }
}

fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Ipv4View::quoted(packet).ok().map(|view| view.dst().into()),
        6 => Ipv6View::quoted(packet).ok().map(|view| view.dst().into()),
        _ => None,
    }
}

fn full() -> io::Error {
    io::ErrorKind::WouldBlock.into()
}
