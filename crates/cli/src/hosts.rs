//! Two hosts in network namespaces with a daemon each: the links between them, their keys and configurations.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use polypath_daemon::SOCKET;
use polypath_hop::HopConfig;
use polypath_node::Clock;
use polypath_testbed::emulated_link::EmulatedLink;
use polypath_testbed::netns::Netns;
use polypath_testbed::{address, namespace_link};
use polypath_wire::Seed;
use polypath_wire::hip::udp;

use crate::args::KeyAlgorithm;
use crate::failure::Failure;
use crate::keys;
use crate::template;

/// The hosts' addresses in the tunnel.
const INNER: [&str; 2] = ["10.99.0.1/24", "10.99.0.2/24"];

/// The address of a host in the tunnel.
pub fn inner(side: usize) -> IpAddr {
    network(side).addr()
}

fn network(side: usize) -> IpNet {
    INNER[side].parse().expect("it is a network")
}

/// Gives a host the congestion control that most hosts have.
pub fn prepare(host: &Netns) -> Result<(), Failure> {
    let cubic = || fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "cubic");
    // Where there is no CUBIC, the system's choice has to do.
    host.run(cubic).map(|_| ()).map_err(|e| Failure::system("cannot prepare a host", e))
}

/// Links the hosts: one link for each of `hops`, which are its two directions.
pub fn connect(hosts: &[Netns; 2], hops: Vec<[HopConfig; 2]>) -> Result<Vec<EmulatedLink>, Failure> {
    let clock = Clock::start();
    let link = |(n, hops)| namespace_link(n, hops, hosts, Seed(1), clock);
    let links: Result<_, _> = hops.into_iter().enumerate().map(link).collect();
    links.map_err(|e| Failure::system("cannot make the links", e))
}

/// Makes a key and a configuration for each host: `a.toml` and `b.toml` in `dir`. Host a calls host b on `links` links.
pub fn configure(dir: &Path, links: usize) -> Result<(), Failure> {
    let mut hits = Vec::new();
    for side in ["a", "b"] {
        let identity = keys::generate(KeyAlgorithm::EcdsaP256)?;
        keys::file::store(&dir.join(format!("{side}.pem")), &identity, true)?;
        hits.push(identity.hit());
    }
    for (side, name) in ["a", "b"].into_iter().enumerate() {
        let at = |link| format!("{}:{}", address(link, 1), udp::PORT);
        let called: Vec<_> = (0..links).filter(|_| side == 0).map(at).collect();
        let text = template::config(&dir.join(format!("{name}.pem")), Ok(network(side)), None, &[])
            + &template::peer(hits[1 - side], &called, &[inner(1 - side).into()]);
        let text = text.replace(SOCKET, &dir.join(format!("{name}.sock")).display().to_string());
        let file = dir.join(format!("{name}.toml"));
        let failed = |e| Failure::system(format!("cannot write {}", file.display()), e);
        fs::write(&file, text).map_err(failed)?;
    }
    Ok(())
}
