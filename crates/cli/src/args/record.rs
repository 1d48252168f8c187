//! Arguments of `polypath lab record`.

use std::path::PathBuf;

use clap::Args;
use polypath_lab::units::{Bytes, Human};
use polypath_wire::hip::udp;

use super::{Allow, LinkArgs};
use crate::target::Target;

pub const EXAMPLES: &str = "\
Examples:
  polypath lab record --listen --allow HIT               on one host, which prints its own HIT and addresses
  polypath lab record HIT@192.0.2.1 --out lte            on the other: writes lte.up.trace and lte.down.trace
  polypath lab record HIT@192.0.2.1 --out lte --only wwan0 --seconds 60 --most 500MB

First it measures the round trip of the empty path, then it fills each direction with data for --seconds. It uses all that \
the path can carry: other traffic there suffers meanwhile, and a metered link counts the data (--most ends a direction \
earlier). Everything is encrypted, and only hosts that --allow names may connect. Ctrl-C keeps what was recorded until then. \
`up` is from the host that calls to the host that listens. Standard output gets a [[link]] that follows both.";

#[derive(Args, Debug)]
pub struct RecordArgs {
    /// The host that listens: its Host Identity Tag and its addresses
    #[arg(value_name = "HIT@ADDR[,ADDR…]", conflicts_with = "listen")]
    pub to: Option<Target>,
    /// Wait for hosts that record
    #[arg(long)]
    pub listen: bool,
    /// Peers allowed to connect: a Host Identity Tag, or `any`; repeat it for more
    #[arg(long, value_name = "HIT", requires = "listen")]
    pub allow: Vec<Allow>,
    /// The UDP port at which to listen; 0: any that is free
    #[arg(long, value_name = "PORT", default_value_t = udp::PORT, requires = "listen")]
    pub port: u16,
    /// Base name of the files, before .up.trace and .down.trace
    #[arg(long, value_name = "NAME", conflicts_with = "listen")]
    pub out: Option<PathBuf>,
    /// How long each direction is recorded, 1 to 600 s
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=600), conflicts_with = "listen")]
    pub seconds: u32,
    /// Send no more than this in each direction
    #[arg(long, value_name = "SIZE", default_value = "1GB", conflicts_with = "listen")]
    pub most: Human<Bytes>,
    /// Use this network interface and no other
    #[arg(long, value_name = "IFACE")]
    pub only: Option<String>,
    /// The identity of this host [default: the one in the user's configuration directory, created if needed]
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
}

impl RecordArgs {
    /// The interfaces that they admit.
    pub fn links(&self) -> LinkArgs {
        LinkArgs { only: self.only.iter().cloned().collect(), ..LinkArgs::default() }
    }
}
