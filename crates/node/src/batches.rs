//! Batches of datagrams for one socket, each sent by one call (`UDP_SEGMENT`).
//!
//! A batch may be refused although its datagrams can leave one by one: kernels such as 6.1 answer EINVAL where the route
//! takes smaller packets, some devices EIO. `UdpSocketState` then gives up batches, and the ECN field of IPv4, for good.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::libc::{EINVAL, EIO};
use nix::sys::socket::sockopt;
use quinn_udp::{Transmit, UdpSocketState};
use socket2::{SockRef, Socket};

use crate::sizes::{is_too_big, refuse_fragments, turn_off};

/// How long datagrams leave one by one after a batch was refused and all of its datagrams were not.
const PAUSE: Duration = Duration::from_secs(60);

/// A socket as `quinn_udp` has it, and whether batches leave on it.
pub(crate) struct Batches {
    pub state: UdpSocketState,
    single_until: Option<Instant>,
}

impl Batches {
    /// Batches on `socket`. Fragmentation is turned off there.
    pub fn new(socket: &Socket) -> io::Result<Self> {
        Ok(Self { state: state(socket)?, single_until: None })
    }

    /// The most datagrams in a batch now.
    pub fn most(&self) -> usize {
        let single = self.single_until.is_some_and(|until| Instant::now() < until);
        if single { 1 } else { self.state.max_gso_segments() }
    }

    /// Sends a batch; if it is refused as such, each datagram of it. The first error.
    pub fn send(&mut self, io: &UdpSocket, batch: &Transmit<'_>) -> io::Result<()> {
        let sent = self.attempt(io, batch);
        if batch.segment_size.is_none() || !sent.as_ref().is_err_and(|e| spoils(e) || is_too_big(e)) {
            return sent;
        }
        let sent = self.send_each(io, batch);
        if sent.is_ok() {
            self.single_until = Some(Instant::now() + PAUSE);
        }
        sent
    }

    /// Sends each datagram of a batch, whatever becomes of the others. The first error. If the socket is full, nothing has left, or
    /// the rest is lost.
    pub fn send_each(&mut self, io: &UdpSocket, batch: &Transmit<'_>) -> io::Result<()> {
        let size = batch.segment_size.unwrap_or(batch.contents.len()).max(1);
        let mut all = Ok(());
        for (n, contents) in batch.contents.chunks(size).enumerate() {
            match self.attempt(io, &Transmit { contents, segment_size: None, ..batch.clone() }) {
                Err(full) if full.kind() == io::ErrorKind::WouldBlock => {
                    return if n == 0 { Err(full) } else { all };
                }
                sent => all = all.and(sent),
            }
        }
        all
    }

    fn attempt(&mut self, io: &UdpSocket, transmit: &Transmit<'_>) -> io::Result<()> {
        let sent = self.state.try_send(io.into(), transmit);
        if sent.as_ref().is_err_and(spoils)
            && let Ok(fresh) = state(io)
        {
            self.state = fresh;
        }
        sent
    }
}

/// The state of a socket with fragmentation turned off, and without times of arrival: `quinn_udp` has room for either these or the
/// ECN field where the kernel joins datagrams.
fn state(io: &impl AsFd) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(io.into())?;
    turn_off(io, sockopt::ReceiveTimestampns)?;
    refuse_fragments(io, SockRef::from(io).local_addr()?.is_ipv4())?;
    Ok(state)
}

/// Whether `UdpSocketState` does less after that error.
fn spoils(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EINVAL | EIO))
}

#[cfg(test)]
mod tests {
    use std::io::IoSliceMut;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
    use std::process::Command;

    use nix::libc;
    use nix::sys::socket::setsockopt;
    use nix::sys::socket::sockopt::SetBool;
    use polypath_testbed::netns::{self, Netns};
    use polypath_testing::{installed, skip};
    use quinn_udp::{EcnCodepoint, RecvMeta};
    use socket2::{Domain, Type};

    use super::*;

    /// `SO_NO_CHECK`: the kernel refuses batches of such a socket with EINVAL, and no datagram.
    #[derive(Clone, Copy)]
    struct NoCheck;
    nix::setsockopt_impl!(NoCheck, libc::SOL_SOCKET, libc::SO_NO_CHECK, bool, SetBool);

    const CONTENTS: [u8; 10_500] = [7; 10_500];

    fn bound(at: impl Into<IpAddr>) -> (Socket, SocketAddr) {
        let at = SocketAddr::new(at.into(), 0);
        let socket = Socket::new(Domain::for_address(at), Type::DGRAM, None).unwrap();
        socket.bind(&at.into()).unwrap();
        let at = socket.local_addr().unwrap().as_socket().unwrap();
        (socket, at)
    }

    fn batch(size: usize, destination: SocketAddr) -> Transmit<'static> {
        let ecn = Some(EcnCodepoint::Ect0);
        Transmit { destination, ecn, contents: &CONTENTS, segment_size: Some(size), src_ip: None }
    }

    /// Lengths of the datagrams that arrived; all of them may be marked.
    fn arrived(state: &UdpSocketState, socket: &Socket) -> Vec<usize> {
        let mut lengths = Vec::new();
        let (mut buffer, mut meta) = (vec![0; 1 << 16], [RecvMeta::default()]);
        while let Ok(1) = state.recv(socket.into(), &mut [IoSliceMut::new(&mut buffer)], &mut meta) {
            assert_eq!(meta[0].ecn, Some(EcnCodepoint::Ect0));
            lengths.extend(buffer[..meta[0].len].chunks(meta[0].stride).map(<[u8]>::len));
        }
        lengths
    }

    #[tokio::test]
    async fn datagrams_that_are_received_as_one_keep_their_ecn_field() {
        for at in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let ((receiver, to), (sender, _)) = (bound(at), bound(at));
            let state = state(&receiver).unwrap();
            let mut batches = Batches::new(&sender).unwrap();
            batches.send(&UdpSocket::from(sender), &batch(1000, to)).unwrap();
            assert_eq!(arrived(&state, &receiver).len(), 11, "{at}");
        }
    }

    #[tokio::test]
    async fn a_batch_that_is_refused_leaves_one_by_one_and_batches_leave_again_later() {
        let ((receiver, at), (sender, _)) = (bound(Ipv4Addr::LOCALHOST), bound(Ipv4Addr::LOCALHOST));
        let state = state(&receiver).unwrap();
        let mut batches = Batches::new(&sender).unwrap();
        let io = UdpSocket::from(sender);
        let (most, expected) = (batches.most(), [vec![1000; 10], vec![500]].concat());
        assert!(most > 1);
        setsockopt(&io, NoCheck, &true).unwrap();
        batches.send(&io, &batch(1000, at)).unwrap();
        assert_eq!((arrived(&state, &receiver), batches.most()), (expected.clone(), 1));
        setsockopt(&io, NoCheck, &false).unwrap();
        batches.single_until = Some(Instant::now());
        assert_eq!(batches.most(), most);
        batches.send(&io, &batch(1000, at)).unwrap();
        assert_eq!((arrived(&state, &receiver), batches.most()), (expected, most));
    }

    /// As after a probe for the largest packet.
    #[tokio::test]
    async fn a_batch_whose_first_datagram_is_too_big_costs_no_smaller_one_and_no_later_batch() {
        if !netns::may_create() {
            return skip("network namespaces need root: run it as root, or whole under `unshare -Ur`");
        }
        if !installed(&["ip"]) {
            return;
        }
        let link = || Command::new("ip").args(["link", "set", "lo", "up", "mtu", "1400"]).status().unwrap();
        let ns = Netns::create("batches").unwrap();
        let (link, (receiver, at), (sender, _)) =
            ns.run(|| (link(), bound(Ipv4Addr::LOCALHOST), bound(Ipv4Addr::LOCALHOST))).unwrap();
        assert!(link.success());
        let state = state(&receiver).unwrap();
        let mut batches = Batches::new(&sender).unwrap();
        let io = UdpSocket::from(sender);
        let most = batches.most();
        let refused = batches.send(&io, &batch(1450, at)).unwrap_err();
        assert!(is_too_big(&refused), "{refused}");
        assert_eq!((arrived(&state, &receiver), batches.most()), (vec![10_500 % 1450], most));
    }
}
