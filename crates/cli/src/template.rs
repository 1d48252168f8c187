//! The text of a new configuration.

use std::path::Path;

use ipnet::IpNet;
use polypath_wire::hip::Hit;

/// A configuration without peers, of a host that has `address`, or else the one that a peer says, and gives peers
/// addresses of `assign`.
pub fn config(identity: &Path, address: Result<IpNet, Hit>, assign: Option<IpNet>) -> String {
    let address = match address {
        Ok(address) => format!("addresses = [\"{address}\"]"),
        Err(peer) => format!(
            "addresses = []\n# The tag of the peer that says which one this host has.\naddresses_from = \"{peer}\""
        ),
    };
    let assign = match assign {
        Some(network) => format!("assign = \"{network}\""),
        None => "# assign = \"10.99.0.0/24\"".to_owned(),
    };
    format!(
        "# The configuration of `polypath up`. Every key: docs/daemon.md. Relative paths begin at this file.

[identity]
# The private key of this host. `polypath hit FILE` prints the tag by which peers know it.
key = {key:?}

[tunnel]
# The device that connections are routed to.
name = \"polypath0\"
# Addresses of this host in the tunnel, each with the length of the network's prefix.
{address}
# A network from which each peer without prefixes gets an address.
{assign}
# Largest packet on the device, bytes.
mtu = 1400
# Whether traffic to the peers' prefixes may leave only through the tunnel after the daemon has crashed or was killed.
kill_switch = false
# How a TCP connection is distributed over the paths: \"polypath\", or \"rm_tcp\" at both ends.
transport = \"polypath\"

[listen]
# The UDP port of HIP and ESP. A firewall in front of a host that is called must admit it.
port = 10500

[paths]
# Interfaces that carry paths, by name or pattern: empty means all.
include = []
# Interfaces that do not.
exclude = []
# If there are any, the others carry overflow only.
prefer = []
# Interfaces that are used only while all others carry nothing.
backup = []
# The highest rate that is sent over an interface, all peers together, for example {{ wwan0 = \"10M\" }}.
limit = {{}}
# The amount that an interface carries in a calendar month before it becomes a backup, for example {{ wwan0 = \"5 GB\" }}.
quota = {{}}

[lane]
# Most connections at a time.
connections = 4096
# Connections opened in advance to each peer that was used in the last 5 minutes: a new one then needs no handshake.
spare = 8
# Most data of a connection in flight in each direction, MiB: rate times round trip time of all paths together.
buffer_mib = 16
# TCP connections from or to these addresses, or ports, travel as packets and end at their hosts.
exclude = []
exclude_ports = []
# Packets that are also sent as a copy on a second path, for example [{{ dscp = 46 }}, {{ protocol = \"udp\", ports = [5060, \"10000-20000\"] }}].
duplicate = []

[control]
# The socket that `polypath status` and `polypath down` use.
socket = \"/run/polypath.sock\"
# A group, best one of its own, whose members may use the socket; without one only root and the daemon's user may.
# group = \"polypath-admin\"

[daemon]
# The user that the daemon runs as once it is set up; it keeps only the network capabilities.
# user = \"polypath\"
# The directory where it keeps the use of quotas and the addresses of peers.
# state = \"/var/lib/polypath\"

[metrics]
# Where Prometheus (/metrics) and a browser (/) may ask, on this host only.
# listen = \"127.0.0.1:9510\"

[peers]
# A directory of files *.toml with further peers; `polypath init --peer` then writes one there for each.
# directory = \"/etc/polypath/peers.d\"
",
        key = identity.display().to_string(),
    )
}

/// A peer, to be added to a configuration.
pub fn peer(hit: Hit, addresses: &[String], behind: &[IpNet]) -> String {
    let quoted = |list: &[String]| list.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ");
    let prefixes: Vec<String> = behind.iter().map(IpNet::to_string).collect();
    let called = match addresses {
        [] => "# It calls this host.\naddresses = []".to_owned(),
        all => format!("# The addresses at which it is reached.\naddresses = [{}]", quoted(all)),
    };
    let behind = match quoted(&prefixes) {
        none if none.is_empty() => "# It has the address that [tunnel] assign gives it.".to_owned(),
        all => format!(
            "# What is behind it: its address in the tunnel, and networks that it routes.\nprefixes = [{all}]"
        ),
    };
    format!("\n[[peer]]\nhit = \"{hit}\"\n{called}\n{behind}\n")
}
