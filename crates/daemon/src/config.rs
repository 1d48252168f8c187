//! The configuration of a daemon (docs/daemon.md has every key).

mod check;
mod class;
mod error;
mod files;
mod reached;
#[cfg(test)]
mod schema;
mod transport;
mod wording;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use nix::sys::sysinfo::sysinfo;
use polypath_endpoint::PacketClass;
use polypath_transport::cc::PolypathConfig;
use polypath_transport::flow::PacketConfig;
use polypath_transport::{AckConfig, CcConfig, ConnectionConfig, SchedulerConfig};
use polypath_wire::Duration;
use polypath_wire::hip::{Hit, udp};
use serde::{Deserialize, Serialize};

use crate::rate::Limit;
use crate::volume::Volume;
pub use check::wrong_host;
pub use class::{Class, Ports, Protocol};
pub use error::{ConfigError, Place};
pub(crate) use reached::with_port;
pub use reached::{EXAMPLE as ADDRESS_EXAMPLE, wrong_address};
pub use transport::Transport;
pub use wording::{TAG_SOURCE, similar};

/// Where the control socket is if nobody says otherwise.
pub const SOCKET: &str = "/run/polypath/control.sock";
/// Packets of calls and games are to wait no longer behind bulk data in the queues of links that nobody else fills.
const QUEUE_TARGET: Duration = Duration::from_millis(10);

/// The whole configuration of a daemon. In a file relative paths begin at its directory.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Who this host is.
    #[serde(default)]
    pub identity: IdentityConfig,
    /// The device that other programs' packets go to.
    pub tunnel: Tunnel,
    /// Where peers find this host.
    #[serde(default)]
    pub listen: Listen,
    /// Which interfaces carry paths.
    #[serde(default)]
    pub paths: Paths,
    /// How TCP connections are carried.
    #[serde(default)]
    pub lane: LaneConfig,
    /// How a running daemon is asked.
    #[serde(default)]
    pub control: Control,
    /// Who it is.
    #[serde(default)]
    pub daemon: DaemonConfig,
    /// What it tells over HTTP.
    #[serde(default)]
    pub metrics: Metrics,
    /// Where there are files of further peers.
    #[serde(default, rename = "peers")]
    pub peer_files: PeerFiles,
    /// The peers: first those in the configuration, then those in the files of the peers' directory, by file name.
    #[serde(default, rename = "peer")]
    pub peers: Vec<Peer>,
}

/// Who this host is.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct IdentityConfig {
    /// The file of the private key, which nobody but its owner may read.
    pub key: PathBuf,
}

/// The TUN device.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// Its name, at most 15 bytes.
    #[serde(default = "Tunnel::default_name")]
    #[cfg_attr(test, schemars(length(min = 1, max = 15)))]
    pub name: String,
    /// The addresses of this host on it, each with the length of its network's prefix.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<schema::HostAddress>"))]
    pub addresses: Vec<IpNet>,
    /// The peer that says which address this host has beside those.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "schema::Tag"))]
    pub addresses_from: Option<Hit>,
    /// The network out of which peers without prefixes have an address each.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "schema::Network"))]
    pub assign: Option<IpNet>,
    /// Largest packet, bytes, 576 (with IPv6 1280) to 65,535.
    #[serde(default = "Tunnel::default_mtu")]
    pub mtu: u16,
    /// Queues of the device, 1 to 16. If there are several, each has a thread, so that reading and writing run on other cores.
    #[serde(default = "Tunnel::default_queues")]
    pub queues: usize,
    /// Whether what is for the peers' prefixes must not leave otherwise while there is no tunnel.
    #[serde(default)]
    pub kill_switch: bool,
    /// How a TCP connection is spread over the paths.
    #[serde(default)]
    pub transport: Transport,
    /// Whether queues between the peers may mark packets instead of dropping them (ECN, RFC 3168), in either direction.
    #[serde(default = "Tunnel::default_ecn")]
    pub ecn: bool,
}

/// Where peers find this host.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Listen {
    /// The UDP port, on every address that carries a path; 0 takes a free one on each, for a host that only calls.
    pub port: u16,
}

/// Which interfaces carry paths.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Paths {
    /// Those whose names match one of these patterns (`*` and `?`); empty: all.
    #[cfg_attr(test, schemars(inner(length(min = 1))))]
    pub include: Vec<String>,
    /// But not those whose names match one of these.
    #[cfg_attr(test, schemars(inner(length(min = 1))))]
    pub exclude: Vec<String>,
    /// If there are any, the others carry only what these have no room for.
    #[cfg_attr(test, schemars(inner(length(min = 1))))]
    pub prefer: Vec<String>,
    /// Used only while all others carry nothing.
    #[cfg_attr(test, schemars(inner(length(min = 1))))]
    pub backup: Vec<String>,
    /// The most that is sent over an interface, all peers together.
    pub limit: BTreeMap<String, Limit>,
    /// What an interface carries in a calendar month before it is for backup.
    pub quota: BTreeMap<String, Volume>,
}

/// How TCP connections are carried.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LaneConfig {
    /// Most connections at a time, in both directions together; 1 or more.
    pub connections: u32,
    /// Connections to each peer that are opened ahead, so that a new one need not wait for a handshake; 0 to 256.
    pub spare: usize,
    /// What a connection holds at most between the peers in each direction, MiB, 1 to 1024: rate times round trip time of
    /// all paths together.
    pub buffer_mib: u64,
    /// What all connections hold at most, MiB, 16 or more; none: a quarter of this machine's memory.
    pub memory_mib: Option<u64>,
    /// How long a connection is idle before the host behind the device, and the peer, are asked whether they are still there, and
    /// between two such questions, s, 1 to 86,400.
    pub keep_alive: u32,
    /// Congestion control of each path, with its parameters: as in experiments.
    pub cc: CcConfig,
    /// TCP connections with these addresses at either end travel as packets, and end at their hosts.
    #[cfg_attr(test, schemars(with = "Vec<schema::Network>"))]
    pub exclude: Vec<IpNet>,
    /// The same of those with these ports at either end.
    pub exclude_ports: Vec<Ports>,
    /// Packets of which a copy leaves on a second path.
    pub duplicate: Vec<Class>,
}

/// How a running daemon is asked.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Control {
    /// The Unix socket, which its owner and root may use.
    pub socket: PathBuf,
    /// A group whose members may use it too, for all that can be asked: to end as well.
    pub group: Option<String>,
}

/// Who a daemon is.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct DaemonConfig {
    /// The user that it becomes once it is set up, with the network's capabilities only; without one it stays who started it, with these
    /// and, if that is root, CAP_DAC_OVERRIDE (and CAP_CHOWN with a group).
    pub user: Option<String>,
    /// The directory of what it must know after a restart: what quotas are used, and which addresses peers have.
    pub state: PathBuf,
}

/// What a daemon tells over HTTP.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Metrics {
    /// Where it answers, for example `127.0.0.1:9510`; without it, nowhere.
    pub listen: Option<SocketAddr>,
    /// Whether that may be an address that others reach.
    pub allow_remote: bool,
}

/// Where there are files of further peers.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PeerFiles {
    /// A directory: each `*.toml` in it has tables `[[peer]]`, but for hidden files.
    pub directory: Option<PathBuf>,
}

/// A host at the other end.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// What it is called in messages; its tag if this is empty.
    #[serde(default)]
    pub name: String,
    /// Its Host Identity Tag.
    #[cfg_attr(test, schemars(with = "schema::Tag"))]
    pub hit: Hit,
    /// Its addresses or names, with or without a port. Empty: it calls us.
    #[serde(default)]
    #[cfg_attr(test, schemars(inner(length(min = 1))))]
    pub addresses: Vec<String>,
    /// The addresses behind it: what goes there goes to it, and what comes from it must come from there. Empty: one that
    /// `[tunnel] assign` gives it.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<schema::Network>"))]
    pub prefixes: Vec<IpNet>,
}

impl Default for IdentityConfig {
    fn default() -> Self {
        Self { key: "/etc/polypath/identity.pem".into() }
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self { port: udp::PORT }
    }
}

impl Default for LaneConfig {
    fn default() -> Self {
        Self {
            connections: 4096,
            spare: 8,
            buffer_mib: 16,
            memory_mib: None,
            keep_alive: 60,
            cc: CcConfig::Polypath(PolypathConfig { queue_target: QUEUE_TARGET, ..Default::default() }),
            exclude: Vec::new(),
            exclude_ports: Vec::new(),
            duplicate: Vec::new(),
        }
    }
}

impl Default for DaemonConfig {
    fn default() -> Self {
        Self { user: None, state: "/var/lib/polypath".into() }
    }
}

impl Default for Control {
    fn default() -> Self {
        Self { socket: SOCKET.into(), group: None }
    }
}

impl Tunnel {
    fn default_name() -> String {
        "polypath0".into()
    }

    fn default_mtu() -> u16 {
        1400
    }

    fn default_queues() -> usize {
        1
    }

    fn default_ecn() -> bool {
        true
    }
}

impl Peer {
    /// What it is called in messages and metrics.
    pub(crate) fn called(&self) -> String {
        if self.name.is_empty() { self.hit.to_string() } else { self.name.clone() }
    }
}

impl Config {
    /// Connections between the peers.
    pub(crate) fn outer(&self) -> ConnectionConfig {
        self.tunnel.transport.over(ConnectionConfig { ecn: self.tunnel.ecn, ..self.lane.outer() })
    }

    /// The JSON Schema of a configuration.
    #[cfg(feature = "schema")]
    pub fn schema() -> String {
        let packed = include_bytes!(concat!(env!("OUT_DIR"), "/schema.lz4"));
        let text = lz4_flex::decompress_size_prepended(packed).expect("build.rs compressed it");
        String::from_utf8(text).expect("it is a text")
    }

    /// Whether it must know something after a restart.
    pub fn keeps_state(&self) -> bool {
        !self.paths.quota.is_empty() || self.tunnel.assign.is_some()
    }
}

impl LaneConfig {
    /// What all connections hold at most, bytes.
    pub(crate) fn memory(&self) -> Option<u64> {
        let quarter = || sysinfo().ok().map(|info| info.ram_total() / 4);
        self.memory_mib.map(|mib| mib.saturating_mul(1 << 20)).or_else(quarter)
    }

    /// Connections between the peers: over all paths.
    fn outer(&self) -> ConnectionConfig {
        let buffer = self.buffer_mib << 20;
        ConnectionConfig {
            cc: self.cc.clone().of_today(),
            acks: AckConfig::thinned(),
            scheduler: SchedulerConfig::EarliestCompletion,
            send_buffer: buffer,
            send_ahead: Some(AHEAD),
            receive_buffer: buffer,
            unread_window: Some(UNREAD),
            fail_silent: true,
            keep_alive: self.idle(),
            ..ConnectionConfig::default()
        }
    }

    /// Packets of other transports between the peers.
    pub(crate) fn packets(&self) -> polypath_endpoint::LaneConfig {
        let packets = PacketConfig {
            cc: self.cc.clone().of_today(),
            scheduler: SchedulerConfig::EarliestCompletion,
            ..PacketConfig::default()
        };
        let twice = self.twice();
        polypath_endpoint::LaneConfig { packets, twice, ..polypath_endpoint::LaneConfig::default() }
    }

    /// The packets of which a copy leaves on a second path.
    pub(crate) fn twice(&self) -> Vec<PacketClass> {
        self.duplicate.iter().map(Class::packets).collect()
    }

    /// How long a connection is idle before its other end is asked: of the association, and of the device.
    fn idle(&self) -> Duration {
        Duration::from_secs(self.keep_alive.into())
    }

    /// Connections with the hosts behind the device.
    pub(crate) fn inner(&self) -> ConnectionConfig {
        ConnectionConfig {
            cc: CcConfig::default().of_today(),
            send_buffer: INNER,
            receive_buffer: INNER,
            unread_window: Some(UNREAD),
            grow_window: true,
            time_wait: Duration::from_secs(1),
            keep_alive: self.idle(),
            ..ConnectionConfig::default()
        }
    }
}

/// What is routed for a prefix. A default route becomes two halves, so that the default routes of the uplinks stay.
pub(crate) fn routed(prefix: &IpNet) -> Vec<IpNet> {
    match prefix.trunc().subnets(1) {
        Ok(halves) if prefix.prefix_len() == 0 => halves.collect(),
        _ => vec![prefix.trunc()],
    }
}

/// Most bytes written ahead of what is sent: 2 ms at 8 Gbit/s.
const AHEAD: u64 = 2 << 20;
/// The window that a connection has before it is served, bytes; the least that a host behind the device has.
const UNREAD: u64 = 64 << 10;
/// Most bytes that a connection with a host behind the device holds in each direction: 1 Gbit/s over 16 ms.
const INNER: u64 = 2 << 20;

#[cfg(test)]
pub(crate) mod tests;
