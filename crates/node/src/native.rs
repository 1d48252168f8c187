//! HIP and ESP as protocols of their own, without UDP: IP protocols 139 (RFC 7401 §5.1) and 50 (RFC 4303 §2). Two raw
//! sockets for each local address, which takes the right to make such (CAP_NET_RAW). No NAT lets them through.
//!
//! To the endpoint packets look as they do in UDP, HIP behind its marker; port 0 says that there is no UDP.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::BytesMut;
use polypath_endpoint::{Input, Locators};
use polypath_wire::Ecn;
use polypath_wire::hip::udp::HIP_MARKER;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use crate::sizes::{
    SAFE_MTU, UDP_HEADER, allow_fragments, ip_header, is_too_big, mtu_to, refuse_fragments, undivided,
};
use crate::sockets::{UdpPath, enlarge_buffers, is_transient};

const HIP: i32 = 139;
const ESP: i32 = 50;
/// Packets read from one socket at a wake-up.
const PACKETS_PER_ROUND: usize = 64;
/// Packets that wait for one socket before the endpoint must wait.
const MAX_PENDING: usize = 64;

/// The raw sockets of one endpoint.
pub(crate) struct NativeSockets {
    pairs: Vec<Pair>,
    /// Holds one packet while it is received or made.
    buffer: Box<[u8]>,
    failures: u64,
    too_big: Vec<Input>,
}

/// The sockets of one local address.
struct Pair {
    local: SocketAddr,
    hip: RawSocket,
    esp: RawSocket,
}

struct RawSocket {
    /// That it is raw does not show in how it is used.
    io: UdpSocket,
    pending: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl NativeSockets {
    pub fn new() -> Self {
        Self { pairs: Vec::new(), buffer: vec![0; 1 << 16].into(), failures: 0, too_big: Vec::new() }
    }

    /// Opens both sockets of an address.
    pub fn add(&mut self, path: &UdpPath) -> io::Result<SocketAddr> {
        let local = SocketAddr::new(path.local.ip(), 0);
        let open = |protocol| RawSocket::open(local, path.device.as_deref(), protocol);
        self.pairs.push(Pair { local, hip: open(HIP)?, esp: open(ESP)? });
        Ok(local)
    }

    pub fn remove(&mut self, local: SocketAddr) {
        self.pairs.retain(|pair| pair.local != local);
    }

    pub fn send(&mut self, locators: &Locators, payload: &[u8]) {
        let Some(pair) = self.pairs.iter_mut().find(|p| p.local == locators.local) else {
            self.failures += 1;
            return;
        };
        let (socket, packet) = match payload.strip_prefix(&HIP_MARKER) {
            Some(packet) => (&mut pair.hip, packet),
            None => (&mut pair.esp, payload),
        };
        let remote = SocketAddr::new(locators.remote.ip(), 0);
        match socket.send(remote, packet) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                socket.pending.push_back((remote, packet.to_vec()));
            }
            Err(e) => {
                self.failures += 1;
                self.too_big.extend(too_big(&e, &socket.io, (pair.local, remote), packet.len()));
            }
        }
    }

    /// Sends the `len` bytes that `write` makes, or nothing if it returns `false`.
    pub fn send_with(&mut self, locators: &Locators, len: usize, write: impl FnOnce(&mut [u8]) -> bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        if buffer.get_mut(..len).is_some_and(write) {
            self.send(locators, &buffer[..len]);
        }
        self.buffer = buffer;
    }

    pub fn is_full(&self) -> bool {
        self.pairs.iter().any(|p| p.hip.pending.len().max(p.esp.pending.len()) > MAX_PENDING)
    }

    pub fn poll_receive(&mut self, cx: &mut Context<'_>, inbox: &mut Vec<Input>) -> io::Result<bool> {
        inbox.append(&mut self.too_big);
        let mut more = false;
        for pair in &mut self.pairs {
            more |= pair.hip.poll_receive(cx, pair.local, &HIP_MARKER, &mut self.buffer, inbox)?;
            more |= pair.esp.poll_receive(cx, pair.local, &[], &mut self.buffer, inbox)?;
        }
        Ok(more)
    }

    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        for pair in &mut self.pairs {
            for socket in [&mut pair.hip, &mut pair.esp] {
                self.failures += socket.poll_flush(cx);
            }
        }
        if !self.too_big.is_empty() {
            cx.waker().wake_by_ref(); // they are received in the next round
        }
        Ok(())
    }
}

impl RawSocket {
    fn open(local: SocketAddr, device: Option<&str>, protocol: i32) -> io::Result<Self> {
        let explain =
            |e: io::Error| io::Error::new(e.kind(), format!("IP protocol {protocol} on {}: {e}", local.ip()));
        let open = || -> io::Result<Socket> {
            let socket = Socket::new(Domain::for_address(local), Type::RAW, Some(Protocol::from(protocol)))?;
            if let Some(device) = device {
                socket.bind_device(Some(device.as_bytes()))?;
            }
            socket.bind(&local.into())?;
            match protocol {
                HIP => allow_fragments(&socket, local.is_ipv4())?,
                _ => refuse_fragments(&socket, local.is_ipv4())?,
            }
            enlarge_buffers(&socket)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        Ok(Self { io: UdpSocket::from_std(open().map_err(explain)?.into())?, pending: VecDeque::new() })
    }

    fn send(&self, remote: SocketAddr, packet: &[u8]) -> io::Result<()> {
        if !self.pending.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.put(remote, packet)
    }

    /// Passes a packet to the kernel. One that every network carries is fragmented where a report, true or not, has named less.
    fn put(&self, remote: SocketAddr, packet: &[u8]) -> io::Result<()> {
        let sent = self.io.try_send_to(packet, remote).map(drop);
        let is_small = packet.len() <= undivided(remote) + UDP_HEADER as usize;
        if !(is_small && sent.as_ref().is_err_and(is_too_big)) {
            return sent;
        }
        allow_fragments(&self.io, remote.is_ipv4())?;
        let sent = self.io.try_send_to(packet, remote).map(drop);
        refuse_fragments(&self.io, remote.is_ipv4())?;
        sent
    }

    /// Sends until the kernel takes no more; how many packets it refused. These are lost, as on a link: a firewall here may forbid
    /// them.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> u64 {
        let mut refused = 0;
        while let Some((remote, packet)) = self.pending.front() {
            let Poll::Ready(Ok(())) = self.io.poll_send_ready(cx) else { break };
            match self.put(*remote, packet) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                sent => {
                    refused += u64::from(sent.is_err());
                    self.pending.pop_front();
                }
            }
        }
        refused
    }

    /// Reads a bounded amount; `true` if there may be more. `marker` goes before each packet.
    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        local: SocketAddr,
        marker: &[u8],
        buffer: &mut [u8],
        inbox: &mut Vec<Input>,
    ) -> io::Result<bool> {
        for _ in 0..PACKETS_PER_ROUND {
            let Poll::Ready(ready) = self.io.poll_recv_ready(cx) else { return Ok(false) };
            ready?;
            let (len, source) = match self.io.try_recv_from(buffer) {
                Ok(read) => read,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock || is_transient(&e) => continue,
                Err(e) => return Err(e),
            };
            let packet = &buffer[..len];
            let payload = if local.is_ipv4() { packet.get(header_len(packet)..) } else { Some(packet) };
            if let Some(payload) = payload {
                let locators = Locators { local, remote: SocketAddr::new(source.ip(), 0) };
                let mut bytes = BytesMut::with_capacity(marker.len() + payload.len());
                bytes.extend_from_slice(marker);
                bytes.extend_from_slice(payload);
                inbox.push(Input::Datagram { locators, ecn: Ecn::None, bytes });
            }
        }
        Ok(true)
    }
}

/// Bytes of the IPv4 header, which raw sockets hand over too.
fn header_len(packet: &[u8]) -> usize {
    packet.first().map_or(0, |first| usize::from(first & 0x0f) * 4)
}

/// What to tell the endpoint if a packet was refused for its size.
fn too_big(
    error: &io::Error,
    io: &UdpSocket,
    (local, remote): (SocketAddr, SocketAddr),
    len: usize,
) -> Option<Input> {
    let refused = is_too_big(error);
    let needed = len as u32 + ip_header(local);
    let to = SocketAddr::new(remote.ip(), 9); // UDP sockets connect to a port only
    let mtu = mtu_to(io, local, to).filter(|mtu| *mtu < needed).unwrap_or(SAFE_MTU);
    refused.then_some(Input::PathMtu { locators: Locators { local, remote }, mtu })
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use polypath_testing::skip;

    use super::*;

    #[tokio::test]
    async fn what_the_kernel_refuses_ends_nothing() {
        let mut sockets = NativeSockets::new();
        let here: SocketAddr = ([127, 0, 0, 1], 0).into();
        match sockets.add(&here.into()) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return skip("raw sockets need root"),
            added => assert_eq!(added.unwrap(), here),
        }
        // Nobody may send to all without having asked for that.
        sockets.pairs[0].esp.pending.push_back((([255; 4], 0).into(), vec![0; 20]));
        let flushed = poll_fn(|cx| match sockets.poll_flush(cx) {
            Ok(()) if !sockets.pairs[0].esp.pending.is_empty() => Poll::Pending,
            flushed => Poll::Ready(flushed),
        });
        flushed.await.unwrap();
        assert_eq!(sockets.failures, 1);
    }
}
