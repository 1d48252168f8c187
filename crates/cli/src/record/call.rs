//! The host that calls, and gets the files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use polypath_endpoint::Reach;
use polypath_hip::{Accept, HipConfig};
use polypath_hop::LinkTrace;
use polypath_lab::stop::Stop;
use polypath_lab::units::Human;
use polypath_node::{Node, Stream, StreamError};
use polypath_wire::hip::udp;
use tokio::time::{Instant, timeout};

use super::arrivals::trace;
use super::message::{self, Request, What};
use super::{PIECE, PORT, connection, fill, receive};
use crate::args::RecordArgs;
use crate::failure::{Failure, printed};
use crate::files::{GRACE, choice, node};
use crate::interrupt::Interrupt;
use crate::keys;
use crate::target::Target;

/// How long the other host may take to answer at first, and to send its notes at the end.
const WAIT: Duration = Duration::from_secs(8);
/// Round trips that are measured on the empty path.
const ECHOES: usize = 10;
/// Sending fills the path before measuring begins: at least for this time, and for this many round trips.
const FIRST: Duration = Duration::from_secs(1);
const ROUNDS: u32 = 12;
/// Notes are at most this many bytes.
const NOTES: usize = 16 << 20;

/// Records and writes the files.
pub fn call(args: &RecordArgs, to: &Target) -> Result<(), Failure> {
    let out = args.out.as_deref().ok_or_else(|| {
        Failure::usage("no output name given")
            .help("give --out NAME: it writes NAME.up.trace and NAME.down.trace")
    })?;
    let identity = keys::file::load(&keys::ensure(args.identity.as_deref())?)?;
    let addresses = to.resolve(udp::PORT).map_err(|e| Failure::system("no such address", e))?;
    let interrupt = Interrupt::listen_meanwhile()?;
    let stop = interrupt.stop();
    interrupt.block_on(async {
        let hip = HipConfig { accept: Accept::Nobody, ..HipConfig::default() };
        let node = node(identity, hip, Some(0), choice(&args.links()), connection().ecn)?;
        let met = timeout(WAIT, node.associate(to.hit, Reach::Addresses(addresses)));
        let met = interrupt.or(async { Ok(met.await) }).await?;
        let there =
            format!("on that host: polypath lab record --listen --allow {}", node.hit().unwrap_or(to.hit));
        let unmet = |why: String| Failure::system(format!("{} does not answer", to.hit), why).help(&there);
        met.map_err(|_| unmet("no answer".into()))?.map_err(|e| unmet(e.to_string()))?;
        let recording = Recording { args, to, node: &node, stop: &stop, out };
        let result = recording.run().await;
        node.shutdown(GRACE).await;
        result?;
        interrupt.check().map_err(|e| e.help("what was recorded until then is kept"))
    })
}

struct Recording<'a> {
    args: &'a RecordArgs,
    to: &'a Target,
    node: &'a Node,
    stop: &'a Stop,
    out: &'a Path,
}

impl Recording<'_> {
    async fn run(&self) -> Result<(), Failure> {
        let rtt = self.step(self.round_trip().await)?;
        eprintln!("round trip of the empty path: {:.1} ms", rtt.as_secs_f64() * 1000.0);
        let warm = FIRST.max(rtt * ROUNDS);
        let time = warm + Duration::from_secs(self.args.seconds.into());
        let mut kept = Vec::new();
        for what in [What::Down, What::Up] {
            if self.stop.is_asked() {
                break;
            }
            let request = Request { what, time, most: self.args.most.0.0 };
            eprintln!(
                "{}: {} s, of which the first {:.1} do not count",
                named(what),
                time.as_secs(),
                warm.as_secs_f64()
            );
            let notes = self.step(self.direction(request).await)?;
            // What was written ahead arrives after the end.
            let [begin, end] = [warm, time].map(|t| u32::try_from(t.as_millis()).unwrap_or(u32::MAX));
            match trace(&notes, begin, end) {
                Some(trace) => kept.push((what, self.keep(what, &trace)?)),
                None => eprintln!(
                    "{}: nothing arrived after the first {:.1} s, so there is no trace; --most {} may end before",
                    named(what),
                    warm.as_secs_f64(),
                    self.args.most
                ),
            }
        }
        printed(write!(io::stdout(), "{}", link(&kept, rtt)))
    }

    fn step<T>(&self, result: Result<T, StreamError>) -> Result<T, Failure> {
        result.map_err(|e| Failure::system(format!("recording with {} failed", self.to.hit), e))
    }

    async fn open(&self, request: Request) -> Result<Stream, StreamError> {
        let stream = self.node.connect_peer(connection(), self.to.hit, PORT).await?;
        stream.write(request.bytes().into()).await?;
        Ok(stream)
    }

    /// The smallest of several round trips of a few bytes.
    async fn round_trip(&self) -> Result<Duration, StreamError> {
        let stream = self.open(Request { what: What::Echo, time: WAIT, most: 0 }).await?;
        let mut least = Duration::MAX;
        for _ in 0..ECHOES {
            let sent = Instant::now();
            stream.write(bytes::Bytes::from_static(b"echo")).await?;
            let mut back = 0;
            while back < 4 {
                back += stream.read(4 - back).await?.map_or(4, |bytes| bytes.len());
            }
            least = least.min(sent.elapsed());
        }
        stream.finish();
        stream.read(1).await?;
        Ok(least)
    }

    /// What arrived when, in one direction.
    async fn direction(&self, request: Request) -> Result<Vec<(u32, u32)>, StreamError> {
        let stream = self.open(request).await?;
        let stopped = || self.stop.is_asked();
        if request.what == What::Down {
            let notes = receive(&stream, stopped).await?.notes;
            if stopped() {
                stream.abort()
            } else {
                stream.finish()
            }
            return Ok(notes);
        }
        fill(&stream, request.time, request.most, stopped).await?;
        let limit = if stopped() { WAIT } else { request.time + WAIT };
        let notes = timeout(limit, self.notes(&stream)).await;
        notes.unwrap_or_else(|_| Ok(Vec::new()))
    }

    async fn notes(&self, stream: &Stream) -> Result<Vec<(u32, u32)>, StreamError> {
        let mut bytes = Vec::new();
        while let Some(more) = stream.read(PIECE).await? {
            bytes.extend_from_slice(&more);
            if bytes.len() > NOTES {
                return Ok(Vec::new());
            }
        }
        Ok(message::parse_notes(&bytes).unwrap_or_default())
    }

    /// Writes the file of a direction.
    fn keep(&self, what: What, trace: &LinkTrace) -> Result<PathBuf, Failure> {
        let mut name = self.out.as_os_str().to_owned();
        name.push(format!(".{}.trace", named(what)));
        let (file, mut part) = (PathBuf::from(&name), name);
        part.push(".part");
        std::fs::write(&part, trace.to_string()).and_then(|()| std::fs::rename(&part, &file)).map_err(
            |e| {
                let _ = std::fs::remove_file(&part); // the error that counts is the first
                Failure::system(format!("cannot write {}", file.display()), e)
            },
        )?;
        let (seconds, rate) = (trace.period().as_secs_f64(), trace.mean_rate().0 as f64 / 1e6);
        eprintln!("{}: {rate:.2} Mbit/s in the mean of {seconds:.1} s", file.display());
        Ok(file)
    }
}

fn named(what: What) -> &'static str {
    match what {
        What::Up => "up",
        What::Down => "down",
        What::Echo => "echo",
    }
}

/// The link of an experiment that follows what was recorded; nothing if that is not both directions.
fn link(kept: &[(What, PathBuf)], rtt: Duration) -> String {
    let of = |what| {
        kept.iter().find(|(w, _)| *w == what).and_then(|(_, file)| file.file_name()).map(|n| n.display())
    };
    let Some((up, down)) = of(What::Up).zip(of(What::Down)) else { return String::new() };
    let delay = Human(polypath_wire::Duration::from_micros(rtt.as_micros() as u64 / 2 / 10 * 10));
    format!(
        "# from: the host that called; delay: half of the round trip of the empty path\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
         rate = {{ trace = \"{up}\" }}\ndelay = \"{delay}\"\nback = {{ rate = {{ trace = \"{down}\" }} }}\n"
    )
}
