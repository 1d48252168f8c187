//! The transfer in virtual time: two hosts in a simulated world, a link between them per path.

use std::net::IpAddr;

use bytes::Bytes;
use polypath_lab::units::Link;
use polypath_sim::{FlowConfig, FlowReport, Headers, HostConfig, Via, World, WorldConfig, WorldError};
use polypath_transport::PathConfig;
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
        let delivered: Vec<u64> = by_link(plan, report).iter().map(|p| p.delivered).collect();
        bars.show(plan, report.bytes, &delivered);
    })?;
    let mut received = Digested::default();
    arrived.iter().for_each(|piece| received.update(piece));
    Ok(Outcome {
        seconds: seconds(&report),
        bytes: received.len,
        sent: sent.finish(),
        received: received.finish(),
        paths: by_link(plan, &report),
    })
}

/// What each link's path measured: the sender's address on link `n` ends in `n` + 1.
fn by_link(plan: &Plan, report: &FlowReport) -> Vec<PathOutcome> {
    let mut links = vec![PathOutcome::default(); plan.links.len()];
    for (stats, secure) in report.sender_paths.iter().zip(&report.secure_paths) {
        let address = secure.as_ref().map(|path| path.locators.local.ip());
        let number = match address {
            Some(IpAddr::V4(address)) => usize::from(address.octets()[3]),
            _ => 0,
        };
        if let Some(link) = number.checked_sub(1).and_then(|n| links.get_mut(n)) {
            *link = PathOutcome::new(stats, secure.as_ref());
        }
    }
    links
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
    let mut hosts = Vec::new();
    for (name, identity) in ["a", "b"].into_iter().zip(plan.identities.clone()) {
        hosts.push(world.secure_host(name, HostConfig::default(), plan.security.clone(), identity)?);
    }
    let (a, b) = (hosts[0], hosts[1]);
    let join = |world: &mut World, link: &Link| world.link(a, b, Plan::hop(link), Plan::hop(link));
    let links: Vec<_> = plan.links.iter().map(|l| join(&mut world, l)).collect::<Result<_, _>>()?;
    let paths: Vec<_> = links.iter().map(|l| world.path(a, b, &[Via::Link(*l)])).collect::<Result<_, _>>()?;
    let id = world.flow(FlowConfig {
        name: "demo".into(),
        paths: paths.into_iter().map(|p| (p, PathConfig::default())).collect(),
        sender: plan.connection.clone(),
        receiver: plan.connection.clone(),
        ..flow
    })?;
    Ok((world, id))
}
