//! `polypath lab` and its arguments.

use std::num::NonZero;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use polypath_lab::seeds::SeedRange;
use polypath_lab::units::Human;
use polypath_wire::Duration;

use super::numbers::{at_least_one, seconds, seed};
#[cfg(feature = "lab")]
use super::record::{self, RecordArgs};
use super::trace::{self, TraceArgs};

/// What `lab --help` adds: the way from nothing to a result.
pub const LAB_EXAMPLES: &str = "\
Examples:
  polypath lab list                                  the experiments there are
  polypath lab run foundation/two_paths              run one, and check what it expects
  polypath lab new mine --template two_paths         a file to start from: mine.toml
  polypath lab run mine.toml --out out/mine          its numbers and figures
  polypath lab run mine.toml --set duration=60s      with another value than the file's
  polypath lab report mine.toml --out mine.html      as a page with figures

docs/research.md is an hour's introduction, with a controller of your own in Python and in Rust; docs/experiments.md is the reference: keys, \
metrics, algorithms, figures.";

const RUN_EXAMPLES: &str = "\
Examples:
  polypath lab run foundation/one_link                   by its name below experiments/
  polypath lab run my.toml --seeds 1..100 --out out/my   a file, an ensemble, results kept
  polypath lab run my.toml --seed 7 --pcap --out out/7   one run with a capture of every link
  polypath lab run my.toml --set connection.cc.algorithm=cubic --set 'link.a->b.queue=50p'
                                                         with other values than the file's

With --out it writes
  values.parquet, values.csv          every number of every run
  results.csv, results.arrow          a row per run and flow
  results.json                        the summary
  figure-1.svg, .pdf, .csv and so on  the figures
  figures.parquet, figures.csv        all their points
  RUN.pcapng                          with --pcap: every link, for tshark or Wireshark
  RUN.arrow                           with --trace: every observation
RUN is the run's id in the results. A file of an earlier run with the same name is replaced, others stay.

A cluster is the Python package's part: python -m polypath run my.toml --out out/my --dask tcp://host:8786 \
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
    #[command(after_long_help = trace::EXAMPLES)]
    Trace(TraceArgs),
    /// Record the rate and delay of a real path to another host, for rate = { trace = "FILE" } in a spec
    #[cfg(feature = "lab")]
    #[command(after_long_help = record::EXAMPLES)]
    Record(RecordArgs),
    /// Run in the simulator what a daemon did over its links
    #[command(after_long_help = REPLAY_EXAMPLES)]
    Replay(ReplayArgs),
    /// Time the simulator on this machine (scenarios of docs/performance.md)
    #[command(after_long_help = SPEED_EXAMPLES)]
    Speed(SpeedArgs),
    /// Print the JSON Schema of spec files
    Schema,
}

const FRONTIER_EXAMPLES: &str = "\
Examples:
  polypath lab frontier                                       all controllers in scenarios 1 to 20
  polypath lab frontier --scenarios 1..300 --out frontier.csv --report frontier.html
  polypath lab frontier --controllers cubic,polypath --worst 5
  polypath lab frontier --controllers polypath,polypath_separate   with a part of it off (docs/controller.md, Ablation)
  polypath lab frontier --runs 10 --rivals cubic --controllers polypath   beside CUBIC, without most of the chance
  polypath lab frontier --spec 17                             scenario 17 as a spec file
  polypath lab run frontier/17                                the same scenario, every controller, more numbers

Each scenario has one to four paths, apart, shared or partly shared; 1 to 1000 Mbit/s; round trips of 2 to \
300 ms; queues of 0.25 to 8 BDP; and up to two TCPs at each bottleneck. Some have random loss, reordering, rates \
that change, bursts, or traffic the other way.

The baseline (null) replaces the connection by one TCP at each bottleneck, over the quickest path there. Every controller \
is compared with the mean of the null over three other seeds, or as many as --runs.

Columns have medians; p5 and p95 are where the lowest and the highest twentieth begin:
  bottlenecks    those with TCPs beside the connection; the next eight are of these
  FF             its goodput over the mean goodput of the TCPs there
  starved        share of them at which FF is below 0.3
  of a TCP       its goodput over the goodput of one TCP in its place
  TCPs keep      goodput of the TCPs there over what they have beside the null
  harmless       share of them at which the TCPs lose at most 1.05 times what the null costs them
  harmful        share of them at which they certainly lose more (95 %), with --runs 2 or more
  and FF > 1     the part of that where its goodput is above theirs; elsewhere one TCP in its place mostly has even less
  their RTT      round trip of the TCPs over that beside the null
  of fair share  by scenario: its goodput over the goodput of one TCP at each bottleneck
  used           by scenario: goodput of all flows over their goodput in the null";

/// The scenarios of the frontier, if nothing else is said, and of a quick look at it.
const SCENARIOS: SeedRange = SeedRange { first: 1, last: 20 };
const FEW: SeedRange = SeedRange { first: 1, last: 4 };

#[derive(Args, Debug)]
pub struct FrontierArgs {
    /// Which scenarios, by number
    #[arg(long, value_name = "A..B", default_value_t = SCENARIOS)]
    pub scenarios: SeedRange,
    /// Only these controllers
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub controllers: Vec<String>,
    /// Only scenarios whose TCPs beside the connection follow these laws
    #[arg(long, value_name = "LAWS", value_delimiter = ',', value_parser = ["newreno", "cubic", "bbr"])]
    pub rivals: Vec<String>,
    /// Runs of each controller in each scenario, with different seeds, whose means count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub runs: u64,
    /// Runs at a time [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZero<usize>>)]
    pub jobs: Option<NonZero<usize>>,
    /// Leave out bottlenecks that hold fewer packets than this, queue included
    #[arg(long, value_name = "PACKETS", default_value_t = FrontierArgs::PIPE)]
    pub pipe: u64,
    /// Number of worst scenarios to list per controller
    #[arg(long, value_name = "N", default_value_t = FrontierArgs::WORST)]
    pub worst: usize,
    /// Write a row for each run and bottleneck, as CSV
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write an HTML page: harm against utilisation, distributions, worst scenarios
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print this scenario as a spec file, and run nothing
    #[arg(long, value_name = "N")]
    pub spec: Option<u64>,
    /// Print a JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

impl FrontierArgs {
    /// What a bottleneck holds at least to count, packets.
    pub const PIPE: u64 = 25;
    /// How many of the worst scenarios are listed.
    pub const WORST: usize = 3;

    /// What `lab report frontier` asks for.
    #[cfg(feature = "lab")]
    pub fn of_page(args: &ReportArgs) -> Self {
        Self {
            scenarios: args.group.seeds.unwrap_or(if args.group.quick { FEW } else { SCENARIOS }),
            controllers: Vec::new(),
            rivals: Vec::new(),
            runs: 1,
            jobs: None,
            pipe: Self::PIPE,
            worst: 5,
            out: None,
            report: Some(args.out.clone()),
            spec: None,
            json: false,
        }
    }
}

const SPEED_EXAMPLES: &str = "\
Examples:
  polypath lab speed link 20                 one TCP flow, 1 Gbit/s, 20 ms, for 20 simulated seconds
  polypath lab speed dumbbell 10 --flows 100

A packet of 1250 bytes has an acknowledgment of its own. docs/performance.md has the figures beside ns-2 and htsim, \
and how they were measured: one run on a busy machine says little.";

#[derive(Args, Debug)]
pub struct SpeedArgs {
    /// What is simulated
    #[arg(value_name = "SCENARIO", value_enum)]
    pub scenario: SpeedScenario,
    /// Simulated time
    #[arg(value_name = "SECONDS", value_parser = seconds)]
    pub seconds: f64,
    /// Flows of the dumbbell, each between hosts of its own
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub flows: u32,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum SpeedScenario {
    /// One flow over 1 Gbit/s and 20 ms
    Link,
    /// The same flow in ESP, after a base exchange
    Secure,
    /// Flows over one bottleneck of 1 Gbit/s, 20 ms from host to host
    Dumbbell,
    /// Two flows on the first path of the mHIP paper's topology
    Mhip,
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  polypath status --watch --json > run.log          on the host that sends, while it sends; Ctrl-C ends it
  polypath lab replay run.log                       how long the same takes in the simulator
  polypath lab replay run.log --write mine.toml     as an experiment: try another controller on these links

docs/experiments.md says what the log shows of the links, and what it cannot show.";

#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// What `polypath status --watch --json` printed; - is standard input
    #[arg(value_name = "LOG")]
    pub log: PathBuf,
    /// The peer to which the data went, its name or tag [default: the one to which most was sent]
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
    /// The template to begin with
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

Each line has two answers:
  band     our own min and max; it is met or UNMET, and decides the exit status
  finding  what our ensemble says of the paper's value: reproduced, direction only, not identifiable, refuted

docs/experiments.md has the rule. The null is the same number with plain TCP in the place of the multipath connection's \
path. Cells that no expectation needs run with one seed only, unless --out, --report or --figures want them.";

const REPORT_EXAMPLES: &str = "\
Examples:
  polypath lab report mhip --out mhip.html
  polypath lab report foundation --quick
  polypath lab report my.toml --out my.html              one experiment
  polypath lab report frontier --seeds 1..100            random scenarios by number (lab frontier has more options)

The page opens with one row per claim: the paper's value, ours, the null, the verdict. Set-up, readings and our own bands are folded \
below. Figures have zoom and tooltips; it needs no network: open it in any browser.";

/// A group of experiments.
#[derive(Args, Debug)]
pub struct GroupArgs {
    /// A directory below experiments/, or a group built into this program: foundation, mhip, rmtcp, fast
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
    /// Write the results of every run into this directory; a file of an earlier run with the same name is replaced
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the HTML page too
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write every figure into this directory, as EXPERIMENT-NUMBER.svg, .pdf and .csv
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// Judge only the claims of published values: with 50 seeds from this one on, and up to 400 where these do not decide
    #[arg(long, value_name = "SEED", value_parser = seed, conflicts_with_all = ["seeds", "quick", "out", "report", "figures"])]
    pub settle: Option<u64>,
    /// Compare with the results that earlier checks printed with --json, each of other seeds, instead of judging bands
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub against: Vec<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

impl CheckArgs {
    /// Whether nothing but the answers is wanted.
    #[cfg(feature = "lab")]
    pub fn only_answers(&self) -> bool {
        self.out.is_none() && self.report.is_none() && self.figures.is_none()
    }
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
    /// Replace a value of the spec: `duration=60s`, `flow.bulk.mss=1250` (flows by name, links by their ends; may be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Only this seed
    #[arg(long, value_name = "N", conflicts_with = "seeds", value_parser = seed)]
    pub seed: Option<u64>,
    /// These seeds instead of the spec's, the last included
    #[arg(long, value_name = "A..B")]
    pub seeds: Option<SeedRange>,
    /// How many runs at once; without it one for each core
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZero<usize>>)]
    pub jobs: Option<NonZero<usize>>,
    /// Only this cell of the grid
    #[arg(long, value_name = "LABEL")]
    pub cell: Option<String>,
    /// Write results into this directory; a file of an earlier run with the same name is replaced, others stay
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Capture what every link carries (pcapng), into --out
    #[arg(long, requires = "out")]
    pub pcap: bool,
    /// Capture only these links and directions, as in a->r,r->b
    #[arg(long, value_name = "LINKS", requires = "pcap", value_delimiter = ',')]
    pub pcap_links: Vec<String>,
    /// Keep the first BYTES of each packet: 96 hold all headers
    #[arg(long, value_name = "BYTES", requires = "pcap", value_parser = at_least_one::<NonZero<u32>>)]
    pub pcap_bytes: Option<NonZero<u32>>,
    /// Keep every observation of every run (Arrow IPC), in --out
    #[arg(long, requires = "out")]
    pub trace: bool,
    /// Keep only the observations of these flows, as in bulk,tcp
    #[arg(long, value_name = "FLOWS", requires = "trace", value_delimiter = ',')]
    pub trace_flows: Vec<String>,
    /// Keep only the observations of these paths, by number from 0
    #[arg(long, value_name = "PATHS", requires = "trace", value_delimiter = ',')]
    pub trace_paths: Vec<u32>,
    /// Keep only these events, as in lost,undone
    #[arg(long, value_name = "EVENTS", requires = "trace", value_delimiter = ',')]
    pub trace_events: Vec<String>,
    /// Keep only observations from this time on, as in 5s
    #[arg(long, value_name = "TIME", requires = "trace")]
    pub trace_from: Option<Human<Duration>>,
    /// Keep only observations before this time
    #[arg(long, value_name = "TIME", requires = "trace")]
    pub trace_to: Option<Human<Duration>>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}
