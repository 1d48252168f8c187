//! `polypath demo --curl`: what a program gets that knows nothing of Polypath.
//!
//! Two hosts in network namespaces, emulated links between them, a daemon on each. curl downloads over HTTP in one TCP connection: over
//! each link alone, and then through the daemons, where the first link falls silent half-way.

use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use polypath_lab::units::{Bytes, Human, Link};
use polypath_testbed::address;
use polypath_testbed::emulated_link::EmulatedLink;
use polypath_testbed::netns::Netns;
use serde::Serialize;
use tokio::sync::mpsc;

use super::content::{Content, Digested};
use super::daemons::Running;
use super::http;
use super::plan::{Plan, check_paths};
use super::real::gain_privileges;
use crate::args::DemoArgs;
use crate::failure::{Failure, print_json, printed};
use crate::hosts;
use crate::interrupt::Interrupt;
use crate::table;

/// How long a link is measured alone.
const ALONE: Duration = Duration::from_secs(4);
/// After a pause.
const SETTLED: Duration = Duration::from_secs(1);
/// Without anything arriving.
const SILENCE: Duration = Duration::from_secs(40);

/// What `--json` prints; the keys are stable (docs/demo-json.md).
#[derive(Debug, Serialize)]
struct Report {
    mode: &'static str,
    bytes: u64,
    sha256: String,
    sha256_match: bool,
    alone: Vec<Alone>,
    /// Until the cut.
    goodput_bps: f64,
    capacity_bps: u64,
    utilisation: f64,
    cut: Cut,
}

#[derive(Debug, Serialize)]
struct Alone {
    path: usize,
    rate_bps: u64,
    delay_ms: f64,
    goodput_bps: f64,
}

/// Path 0 falls silent.
#[derive(Debug, Serialize)]
struct Cut {
    at_bytes: u64,
    /// The longest time without a byte after it.
    pause_s: f64,
    /// From a second after that on.
    goodput_bps: f64,
}

/// Two hosts; dropping it ends the daemons and takes the links down.
struct Bed {
    daemons: Vec<Running>,
    links: Vec<EmulatedLink>,
    hosts: [Netns; 2],
}

/// Has curl download, and tells how it went.
pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    check(args)?;
    gain_privileges("--curl")?;
    let content = Content::open(args)?;
    let interrupt = Interrupt::listen()?;
    let bar = bar(content.len, args.json);
    let report = interrupt.block_on(interrupt.or(demonstrate(&args.paths, &content, &bar)))?;
    bar.finish_and_clear();
    match args.json {
        true => print_json(&report),
        false => report.print_table(&content, &args.paths),
    }?;
    match report.sha256_match {
        true => Ok(()),
        false => Err(Failure::unmet("curl received different data").help("this is a bug: please report it")),
    }
}

fn check(args: &DemoArgs) -> Result<(), Failure> {
    check_paths(&args.paths)?;
    if args.paths.len() < 2 {
        return Err(Failure::usage("--curl cuts a path half-way, and there is one").help("repeat --path"));
    }
    let there = Command::new("curl").arg("--version").stdout(Stdio::null()).status();
    there.map(|_| ()).map_err(|e| {
        Failure::system("cannot run curl", e).help("install it (apt-get install curl), or leave --curl out")
    })
}

async fn demonstrate(paths: &[Link], content: &Content, bar: &ProgressBar) -> Result<Report, Failure> {
    let failed = |e: io::Error| Failure::system("cannot serve HTTP", e);
    let dir = tempfile::tempdir().map_err(|e| Failure::system("no temporary directory", e))?;
    let mut bed = Bed::build(paths)?;
    let listener =
        bed.hosts[1].run(http::listen).map_err(|e| failed(io::Error::other(e)))?.map_err(failed)?;
    let server = http::serve(listener, content.path.clone(), content.len);
    let measured = async {
        let mut alone = Vec::new();
        for (path, link) in paths.iter().enumerate() {
            bar.set_prefix(format!("path {path} alone"));
            let got = bed.fetch(address(path, 1), Some(ALONE), bar, |_| ()).await?;
            let goodput_bps = got.rate(got.began, 0);
            let (rate_bps, delay_ms) = (link.rate.0, link.delay.as_millis_f64());
            alone.push(Alone { path, rate_bps, delay_ms, goodput_bps });
        }
        bed.start_daemons(dir.path(), paths.len()).await?;
        bar.set_prefix("all paths");
        let mut cut = None;
        let got = bed.fetch(hosts::inner(1), None, bar, |bytes| {
            if bytes >= content.len / 2 && cut.is_none() {
                bed.links[0].cut();
                bar.set_prefix("path 0 cut");
                cut = Some((Instant::now(), bytes));
            }
        });
        let got = got.await?;
        let (at, at_bytes) = cut.unwrap_or((got.began, 0));
        Ok(Report::new(paths, content, alone, &got, at, at_bytes))
    };
    tokio::select! {
        done = measured => done,
        error = server => Err(failed(error)),
    }
}

impl Bed {
    fn build(paths: &[Link]) -> Result<Self, Failure> {
        let host = |name| {
            let host = Netns::create(name).map_err(|e| Failure::system("no host", e))?;
            hosts::prepare(&host).map(|()| host)
        };
        let hosts = [host("a")?, host("b")?];
        let hops = paths.iter().map(|link| [Plan::hop(link), Plan::hop(link)]).collect();
        Ok(Self { daemons: Vec::new(), links: hosts::connect(&hosts, hops)?, hosts })
    }

    /// Returns once each daemon has all paths to the other.
    async fn start_daemons(&mut self, dir: &Path, paths: usize) -> Result<(), Failure> {
        hosts::configure(dir, paths)?;
        for (host, name) in [(1, "b.toml"), (0, "a.toml")] {
            self.daemons.push(Running::start(&self.hosts[host], dir.join(name)));
        }
        for daemon in &mut self.daemons {
            daemon.has_paths(paths).await?;
        }
        Ok(())
    }

    /// The first host's curl downloads from the other's `address`, for `limit` at most; `arrived` hears how much there is each time that something comes.
    async fn fetch(
        &self,
        address: IpAddr,
        limit: Option<Duration>,
        bar: &ProgressBar,
        mut arrived: impl FnMut(u64),
    ) -> Result<Fetched, Failure> {
        let began = Instant::now();
        let (mut curl, out) = Curl::start(&self.hosts[0], address, limit)?;
        let (tell, mut heard) = mpsc::unbounded_channel();
        let reader = tokio::task::spawn_blocking(move || read(out, &tell));
        let mut pieces: Vec<(Instant, u64)> = Vec::new();
        loop {
            let heard = tokio::time::timeout(SILENCE, heard.recv()).await;
            let silent = |_| Failure::system("the download failed", format!("nothing for {SILENCE:?}"));
            let Some((at, bytes)) = heard.map_err(silent)? else { break };
            pieces.push((at, bytes));
            arrived(bytes);
            bar.set_position(bytes);
            bar.set_message(format!("{:.1} Mbit/s", recent(&pieces) / 1e6));
        }
        let digest = reader.await.map_err(|e| Failure::system("the download failed", e))?;
        curl.end(limit.is_some())?;
        Ok(Fetched { began, pieces, digest })
    }
}

/// What arrived.
struct Fetched {
    began: Instant,
    /// When how much was there.
    pieces: Vec<(Instant, u64)>,
    digest: Digested,
}

impl Fetched {
    /// Goodput from a time at which there were `before` bytes to the end, bit/s.
    fn rate(&self, from: Instant, before: u64) -> f64 {
        self.pieces.last().map_or(0.0, |(end, bytes)| over(bytes - before, *end - from))
    }

    /// The longest time without a byte since `at`, and its end.
    fn longest_pause(&self, at: Instant) -> (Duration, Instant) {
        let mut last = at;
        let pause = |(now, _): &(Instant, u64)| (*now - std::mem::replace(&mut last, *now), *now);
        let pauses = self.pieces.iter().filter(|piece| piece.0 > at).map(pause);
        pauses.max_by_key(|pause| pause.0).unwrap_or((Duration::ZERO, at))
    }

    /// Goodput once what had come too early was delivered after a pause that ended then, bit/s.
    fn rate_after(&self, pause: Instant) -> f64 {
        let settled = self.pieces.iter().find(|piece| piece.0 >= pause + SETTLED);
        settled.map_or(0.0, |(at, bytes)| self.rate(*at, *bytes))
    }
}

fn over(bytes: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { bytes as f64 * 8.0 / time.as_secs_f64() }
}

/// Goodput of the last half second, bit/s.
fn recent(pieces: &[(Instant, u64)]) -> f64 {
    let Some((now, bytes)) = pieces.last() else { return 0.0 };
    let before = pieces.iter().rev().find(|piece| *now - piece.0 >= Duration::from_millis(500));
    before.map_or(0.0, |(at, before)| over(bytes - before, *now - *at))
}

/// A curl that runs; dropping it kills it.
struct Curl {
    child: Child,
    errors: ChildStderr,
}

impl Curl {
    /// Starts one in `host`: without the user's configuration and proxies.
    fn start(host: &Netns, address: IpAddr, limit: Option<Duration>) -> Result<(Self, ChildStdout), Failure> {
        let mut command = Command::new("curl");
        command.args(["-q", "--silent", "--show-error", "--noproxy", "*"]);
        limit.iter().for_each(|limit| {
            command.args(["--max-time", &limit.as_secs().to_string()]);
        });
        command.arg(format!("http://{address}/")).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |e: &dyn std::fmt::Display| Failure::system("cannot run curl", e);
        let mut child = host.run(|| command.spawn()).map_err(|e| failed(&e))?.map_err(|e| failed(&e))?;
        let (out, errors) = (child.stdout.take(), child.stderr.take());
        let (out, errors) = out.zip(errors).expect("both are piped");
        Ok((Self { child, errors }, out))
    }

    /// Waits until it is gone; it may have run out of time.
    fn end(&mut self, limited: bool) -> Result<(), Failure> {
        const OUT_OF_TIME: i32 = 28; // curl(1), EXIT CODES
        let status = self.child.wait().map_err(|e| Failure::system("curl", e))?;
        if status.success() || limited && status.code() == Some(OUT_OF_TIME) {
            return Ok(());
        }
        let mut said = String::new();
        let _ = self.errors.read_to_string(&mut said); // what it could not say is not said
        Err(Failure::system("the download failed", said.trim()))
    }
}

impl Drop for Curl {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end, and tells when how much is there.
fn read(mut out: ChildStdout, tell: &mpsc::UnboundedSender<(Instant, u64)>) -> Digested {
    let (mut digest, mut buffer) = (Digested::default(), vec![0; 1 << 16]);
    while let Some(len) = out.read(&mut buffer).ok().filter(|len| *len > 0) {
        digest.update(&buffer[..len]);
        if tell.send((Instant::now(), digest.len)).is_err() {
            break;
        }
    }
    digest
}

impl Report {
    fn new(
        paths: &[Link],
        content: &Content,
        alone: Vec<Alone>,
        got: &Fetched,
        at: Instant,
        at_bytes: u64,
    ) -> Self {
        let capacity_bps = paths.iter().map(|link| link.rate.0).sum();
        let goodput_bps = over(at_bytes, at - got.began);
        let (pause, ended) = got.longest_pause(at);
        let sha256 = got.digest.clone().finish();
        Self {
            mode: "curl",
            bytes: got.digest.len,
            sha256_match: content.sha256().is_ok_and(|sent| sent == sha256),
            sha256,
            alone,
            goodput_bps,
            capacity_bps,
            utilisation: goodput_bps / capacity_bps as f64,
            cut: Cut { at_bytes, pause_s: pause.as_secs_f64(), goodput_bps: got.rate_after(ended) },
        }
    }

    fn print_table(&self, content: &Content, paths: &[Link]) -> Result<(), Failure> {
        let mut table =
            table::plain(["", "rate,\nMbit/s", "delay,\nms", "curl,\nMbit/s", "share of\nrate"], 1);
        let mut row = |name: String, rate: u64, delay: String, goodput: f64| {
            let used = format!("{:.1} %", goodput / rate as f64 * 100.0);
            let mbps = |bps: f64| format!("{:.1}", bps / 1e6);
            table.add_row([name, mbps(rate as f64), delay, mbps(goodput), used]);
        };
        for path in &self.alone {
            row(
                format!("path {} alone", path.path),
                path.rate_bps,
                path.delay_ms.to_string(),
                path.goodput_bps,
            );
        }
        row("all paths, through the daemons".to_owned(), self.capacity_bps, String::new(), self.goodput_bps);
        let left = if paths.len() == 2 { "path 1 alone carries" } else { "the others carry" };
        let hash = if self.sha256_match { "SHA-256 equal" } else { "SHA-256 WRONG" };
        let Cut { at_bytes, pause_s, goodput_bps } = self.cut;
        printed(writeln!(
            io::stdout(),
            "{} over HTTP to curl, one TCP connection, between two network namespaces\n\n{}\n
path 0 falls silent after {}: no byte for {pause_s:.2} s, then {left} {:.1} Mbit/s
{hash}: {}",
            content.name,
            table.trim_fmt(),
            Human(Bytes(at_bytes)),
            goodput_bps / 1e6,
            self.sha256,
        ))
    }
}

/// A bar of the download. Nothing is drawn where standard error is no terminal.
fn bar(len: u64, hidden: bool) -> ProgressBar {
    let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("{prefix:12} {wide_bar} {bytes:>10} of {total_bytes}  {msg}");
    let style = style.expect("the template above is well-formed").progress_chars("━╸─");
    ProgressBar::with_draw_target(Some(len), target).with_style(style)
}
