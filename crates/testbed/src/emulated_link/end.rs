//! What an emulated link is attached to.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::socket::{setsockopt, sockopt};
use tun_rs::SyncDevice;

/// Bytes that may wait in a socket until its owner is scheduled.
const SOCKET_BUFFER: usize = 4 << 20;

/// One end of an emulated link.
pub enum End {
    /// A TUN device: the link carries IP packets.
    Tun(SyncDevice),
    /// A connected UDP socket: the link carries the datagrams of the one peer it is connected to.
    Udp {
        /// The socket.
        socket: UdpSocket,
        /// Bytes of IP and UDP header that a datagram has on a wire and that are not seen here.
        overhead: u32,
    },
}

impl End {
    /// A TUN device as an end.
    pub fn tun(device: SyncDevice) -> io::Result<Self> {
        device.set_nonblocking(true)?;
        Ok(Self::Tun(device))
    }

    /// A UDP socket as an end, for the datagrams of `peer`.
    pub fn udp(socket: UdpSocket, peer: SocketAddr) -> io::Result<Self> {
        socket.connect(peer)?;
        socket.set_nonblocking(true)?;
        enlarge_buffer(&socket)?;
        Ok(Self::Udp { socket, overhead: if peer.is_ipv4() { 20 + 8 } else { 40 + 8 } })
    }

    pub(super) fn overhead(&self) -> u32 {
        match self {
            Self::Tun(_) => 0,
            Self::Udp { overhead, .. } => *overhead,
        }
    }

    /// The length of the next packet, if one waits. An error means that the end is gone.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            let received = match self {
                Self::Tun(device) => device.recv(buffer),
                Self::Udp { socket, .. } => socket.recv(buffer),
            };
            match received.map_err(|e| (e.kind(), e)) {
                Ok(len) => return Ok(Some(len)),
                Err((ErrorKind::WouldBlock, _)) => return Ok(None),
                // The peer's port was closed when something was sent to it: no reason to stop.
                Err((ErrorKind::Interrupted | ErrorKind::ConnectionRefused, _)) => {}
                Err((_, gone)) => return Err(gone),
            }
        }
    }

    /// Sends a packet; whether the system took it.
    pub(super) fn send(&self, packet: &[u8]) -> bool {
        match self {
            Self::Tun(device) => device.send(packet).is_ok(),
            Self::Udp { socket, .. } => socket.send(packet).is_ok(),
        }
    }
}

/// Room for a burst: with privileges beyond the system's limit, else up to it.
pub(crate) fn enlarge_buffer(socket: &UdpSocket) -> io::Result<()> {
    let forced = setsockopt(socket, sockopt::RcvBufForce, &SOCKET_BUFFER);
    Ok(forced.or_else(|_| setsockopt(socket, sockopt::RcvBuf, &SOCKET_BUFFER))?)
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tun(device) => device.as_fd(),
            Self::Udp { socket, .. } => socket.as_fd(),
        }
    }
}
