//! The command line of `polypath init`, `check`, `up`, `down`, `reload`, `status`, `paths` and `peers`.

// Doc comments are what `--help` says, where [tunnel] is a table of the configuration.
#![allow(rustdoc::broken_intra_doc_links)]

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use ipnet::IpNet;
use polypath_daemon::{Limit, SOCKET};

use super::net;
use crate::scenarios::{ALL, Scenario};

/// Where the configuration is if nobody says otherwise.
pub const CONFIG: &str = "/etc/polypath/polypath.toml";

/// What prepares, starts and asks a daemon.
#[derive(Subcommand, Debug)]
pub enum TunnelCommand {
    /// Write the configuration of a daemon, or add a peer to it, and print what to run on the other host
    #[command(after_long_help = INIT_EXAMPLES)]
    Init(InitArgs),
    /// Read a configuration as `up` does, and print what `up` would do with it, or what is wrong
    #[command(after_long_help = CHECK_HELP)]
    Check(CheckConfigArgs),
    /// Carry any program's traffic to the hosts behind peers over all links
    #[command(after_long_help = UP_EXAMPLES)]
    Up(UpArgs),
    /// End a running `polypath up`
    #[command(after_long_help = DOWN_HELP)]
    Down(DownArgs),
    /// Have a running `polypath up` read its configuration again, without losing a connection
    #[command(after_long_help = RELOAD_HELP)]
    Reload(ReloadArgs),
    /// Print the interfaces and paths of a running `polypath up`, or change which interfaces it uses
    #[command(after_long_help = PATHS_EXAMPLES)]
    Paths(PathsArgs),
    /// Print the peers of a running `polypath up`
    Peers(PeersArgs),
    /// Print the peers, paths and counters of a running `polypath up`
    #[command(after_long_help = STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Print the last log lines of a running `polypath up`, or follow its log
    #[command(after_long_help = LOG_EXAMPLES)]
    Log(LogArgs),
    /// Two hosts in network namespaces with emulated links between them, to try all this on one machine
    #[command(after_long_help = TESTBED_EXAMPLES)]
    Testbed {
        #[command(subcommand)]
        command: TestbedCommand,
    },
}

const TESTBED_EXAMPLES: &str = "\
Examples:
  polypath testbed list              the links that can be tried
  polypath testbed up fibre-lte      makes the hosts and prints commands to try; ends with Ctrl-C
  polypath testbed down              the same as Ctrl-C, from another terminal

It needs root, /dev/net/tun and ip(8). The namespaces are polypath-a and polypath-b; keys and configurations of both \
are in /run/polypath-testbed, and are removed with them.";

#[derive(Subcommand, Clone, Debug)]
pub enum TestbedCommand {
    /// List the scenarios
    List,
    /// Make the hosts and links of a scenario, until Ctrl-C or `polypath testbed down`
    Up {
        /// A scenario of `polypath testbed list`
        #[arg(value_name = "SCENARIO", value_parser = scenarios())]
        scenario: &'static Scenario,
    },
    /// Remove the hosts and links of `testbed up`
    Down,
}

fn scenarios() -> impl TypedValueParser<Value = &'static Scenario> {
    let names = ALL.iter().map(|one| PossibleValue::new(one.name).help(one.about));
    PossibleValuesParser::from(names.collect::<Vec<_>>())
        .try_map(|name| ALL.iter().find(|one| one.name == name).ok_or("no such scenario"))
}

const INIT_EXAMPLES: &str = "\
Examples:
  polypath init                                            on the server: key, configuration, and a line to paste;
                                                           on a terminal it asks first
  polypath init --yes                                      the same without questions
  polypath init --address 10.99.0.2/24 --peer 2001:22:…@203.0.113.5 --behind 10.99.0.1/32    that line, on the router
  polypath init --peer 2001:22:… --behind 10.99.0.2/32     the line that it prints, back on the server
  polypath init --schema > polypath.schema.json            what an editor checks a configuration with (docs/daemon.md)
  polypath up                                              on both

Each host needs an address of its own in the tunnel (--address). Of each peer it needs the Host Identity Tag and the \
addresses behind the peer (--behind: the peer's own in the tunnel, and networks that it routes). One of the two hosts also \
needs the address at which the other is reached (after the @). An existing configuration is kept, and only the peer is \
added: `polypath reload` loads it. If the configuration has a [peers] directory, the peer gets a file of its own there.";

const CHECK_HELP: &str = "\
Examples:
  polypath check                                        /etc/polypath/polypath.toml
  polypath check && systemctl restart polypath          a restart ends the daemon before it reads anything
  polypath check my.toml --json | jq .warnings

It reads the configuration, the files of peers and the key, and checks their owners and permissions, the user and the \
group, the state directory, and the place of the control socket. It changes nothing, and does not contact a running daemon. \
A [paths] entry that matches no interface gives a warning. It does not check what only a start shows: ports and routes that \
other programs have, privileges, and names of peers that do not resolve.

Exit status: 0 when `up` would take it, with warnings or without; 2 when something written is wrong, or the files it names; 3 \
when the system refused to read one.";

#[derive(Args, Debug)]
pub struct CheckConfigArgs {
    /// The configuration
    #[arg(value_name = "CONFIG", default_value = CONFIG)]
    pub config: PathBuf,
    /// The user of `polypath up --user`
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

const UP_EXAMPLES: &str = "\
Examples:
  polypath up                        with /etc/polypath/polypath.toml
  polypath up my.toml -v             one line for each connection
  curl http://10.99.0.1/             any program's TCP connection to an address behind a peer uses all links
  polypath status                    in another terminal
  polypath down                      or Ctrl-C: the daemon removes device and routes when it ends

It needs root, or CAP_NET_ADMIN and CAP_NET_RAW, and becomes [daemon] user once it is set up. Without a user, root stays \
root and gives up the capabilities that it does not need. It stays in the foreground, logs to standard error, and notifies a service manager (systemd: Type=notify, WatchdogSec). \
TCP connections are carried as connections. As packets it carries everything else, TCP that [lane] exclude or \
exclude_ports names, and TCP connections beyond [lane] connections. docs/daemon.md says everything else (the package puts \
it into /usr/share/doc/polypath).";

const STATUS_EXAMPLES: &str = "\
Examples:
  polypath status                    peers, paths and counters
  polypath status --watch            rate, round trip, window and share of each path, each second
  polypath status --watch --json     the same as lines of JSON
  polypath status --json | jq '.peers[].paths[].rate_mbps'

The RTT of --watch is the least smoothed round trip time of connections with data in flight on the path, queues included. \
Without such data it is the least round trip time of the heartbeats, twice the one-way delay that `polypath status` prints.";

#[derive(Args, Clone, Debug)]
pub struct InitArgs {
    /// The file to write or to add a peer to
    #[arg(value_name = "CONFIG", default_value = CONFIG)]
    pub config: PathBuf,
    /// The address of this host in the tunnel, with the length of the network's prefix [default: the first of --assign, or 10.99.0.1/24]
    #[arg(long, value_name = "ADDR/LEN", value_parser = net::host)]
    pub address: Option<IpNet>,
    /// The peer assigns this host's address in the tunnel ([tunnel] assign there)
    #[arg(long, requires = "peer", conflicts_with = "address")]
    pub assigned: bool,
    /// The network from which this host gives each peer without --behind an address ([tunnel] assign)
    #[arg(long, value_name = "ADDR/LEN", conflicts_with = "assigned", value_parser = net::network)]
    pub assign: Option<IpNet>,
    /// A peer: its Host Identity Tag and, if this host calls it, its addresses
    #[arg(long, value_name = "HIT[@ADDR,…]")]
    pub peer: Option<String>,
    /// An address or network behind that peer; repeat it for more. Not needed if [tunnel] assign gives the peer an address
    #[arg(long, value_name = "ADDR/LEN", requires = "peer", value_parser = net::prefix)]
    pub behind: Vec<IpNet>,
    /// The key file, created if it does not exist [default: the one that the configuration names, or /etc/polypath/identity.pem]
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Where peers find this host, for the line to paste; separate several by commas [default: the addresses of its interfaces]
    #[arg(long, value_name = "ADDR,…", value_delimiter = ',', value_parser = net::reached)]
    pub at: Vec<String>,
    /// An interface that carries paths, by name or pattern; repeat it for more [default: all]
    #[arg(long, value_name = "IFACE")]
    pub only: Vec<String>,
    /// Ask nothing; take the default of every option not given
    #[arg(long, short)]
    pub yes: bool,
    /// Print the JSON Schema of a configuration, with which editors complete and check it, and write nothing
    #[arg(long, exclusive = true)]
    pub schema: bool,
}

#[derive(Args, Debug)]
pub struct UpArgs {
    /// The configuration
    #[arg(value_name = "CONFIG", default_value = CONFIG)]
    pub config: PathBuf,
    /// Log what happens to each connection
    #[arg(long, short)]
    pub verbose: bool,
    /// The user to become once it is set up, if the configuration names none
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Append what happens on the paths to this file, a line of JSON each
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Level of detail of --events
    #[arg(long, value_name = "LEVEL", default_value = "rare", requires = "events")]
    pub detail: Detail,
}

/// Event levels; each includes the previous ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Detail {
    /// Losses, segments dropped, states of paths, bottlenecks found, states of associations
    Rare,
    /// Windows, round trips and rates: one or more for each acknowledgment
    State,
    /// Each segment sent, acknowledged and delivered
    Packets,
}

#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Where the daemon answers
    #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
    pub socket: PathBuf,
    /// Print one JSON object instead of text; with --watch a line each second
    #[arg(long)]
    pub json: bool,
    /// Follow it on the screen, until `q` or Ctrl-C
    #[arg(long, short)]
    pub watch: bool,
}

const LOG_EXAMPLES: &str = "\
Examples:
  polypath log                       the last lines: paths and peers that came and went, errors
  polypath log --follow              and each new line, until Ctrl-C or the daemon ends
  polypath log --json                a line of JSON each: at_us (µs since 1970), level, text

The daemon keeps 1000 lines. `polypath up -v` says more.";

fn number(text: &str) -> Result<usize, &'static str> {
    text.parse().map_err(|_| "not a number of lines: write for example 20")
}

#[derive(Args, Debug)]
pub struct LogArgs {
    /// Where the daemon answers
    #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
    pub socket: PathBuf,
    /// Follow the log
    #[arg(long, short)]
    pub follow: bool,
    /// Print at most this many of the stored lines
    #[arg(long, short = 'n', value_name = "N", value_parser = number, allow_negative_numbers = true)]
    pub lines: Option<usize>,
    /// Print a line of JSON for each
    #[arg(long)]
    pub json: bool,
}

const DOWN_HELP: &str = "\
Connections are reset. Device and routes are removed, and so is a kill switch ([tunnel] kill_switch). A signal, an \
error or kill -9 leaves the kill switch in place: `polypath up` then continues behind it, and --lift-kill-switch \
removes it. While it is in place, traffic to the peers' prefixes uses the tunnel or a more specific route, or is dropped.

Exit status: 0 when the daemon has ended and no kill switch stands; 1 when it has not ended within 10 s, or a kill \
switch stands; 2 when --lift-kill-switch is refused because a daemon answers; 3 when no daemon answers or the system \
refused to ask.";

#[derive(Args, Debug)]
pub struct DownArgs {
    /// Where the daemon answers
    #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
    pub socket: PathBuf,
    /// Remove the kill switch of a daemon that ended otherwise; refused while a daemon answers
    #[arg(long)]
    pub lift_kill_switch: bool,
}

#[derive(Args, Debug)]
pub struct ReloadArgs {
    /// Where the daemon answers
    #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
    pub socket: PathBuf,
}

/// A rate, or none.
#[derive(Clone, Copy, Debug)]
pub struct MaybeLimit(pub Option<Limit>);

impl FromStr for MaybeLimit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            rate => rate
                .parse()
                .map(|limit| Self(Some(limit)))
                .map_err(|e: polypath_daemon::NoRate| format!("{e}, or none")),
        }
    }
}

const RELOAD_HELP: &str = "\
Peers with their addresses and prefixes, [lane] exclude, exclude_ports and duplicate, and [paths] take effect at once. \
Connections stay, except those with peers that are gone: they are reset. If keys have changed that cannot change while the \
daemon runs, or the key in the key file, the answer names them, and nothing changes. Changes by `polypath paths` end. \
It prints how many peers there are, and which interfaces carry paths.

Exit status: 0 when it is done; 2 when the daemon refused it, and nothing has changed; 3 when no daemon answers or the \
system refused to ask.";

const PATHS_EXAMPLES: &str = "\
Examples:
  polypath paths                     the interfaces, and the paths over them
  polypath paths remove wwan0        it carries nothing from now on; connections continue over the others
  polypath paths add wwan0           it is used again, whatever the configuration says
  polypath paths limit wwan0 10M     no more than 10 Mbit/s leave over it, all peers together; none: no limit
  polypath paths prefer eth0 wlan0   the others carry overflow only; without names: all alike

A change prints what is in force, as in `wwan0: limited to 10 Mbit/s`. It lasts until `polypath reload` or the end of \
the daemon; [paths] in the configuration is permanent.";

#[derive(Args, Debug)]
pub struct PathsArgs {
    /// Where the daemon answers
    #[arg(long, value_name = "SOCKET", default_value = SOCKET, global = true)]
    pub socket: PathBuf,
    /// Print one JSON object instead of text: all interfaces and paths, as they are then
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Option<PathsCommand>,
}

#[derive(Subcommand, Clone, Debug)]
pub enum PathsCommand {
    /// Use interfaces, whatever the configuration says
    Add {
        /// Interfaces, as `ip link` shows them
        #[arg(value_name = "IFACE", required = true)]
        interfaces: Vec<String>,
    },
    /// Stop using interfaces
    Remove {
        /// Interfaces, as `ip link` shows them
        #[arg(value_name = "IFACE", required = true)]
        interfaces: Vec<String>,
    },
    /// Send no more than a rate over an interface
    Limit {
        /// An interface, as `ip link` shows it
        #[arg(value_name = "IFACE")]
        interface: String,
        /// The rate, for example 10M, or none
        #[arg(value_name = "RATE", allow_hyphen_values = true)]
        rate: MaybeLimit,
    },
    /// Use these interfaces first, the others for overflow only; without names all alike
    Prefer {
        /// Interfaces, as `ip link` shows them
        #[arg(value_name = "IFACE")]
        interfaces: Vec<String>,
    },
}

#[derive(Args, Debug)]
pub struct PeersArgs {
    /// Where the daemon answers
    #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
    pub socket: PathBuf,
    /// Print a JSON list instead of text
    #[arg(long)]
    pub json: bool,
}
