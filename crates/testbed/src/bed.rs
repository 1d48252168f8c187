//! Two hosts and the emulated paths between them, for demonstrations and tests: with the UDP
//! sockets of both hosts ready to use, on loopback or in two network namespaces.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use polypath_endpoint::Locators;
use polypath_hop::HopConfig;
use polypath_wire::Seed;
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::emulated_link::{EmulatedLink, End, LinkError, enlarge_buffer};
use crate::netns::{Netns, NetnsError};
use polypath_node::Clock;

/// The UDP port of both hosts on every path between namespaces.
pub const PORT: u16 = 10500;
/// Packets a TUN device holds until the link's thread takes them; the hop's queue is the one that counts.
const DEVICE_QUEUE: u32 = 5000;

/// Why there is no testbed.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// More paths than there are addresses for.
    #[error("{0} paths: at most 250")]
    TooManyPaths(usize),
    /// No namespace.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// No link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// No TUN device.
    #[error("TUN device `{name}`: {source} (needs /dev/net/tun and CAP_NET_ADMIN)")]
    Tun {
        /// Its name.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// No UDP socket.
    #[error("UDP socket on {local}: {source}")]
    Socket {
        /// Its address.
        local: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// Two hosts with a number of paths between them; dropping it removes it all.
#[derive(Debug)]
pub struct Testbed {
    /// The paths, in the order they were asked for.
    pub paths: Vec<EmulatedPath>,
    /// The namespaces of the two hosts; empty on loopback.
    pub hosts: Vec<Netns>,
}

/// One path: a socket at each end and the link between them.
#[derive(Debug)]
pub struct EmulatedPath {
    /// The first host's end and the second's.
    pub ends: [PathEnd; 2],
    /// What lies between; its counters tell what happened there.
    pub link: EmulatedLink,
}

/// What one host has of a path. Sockets are bound, not connected, and block; a clone of a socket
/// ([`UdpSocket::try_clone`]) works wherever the process uses it.
#[derive(Debug)]
pub struct PathEnd {
    /// The host's socket on this path.
    pub socket: UdpSocket,
    /// Its address, and the other host's address from here.
    pub locators: Locators,
}

impl Testbed {
    /// Both hosts on loopback, no privileges needed: a relay stands on each path, so a host knows
    /// the other by the relay's address. `paths` holds the hops there and back; a packet's size
    /// counts with its IP and UDP headers.
    pub fn loopback(paths: &[[HopConfig; 2]], seed: Seed, clock: Clock) -> Result<Self, TestbedError> {
        let path = |(i, hops): (usize, &[HopConfig; 2])| loopback_path(i, hops.clone(), seed, clock);
        let paths = paths.iter().enumerate().map(path).collect::<Result<_, _>>()?;
        Ok(Self { paths, hosts: Vec::new() })
    }

    /// Each host in its own network namespace. Path `i` (from 0) is a TUN device `path<i>` at
    /// each end, with the addresses 10.77.i.1 and 10.77.i.2 and the MTU of the hop that leaves
    /// there (1500 if it has none). Needs root or [`gain_privileges`](crate::netns::gain_privileges).
    pub fn namespaces(paths: &[[HopConfig; 2]], seed: Seed, clock: Clock) -> Result<Self, TestbedError> {
        if paths.len() > 250 {
            return Err(TestbedError::TooManyPaths(paths.len()));
        }
        let hosts = vec![Netns::create("a")?, Netns::create("b")?];
        let path = |(i, hops): (usize, &[HopConfig; 2])| namespace_path(i, hops.clone(), &hosts, seed, clock);
        let paths = paths.iter().enumerate().map(path).collect::<Result<_, _>>()?;
        Ok(Self { paths, hosts })
    }

    /// Clones of the sockets of the first host (`side` 0) or the second (1), one for each path.
    pub fn sockets(&self, side: usize) -> io::Result<Vec<UdpSocket>> {
        self.paths.iter().map(|path| path.ends[side].socket.try_clone()).collect()
    }

    /// The paths as the first host (`side` 0) or the second (1) sees them.
    pub fn locators(&self, side: usize) -> impl Iterator<Item = Locators> {
        self.paths.iter().map(move |path| path.ends[side].locators)
    }
}

fn loopback_path(
    index: usize,
    hops: [HopConfig; 2],
    seed: Seed,
    clock: Clock,
) -> Result<EmulatedPath, TestbedError> {
    // An address for each path, as a host has one for each link: paths from one address are held to share it.
    let any = SocketAddr::from((Ipv4Addr::new(127, 0, index as u8, 1), 0));
    let [host_a, relay_a, relay_b, host_b] = [bind(any)?, bind(any)?, bind(any)?, bind(any)?];
    let ends = [path_end(host_a, relay_a.1), path_end(host_b, relay_b.1)];
    let relay = |(socket, local), peer| {
        End::udp(socket, peer).map_err(|source| TestbedError::Socket { local, source })
    };
    let attached = [relay(relay_a, ends[0].locators.local)?, relay(relay_b, ends[1].locators.local)?];
    let name = format!("path{index}");
    let link = EmulatedLink::start(&name, attached, hops, seed.child(&name), clock)?;
    Ok(EmulatedPath { ends, link })
}

fn namespace_path(
    index: usize,
    hops: [HopConfig; 2],
    hosts: &[Netns],
    seed: Seed,
    clock: Clock,
) -> Result<EmulatedPath, TestbedError> {
    let link = namespace_link(index, hops, hosts, seed, clock)?;
    let sockets = [0, 1].map(|side| (address(index, side), PORT).into());
    let ends = [
        path_end(hosts[0].run(|| bind(sockets[0]))??, sockets[1]),
        path_end(hosts[1].run(|| bind(sockets[1]))??, sockets[0]),
    ];
    Ok(EmulatedPath { ends, link })
}

/// The address of a host in a namespace, `side` 0 or 1, on path `index`.
pub fn address(index: usize, side: usize) -> IpAddr {
    IpAddr::from([10, 77, index as u8, side as u8 + 1])
}

/// The link of path `index` between two namespaces: a TUN device `path<index>` in each, as [`Testbed::namespaces`] has them.
pub fn namespace_link(
    index: usize,
    hops: [HopConfig; 2],
    hosts: &[Netns],
    seed: Seed,
    clock: Clock,
) -> Result<EmulatedLink, TestbedError> {
    let name = format!("path{index}");
    let mtu = |hop: &HopConfig| hop.mtu.and_then(|m| u16::try_from(m).ok()).unwrap_or(1500);
    let end = |side: usize| tun_end(&hosts[side], &name, address(index, side), mtu(&hops[side]));
    let ends = [end(0)?, end(1)?];
    Ok(EmulatedLink::start(&name, ends, hops, seed.child(&name), clock)?)
}

/// A TUN device `name` in `host` as the end of a link; its network is `address`/24.
pub fn tun_end(host: &Netns, name: &str, address: IpAddr, mtu: u16) -> Result<End, TestbedError> {
    let device = host.run(|| tun_device(name, address, mtu))?.and_then(End::tun);
    device.map_err(|source| TestbedError::Tun { name: name.to_owned(), source })
}

fn tun_device(name: &str, address: IpAddr, mtu: u16) -> io::Result<SyncDevice> {
    let device = DeviceBuilder::new().name(name).mtu(mtu);
    let device = match address {
        IpAddr::V4(address) => device.ipv4(address, 24, None).build_sync(),
        IpAddr::V6(address) => device.ipv6(address, 64).build_sync(),
    }?;
    // Only real root may; in a user namespace the system's default of 500 has to do.
    let _ = device.set_tx_queue_len(DEVICE_QUEUE);
    Ok(device)
}

fn bind(address: SocketAddr) -> Result<(UdpSocket, SocketAddr), TestbedError> {
    let bound = || {
        let socket = UdpSocket::bind(address)?;
        enlarge_buffer(&socket)?;
        Ok((socket.local_addr()?, socket))
    };
    let (local, socket) = bound().map_err(|source| TestbedError::Socket { local: address, source })?;
    Ok((socket, local))
}

fn path_end((socket, local): (UdpSocket, SocketAddr), remote: SocketAddr) -> PathEnd {
    PathEnd { socket, locators: Locators { local, remote } }
}
