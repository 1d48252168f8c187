//! One UDP socket per local address, with batches in both directions.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::task::{Context, Poll};

use bytes::BytesMut;
use nix::sys::socket::{setsockopt, sockopt};
use polypath_endpoint::frame::{MAX_DATAGRAM, encode_datagram};
use polypath_endpoint::{Input, Locators, Outlet};
use polypath_transport::{Ports, Segment};
use polypath_wire::hip::udp::HIP_MARKER;
use polypath_wire::{Ecn, Instant, Seq};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit};
use socket2::{Domain, Protocol, Socket, Type};

use crate::batches::Batches;
use crate::buffers::Buffers;
use crate::carrier::Carrier;
use crate::moderation::Moderation;
use crate::sizes::{
    SAFE_MTU, UDP_HEADER, allow_fragments, ip_header, is_too_big, mtu_to, refuse_fragments, undivided,
};
use crate::watched::Watched;

/// Where one socket is bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UdpPath {
    /// Its address: not a wildcard, for it names the path. Port 0 takes a free one.
    pub local: SocketAddr,
    /// The interface it must use (`SO_BINDTODEVICE`).
    pub device: Option<String>,
    /// The mark of what it sends (`SO_MARK`).
    pub mark: Option<u32>,
}

impl From<SocketAddr> for UdpPath {
    fn from(local: SocketAddr) -> Self {
        Self { local, device: None, mark: None }
    }
}

impl UdpPath {
    fn bind(&self) -> io::Result<UdpSocket> {
        let explain = |e: io::Error| io::Error::new(e.kind(), format!("UDP socket on {}: {e}", self.local));
        if self.local.ip().is_unspecified() {
            let why = "a path needs a local address of its own";
            return Err(explain(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let socket = Socket::new(Domain::for_address(self.local), Type::DGRAM, Some(Protocol::UDP))?;
        if let Some(device) = &self.device {
            socket.bind_device(Some(device.as_bytes())).map_err(explain)?;
        }
        if let Some(mark) = self.mark {
            socket.set_mark(mark).map_err(explain)?;
        }
        socket.bind(&self.local.into()).map_err(explain)?;
        Ok(socket.into())
    }
}

/// What the kernel may hold for us, bytes in each direction: more than the usual limit only as root.
const KERNEL_BUFFER: usize = 4 << 20;
/// Buffers for one receiving call.
const RECEIVE_BUFFERS: usize = 8;
/// Size of each, bytes: the kernel joins no more datagrams than that.
const RECEIVE_BUFFER: usize = 1 << 16;
/// Most buffers with data in use whose memory is reused later.
const RECEIVED: usize = 128;
/// Calls that receive, for each socket and wake-up.
const RECEIVES_PER_ROUND: usize = 4;
/// Batches that wait for one socket before the endpoint must wait.
const MAX_PENDING: usize = 64;

/// The sockets of one endpoint.
pub struct UdpSockets {
    sockets: Vec<BoundSocket>,
    /// The buffers that the next call fills; one whose data is handed on is replaced from `received`.
    receive: Box<[BytesMut; RECEIVE_BUFFERS]>,
    received: Buffers,
    moderation: Moderation,
    /// Buffers of batches that were sent.
    spare: Vec<Box<[u8]>>,
    failures: u64,
    /// Segments that were too big, for the endpoint to hear of.
    too_big: Vec<Input>,
}

struct BoundSocket {
    local: SocketAddr,
    io: Watched<UdpSocket>,
    batches: Batches,
    pending: VecDeque<Batch>,
    /// It received something when it was last asked.
    busy: bool,
}

/// Datagrams of equal size to one address; only the last may be smaller.
struct Batch {
    to: SocketAddr,
    segment_size: usize,
    len: usize,
    buffer: Box<[u8]>,
    /// Ports and sequence number of the first, if it is a plain segment.
    first: Option<(Ports, Seq)>,
    /// Whether IP may fragment it: then it is one datagram.
    divisible: bool,
    /// Whether queues may mark them.
    ecn: Ecn,
}

impl UdpSockets {
    /// Binds one socket for each of `paths`. Needs a tokio runtime.
    pub fn bind(paths: &[UdpPath]) -> io::Result<Self> {
        let sockets = paths.iter().map(UdpPath::bind).collect::<io::Result<Vec<_>>>()?;
        Self::new(sockets)
    }

    /// Takes sockets that are bound already, each to an address of its own. Needs a tokio runtime.
    pub fn new(sockets: impl IntoIterator<Item = UdpSocket>) -> io::Result<Self> {
        let sockets = sockets.into_iter().map(|s| BoundSocket::new(s.into())).collect::<io::Result<_>>()?;
        let mut received = Buffers::new(RECEIVE_BUFFER, RECEIVED);
        Ok(Self {
            sockets,
            receive: Box::new(std::array::from_fn(|_| received.take())),
            received,
            moderation: Moderation::new()?,
            spare: Vec::new(),
            failures: 0,
            too_big: Vec::new(),
        })
    }

    /// The addresses the sockets have.
    pub fn locals(&self) -> impl Iterator<Item = SocketAddr> {
        self.sockets.iter().map(|s| s.local)
    }

    /// Binds one more; its address.
    pub(crate) fn add(&mut self, path: &UdpPath) -> io::Result<SocketAddr> {
        let socket = BoundSocket::new(path.bind()?.into())?;
        let local = socket.local;
        self.sockets.push(socket);
        Ok(local)
    }

    /// Closes the socket with that address.
    pub(crate) fn remove(&mut self, local: SocketAddr) {
        self.sockets.retain(|s| s.local != local);
    }

    /// Datagrams the operating system refused to send or to hand over.
    pub fn failures(&self) -> u64 {
        self.failures
    }
}

impl Outlet for UdpSockets {
    fn send(&mut self, _now: Instant, locators: &Locators, segment: &mut Box<Segment>) {
        let len = segment.header.len() + segment.payload.len() as usize;
        let ports = Ports { local: segment.header.src_port, remote: segment.header.dst_port };
        let first = Some((ports, segment.header.seq));
        self.put(locators, segment.ecn, len, first, false, |room| encode_datagram(segment, room).is_ok());
    }

    fn send_datagram(&mut self, _now: Instant, locators: &Locators, ecn: Ecn, payload: &[u8]) {
        let divisible = payload.starts_with(&HIP_MARKER) && payload.len() > undivided(locators.local);
        self.put(locators, ecn, payload.len(), None, divisible, |room| {
            room.copy_from_slice(payload);
            true
        });
    }

    fn send_datagram_with(
        &mut self,
        _now: Instant,
        locators: &Locators,
        ecn: Ecn,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> bool,
    ) {
        self.put(locators, ecn, len, None, false, write);
    }

    fn is_full(&self) -> bool {
        self.sockets.iter().any(|s| s.pending.len() > MAX_PENDING)
    }
}

impl UdpSockets {
    /// Queues a datagram of `len` bytes, which `write` puts into the room it is given; `first` are the ports
    /// and the sequence number of a plain segment. One that is `divisible`, by IP, is sent alone.
    fn put(
        &mut self,
        locators: &Locators,
        ecn: Ecn,
        len: usize,
        first: Option<(Ports, Seq)>,
        divisible: bool,
        write: impl FnOnce(&mut [u8]) -> bool,
    ) {
        let socket = self.sockets.iter_mut().find(|s| s.local == locators.local);
        let Some(socket) = socket.filter(|_| len <= MAX_DATAGRAM) else {
            self.failures += 1;
            return;
        };
        let joins = |b: &Batch| !divisible && b.ecn == ecn && b.takes(locators.remote, len, &socket.batches);
        if !socket.pending.back().is_some_and(joins) {
            self.failures += socket.send_pending(&mut self.spare, &mut self.too_big);
            let buffer = self.spare.pop().unwrap_or_else(|| vec![0; 1 << 16].into());
            let to = locators.remote;
            socket.pending.push_back(Batch { to, segment_size: len, len: 0, buffer, first, divisible, ecn });
        }
        let Some(batch) = socket.pending.back_mut() else { return };
        if write(&mut batch.buffer[batch.len..batch.len + len]) {
            batch.len += len;
            return;
        }
        self.failures += 1;
        if batch.len == 0 {
            self.spare.extend(socket.pending.pop_back().map(|batch| batch.buffer));
        }
    }
}

impl Carrier for UdpSockets {
    fn poll_receive(&mut self, cx: &mut Context<'_>, inbox: &mut Vec<Input>) -> io::Result<bool> {
        inbox.append(&mut self.too_big);
        if self.moderation.waits(cx)? {
            return Ok(false);
        }
        let (before, mut more) = (inbox.len(), false);
        for socket in &mut self.sockets {
            more |= socket.poll_receive(cx, &mut self.receive, &mut self.received, inbox)?;
        }
        let waits = self.moderation.received(inbox.len() - before);
        for socket in &mut self.sockets {
            more |= socket.io.watch_reads(!waits || !socket.busy)?;
        }
        Ok(if waits { !self.moderation.waits(cx)? } else { more })
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        for socket in &mut self.sockets {
            self.failures += socket.send_pending(&mut self.spare, &mut self.too_big);
            if socket.io.watch_writes(!socket.pending.is_empty())? {
                cx.waker().wake_by_ref(); // to wait for what arrives
            }
            while !socket.pending.is_empty() && socket.io.poll_writable(cx)?.is_ready() {
                self.failures += socket.send_pending(&mut self.spare, &mut self.too_big);
            }
        }
        if !self.too_big.is_empty() {
            cx.waker().wake_by_ref(); // they are received in the next round
        }
        Ok(())
    }
}

impl BoundSocket {
    fn new(socket: Socket) -> io::Result<Self> {
        enlarge_buffers(&socket)?;
        let batches = Batches::new(&socket)?;
        socket.set_nonblocking(true)?;
        let io = UdpSocket::from(socket);
        let local = io.local_addr()?;
        let mut io = Watched::new(io);
        io.watch_reads(true)?;
        Ok(Self { local, io, batches, pending: VecDeque::new(), busy: false })
    }

    /// Receives a bounded amount; `true` if there may be more.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        buffers: &mut [BytesMut; RECEIVE_BUFFERS],
        others: &mut Buffers,
        inbox: &mut Vec<Input>,
    ) -> io::Result<bool> {
        self.busy = false;
        for _ in 0..RECEIVES_PER_ROUND {
            let mut metas = [RecvMeta::default(); RECEIVE_BUFFERS];
            let received = self.io.poll_read(cx, |io| {
                let mut slices = buffers.each_mut().map(|buffer| IoSliceMut::new(buffer));
                self.batches.state.recv(io.into(), &mut slices, &mut metas)
            });
            let n = match received {
                Poll::Pending => return Ok(false),
                Poll::Ready(Ok(n)) => n,
                // Errors that ICMP reported for datagrams sent earlier; the socket goes on.
                Poll::Ready(Err(e)) if is_transient(&e) => continue,
                Poll::Ready(Err(e)) => return Err(e),
            };
            self.busy = true;
            for (meta, buffer) in metas[..n].iter().zip(buffers.iter_mut()) {
                self.split(meta, others.detach(buffer, meta.len), inbox);
            }
            if n < RECEIVE_BUFFERS && !self.io.watches_reads() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Cuts what was received at once into its datagrams.
    fn split(&self, meta: &RecvMeta, mut bytes: BytesMut, inbox: &mut Vec<Input>) {
        let locators = Locators { local: self.local, remote: meta.addr };
        let ecn = field(meta.ecn);
        let stride = meta.stride.max(1);
        while !bytes.is_empty() {
            let datagram = bytes.split_to(stride.min(bytes.len()));
            inbox.push(Input::Datagram { locators, ecn, bytes: datagram });
        }
    }

    /// Sends until the kernel takes no more; returns how many batches it refused.
    fn send_pending(&mut self, spare: &mut Vec<Box<[u8]>>, too_big: &mut Vec<Input>) -> u64 {
        let mut refused = 0;
        while let Some(batch) = self.pending.front() {
            match batch.send(self.io.get(), &mut self.batches) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => {
                    refused += 1;
                    if is_too_big(&e) {
                        too_big.push(batch.too_big(self.io.get(), self.local));
                    }
                }
                Ok(()) => {}
            }
            spare.extend(self.pending.pop_front().map(|batch| batch.buffer));
        }
        refused
    }
}

impl Batch {
    /// Whether one more datagram of `len` bytes to `to` may join.
    fn takes(&self, to: SocketAddr, len: usize, batches: &Batches) -> bool {
        let segments = self.len.div_ceil(self.segment_size.max(1));
        self.to == to
            && !self.divisible
            && len <= self.segment_size
            && self.len == segments * self.segment_size
            && self.len + len <= MAX_DATAGRAM
            && segments < batches.most()
    }

    /// What to tell the endpoint: the largest packet on the way to the peer; of a plain segment, less the
    /// UDP header that an IP host would not add.
    fn too_big(&self, io: &UdpSocket, local: SocketAddr) -> Input {
        let needed = self.segment_size as u32 + UDP_HEADER + ip_header(local);
        let mtu = mtu_to(io, local, self.to).filter(|mtu| *mtu < needed).unwrap_or(SAFE_MTU);
        let locators = Locators { local, remote: self.to };
        match self.first {
            Some((ports, seq)) => Input::TooBig { locators, ports, seq, mtu: mtu - UDP_HEADER },
            None => Input::PathMtu { locators, mtu },
        }
    }

    fn send(&self, io: &UdpSocket, batches: &mut Batches) -> io::Result<()> {
        let all = self.transmit();
        if !self.divisible {
            let sent = batches.send(io, &all);
            // A report, true or not, may have named less than every network carries.
            let divides = sent.as_ref().is_err_and(is_too_big) && self.segment_size <= undivided(self.to);
            if !divides {
                return sent;
            }
        }
        allow_fragments(io, self.to.is_ipv4())?;
        let sent = batches.send_each(io, &all);
        refuse_fragments(io, self.to.is_ipv4())?;
        sent
    }

    fn transmit(&self) -> Transmit<'_> {
        Transmit {
            destination: self.to,
            ecn: codepoint(self.ecn),
            contents: &self.buffer[..self.len],
            segment_size: (self.len > self.segment_size).then_some(self.segment_size),
            src_ip: None,
        }
    }
}

/// The ECN field of a datagram to be sent.
fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::None => None,
        Ecn::Capable => Some(EcnCodepoint::Ect0),
        Ecn::Marked => Some(EcnCodepoint::Ce),
    }
}

/// The ECN field of what was received.
fn field(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::None,
        Some(EcnCodepoint::Ect0 | EcnCodepoint::Ect1) => Ecn::Capable,
        Some(EcnCodepoint::Ce) => Ecn::Marked,
    }
}

/// Asks for large kernel buffers: beyond the limit where we may, up to the limit elsewhere.
pub(crate) fn enlarge_buffers(socket: &Socket) -> io::Result<()> {
    if setsockopt(socket, sockopt::RcvBufForce, &KERNEL_BUFFER).is_err() {
        socket.set_recv_buffer_size(KERNEL_BUFFER)?;
    }
    if setsockopt(socket, sockopt::SndBufForce, &KERNEL_BUFFER).is_err() {
        socket.set_send_buffer_size(KERNEL_BUFFER)?;
    }
    Ok(())
}

pub(crate) fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(
        error.kind(),
        K::ConnectionRefused
            | K::ConnectionReset
            | K::HostUnreachable
            | K::NetworkUnreachable
            | K::NetworkDown
            | K::Interrupted
    )
}
