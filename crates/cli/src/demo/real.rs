//! The transfer in real time, by `polypath_node`: two nodes and emulated links between their sockets.

use std::path::Path;
use std::time::Duration;

use polypath_node::netns;
use polypath_node::transfer::{PathProgress, TransferConfig, TransferPath, transfer};
use polypath_transport::PathConfig;
use polypath_wire::Seed;

use super::content::Content;
use super::plan::{Mode, Plan};
use super::progress::Progress;
use super::report::{Outcome, PathOutcome};
use crate::failure::Failure;

/// How often the bars move.
const TICK: Duration = Duration::from_millis(50);
/// The emulated links draw nothing by chance; a seed is still theirs.
const SEED: Seed = Seed(1);

/// Makes namespaces possible. Call it while this process has one thread.
pub fn gain_privileges() -> Result<(), Failure> {
    netns::gain_privileges().map_err(|e| {
        Failure::system("no network namespaces", e)
            .help("run it as root, or leave --netns out: loopback needs no root")
    })
}

/// Sends `content` and waits until it has arrived, or Ctrl-C: then everything is taken down again.
pub fn run(
    plan: &Plan,
    content: &Content,
    output: Option<&Path>,
    bars: &Progress,
) -> Result<Outcome, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::system("no runtime", e))?;
    let path =
        |link| TransferPath { hops: [Plan::hop(link), Plan::hop(link)], config: PathConfig::default() };
    let config = TransferConfig {
        source: content.path.clone(),
        sink: output.map(Path::to_owned),
        connection: plan.connection.clone(),
        paths: plan.links.iter().map(path).collect(),
        namespaces: plan.mode == Mode::Namespaces,
        seed: SEED,
        interval: TICK,
        security: Some((plan.security.clone(), plan.identities.clone())),
    };
    let report = runtime.block_on(async {
        let show = |p: &polypath_node::transfer::Progress| {
            let delivered: Vec<u64> = by_link(plan, &p.paths).iter().map(|path| path.delivered).collect();
            bars.show(plan, p.bytes, &delivered);
        };
        tokio::select! {
            done = transfer(&config, show) => done.map_err(|e| Failure::system("the transfer failed", e)),
            _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
        }
    })?;
    Ok(Outcome {
        seconds: report.seconds,
        bytes: report.bytes,
        paths: by_link(plan, &report.paths),
        sent: report.sha256_sent,
        received: report.sha256_received,
    })
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
