//! The command line, and the help that teaches it.

mod files;
mod lab;
#[cfg(feature = "daemon")]
pub mod net;
mod numbers;
#[cfg(feature = "lab")]
mod record;
mod trace;
#[cfg(feature = "daemon")]
mod tunnel;

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use polypath_lab::units::{Bytes, Human, Link};
use polypath_transport::Registry;
use polypath_transport::cc::CcConfig;
use polypath_transport::sched::SchedulerConfig;

pub use files::{Allow, LinkArgs, ReceiveArgs, SendArgs};
pub use lab::LabCommand;
#[cfg(feature = "lab")]
pub use lab::{
    CheckArgs, FrontierArgs, GroupArgs, NewArgs, ReplayArgs, ReportArgs, RunArgs, SpeedArgs, SpeedScenario,
};
#[cfg(feature = "lab")]
pub use record::RecordArgs;
#[cfg(feature = "lab")]
pub use trace::TraceArgs;
#[cfg(feature = "daemon")]
pub use tunnel::{
    CONFIG, CheckConfigArgs, Detail, DownArgs, InitArgs, LogArgs, PathsArgs, PathsCommand, PeersArgs,
    ReloadArgs, StatusArgs, TestbedCommand, TunnelCommand, UpArgs,
};

const EXAMPLES: &str = "\
Examples:
  polypath demo                                  a 64 MiB file over two paths at once, in real time
  polypath demo --sim                            the same in virtual time
  polypath hit                                   the name of this host, as others know it
  polypath receive --allow HIT                   take files from that host
  polypath send big.iso photos HIT@192.0.2.1     send a file and a directory there
  polypath init                                  prepare this host for other programs' connections
  polypath check                                 see what `up` would do, or what is wrong
  polypath up                                    carry them over all links until stopped
  polypath lab list                              the experiments there are
  polypath lab run foundation/two_paths          run one and check what it expects
  polypath lab check foundation                  run a whole group
  polypath lab report foundation                 the same as a page with figures

Exit status:
  0    done, and everything as expected
  1    done, but an expectation failed, or a file arrived changed or was refused
  2    bad arguments, or what is written in a spec file or a configuration is wrong
  3    the system did not allow it, as with a file that cannot be read, or the paths did not carry it
  130  interrupted by Ctrl-C (129 by SIGHUP, 143 by SIGTERM)";

/// Moves data between two hosts over all their network links at once, in one encrypted connection
///
/// `send` and `receive` move files between two hosts. `up` carries the TCP connections of other programs. `demo` shows the effect over slow links on this host
/// alone. `lab` measures the same code in a simulator and compares it with published results.
#[derive(Parser, Debug)]
#[command(name = "polypath", version, after_long_help = EXAMPLES, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Move a real file over emulated paths, watch it, and compare with the better path alone
    Demo(DemoArgs),
    /// Experiments: list, run, check and report them, print the schema of their files
    #[command(after_long_help = lab::LAB_EXAMPLES)]
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// Send files and directories to a host, or let it fetch them, over all links of both
    #[command(after_long_help = files::SEND_EXAMPLES)]
    Send(SendArgs),
    /// Receive files from hosts that you allow, or fetch them from one
    #[command(after_long_help = files::RECEIVE_EXAMPLES)]
    Receive(ReceiveArgs),
    #[cfg(feature = "daemon")]
    #[command(flatten)]
    Tunnel(TunnelCommand),
    /// Make the identity of this host: a key file that only you can read
    #[command(after_long_help = KEY_EXAMPLES)]
    Keygen(KeygenArgs),
    /// Print the public key of an identity
    Pubkey(KeyArgs),
    /// Print the Host Identity Tag by which peers know an identity
    Hit(KeyArgs),
    /// Print a completion script: polypath completions bash > /etc/bash_completion.d/polypath
    Completions {
        /// For which shell
        shell: Shell,
    },
    /// Print the manual page, or write one page per command
    Man {
        /// Write all pages into this directory instead
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

const DEMO_EXAMPLES: &str = "\
Examples:
  polypath demo                                     two paths, 64 MiB, on loopback, no root needed
  polypath demo --file my.iso --path 8mbit/30ms --path 4mbit/30ms
  polypath demo --scheduler round_robin             see what a worse scheduler costs
  polypath demo --sim --size 1GiB                   virtual time: no need to wait
  sudo polypath demo --netns                        between network namespaces
  sudo polypath demo --curl                         a program's download, through `polypath up`
  polypath demo --json | jq .utilisation

A path is RATE/DELAY: the rate of its link and its one-way propagation delay, the same in both \
directions, with a queue of one round trip at that rate. There may be 64 of them. --json prints one object; its keys are \
described in docs/demo-json.md.";

#[derive(Args, Clone, Debug)]
#[command(after_long_help = DEMO_EXAMPLES)]
pub struct DemoArgs {
    /// The file to send; without it, a generated file of --size
    #[arg(long, value_name = "PATH", conflicts_with = "size")]
    pub file: Option<PathBuf>,
    /// Size of the generated file
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub size: Human<Bytes>,
    /// One emulated path, RATE/DELAY; repeat it for more
    #[arg(long = "path", value_name = "RATE/DELAY", default_values = ["80mbit/20ms", "40mbit/40ms"])]
    pub paths: Vec<Link>,
    /// Which path the next segment takes
    #[arg(long, value_name = "S", default_value = "earliest_arrival", value_parser = schedulers())]
    pub scheduler: String,
    /// Congestion control
    #[arg(long, value_name = "C", default_value_t = usual(), value_parser = controllers())]
    pub cc: String,
    /// Run in virtual time, in the simulator
    #[arg(long, conflicts_with = "netns")]
    pub sim: bool,
    /// Run between network namespaces (as root, or where users may make user namespaces)
    #[arg(long)]
    pub netns: bool,
    /// Let curl download it over HTTP, over each path alone and through two daemons, as with `polypath up`; half-way the first path is cut
    #[cfg(feature = "curl")]
    #[arg(long, conflicts_with_all = ["sim", "netns", "scheduler", "cc", "output"])]
    pub curl: bool,
    /// Write the received data to this file
    #[arg(long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Print one JSON object instead of bars and a table
    #[arg(long)]
    pub json: bool,
}

const KEY_EXAMPLES: &str = "\
Examples:
  polypath keygen                          ECDSA P-384, in the user's configuration directory
  polypath keygen --algorithm rsa-3072 --out old-peer.pem
  polypath hit                             the tag of `polypath send` and `receive`, to give to your peers
  polypath hit /etc/polypath/identity.pem  the tag of `polypath up`, if [identity] key is that file
  polypath hit alice.pub                   the HIT of somebody's public key

The key is a PKCS#8 file in PEM without a passphrase, mode 0600; the default is \
$XDG_CONFIG_HOME/polypath/identity.pem, or ~/.config/polypath/identity.pem.";

#[derive(Args, Debug)]
pub struct KeygenArgs {
    /// Where to write it [default: polypath/identity.pem in the user's configuration directory]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// What kind of key
    #[arg(long, value_name = "A", value_enum, default_value = "ecdsa-p384")]
    pub algorithm: KeyAlgorithm,
    /// Replace a key that is there
    #[arg(long)]
    pub force: bool,
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
}

/// The kinds of keys one can make.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum KeyAlgorithm {
    #[value(name = "ecdsa-p256")]
    EcdsaP256,
    #[value(name = "ecdsa-p384")]
    EcdsaP384,
    #[value(name = "rsa-2048")]
    Rsa2048,
    #[value(name = "rsa-3072")]
    Rsa3072,
    #[value(name = "rsa-4096")]
    Rsa4096,
}

#[derive(Args, Debug)]
pub struct KeyArgs {
    /// A private or public key file [default: the identity of `polypath keygen`]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
}

fn schedulers() -> PossibleValuesParser {
    described::<SchedulerConfig>()
}

fn controllers() -> PossibleValuesParser {
    described::<CcConfig>()
}

/// The controller of who asks for none.
fn usual() -> String {
    CcConfig::usual().about().name.to_owned()
}

/// Each algorithm says itself what it is.
fn described<T: Registry>() -> PossibleValuesParser {
    T::ALL.iter().map(|about| PossibleValue::new(about.name).help(about.help)).collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_default_paths_are_those_of_the_readme() {
        let Command::Demo(demo) = Cli::parse_from(["polypath", "demo"]).command else { panic!() };
        let shown: Vec<_> = demo.paths.iter().map(Link::to_string).collect();
        assert_eq!(shown, ["80Mbit/s 20ms", "40Mbit/s 40ms"]);
    }

    /// The help after the options of a command, and of those below it.
    fn texts(command: &clap::Command) -> Vec<String> {
        let own = command.get_after_long_help().map(ToString::to_string);
        own.into_iter().chain(command.get_subcommands().flat_map(texts)).collect()
    }

    #[test]
    fn paragraphs_of_the_help_are_wrapped_by_the_width_of_the_terminal_alone() {
        let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
        for text in texts(&Cli::command()) {
            let lines: Vec<&str> = text.lines().collect();
            let by_hand = lines.windows(2).find(|two| two.iter().all(|line| is_prose(line)));
            assert_eq!(by_hand, None);
        }
    }
}
