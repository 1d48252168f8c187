//! The transfer in real time, by `polypath_node`: two nodes and emulated links between their sockets.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use polypath_endpoint::PeerFailure;
use polypath_node::{AssociateError, StreamError};
use polypath_testbed::transfer::{PathProgress, TransferConfig, TransferError, TransferPath, transfer};
use polypath_testbed::{TestbedError, netns};
use polypath_transport::{CloseReason, PathConfig};
use polypath_wire::Seed;

use super::content::Content;
use super::output::Output;
use super::patience::{Patience, silent};
use super::plan::{Mode, Plan};
use super::progress::Progress;
use super::report::{Outcome, PathOutcome};
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// How often the bars move.
const TICK: Duration = Duration::from_millis(50);
/// The emulated links draw nothing by chance; a seed is still theirs.
const SEED: Seed = Seed(1);

/// Makes namespaces possible, for which `flag` asks. Call it while this process has one thread.
pub fn gain_privileges(flag: &str) -> Result<(), Failure> {
    netns::gain_privileges().map_err(|e| {
        Failure::system("no network namespaces", e).help(format!("run it as root, or {}", without(flag)))
    })
}

fn without(flag: &str) -> String {
    format!("leave {flag} out: loopback needs no root")
}

/// Sends `content` and waits until it has arrived, or a signal comes: then everything is taken down again.
pub fn run(
    plan: &Plan,
    content: &Content,
    output: Option<&mut Output>,
    bars: &Progress,
    interrupt: &Interrupt,
) -> Result<Outcome, Failure> {
    let path =
        |link| TransferPath { hops: [Plan::hop(link), Plan::hop(link)], config: PathConfig::default() };
    let config = TransferConfig {
        source: content.path.clone(),
        sink: output.as_ref().map(|output| output.temporary().to_owned()),
        connection: plan.connection.clone(),
        paths: plan.links.iter().map(path).collect(),
        namespaces: plan.mode == Mode::Namespaces,
        seed: SEED,
        interval: TICK,
        security: Some((plan.security.clone(), plan.identities.clone())),
    };
    let (arrived, output) = (Cell::new(0), output.as_deref());
    let show = |p: &polypath_testbed::transfer::Progress| {
        let delivered: Vec<u64> = by_link(plan, &p.paths).iter().map(|path| path.delivered).collect();
        arrived.set(p.bytes + delivered.iter().sum::<u64>());
        bars.show(plan, p.elapsed.into(), p.bytes, &delivered);
    };
    let report = interrupt.block_on(interrupt.or(async {
        tokio::select! {
            done = transfer(&config, show) => done.map_err(|e| failure(plan, content, output, &e)),
            () = silence(plan.silence(), &arrived) => Err(plan.too_slow(content, &silent(plan.silence()))),
        }
    }))?;
    Ok(Outcome {
        seconds: report.seconds,
        bytes: report.bytes,
        paths: by_link(plan, &report.paths),
        sent: report.sha256_sent,
        received: report.sha256_received,
    })
}

/// Waits until nothing has arrived for `limit`.
async fn silence(limit: polypath_wire::Duration, arrived: &Cell<u64>) {
    let (began, mut patience) = (Instant::now(), Patience::new(limit));
    while !patience.is_over(began.elapsed().into(), arrived.get()) {
        tokio::time::sleep(TICK).await;
    }
}

fn failure(plan: &Plan, content: &Content, output: Option<&Output>, error: &TransferError) -> Failure {
    match error {
        TransferError::Associate(AssociateError::Failed(PeerFailure::Timeout)) => {
            plan.too_slow(content, "the base exchange timed out")
        }
        TransferError::Stream { source: StreamError::Lost(CloseReason::TimedOut), .. } => {
            plan.too_slow(content, "the connection timed out")
        }
        TransferError::File { path, source } => match output {
            Some(output) if output.temporary() == path => output.refused(source),
            _ => Failure::system(format!("cannot read {}", content.name), source),
        },
        TransferError::Testbed(TestbedError::Tun { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            let needed = "it needs root, or user namespaces and a /dev/net/tun that this user may open";
            Failure::system(needed, error).help(without("--netns"))
        }
        error => Failure::system("the transfer failed", error),
    }
}

/// What each link's path measured; the connection numbers paths in the order in which they came up.
fn by_link(plan: &Plan, paths: &[PathProgress]) -> Vec<PathOutcome> {
    let mut links = vec![PathOutcome::default(); plan.links.len()];
    for path in paths {
        if let Some(link) = links.get_mut(path.pair) {
            *link = PathOutcome::new(&path.stats, path.secure.as_ref());
        }
    }
    links
}
