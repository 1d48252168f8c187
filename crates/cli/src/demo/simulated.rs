//! The transfer in virtual time: two hosts in a simulated world, a link between them per path.

use std::net::IpAddr;

use bytes::Bytes;
use polypath_lab::units::Link;
use polypath_sim::{FlowConfig, FlowReport, Headers, HostConfig, Via, World, WorldConfig, WorldError};
use polypath_transport::{CloseReason, PathConfig};
use polypath_wire::{Duration, Instant};

use super::content::{Content, Digested};
use super::output::Output;
use super::patience::{Patience, silent};
use super::plan::Plan;
use super::progress::Progress;
use super::report::{Alone, Outcome, PathOutcome};
use crate::failure::Failure;
use crate::interrupt::Interrupt;

/// The shortest and the longest virtual time between two looks at the flow.
const SHORTEST_STEP: Duration = Duration::from_millis(1);
const LONGEST_STEP: Duration = Duration::from_secs(1);
/// The most the paths carry between two looks, bytes: less than a second's work of this machine.
const STRIDE: u64 = 16 << 20;
/// Waits in virtual time are longer than in real time by this factor.
const PATIENCE: u64 = 20;

/// Sends the bytes of `content` and waits until they have arrived.
pub fn run(
    plan: &Plan,
    content: &Content,
    output: Option<&mut Output>,
    bars: &Progress,
    interrupt: &Interrupt,
) -> Result<Outcome, Failure> {
    let file = content.read()?;
    let mut sent = Digested::default();
    sent.update(&file);
    let flow = FlowConfig { content: Some(file), ..FlowConfig::default() };
    let done = transfer(plan, flow, |now, report| {
        let delivered: Vec<u64> = by_link(plan, report).iter().map(|p| p.delivered).collect();
        bars.show(plan, now, report.bytes, &delivered);
        interrupt.check()
    })?;
    let (report, arrived) = done.map_err(|why| plan.too_slow(content, &why))?;
    let mut received = Digested::default();
    arrived.iter().for_each(|piece| received.update(piece));
    output.map_or(Ok(()), |output| output.write(&arrived))?;
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

/// What the best of the paths alone takes for `len` bytes: the same connection over it, simulated. None if no path
/// alone carries them.
pub fn best_single_path(
    plan: &Plan,
    len: u64,
    bars: &Progress,
    interrupt: &Interrupt,
) -> Result<Option<Alone>, Failure> {
    let mut best: Option<Alone> = None;
    for path in 0..plan.links.len() {
        bars.alone(path);
        let flow = FlowConfig { bytes: Some(len), ..FlowConfig::default() };
        let done = transfer(&plan.alone(path), flow, |now, report| {
            bars.show(plan, now, report.bytes, &[]);
            interrupt.check()
        })?;
        let alone = done.ok().map(|(report, _)| Alone { path, seconds: seconds(&report) });
        best = best.into_iter().chain(alone).min_by(|a, b| a.seconds.total_cmp(&b.seconds));
    }
    Ok(best)
}

fn seconds(report: &FlowReport) -> f64 {
    report.finished.map_or(0.0, |at| at.since(report.started).as_secs_f64())
}

/// What became of a flow, and what arrived if it had content; or why it came to nothing.
type Done = Result<(FlowReport, Vec<Bytes>), String>;

/// Runs `flow` over the plan's paths to its end, with a `look` at it now and then.
fn transfer(
    plan: &Plan,
    flow: FlowConfig,
    mut look: impl FnMut(Duration, &FlowReport) -> Result<(), Failure>,
) -> Result<Done, Failure> {
    let (mut world, id) = world(plan, flow).map_err(|e| Failure::system("no simulated paths", e))?;
    let step = plan.capacity().transmission_time(STRIDE).clamp(SHORTEST_STEP, LONGEST_STEP);
    let limit = plan.silence().times(PATIENCE);
    let mut patience = Patience::new(limit);
    loop {
        let (now, report) = (world.now().since(Instant::ZERO), world.flow_report(id));
        look(now, &report)?;
        if report.finished.is_some() {
            let arrived = world.take_received(id).iter().map(|p| p.to_bytes()).collect();
            return Ok(Ok((report, arrived)));
        }
        let delivered: u64 = report.sender_paths.iter().map(|path| path.bytes_delivered).sum();
        if let Some(reason) = report.lost {
            return Ok(Err(describe(reason).to_owned()));
        }
        if patience.is_over(now, report.bytes + delivered) {
            return Ok(Err(silent(limit)));
        }
        let next = world.now() + step;
        world.run(next);
    }
}

fn describe(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::TimedOut => "the connection timed out",
        CloseReason::Reset | CloseReason::Refused => "the receiver reset the connection",
        CloseReason::Aborted => "the connection was aborted",
        CloseReason::Unreachable | CloseReason::NetUnreachable => "the receiver could not be reached",
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
