//! A TUN device on which our TCP stands in for all hosts that the kernel routes there. Kernel and device exchange up to 64 KiB
//! of a connection in one packet (virtio-net header), which nobody cuts into segments or sums up before it leaves this host.

mod aside;
mod device;
mod fragments;
mod joined;
mod queues;
mod remembered;
mod train;
mod whole;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time;

use bytes::Bytes;
use nix::net::if_::if_nametoindex;
use polypath_endpoint::inner::InnerPacket;
use polypath_endpoint::packet::{Packet, decode_local, decode_packet};
use polypath_endpoint::{Input, Locators, Outlet};
use polypath_transport::{Ports, Segment};
use polypath_wire::{Instant, WireError, tcp};
use tun_rs::{DeviceBuilder, SyncDevice, VIRTIO_NET_HDR_LEN, VirtioNetHdr};

use crate::bypass::Bypass;
use crate::carrier::Carrier;
use crate::pool::{Buffer, Pool};
use aside::Aside;
pub use aside::Exclude;
use device::{Device, OneQueue};
use fragments::{Fragments, Whole};
use joined::{Filled, Joiner};
use queues::Queues;
use train::Train;

/// The device and what the kernel has there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GatewayConfig {
    /// Name of the device, at most 15 bytes.
    pub name: String,
    /// The kernel's addresses, each with the length of its network's prefix.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Largest packet, bytes.
    pub mtu: u16,
    /// Its queues, 1 to 256. If there are several, each has a thread that reads and writes it; otherwise the driver does so.
    pub queues: usize,
}

/// What a gateway did not pass on, packets.
#[derive(Debug, Default)]
pub struct GatewayStats {
    /// Neither TCP nor an ICMP error about it, or fragments of a segment of which the rest did not come.
    pub not_tcp: AtomicU64,
    /// Malformed, or with a wrong checksum.
    pub malformed: AtomicU64,
    /// Of ours, refused by the device.
    pub refused: AtomicU64,
}

/// What one round takes from the device, at most: as much as from a socket, also if packets are short. The kernel drops what does not fit
/// the device's queue.
const PACKETS_PER_ROUND: usize = 512;
const BYTES_PER_ROUND: usize = 2 << 20;
/// Largest packet with its virtio-net header, bytes.
const BUFFER: usize = VIRTIO_NET_HDR_LEN + 65_535;
/// Buffers that wait to be used again, in either direction.
const SPARE: usize = 64;
/// Shorter packets are copied, so that they do not keep a whole buffer.
const WORTH_KEEPING: usize = 16 << 10;
/// Flags of the header: nobody has computed the checksum …
const NEEDS_CHECKSUM: u8 = 1;
/// … or somebody has verified it.
const VERIFIED: u8 = 2;
/// Packets for the device that wait, at most, if they are not the endpoint's.
const MAX_INJECTED: usize = 256;

/// The carrier of segments to and from the kernel.
pub struct Gateway {
    device: Box<dyn Device>,
    name: String,
    /// Whether the kernel cuts joined datagrams again.
    udp_gso: bool,
    /// Of what is read.
    pool: Pool,
    /// Of what is written: these return at once, and so stay in the cache.
    spare: Pool,
    /// What the next packet is read into.
    buffer: Buffer,
    /// Segments that leave in one packet.
    train: Option<Train>,
    joiner: Joiner,
    fragments: Fragments,
    /// Where packets go that are not for the endpoint.
    aside: Option<Aside>,
    stats: Arc<GatewayStats>,
}

impl Gateway {
    /// Creates the device, in the network namespace of the calling thread. Needs `CAP_NET_ADMIN` and a tokio runtime. An error of the kind
    /// [`Unsupported`](io::ErrorKind::Unsupported) says that the kernel refused several queues.
    pub fn create(config: &GatewayConfig) -> io::Result<Self> {
        Self::open(config).map_err(|e| io::Error::new(e.kind(), format!("TUN device `{}`: {e}", config.name)))
    }

    fn open(config: &GatewayConfig) -> io::Result<Self> {
        let device = built(config)?;
        let (name, udp_gso) = (device.name()?, device.udp_gso());
        let [pool, spare] = [(); 2].map(|()| Pool::new(BUFFER, SPARE));
        let stats = Arc::<GatewayStats>::default();
        let device: Box<dyn Device> = match config.queues {
            ..=1 => Box::new(OneQueue::new(device, spare.clone(), stats.clone())?),
            queues => Box::new(Queues::start(device, queues, [&pool, &spare], &stats)?),
        };
        Ok(Self { name, udp_gso, ..Self::over(device, [pool, spare], stats) })
    }

    /// Reads and writes `device`, with buffers of two pools: of what is read, and of what is written.
    fn over(device: Box<dyn Device>, [pool, spare]: [Pool; 2], stats: Arc<GatewayStats>) -> Self {
        let (name, buffer) = (String::new(), pool.take());
        let (joiner, fragments) = Default::default();
        let (udp_gso, train, aside) = (false, None, None);
        Self { device, name, udp_gso, pool, spare, buffer, train, joiner, fragments, aside, stats }
    }

    /// The name the device has got.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Counters, which go on when the gateway is handed over.
    pub fn stats(&self) -> Arc<GatewayStats> {
        self.stats.clone()
    }

    /// From now on packets that are not for the endpoint go by: all but those of TCP, and those of TCP that `exclude`
    /// names.
    pub fn bypass(&mut self, exclude: Exclude) -> Arc<Bypass> {
        let aside = Aside::new(exclude);
        let bypass = aside.bypass.clone();
        self.aside = Some(aside);
        bypass
    }

    /// Whether what the first `len` bytes of the buffer hold goes by; if so it does.
    fn goes_by(&mut self, header: VirtioNetHdr, len: usize) -> bool {
        let Some(aside) = &mut self.aside else { return false };
        let packet = &mut self.buffer[VIRTIO_NET_HDR_LEN..len];
        if !InnerPacket::parse(packet).is_ok_and(|looked| aside.takes(&looked)) {
            return false;
        }
        if whole::cut(header, packet, &mut aside.leaving).is_err() {
            count(&self.stats.malformed);
        }
        true
    }

    /// What the first `len` bytes of the buffer hold, for the endpoint.
    fn input(&mut self, len: usize) -> Option<Input> {
        let header = VirtioNetHdr::decode(self.buffer.get(..len)?).ok()?;
        if self.goes_by(header, len) {
            return None;
        }
        let packet = self.detach(len);
        let unchecked = header.flags & (NEEDS_CHECKSUM | VERIFIED) == 0;
        let decoded = if unchecked { decode_packet(&packet) } else { decode_local(&packet) };
        self.take(packet, decoded)
    }

    /// What a packet is, for the endpoint.
    fn take(&mut self, packet: Bytes, decoded: Result<Packet, WireError>) -> Option<Input> {
        match decoded {
            Ok(Packet::Segment { locators, segment }) => Some(Input::Segment { locators, segment }),
            Ok(Packet::TooBig { locators, ports, .. } | Packet::Unreachable { locators, ports, .. }) => {
                self.error(&locators, ports, packet)
            }
            Ok(Packet::Echo { .. } | Packet::Other) => {
                match &mut self.aside {
                    Some(aside) if !is_tcp(&packet) => aside.leaving.push(packet),
                    _ => return self.fragment(&packet),
                }
                None
            }
            Err(_) => {
                count(&self.stats.malformed);
                None
            }
        }
    }

    /// A packet of TCP that is no segment: a fragment of one. The whole segment is for the endpoint, unless it goes by: then in its fragments.
    fn fragment(&mut self, packet: &Bytes) -> Option<Input> {
        let mut lost = 0;
        let whole = self.fragments.add(time::Instant::now(), packet, &mut lost);
        self.stats.not_tcp.fetch_add(lost, Ordering::Relaxed);
        let Whole { packet, fragments } = whole?;
        if let Some(aside) = &mut self.aside
            && InnerPacket::parse(&packet).is_ok_and(|looked| aside.takes(&looked))
        {
            aside.leaving.extend(fragments);
            return None;
        }
        let decoded = decode_packet(&packet);
        self.take(packet, decoded)
    }

    /// An ICMP error, for the endpoint if it is about a segment of the endpoint's.
    fn error(&mut self, locators: &Locators, ports: Ports, packet: Bytes) -> Option<Input> {
        let Some(aside) = &mut self.aside else { return Some(Input::Packet { bytes: packet }) };
        if !aside.came_by(locators, ports) {
            return Some(Input::Packet { bytes: packet });
        }
        aside.leaving.push(packet);
        None
    }

    /// The packet at the start of the buffer. A long one keeps the buffer, and another takes its place.
    fn detach(&mut self, len: usize) -> Bytes {
        if len < WORTH_KEEPING {
            return Bytes::copy_from_slice(&self.buffer[VIRTIO_NET_HDR_LEN..len]);
        }
        let full = std::mem::replace(&mut self.buffer, self.pool.take());
        self.pool.share(full, len).slice(VIRTIO_NET_HDR_LEN..)
    }

    /// Takes a round's worth from the device. Whether there may be more.
    fn receive(&mut self, cx: &mut Context<'_>, inbox: &mut Vec<Input>) -> io::Result<bool> {
        let mut left = BYTES_PER_ROUND;
        for _ in 0..PACKETS_PER_ROUND {
            let Poll::Ready(len) = self.device.poll_receive(cx, &mut self.buffer) else { return Ok(false) };
            let len = len?;
            inbox.extend(self.input(len));
            left = left.saturating_sub(len);
            if left == 0 {
                break;
            }
        }
        Ok(true)
    }

    /// Sends what is ready to leave, as far as the device takes it.
    fn depart(&mut self) {
        if let Some(train) = self.train.take() {
            let (buffer, len) = train.complete();
            self.device.put(buffer, len);
        }
    }
}

impl Outlet for Gateway {
    fn send(&mut self, _now: Instant, locators: &Locators, segment: &mut Box<Segment>) {
        self.aside.iter_mut().for_each(|aside| aside.opens(locators, segment));
        if self.train.as_mut().is_some_and(|train| train.take(locators, segment)) {
            return;
        }
        self.depart();
        match Train::begin(self.spare.take(), locators, segment) {
            Some(train) => self.train = Some(train),
            None => count(&self.stats.refused),
        }
    }

    fn send_packet(&mut self, _now: Instant, packet: Bytes) {
        self.depart();
        match Filled::new(self.spare.take(), &packet) {
            Some(Filled { buffer, len }) => self.device.put(buffer, len),
            None => count(&self.stats.refused),
        }
    }

    fn is_full(&self) -> bool {
        self.device.is_full()
    }
}

impl Gateway {
    /// Gives the device what others bring, as much as it takes: the rest waits where they left it. Whether that was all.
    fn inject(&mut self, cx: &Context<'_>) -> bool {
        while let Some(aside) = &mut self.aside {
            let room = MAX_INJECTED.saturating_sub(self.device.waiting());
            let packets = aside.bypass.take_back(cx.waker(), room);
            let provoking = aside.bypass.take_provoking();
            aside.bypass.take_diverted().iter().for_each(|syn| aside.divert(syn));
            packets.iter().for_each(|packet| aside.came(packet));
            packets
                .chunks(SPARE)
                .chain(provoking.chunks(SPARE))
                .for_each(|packets| self.put_packets(packets));
            if packets.is_empty() {
                return room > 0;
            }
        }
        true
    }

    /// Gives the device packets of others, joined where it can.
    fn put_packets(&mut self, packets: &[Bytes]) {
        let fill = |packet: &Bytes| Filled::new(self.spare.take(), packet);
        let mut filled: Vec<Filled> = packets.iter().filter_map(fill).collect();
        self.stats.refused.fetch_add((packets.len() - filled.len()) as u64, Ordering::Relaxed);
        if filled.len() > 1 {
            self.joiner.join(&mut filled, self.udp_gso);
        }
        for packet in filled {
            match packet.is_headed() {
                true => self.device.put(packet.buffer, packet.len),
                false => self.spare.give_back(packet.buffer),
            }
        }
    }
}

impl Carrier for Gateway {
    fn poll_receive(&mut self, cx: &mut Context<'_>, inbox: &mut Vec<Input>) -> io::Result<bool> {
        let more = self.receive(cx, inbox);
        self.aside.iter_mut().for_each(|aside| aside.bypass.offer(&mut aside.leaving));
        more
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.depart();
        loop {
            let all = self.inject(cx);
            self.device.poll_flush(cx);
            if all || self.device.is_full() {
                return Ok(());
            }
        }
    }
}

/// The device with what the kernel has there, to which queues may be added if it is to have several. Others could add theirs, too, so one of
/// that name is not taken up.
fn built(config: &GatewayConfig) -> io::Result<SyncDevice> {
    if config.queues > 1 && if_nametoindex(config.name.as_str()).is_ok() {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another interface has this name"));
    }
    let mut device = DeviceBuilder::new().name(&config.name).mtu(config.mtu).offload(true);
    for (address, prefix) in &config.addresses {
        device = match address {
            IpAddr::V4(address) => device.ipv4(*address, *prefix, None),
            IpAddr::V6(address) => device.ipv6(*address, *prefix),
        };
    }
    device.multi_queue(config.queues > 1).build_sync()
}

/// Whether it is a packet of TCP, if only a part of one.
fn is_tcp(packet: &Bytes) -> bool {
    InnerPacket::parse(packet).is_ok_and(|looked| looked.protocol == tcp::PROTOCOL)
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Always has another packet, of this length with its header: all zeros, and so malformed.
    struct Endless(usize);

    impl Device for Endless {
        fn poll_receive(&mut self, _cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
            buffer[..self.0].fill(0);
            Poll::Ready(Ok(self.0))
        }

        fn put(&mut self, _buffer: Buffer, _len: usize) {}

        fn poll_flush(&mut self, _cx: &mut Context<'_>) {}

        fn waiting(&self) -> usize {
            0
        }
    }

    /// How many packets of this length one round takes from a device that always has more.
    fn taken(len: usize) -> u64 {
        let pools = [(); 2].map(|()| Pool::new(BUFFER, SPARE));
        let mut gateway = Gateway::over(Box::new(Endless(len)), pools, Arc::default());
        assert!(gateway.poll_receive(&mut Context::from_waker(Waker::noop()), &mut Vec::new()).unwrap());
        gateway.stats.malformed.load(Ordering::Relaxed)
    }

    #[test]
    fn a_round_takes_at_most_2_mib_and_512_packets() {
        assert_eq!(taken(BUFFER), 32);
        assert_eq!(taken(100), 512);
    }
}
