//! How large packets may be, as the kernel has it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::socket::{SetSockOpt, getsockopt, setsockopt, sockopt};
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use socket2::{Domain, SockRef, Socket, Type};

pub(crate) const UDP_HEADER: u32 = 8;
/// What every IPv4 network carries.
const LEAST_MTU: u32 = 576;
/// What every IPv6 network carries, and nearly every other one.
pub(crate) const SAFE_MTU: u32 = 1280;

/// Whether a packet was refused for its size.
pub(crate) fn is_too_big(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::EMSGSIZE)
}

/// Bytes of the IP header to and from that address.
pub(crate) fn ip_header(local: SocketAddr) -> u32 {
    if local.is_ipv4() { 20 } else { 40 }
}

/// The largest payload that every network carries to that address in one packet, bytes.
pub(crate) fn undivided(end: SocketAddr) -> usize {
    let mtu = if end.is_ipv4() { LEAST_MTU } else { SAFE_MTU };
    (mtu - ip_header(end) - UDP_HEADER) as usize
}

/// The MTU of the route of what `io` sends to `remote`, as far as this host knows it: over another interface it would be another one.
pub(crate) fn mtu_to(io: impl AsFd, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    let (io, socket) = (SockRef::from(&io), Socket::new(Domain::for_address(local), Type::DGRAM, None).ok()?);
    if let Some(device) = io.device().ok()? {
        socket.bind_device(Some(&device)).ok()?;
    }
    if let Some(mark) = io.mark().ok().filter(|mark| *mark != 0) {
        socket.set_mark(mark).ok()?;
    }
    socket.bind(&SocketAddr::new(local.ip(), 0).into()).ok()?;
    socket.connect(&remote.into()).ok()?;
    let mtu = getsockopt(&socket, sockopt::IpMtu).ok()?;
    u32::try_from(mtu).ok()
}

/// Turns an option of a socket off. One that the system does not know, as some emulators of processors and of kernels, never was on.
pub(crate) fn turn_off(socket: &impl AsFd, option: impl SetSockOpt<Val = bool>) -> io::Result<()> {
    match setsockopt(socket, option, &false) {
        Err(Errno::ENOPROTOOPT) => Ok(()),
        done => Ok(done?),
    }
}

/// No fragments, and nothing larger than what routers said they take: the kernel refuses it, so we hear of it.
pub(crate) fn refuse_fragments(socket: impl AsFd, ipv4: bool) -> io::Result<()> {
    match ipv4 {
        true => set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO)?,
        false => {
            // `UdpSocketState` sets this, and it would overrule `allow_fragments`.
            turn_off(&socket, sockopt::Ipv6DontFrag)?;
            set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DO)?;
        }
    }
    Ok(())
}

/// Lets IP fragment what exceeds the MTU: HIP packets with large keys do, and cannot be made smaller
/// (RFC 7401 §5.1.3).
pub(crate) fn allow_fragments(socket: impl AsFd, ipv4: bool) -> io::Result<()> {
    match ipv4 {
        true => set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DONT)?,
        false => set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DONT)?,
    }
    Ok(())
}
