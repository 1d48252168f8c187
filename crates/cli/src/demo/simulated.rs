//! The transfer in virtual time: two hosts in a simulated world, a link between them per path.

use bytes::Bytes;
use polypath_lab::units::Link;
use polypath_sim::{FlowConfig, FlowReport, Headers, HostConfig, Via, World, WorldConfig, WorldError};
use polypath_wire::{Duration, Instant};

use super::content::{Content, Digested};
use super::plan::Plan;
use super::progress::Progress;
use super::report::{Alone, Outcome, PathOutcome};
use crate::failure::Failure;

/// Virtual time between two looks at the flow.
const STEP: Duration = Duration::from_secs(1);
/// A transfer that takes this many times as long as the paths need has stalled.
const PATIENCE: u64 = 20;

/// Sends the bytes of `content` and waits until they have arrived.
pub fn run(plan: &Plan, content: &Content, bars: &Progress) -> Result<Outcome, Failure> {
    let file = content.read()?;
    let mut sent = Digested::default();
    sent.update(&file);
    let flow = FlowConfig { content: Some(file), ..FlowConfig::default() };
    let (report, arrived) = transfer(plan, flow, |report| {
        let delivered: Vec<u64> = report.sender_paths.iter().map(|p| p.bytes_delivered).collect();
        bars.show(plan, report.bytes, &delivered);
    })?;
    let mut received = Digested::default();
    arrived.iter().for_each(|piece| received.update(piece));
    Ok(Outcome {
        seconds: seconds(&report),
        bytes: received.len,
        sent: sent.finish(),
        received: received.finish(),
        paths: report.sender_paths.iter().map(PathOutcome::from).collect(),
    })
}

/// What the best of the paths alone takes for `len` bytes: the same connection over it, simulated.
pub fn best_single_path(plan: &Plan, len: u64) -> Result<Alone, Failure> {
    let alone = |path: usize| {
        let flow = FlowConfig { bytes: Some(len), ..FlowConfig::default() };
        let (report, _) = transfer(&plan.alone(path), flow, |_| ())?;
        Ok(Alone { path, seconds: seconds(&report) })
    };
    let all: Vec<Alone> = (0..plan.links.len()).map(alone).collect::<Result<_, Failure>>()?;
    Ok(all.into_iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("clap gives at least one path"))
}

fn seconds(report: &FlowReport) -> f64 {
    report.finished.map_or(0.0, |at| at.since(report.started).as_secs_f64())
}

/// Runs `flow` over the plan's paths to its end; what became of it, and what arrived if it had content.
fn transfer(
    plan: &Plan,
    flow: FlowConfig,
    mut look: impl FnMut(&FlowReport),
) -> Result<(FlowReport, Vec<Bytes>), Failure> {
    let len = flow.content.as_ref().map_or(flow.bytes.unwrap_or(0), |c| c.len() as u64);
    let (mut world, id) = world(plan, flow).map_err(|e| Failure::system("no simulated paths", e))?;
    let patience = plan.capacity().transmission_time(len).times(PATIENCE) + Duration::from_secs(60);
    loop {
        let report = world.flow_report(id);
        look(&report);
        if report.finished.is_some() {
            let arrived = world.take_received(id).iter().map(|p| p.to_bytes()).collect();
            return Ok((report, arrived));
        }
        if report.lost.is_some() || world.now() > Instant::ZERO + patience {
            let why = report.lost.map_or("it stalled".to_owned(), |reason| format!("{reason:?}"));
            return Err(Failure::unmet(format!("the simulated connection failed: {why}")));
        }
        let next = world.now() + STEP;
        world.run(next);
    }
}

fn world(plan: &Plan, flow: FlowConfig) -> Result<(World, polypath_sim::FlowId), WorldError> {
    let mut world = World::new(WorldConfig { headers: Headers::Udp, ..WorldConfig::default() });
    let (a, b) = (world.host("a", HostConfig::default())?, world.host("b", HostConfig::default())?);
    let join = |world: &mut World, link: &Link| world.link(a, b, Plan::hop(link), Plan::hop(link));
    let links: Vec<_> = plan.links.iter().map(|l| join(&mut world, l)).collect::<Result<_, _>>()?;
    let paths: Vec<_> = links.iter().map(|l| world.path(a, b, &[Via::Link(*l)])).collect::<Result<_, _>>()?;
    let id = world.flow(FlowConfig {
        name: "demo".into(),
        paths: paths.into_iter().map(|p| (p, Plan::path_config())).collect(),
        sender: plan.connection.clone(),
        receiver: plan.connection.clone(),
        ..flow
    })?;
    Ok((world, id))
}
