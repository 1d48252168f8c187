//! The text of a new configuration.

use std::path::Path;

use ipnet::IpNet;
use polypath_wire::hip::Hit;

/// A configuration without peers, of a host that has `address`, or else the one that a peer says, and gives peers
/// addresses of `assign`. Interfaces `only` carry paths; empty: all.
pub fn config(
    identity: &Path,
    address: Result<IpNet, Hit>,
    assign: Option<IpNet>,
    only: &[String],
) -> String {
    let (addresses, from) = match address {
        Ok(address) => (format!("[\"{address}\"]"), "# addresses_from = \"2001:22:…\"".to_owned()),
        Err(peer) => ("[]".to_owned(), format!("addresses_from = \"{peer}\"")),
    };
    let assign = match assign {
        Some(network) => format!("assign = \"{network}\""),
        None => "# assign = \"10.99.0.0/24\"".to_owned(),
    };
    format!(
        "# The configuration of `polypath up`. Relative paths begin at this file.
# Every key: docs/daemon.md, which the package puts into /usr/share/doc/polypath.

[identity]
# The private key of this host. `polypath hit FILE` prints the tag by which peers know it.
key = {key:?}

[tunnel]
# The device that connections are routed to.
name = \"polypath0\"
# Addresses of this host in the tunnel, each with the length of the network's prefix.
addresses = {addresses}
# The tag of the peer that assigns the address of this host; `addresses` may then be omitted.
{from}
# A network from which each peer without prefixes gets an address.
{assign}
# Largest packet on the device, bytes.
mtu = 1400
# Queues of the device. Two or more have a thread each, which helps where cores are idle.
queues = 1
# Whether traffic to the peers' prefixes may leave only through the tunnel after the daemon has crashed or was killed.
kill_switch = false
# How a TCP connection is distributed over the paths: \"polypath\", or \"rm_tcp\" at both ends.
transport = \"polypath\"
# Whether queues between the peers may mark packets instead of dropping them (ECN). One end that says false is enough.
ecn = true

[listen]
# The UDP port of HIP and ESP. A firewall in front of a host that is called must admit it.
port = 10500

[paths]
# Interfaces that carry paths, by name or pattern: empty means all.
include = [{include}]
# Interfaces that carry none.
exclude = []
# Preferred interfaces: if any are named, all others carry overflow only.
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
# Most data that all connections hold together, MiB; without it, a quarter of this machine's memory.
# memory_mib = 1024
# How long a program's connection is idle before its host, and the peer, are asked whether they are still there, s. Without an answer
# the connection ends after 13 times that.
keep_alive = 60
# Congestion control over the paths. Queues with a longer standing delay than queue_target, ms, are shortened; 0: none.
# cc = {{ algorithm = \"polypath\", queue_target = 10 }}
# TCP connections from or to these addresses, or ports ([179, \"8000-8999\"]), travel as packets and end at their hosts.
exclude = []
exclude_ports = []
# Packets that are also sent as a copy on a second path, for example [{{ dscp = 46 }}, {{ protocol = \"udp\", ports = [5060, \"10000-20000\"] }}].
duplicate = []

[control]
# The socket that `polypath status` and `polypath down` use.
socket = \"/run/polypath/control.sock\"
# A group, best one of its own, whose members may use the socket; without one only root and the daemon's user may.
# group = \"polypath-admin\"

[daemon]
# The user that the daemon becomes once it is set up, best one of its own (adduser --system --group --no-create-home polypath).
# It keeps only the network's capabilities. Without a user, root stays root with these, CAP_DAC_OVERRIDE and, with a group, CAP_CHOWN.
# user = \"polypath\"
# The directory that stores the use of quotas and the addresses of peers.
# state = \"/var/lib/polypath\"

[metrics]
# Where Prometheus (/metrics) and a browser (/) may ask.
# listen = \"127.0.0.1:9510\"
# Whether `listen` may be an address that other hosts reach: they need no password.
# allow_remote = false

[peers]
# A directory of files *.toml with further peers; `polypath init --peer` then writes one there for each.
# directory = \"/etc/polypath/peers.d\"
",
        key = identity.display().to_string(),
        include = quoted(only),
    )
}

fn quoted(list: &[String]) -> String {
    list.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ")
}

/// A peer, to be added to a configuration.
pub fn peer(hit: Hit, addresses: &[String], behind: &[IpNet]) -> String {
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
    format!(
        "\n[[peer]]\n# Its name in messages; without one, its tag.\n# name = \"office\"\nhit = \"{hit}\"\n{called}\n{behind}\n"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use polypath_daemon::Config;

    use super::*;

    /// The page that has a row for each key.
    const PAGE: &str = include_str!("../../../docs/daemon.md");
    const HIT: &str = "2001:22:88e0:5362:e35e:1c8f:b38e:ef19";

    /// A new configuration with a peer.
    fn text() -> String {
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        config(Path::new("identity.pem"), Ok(net("10.99.0.1/24")), None, &[])
            + &peer(HIT.parse().unwrap(), &["192.0.2.1".to_owned()], &[net("10.99.0.2/32")])
    }

    /// A key and its table, as in `[tunnel] mtu`.
    fn key(table: &str, name: &str) -> String {
        format!("{table} {name}")
    }

    /// The keys that there are: a wrong one is answered with all of its table.
    fn known() -> BTreeSet<String> {
        let listed = |text: &str| {
            let help = Config::parse("a", text).unwrap_err().help.unwrap();
            let (_, names) = help.rsplit_once("ne of: ").unwrap();
            names.split(", ").map(str::to_owned).collect::<Vec<_>>()
        };
        let tables = listed("no-such-key = 1");
        let of_table = |name: &String| {
            let table = if name == "peer" { "[[peer]]".to_owned() } else { format!("[{name}]") };
            listed(&format!("{table}\nno-such-key = 1")).into_iter().map(move |name| key(&table, &name))
        };
        tables.iter().flat_map(of_table).collect()
    }

    #[test]
    fn every_key_has_a_row_in_the_docs() {
        let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `[")?.split('`').next());
        let rows: BTreeSet<String> = rows.map(|row| format!("[{row}")).collect();
        assert_eq!(rows, known());
    }

    #[test]
    fn every_key_is_in_a_new_configuration_as_a_comment_at_least() {
        let (mut table, mut there) = (String::new(), BTreeSet::new());
        for line in text().lines() {
            if line.starts_with('[') {
                table = line.to_owned();
            }
            let is_key = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            let name = line.trim_start_matches("# ").split_once(" = ").map(|(name, _)| name).filter(is_key);
            there.extend(name.map(|name| key(&table, name)));
        }
        assert_eq!(there, known());
    }

    #[test]
    fn the_comments_of_a_new_configuration_become_keys_that_are_read() {
        let commented =
            |line: &str| line.starts_with("# ") && line.contains(" = ") && !line.contains("example");
        let uncommented = |line: &str| line.trim_start_matches("# ").replace("2001:22:…", HIT);
        let text: Vec<String> = text()
            .lines()
            .filter(|line| !line.starts_with("# directory"))
            .map(|line| if commented(line) { uncommented(line) } else { line.to_owned() })
            .collect();
        let read = Config::parse("polypath.toml", &text.join("\n"));
        assert!(read.is_ok(), "{}", read.unwrap_err());
    }
}
