//! The addresses of this host that can be ends of paths, and word when they change.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::task::{Context, Poll};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, recv,
    send, socket,
};
use polypath_endpoint::is_public;
use tokio::net::UnixDatagram;

/// One usable address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// Its interface; none for loopback.
    pub device: Option<String>,
    /// The interface's number, which another one of that name has not: a socket is bound to it.
    pub index: Option<u32>,
    /// Largest IP packet of the interface, bytes, if it could be read.
    pub mtu: Option<u32>,
}

/// The addresses to advertise: of the [usable] ones, the first of each family for each interface; those first that everybody reaches.
pub fn advertised() -> io::Result<Vec<Address>> {
    let mut found: Vec<Address> = Vec::new();
    for address in usable()? {
        let same = |a: &Address| a.device == address.device && a.ip.is_ipv4() == address.ip.is_ipv4();
        if !found.iter().any(same) {
            found.push(address);
        }
    }
    found.sort_by_cached_key(|address| (!is_public(address.ip), address.clone()));
    Ok(found)
}

/// The addresses of interfaces that are up and have a carrier, in the system's order; of IPv6 global ones only.
/// Loopback is among them: it reaches this host itself.
pub fn usable() -> io::Result<Vec<Address>> {
    let mut found: Vec<Address> = Vec::new();
    for interface in getifaddrs()? {
        let needed = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
        let ip = interface.address.as_ref().and_then(ip_of);
        let Some(ip) = ip.filter(|ip| interface.flags.contains(needed) && is_unicast(*ip)) else { continue };
        let loopback = interface.flags.contains(InterfaceFlags::IFF_LOOPBACK);
        if loopback != ip.is_loopback() {
            continue;
        }
        let device = (!loopback).then_some(interface.interface_name);
        if !found.iter().any(|a| (a.ip, &a.device) == (ip, &device)) {
            let index = device.as_deref().and_then(index);
            let mtu = index.and_then(|index| mtu(index).ok().flatten());
            found.push(Address { ip, device, index, mtu });
        }
    }
    Ok(found)
}

/// The number of the interface `device`, if there is one.
pub(crate) fn index(device: &str) -> Option<u32> {
    nix::net::if_::if_nametoindex(device).ok()
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|a| IpAddr::from(a.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|a| a.ip().into()))
}

/// Link-local addresses need a scope that the peer cannot know.
fn is_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_unspecified() && !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_unicast_link_local(),
    }
}

/// The MTU of an interface, by RTM_GETLINK (rtnetlink(7)): /sys may show another network namespace than ours.
fn mtu(index: u32) -> io::Result<Option<u32>> {
    const RTM_NEWLINK: u16 = 16;
    const RTM_GETLINK: u16 = 18;
    const NLM_F_REQUEST: u16 = 1;
    const IFLA_MTU: u16 = 4;
    /// `nlmsghdr` and `ifinfomsg`.
    const HEADERS: usize = 32;
    let mut question = [0; HEADERS];
    question[..4].copy_from_slice(&(HEADERS as u32).to_ne_bytes());
    question[4..6].copy_from_slice(&RTM_GETLINK.to_ne_bytes());
    question[6..8].copy_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    question[20..24].copy_from_slice(&index.to_ne_bytes());
    let socket =
        socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    send(socket.as_raw_fd(), &question, MsgFlags::empty())?;
    let mut answer = vec![0; 1 << 16];
    let len = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    let word = |at: usize| answer[..len].get(at..at + 2).map(|w| u16::from_ne_bytes([w[0], w[1]]));
    let mut at = HEADERS;
    while word(4) == Some(RTM_NEWLINK) {
        let (Some(size), Some(kind)) = (word(at), word(at + 2)) else { break };
        if kind == IFLA_MTU {
            let value = answer[..len].get(at + 4..at + 8).and_then(|v| v.try_into().ok());
            return Ok(value.map(u32::from_ne_bytes));
        }
        at += usize::from(size).max(4).next_multiple_of(4);
    }
    Ok(None)
}

/// Whether the system says that links or addresses have changed (rtnetlink(7)).
pub struct Watch {
    /// A netlink socket: datagrams are all that it has in common with its type here, and all we need.
    socket: UnixDatagram,
}

const RTMGRP_LINK: u32 = 1;
const RTMGRP_IPV4_IFADDR: u32 = 0x10;
const RTMGRP_IPV6_IFADDR: u32 = 0x100;

impl Watch {
    /// Listens from now on. Needs a tokio runtime.
    pub fn start() -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        let groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
        Ok(Self { socket: UnixDatagram::from_std(socket.into())? })
    }

    /// Whether anything changed since the last call; else the task of `cx` is woken when it does.
    pub fn poll_change(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut changed = false;
        while let Poll::Ready(ready) = self.socket.poll_recv_ready(cx) {
            ready?;
            // What the messages say is not needed: all addresses are read anew. ENOBUFS is word too.
            let mut buffer = [0; 8192];
            let read = self.socket.try_recv(&mut buffer);
            changed |= read.map_or_else(|e| e.kind() != io::ErrorKind::WouldBlock, |_| true);
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use polypath_testbed::netns::{self, Netns};
    use polypath_testing::installed;

    use super::*;

    #[test]
    fn loopback_is_usable() {
        let all = usable().unwrap();
        let loopback = all.iter().find(|a| a.ip.is_loopback()).unwrap();
        assert_eq!(loopback.device, None);
    }

    #[test]
    fn the_mtu_is_that_of_our_network_namespace_whatever_sys_shows() {
        if !netns::may_create() || !installed(&["ip"]) {
            return;
        }
        let ns = Netns::create("mtu").unwrap();
        let found = ns.run(|| {
            for words in [
                "link add wide type veth peer name far",
                "addr add 10.0.0.1/24 dev wide",
                "link set wide mtu 1300",
                "link set far up",
                "link set wide up",
            ] {
                assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success(), "{words}");
            }
            (0..50).find_map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                usable().unwrap().into_iter().find(|address| address.device.as_deref() == Some("wide"))
            })
        });
        assert_eq!(found.unwrap().unwrap().mtu, Some(1300));
    }
}
