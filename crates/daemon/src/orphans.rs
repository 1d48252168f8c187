//! Connections of this host's programs that ended at a daemon that was killed. A program that only reads would wait for ever.
//!
//! At its start a daemon lists the host's connections with addresses behind peers, and gives the kernel a SYN for each. The kernel
//! answers with the sequence number that it expects (RFC 5961 §4). It routes this answer like any packet: answers of connections that lead
//! through the device reach the daemon, which resets these connections because it does not know them.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use polypath_endpoint::Locators;
use polypath_endpoint::inner::InnerPacket;
use polypath_endpoint::packet::encode_packet;
use polypath_node::Exclude;
use polypath_transport::Segment;
use polypath_wire::tcp::TcpFlags;
use tokio::time::sleep;
use tracing::debug;

use crate::lane::Lane;
use crate::peers::Table;

/// When the kernel is asked, after the last time: the answer or the reset may be lost, and the address may not be assigned yet.
const PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(300), Duration::from_secs(2), Duration::from_secs(15)];
/// Asked for at once, with a pause behind: an endpoint sends twice as many resets a second.
const AT_ONCE: usize = 500;
const BETWEEN: Duration = Duration::from_secs(1);
/// ESTABLISHED, FIN-WAIT-2 and CLOSE-WAIT (tcp_states.h): in the other states the kernel sends something by itself.
const WAITING: [&str; 3] = ["01", "05", "08"];

/// A connection of this host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Orphan {
    local: SocketAddr,
    remote: SocketAddr,
    /// The socket's, 0 without one.
    inode: u64,
}

/// The connections of the calling thread's network namespace that lead behind `peers`.
pub(crate) fn now(peers: &Table) -> HashSet<Orphan> {
    let lists = ["tcp", "tcp6"].map(|name| {
        std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default() // none without IPv6
    });
    let all = lists.iter().flat_map(|list| list.lines().filter_map(parse));
    all.filter(|orphan| peers.behind(orphan.remote.ip()).is_some()).collect()
}

/// Has the `orphans` reset that are still there, unless `excluded` names them: those travel as packets, and live.
pub(crate) async fn reset(lane: Arc<Lane>, excluded: Exclude, orphans: HashSet<Orphan>) {
    let syns = move |orphans: &HashSet<Orphan>| -> Vec<Bytes> {
        let syns = orphans.iter().filter_map(Orphan::syn);
        syns.filter(|syn| InnerPacket::parse(syn).is_ok_and(|syn| !excluded(&syn))).collect()
    };
    for pause in PAUSES {
        sleep(pause).await;
        let left = now(&lane.peers.now()).intersection(&orphans).copied().collect();
        let asked = syns(&left);
        if asked.is_empty() {
            return;
        }
        debug!("{} connections of an earlier daemon are reset", asked.len());
        for some in asked.chunks(AT_ONCE) {
            lane.packets.device.provoke(some.iter().cloned());
            if some.len() == AT_ONCE {
                sleep(BETWEEN).await;
            }
        }
    }
}

impl Orphan {
    /// A SYN as from the other end.
    fn syn(&self) -> Option<Bytes> {
        let mut syn = Segment::default();
        (syn.header.src_port, syn.header.dst_port) = (self.remote.port(), self.local.port());
        syn.header.flags = TcpFlags::SYN;
        let mut packet = vec![0; 60];
        let len =
            encode_packet(&Locators { local: self.remote, remote: self.local }, &syn, &mut packet).ok()?;
        packet.truncate(len);
        Some(packet.into())
    }
}

/// A line of /proc/net/tcp or tcp6, if it is of a connection that may wait for ever.
fn parse(line: &str) -> Option<Orphan> {
    let words: Vec<_> = line.split_ascii_whitespace().collect();
    let [_, local, remote, state, _, _, _, _, _, inode, ..] = words[..] else { return None };
    let (local, remote, inode) = (address(local)?, address(remote)?, inode.parse().ok()?);
    WAITING.contains(&state).then_some(Orphan { local, remote, inode })
}

/// An address in words of 32 bits as this host has them in memory, in hexadecimal, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let octet = |n: usize| {
        let word = u32::from_str_radix(address.get(n / 4 * 8..n / 4 * 8 + 8)?, 16).ok()?;
        Some(word.to_ne_bytes()[n % 4])
    };
    let mut octets = [0; 16];
    for (n, byte) in octets.iter_mut().enumerate().take(address.len() / 2) {
        *byte = octet(n)?;
    }
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3])),
        32 => Ipv6Addr::from(octets).to_canonical(), // a socket of IPv6 may carry IPv4
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read_and_rubbish_is_not() {
        let list = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = list.local_addr().unwrap();
        let client = std::net::TcpStream::connect(at).unwrap();
        let text = std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
        let ours = client.local_addr().unwrap();
        let found =
            text.lines().filter_map(parse).filter(|one| (one.local, one.remote) == (ours, at)).count();
        assert_eq!(found, 1, "{text}");
        let listening = text.lines().filter_map(parse).any(|one| one.local == at && one.remote.port() == 0);
        assert!(!listening);
        for line in [
            "",
            "sl local rem st",
            "0: 1:1 1:1 01 0 0 0 0 0 7",
            "0: 0100007F:1F90 0100007F:zz 01 0 0 0 0 0 7",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn an_address_of_ipv4_in_a_socket_of_ipv6_is_one() {
        let words = [0, 0, 0xffff_u32.to_be(), u32::from_ne_bytes([10, 0, 0, 1])];
        let text: String = words.iter().map(|word| format!("{word:08X}")).collect();
        assert_eq!(address(&(text + ":0050")), Some("10.0.0.1:80".parse().unwrap()));
        let words = [u32::from_ne_bytes([0xfd, 0, 0, 0]), 0, 0, u32::from_ne_bytes([0, 0, 0, 1])];
        let text: String = words.iter().map(|word| format!("{word:08X}")).collect();
        assert_eq!(address(&(text + ":01BB")), Some("[fd00::1]:443".parse().unwrap()));
    }
}
