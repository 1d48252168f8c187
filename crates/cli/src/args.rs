//! The command line, and the help that teaches it.

mod files;
#[cfg(feature = "lab")]
mod record;
#[cfg(feature = "daemon")]
mod tunnel;

use std::num::NonZero;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use polypath_lab::seeds::SeedRange;
use polypath_lab::units::{Bytes, Human, Link};
use polypath_transport::Registry;
use polypath_transport::cc::CcConfig;
use polypath_transport::sched::SchedulerConfig;
use polypath_wire::Rate;

pub use files::{Allow, LinkArgs, ReceiveArgs, SendArgs};
#[cfg(feature = "lab")]
pub use record::RecordArgs;
#[cfg(feature = "daemon")]
pub use tunnel::{
    DownArgs, InitArgs, LogArgs, PathsArgs, PathsCommand, PeersArgs, ReloadArgs, StatusArgs, TestbedCommand,
    TunnelCommand, UpArgs,
};

const EXAMPLES: &str = "\
Examples:
  polypath demo                                  a 64 MiB file over two paths at once, in real time
  polypath demo --sim                            the same in virtual time
  polypath hit                                   the name of this host, as others know it
  polypath receive --allow HIT                   take files from that host
  polypath send big.iso photos HIT@192.0.2.1     send a file and a directory there
  polypath init                                  prepare this host for other programs' connections
  polypath up                                    carry them over all links until told to end
  polypath lab list                              the experiments there are
  polypath lab run foundation/two_paths          run one and check what it expects
  polypath lab check foundation                  run a whole group
  polypath lab report foundation                 the same as a page with figures

Exit status:
  0    done, and everything as expected
  1    done, but an expectation failed, or a file arrived changed or was refused
  2    bad arguments or a bad spec file
  3    the system did not allow it, or the paths did not carry it
  130  interrupted by Ctrl-C (129 by SIGHUP, 143 by SIGTERM)";

/// Moves data between two hosts over all their network links at once, in one encrypted connection
///
/// `send` and `receive` move files between two hosts. `up` carries the TCP connections of other programs. `demo` shows on this host alone what that brings over slow
/// links. `lab` measures the same code in a simulator and compares it with published results.
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
    Lab {
        #[command(subcommand)]
        command: LabCommand,
    },
    /// Send files and directories to a host, or let it fetch them, over all links of both
    #[command(after_long_help = files::SEND_EXAMPLES)]
    Send(SendArgs),
    /// Receive files from hosts that you let in, or fetch them from one
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
  polypath demo --json | jq .utilisation

A path is RATE/DELAY: the rate of its link and its one-way propagation delay, the same in both
directions, with a queue of one round trip at that rate. There may be 64 of them. --json prints one object; its keys are
described in docs/demo-json.md.";

#[derive(Args, Clone, Debug)]
#[command(after_long_help = DEMO_EXAMPLES)]
pub struct DemoArgs {
    /// The file to send; without it a file of --size is made up
    #[arg(long, value_name = "PATH", conflicts_with = "size")]
    pub file: Option<PathBuf>,
    /// Size of the file that is made up
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
    /// Keep what arrived in this file
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
  polypath hit                             what to tell your peers
  polypath hit alice.pub                   the HIT of somebody's public key

The key is a PKCS#8 file in PEM without a passphrase, mode 0600; the default is
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

const RUN_EXAMPLES: &str = "\
Examples:
  polypath lab run foundation/one_link                   by its name below experiments/
  polypath lab run my.toml --seeds 1..100 --out out/my   a file, an ensemble, results kept
  polypath lab run my.toml --seed 7 --pcap --out out/7   one run with a capture of every link

With --out it writes values.parquet and values.csv (every number of every run), results.csv and
results.arrow (one row per run and flow), results.json (the summary), and its figures: figure-1.svg,
figure-1.pdf, figure-1.csv and so on, all points in figures.parquet and figures.csv; with --pcap also RUN.pcapng (every link, for tshark or Wireshark), with
--trace also RUN.arrow (every observation), where RUN is the run's id in the results.

A cluster is the Python package's part: python -m polypath run my.toml --out out/my --dask tcp://host:8786
(docs/python.md).";

#[derive(Subcommand, Debug)]
pub enum LabCommand {
    /// List the experiments
    List {
        /// Directory of the experiments [default: experiments/ if it is there, else those built into this program]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Print a JSON array instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Run an experiment over its seeds on all cores, and check what it expects
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Run a whole group of experiments and compare with the papers; fails if a band is unmet
    #[command(after_long_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Run a group of experiments, or one, and write an HTML page with its claims and figures
    #[command(after_long_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Write a spec file of your own from a template; without a name, list the templates
    #[command(after_long_help = NEW_EXAMPLES)]
    New(NewArgs),
    /// Compare controllers over random scenarios: what they take, leave to others, leave unused
    #[command(after_long_help = FRONTIER_EXAMPLES)]
    Frontier(FrontierArgs),
    /// Draw a trace of a link's rate by seed, for rate = { trace = "FILE" } in a spec
    #[command(after_long_help = TRACE_EXAMPLES)]
    Trace(TraceArgs),
    /// Record the rate and delay of a real path to another host, for rate = { trace = "FILE" } in a spec
    #[cfg(feature = "lab")]
    #[command(after_long_help = record::EXAMPLES)]
    Record(RecordArgs),
    /// Run in the simulator what a daemon did over its links
    #[command(after_long_help = REPLAY_EXAMPLES)]
    Replay(ReplayArgs),
    /// Print the JSON Schema of spec files
    Schema,
}

const FRONTIER_EXAMPLES: &str = "\
Examples:
  polypath lab frontier                                       all controllers in scenarios 1 to 20
  polypath lab frontier --scenarios 1..300 --out frontier.csv
  polypath lab frontier --controllers cubic,polypath --worst 5
  polypath lab frontier --controllers polypath,polypath_separate   with a part of it off (docs/controller.md, Ablation)
  polypath lab frontier --spec 17                             scenario 17 as a spec file
  polypath lab run frontier/17                                the same scenario, every controller, more numbers

Each scenario has one to four paths, apart, shared or partly shared; 1 to 1000 Mbit/s; round trips of 2 to
300 ms; queues of 0.25 to 8 BDP; up to two TCPs at each bottleneck; and some have random loss, reordering, rates
that change, bursts, traffic the other way. FF: its goodput at a bottleneck, divided by the mean goodput of
the TCPs there.
The baseline (null) replaces the
connection by one TCP at each bottleneck, over the quickest path there; every controller is compared with its mean
over three other seeds. Harmless: the TCPs beside it lose at most 1.05 times what they lose to the null. Columns
without a name are of the one before: medians first, then where the lowest and the highest twentieth begin.";

#[derive(Args, Debug)]
pub struct FrontierArgs {
    /// Which scenarios, by number
    #[arg(long, value_name = "A..B", default_value = "1..20")]
    pub scenarios: SeedRange,
    /// Only these
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub controllers: Vec<String>,
    /// Runs at a time [default: as many as there are cores]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZero<usize>>,
    /// Of single bottlenecks count those that hold this many packets, queue included
    #[arg(long, value_name = "PACKETS", default_value_t = 25)]
    pub pipe: u64,
    /// The scenarios in which each controller takes most, this many
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub worst: usize,
    /// Write a row for each run and bottleneck, as CSV
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print this scenario as a spec file, and run nothing
    #[arg(long, value_name = "N")]
    pub spec: Option<u64>,
    /// Print a JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

const TRACE_EXAMPLES: &str = "\
Examples:
  polypath lab trace lte --seed 1 > lte.trace                         a minute of a cellular link, outages among it
  polypath lab trace starlink --seconds 300 --mean 100Mbit/s > sat.trace
  polypath lab trace wifi --seed 7 > wifi.trace

The format is mahimahi's: each line is the millisecond at which 1500 bytes may leave. The same seed draws the same
trace everywhere. docs/experiments.md says where the numbers of each kind come from.";

#[derive(Args, Debug)]
pub struct TraceArgs {
    /// What the link is like
    #[arg(value_name = "KIND", value_parser = kinds())]
    pub kind: String,
    /// What decides the draw
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How long it is until it repeats, 1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub seconds: u64,
    /// Mean rate of a long one; without it 7Mbit/s (lte), 150Mbit/s (starlink), 37Mbit/s (wifi)
    #[arg(long, value_name = "RATE")]
    pub mean: Option<Human<Rate>>,
}

fn kinds() -> PossibleValuesParser {
    [
        ("lte", "Rate wanders, with outages, as Sprout models cellular links"),
        ("starlink", "Rate changes every 15 s, after a short pause"),
        ("wifi", "Bursts on a channel that others use too"),
    ]
    .map(|(name, help)| PossibleValue::new(name).help(help))
    .into()
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  polypath status --watch --json > run.log          on the host that sends, while it sends; Ctrl-C ends it
  polypath lab replay run.log                       how long the same takes in the simulator
  polypath lab replay run.log --write mine.toml     as an experiment: try another controller on these links

What the log tells of the links, and what it cannot: docs/experiments.md.";

#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// What `polypath status --watch --json` printed; - is standard input
    #[arg(value_name = "LOG")]
    pub log: PathBuf,
    /// The peer to which the data went, its name or tag [default: the one that was sent most]
    #[arg(long, value_name = "PEER")]
    pub peer: Option<String>,
    /// Write the experiment into this new file instead of running it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "json"])]
    pub write: Option<PathBuf>,
    /// Seeds of the runs
    #[arg(long, value_name = "A..B")]
    pub seeds: Option<SeedRange>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

const NEW_EXAMPLES: &str = "\
Examples:
  polypath lab new                                  the templates
  polypath lab new mine --template two_paths        writes mine.toml, which says what its keys mean
  polypath lab run mine.toml";

#[derive(Args, Debug)]
pub struct NewArgs {
    /// The file, .toml
    #[arg(value_name = "NAME")]
    pub name: Option<PathBuf>,
    /// What to begin with
    #[arg(long, value_name = "TEMPLATE", default_value = "two_paths")]
    pub template: String,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  polypath lab check mhip                                every experiment of experiments/mhip
  polypath lab check mhip --quick                        the first four seeds of each
  polypath lab check fast --report fast.html --out out   also the page, and the results of every run
  polypath lab check mhip --settle 9001 --against docs/results/mhip-*.json
                                                         the same findings on other seeds?

Two answers a line. The band (our own min and max) is met or UNMET and decides the exit status. The
finding says what our ensemble makes of the paper's value: reproduced, direction only, not
identifiable, refuted; the rule is in docs/experiments.md. The null is the same number where nothing
distinguishes the flows.";

const REPORT_EXAMPLES: &str = "\
Examples:
  polypath lab report mhip --out mhip.html
  polypath lab report foundation --quick
  polypath lab report my.toml --out my.html              one experiment

The page opens with a row a claim: the paper's value, ours, the null, the verdict. Set-up, readings and our own bands are folded
below. Figures have zoom and tooltips; it needs no network: open it in any browser.";

/// A group of experiments.
#[derive(Args, Debug)]
pub struct GroupArgs {
    /// A directory below experiments/, or a group built into this program: foundation, mhip, rmtcp, fast. `lab report` also
    /// takes one experiment, by its name or its file
    pub group: String,
    /// These seeds instead of the specs', the last included
    #[arg(long, value_name = "A..B", conflicts_with = "quick")]
    pub seeds: Option<SeedRange>,
    /// Only the first four seeds of each experiment; a band that these do not meet is open, not unmet
    #[arg(long)]
    pub quick: bool,
    /// Directory of the groups [default: experiments/ if it is there, else those built into this program]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

impl GroupArgs {
    /// The seeds that they choose.
    #[cfg(feature = "lab")]
    pub fn chosen(&self) -> polypath_lab::group::Seeds {
        use polypath_lab::group::Seeds;
        match (self.quick, self.seeds) {
            (true, _) => Seeds::Quick,
            (false, Some(seeds)) => Seeds::Only(seeds),
            (false, None) => Seeds::Spec,
        }
    }

    /// The arguments that choose the seeds.
    pub fn seeds_text(&self) -> String {
        match (self.quick, self.seeds) {
            (true, _) => " --quick".to_owned(),
            (false, Some(seeds)) => format!(" --seeds {seeds}"),
            (false, None) => String::new(),
        }
    }
}

#[derive(Args, Debug)]
pub struct CheckArgs {
    #[command(flatten)]
    pub group: GroupArgs,
    /// Write the results of every run into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the HTML page too
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write every figure into this directory, as EXPERIMENT-NUMBER.svg, .pdf and .csv
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// Only the claims of published values, with 50 seeds from this one on, and with up to 400 where these do not decide
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "quick", "out", "report", "figures"])]
    pub settle: Option<u64>,
    /// Compare with the JSON of earlier checks on disjoint blocks of seeds, findings of many runs and means of few; bands
    /// do not count then
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub against: Vec<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct ReportArgs {
    #[command(flatten)]
    pub group: GroupArgs,
    /// Where to write the page
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub out: PathBuf,
}

#[derive(Args, Debug)]
pub struct RunArgs {
    /// A spec file, or the name of one below experiments/ or built into this program
    #[arg(value_name = "SPEC")]
    pub spec: PathBuf,
    /// Only this seed
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// These seeds instead of the spec's, the last included
    #[arg(long, value_name = "A..B")]
    pub seeds: Option<SeedRange>,
    /// How many runs at once; without it one for each core
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZero<usize>>,
    /// Only this cell of the grid
    #[arg(long, value_name = "LABEL")]
    pub cell: Option<String>,
    /// Write results into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Capture what every link carries (pcapng), into --out
    #[arg(long, requires = "out")]
    pub pcap: bool,
    /// Of these links and directions only, as in a->r,r->b
    #[arg(long, value_name = "LINKS", requires = "pcap", value_delimiter = ',')]
    pub pcap_links: Vec<String>,
    /// Keep the first BYTES of each packet: 96 hold all headers
    #[arg(long, value_name = "BYTES", requires = "pcap")]
    pub pcap_bytes: Option<NonZero<u32>>,
    /// Keep every observation of every run (Arrow IPC), in --out
    #[arg(long, requires = "out")]
    pub trace: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
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
}
