//! The command line of `polypath send` and `polypath receive`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use polypath_lab::units::short_rate;
use polypath_wire::Rate;
use polypath_wire::hip::{Hit, ParseHitError, udp};

use super::{controllers, schedulers, usual};
use crate::target::Target;

pub const SEND_EXAMPLES: &str = "\
Examples:
  polypath send big.iso 2001:22:…@192.0.2.1,198.51.100.1    to a host with two links
  polypath send photos notes.txt 2001:22:…@192.0.2.1        a directory with its contents, and a file
  tar c /srv | polypath send - --name srv.tar 2001:22:…@backup.example.org:4500
  polypath send big.iso --allow 2001:22:…                   wait until that host fetches it
  polypath send big.iso 2001:22:…@192.0.2.1 --only eth0 --only wlan0
  polypath send big.iso 2001:22:…@192.0.2.1 --limit wwan0=10M    leave the rest of that link to others

`polypath receive` prints what to write after the @. Every network interface of either host that has a usable \
address becomes a path, up to 8 at once, also one that comes up during the transfer. Each path costs heartbeats \
and keys. (`polypath demo` emulates up to 64, the most that a connection can have.)

An interrupted transfer resumes by itself for --wait seconds, and later when the same command is given again. What the \
receiver has of a file, or has stored of it from this host, is not sent again; files of up to 64 KiB are sent whole. \
Standard input cannot be resumed.

With --allow this host waits for the other one, and prints the arguments of its `receive --from`. Use it where the \
receiver is behind a NAT and the sender is not.

Symbolic links in directories are skipped, and so is everything that is neither a file nor a directory. \
Names that no receiver takes, such as those with invisible characters or that are not UTF-8, make the exit status 1. Holes of a sparse file are sent and written as zeros.";

pub const RECEIVE_EXAMPLES: &str = "\
Examples:
  polypath receive --allow 2001:22:…                  from one host, into this directory
  polypath receive --dir in --allow any --once        from whoever comes first, then end
  polypath receive --from 2001:22:…@192.0.2.1         fetch what `polypath send FILE --allow HIT` offers there

Without --allow every peer is refused, but the HITs of those that tried are printed. A sender uses up to 8 paths at \
once: see `polypath send --help`.

An existing file with other content stays: the new one gets a number. An unfinished file is hidden (.NAME.….part), and \
resumed when the same sender sends it again. Names that lead out of the directory are refused. So are names that begin \
with a dot, unless --hidden is given. No link is followed.";

fn seconds(text: &str) -> Result<u64, &'static str> {
    text.parse().ok().filter(|seconds| *seconds > 0).ok_or("it needs seconds, 1 or more")
}

#[derive(Args, Debug)]
pub struct SendArgs {
    /// What to send (`-`: standard input), then the receiver: its Host Identity Tag and its addresses
    #[arg(value_name = "FILE… HIT@ADDR[,ADDR…]", required = true)]
    pub what: Vec<OsString>,
    /// Let this host fetch the files (a Host Identity Tag, or `any`) instead of sending them; repeat it for more
    #[arg(long, value_name = "HIT")]
    pub allow: Vec<Allow>,
    /// End when one host has fetched everything
    #[arg(long, requires = "allow")]
    pub once: bool,
    /// The UDP port at which files are fetched; 0: any that is free
    #[arg(long, value_name = "PORT", default_value_t = udp::PORT, requires = "allow")]
    pub port: u16,
    /// Name of standard input at the receiver [default: stdin]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The identity of this host [default: the one in the user's configuration directory, created if needed]
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Give up after this long without progress, seconds [default: 8 for the first answer, then 60]
    #[arg(long, value_name = "SECONDS", conflicts_with = "allow", allow_negative_numbers = true, value_parser = seconds)]
    pub wait: Option<u64>,
    /// HIP and ESP as IP protocols 139 and 50, without UDP; needs root, and passes no NAT. Both ends or none
    #[arg(long, conflicts_with = "port")]
    pub native: bool,
    #[command(flatten)]
    pub links: LinkArgs,
    /// Which path the next segment takes
    #[arg(long, value_name = "S", default_value = "earliest_completion", value_parser = schedulers())]
    pub scheduler: String,
    /// Congestion control
    #[arg(long, value_name = "C", default_value_t = usual(), value_parser = controllers())]
    pub cc: String,
    /// Print JSON instead of bars and text: one object at the end, or with --allow one for each file
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ReceiveArgs {
    /// Directory for the files; created if it does not exist
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Peers allowed to connect: a Host Identity Tag, or `any`; repeat it for more
    #[arg(long, value_name = "HIT", conflicts_with = "from")]
    pub allow: Vec<Allow>,
    /// Fetch the files that this host offers with `polypath send FILE --allow HIT`, then end
    #[arg(long, value_name = "HIT@ADDR[,ADDR…]")]
    pub from: Option<Target>,
    /// Give up after this long without progress, seconds [default: 8 for the first answer, then 60]
    #[arg(long, value_name = "SECONDS", requires = "from", allow_negative_numbers = true, value_parser = seconds)]
    pub wait: Option<u64>,
    /// Accept names that begin with a dot: such files may change what programs do here
    #[arg(long)]
    pub hidden: bool,
    /// The identity of this host [default: the one in the user's configuration directory, created if needed]
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// The UDP port of HIP and ESP; 0: any that is free
    #[arg(long, value_name = "PORT", default_value_t = udp::PORT, conflicts_with = "from")]
    pub port: u16,
    /// HIP and ESP as IP protocols 139 and 50, without UDP; needs root, and passes no NAT. Both ends or none
    #[arg(long, conflicts_with = "port")]
    pub native: bool,
    #[command(flatten)]
    pub links: LinkArgs,
    /// End when one sender has sent everything
    #[arg(long)]
    pub once: bool,
    /// Print JSON instead of text: one object for each file, or with --from one at the end
    #[arg(long)]
    pub json: bool,
}

/// Which interfaces of this host carry packets.
#[derive(Args, Clone, Default, Debug)]
pub struct LinkArgs {
    /// Use this network interface and no other; repeat it for more
    #[arg(long, value_name = "IFACE")]
    pub only: Vec<String>,
    /// Use this network interface only while the others have no address or, at the end that calls, carry nothing for
    /// 1 s; repeat it for more
    #[arg(long, value_name = "IFACE")]
    pub backup: Vec<String>,
    /// Send no more than this over a network interface, headers included: each connection, on each of its paths; repeat it
    /// for more
    #[arg(long = "limit", value_name = "IFACE=RATE")]
    pub limits: Vec<Limit>,
    /// No ECN: queues on the way drop packets instead of marking them. At one end it is enough
    #[arg(long)]
    pub no_ecn: bool,
}

/// What an interface is limited to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Its name.
    pub interface: String,
    /// Above 0.
    pub rate: Rate,
}

impl FromStr for Limit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let example = "write for example wwan0=10M";
        let (interface, rate) = text
            .rsplit_once('=')
            .ok_or_else(|| format!("it has no \"=\" between interface and rate; {example}"))?;
        let rate = short_rate(rate).map_err(|e| e.to_string())?;
        if rate.0 == 0 {
            return Err(format!("nothing moves at that rate; {example}"));
        }
        Ok(Self { interface: interface.to_owned(), rate })
    }
}

/// Peers allowed to connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allow {
    /// Whoever comes.
    Any,
    /// That host.
    Peer(Hit),
}

impl FromStr for Allow {
    type Err = ParseHitError;
    fn from_str(text: &str) -> Result<Self, ParseHitError> {
        if text == "any" { Ok(Self::Any) } else { text.parse().map(Self::Peer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_an_interface_and_a_rate() {
        let rate = |text: &str| text.parse::<Limit>().map(|limit| (limit.interface, limit.rate.0));
        assert_eq!(rate("wwan0=10M"), Ok(("wwan0".into(), 10_000_000)));
        assert_eq!(rate("eth0=500k"), Ok(("eth0".into(), 500_000)));
        assert_eq!(rate("eth0=1.5G"), Ok(("eth0".into(), 1_500_000_000)));
        assert_eq!(rate("a=b=8mbit"), Ok(("a=b".into(), 8_000_000)));
        for wrong in ["eth0", "eth0=", "eth0=fast", "eth0=10", "eth0=0M", "eth0=-1M"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
