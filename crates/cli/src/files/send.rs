//! `polypath send`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use polypath_endpoint::{PeerFailure, Reach};
use polypath_hip::{Accept, HipConfig};
use polypath_node::files::{self, FileError, Step, Transferred};
use polypath_node::{AssociateError, Node, StreamError};
use polypath_wire::hip::udp;
use serde_json::json;

use super::bars::Bars;
use super::{GRACE, Target, connection, identity, node};
use crate::args::SendArgs;
use crate::failure::{Failure, printed};
use crate::interrupt::Interrupt;

/// How often the bars move.
const TICK: Duration = Duration::from_millis(200);
/// A connection on which nothing moves for so long is given up for a new one.
const STALL: Duration = Duration::from_secs(20);
/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// Sends the files; goes on where it stopped when all links were gone for a while.
pub fn send(args: &SendArgs) -> Result<(), Failure> {
    for file in &args.files {
        let metadata = std::fs::metadata(file);
        let metadata =
            metadata.map_err(|e| Failure::usage(format!("cannot read {}: {e}", file.display())))?;
        if !metadata.is_file() {
            return Err(Failure::usage(format!("{} is not a regular file", file.display())));
        }
    }
    let identity = identity(args.identity.as_deref())?;
    let ours = identity.hit();
    let default_port = if args.native { 0 } else { udp::PORT };
    let reach = args.to.resolve(default_port).map_err(|e| Failure::system("no such address", e))?;
    let interrupt = Interrupt::listen()?;
    interrupt.block_on(async {
        let node = node(
            identity,
            HipConfig { accept: Accept::Nobody, ..HipConfig::default() },
            (!args.native).then_some(0),
        )?;
        let mut sender = Sender {
            node: &node,
            to: &args.to,
            reach: Reach::Addresses(reach),
            wait: Duration::from_secs(args.wait),
            left: args.files.clone(),
            done: Vec::new(),
            bars: RefCell::new(Bars::new(args.json)),
            moved: Instant::now(),
            met: false,
        };
        let began = Instant::now();
        let result = interrupt.or(sender.send_all()).await;
        let (done, bars) = (std::mem::take(&mut sender.done), sender.bars);
        node.shutdown(GRACE).await;
        bars.borrow().clear();
        result.map_err(|failure| match failure.status.is_interruption() {
            true => failure.help("the same command goes on where it stopped"),
            false => failure,
        })?;
        let seconds = began.elapsed().as_secs_f64();
        let report = Report { ours, to: args.to.hit, seconds, done, bars: &bars.borrow() };
        if args.json { report.print_json() } else { report.print() }
    })
}

struct Sender<'a> {
    node: &'a Node,
    to: &'a Target,
    reach: Reach,
    wait: Duration,
    left: Vec<PathBuf>,
    done: Vec<Transferred>,
    bars: RefCell<Bars>,
    /// When anything last moved.
    moved: Instant,
    /// Whether the peer has ever answered.
    met: bool,
}

/// Why an attempt ended.
enum End {
    /// Another one may succeed.
    Again(String),
    Final(Failure),
}

impl Sender<'_> {
    async fn send_all(&mut self) -> Result<(), Failure> {
        loop {
            let why = match self.attempt().await {
                Ok(()) => return Ok(()),
                Err(End::Final(failure)) => return Err(failure),
                Err(End::Again(why)) => why,
            };
            if self.moved.elapsed() > self.wait {
                return Err(Failure::system(format!("gave up after {} s", self.wait.as_secs()), why)
                    .help("the same command goes on where it stopped"));
            }
            self.bars.borrow().say(&format!("interrupted ({why}); trying again"));
            self.node.dissociate(self.to.hit);
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn attempt(&mut self) -> Result<(), End> {
        let hit = self.to.hit;
        let met = self.node.associate(hit, self.reach.clone()).await;
        met.map_err(|error| self.no_association(error))?;
        (self.met, self.moved) = (true, Instant::now());
        let stream = self.node.connect_peer(connection(), hit, files::PORT).await;
        let stream = stream.map_err(|e| End::Again(e.to_string()))?;

        let moved = RefCell::new(Instant::now());
        let done = RefCell::new(Vec::new());
        let (bars, left) = (&self.bars, &self.left);
        let tell = |step| match step {
            Step::Begin { name, size, at } => bars.borrow_mut().begin(&name, size, at),
            Step::Bytes(bytes) => {
                *moved.borrow_mut() = Instant::now();
                bars.borrow().advance(bytes);
            }
            Step::Done(file) => {
                // Later the peer may have ended the association, and the counts of its paths.
                bars.borrow_mut().look(&stream.stats(), |path| path.bytes_delivered);
                done.borrow_mut().push(file);
            }
        };
        let watch = async {
            let (mut ticks, mut acked) = (tokio::time::interval(TICK), 0);
            loop {
                ticks.tick().await;
                let stats = stream.stats();
                bars.borrow_mut().look(&stats, |path| path.bytes_delivered);
                if stats.connection.bytes_acked != acked {
                    acked = stats.connection.bytes_acked;
                    *moved.borrow_mut() = Instant::now();
                }
                if moved.borrow().elapsed() > STALL {
                    return format!("nothing moved for {} s", STALL.as_secs());
                }
            }
        };
        let result = tokio::select! {
            result = files::send(&stream, left, tell) => result.map_err(end),
            stalled = watch => Err(End::Again(stalled)),
        };
        bars.borrow_mut().look(&stream.stats(), |path| path.bytes_delivered);
        let (done, moved) = (done.into_inner(), moved.into_inner());
        self.left.drain(..done.len());
        self.done.extend(done);
        self.moved = self.moved.max(moved);
        if result.is_err() {
            stream.abort();
        }
        result
    }

    fn no_association(&self, error: AssociateError) -> End {
        let (hit, ours) = (self.to.hit, self.node.hit().map(|h| h.to_string()).unwrap_or_default());
        match error {
            AssociateError::Failed(PeerFailure::Refused) => End::Final(
                Failure::system(format!("{hit} does not let us in"), "we are strangers to it")
                    .help(format!("on that host: polypath receive --allow {ours}")),
            ),
            AssociateError::Failed(PeerFailure::Timeout) if !self.met => End::Final(
                Failure::system(format!("no answer from {hit}"), "nobody there, or somebody else")
                    .help(self.is_it_there()),
            ),
            AssociateError::Begin(polypath_hip::ConnectError::NoRoute) if !self.met => End::Final(
                Failure::system("no way to that address", "no local address of its family is usable")
                    .help("see `ip address`"),
            ),
            error @ AssociateError::Begin(polypath_hip::ConnectError::Hit(_)) => {
                End::Final(Failure::usage(error.to_string()))
            }
            error => End::Again(error.to_string()),
        }
    }

    /// What to look at if nobody answers.
    fn is_it_there(&self) -> String {
        let Reach::Addresses(addresses) = &self.reach else { return String::new() };
        let ports: BTreeSet<u16> = addresses.iter().map(SocketAddr::port).collect();
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let (native, way) = match ports[..] == ["0"] {
            true => (" --native", "do IP protocols 139 and 50".to_owned()),
            false => ("", format!("does UDP port {}", ports.join(" or "))),
        };
        format!("is `polypath receive{native}` running there, and {way} reach it?")
    }
}

fn end(error: FileError) -> End {
    match error {
        error if error.is_interruption() => End::Again(match error {
            FileError::Stream(StreamError::Lost(_)) | FileError::Cut => "the connection was lost".into(),
            error => error.to_string(),
        }),
        FileError::Changed(name) => {
            End::Final(Failure::unmet(format!("{name} arrived changed")).help("send it again"))
        }
        error => End::Final(Failure::system("cannot send", error)),
    }
}

struct Report<'a> {
    ours: polypath_wire::hip::Hit,
    to: polypath_wire::hip::Hit,
    seconds: f64,
    done: Vec<Transferred>,
    bars: &'a Bars,
}

impl Report<'_> {
    fn bytes(&self) -> u64 {
        self.done.iter().map(|file| file.bytes - file.resumed_at).sum()
    }

    fn print(&self) -> Result<(), Failure> {
        let rate = self.bytes() as f64 * 8.0 / self.seconds / 1e6;
        let mut text = String::new();
        for file in &self.done {
            let resumed = match file.resumed_at {
                0 => String::new(),
                at => format!(", of which {at} were there already"),
            };
            text += &format!("{}: {} bytes{resumed}, SHA-256 {}\n", file.name, file.bytes, file.sha256);
        }
        for carried in self.bars.carried() {
            let path = carried.path;
            let delay = path.measured.delay.map(|d| format!(", {:.1} ms one way", d.as_secs_f64() * 1e3));
            text += &format!("{}: {} bytes{}\n", path.locators, carried.bytes, delay.unwrap_or_default());
        }
        text += &format!("{:.2} s, {rate:.1} Mbit/s, encrypted for {}", self.seconds, self.to);
        use std::io::Write;
        printed(writeln!(std::io::stdout(), "{text}"))
    }

    fn print_json(&self) -> Result<(), Failure> {
        let path = |carried: super::bars::Carried| {
            let path = carried.path;
            json!({
                "local": path.locators.local,
                "remote": path.locators.remote,
                "bytes": carried.bytes,
                "mtu": path.mtu,
                "delay_us": path.measured.delay.map(|delay| delay.as_micros()),
                "rate_bps": path.measured.bandwidth.map(|rate| rate.0),
                "esp_suite": crate::demo::suite_name(path.suite),
                "spi_out": format!("{:08x}", path.outbound),
                "spi_in": format!("{:08x}", path.inbound),
            })
        };
        let report = json!({
            "sender_hit": self.ours,
            "receiver_hit": self.to,
            "seconds": self.seconds,
            "bytes": self.bytes(),
            "goodput_bps": self.bytes() as f64 * 8.0 / self.seconds,
            "files": self.done,
            "paths": self.bars.carried().into_iter().map(path).collect::<Vec<_>>(),
        });
        use std::io::Write;
        printed(writeln!(std::io::stdout(), "{report:#}"))
    }
}
