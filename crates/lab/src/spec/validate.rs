//! What types cannot say: names that exist, ranges, paths that are connected.

use std::collections::BTreeSet;

use polypath_hop::QueueLimit;
use polypath_wire::{Duration, Rate};

use super::error::{Problem, at};
use super::{Change, Flow, Host, Link, Queue, Spec, Start, Traffic};
use crate::document::Key;
use crate::units::Human;

/// Most paths of one connection.
const MAX_PATHS: usize = 64;
/// Headers of a TCP segment without options, bytes.
pub(crate) const HEADERS: u32 = 40;
/// The same in ESP with AES-GCM over UDP (RFC 7402, 4303): 20 + 8 + 8 + 8 + 20 + 2 + 16 and up to three
/// bytes of padding.
pub(crate) const SECURE_HEADERS: u32 = 82;

pub(super) fn spec(spec: &Spec) -> Result<(), Problem> {
    if spec.duration.0 == Duration::ZERO {
        return Err(Problem::new(at!["duration"], "a run of duration zero shows nothing")
            .help("write for example duration = \"20s\""));
    }
    if spec.measure_from >= spec.duration {
        return Err(Problem::new(at!["measure_from"], "not before the end of the run")
            .help(format!("the run takes {}", spec.duration)));
    }
    if spec.link.is_empty() || spec.flow.is_empty() {
        let what = if spec.link.is_empty() { "link" } else { "flow" };
        return Err(
            Problem::new(at![what], format!("there is no {what}")).help(format!("add a [[{what}]] table"))
        );
    }
    let nodes = nodes(spec);
    for (n, l) in spec.link.iter().enumerate() {
        link(l, at!["link", n], spec.duration.0)?;
        let ends = BTreeSet::from([&l.from, &l.to]);
        if spec.link[..n].iter().any(|other| BTreeSet::from([&other.from, &other.to]) == ends) {
            let problem = format!("a second link between \"{}\" and \"{}\"", l.from, l.to);
            return Err(Problem::new(at!["link", n], problem).help(
                "write what differs on the way back into back = { … }, or lead another path over a node of its own",
            ));
        }
    }
    for (n, h) in spec.host.iter().enumerate() {
        host(h, at!["host", n], &nodes)?;
        if spec.host[..n].iter().any(|other| other.name == h.name) {
            return Err(Problem::new(at!["host", n, "name"], format!("a second host \"{}\"", h.name))
                .help("put all of its keys into one [[host]] table"));
        }
    }
    let mut names = BTreeSet::new();
    for (n, f) in spec.flow.iter().enumerate() {
        if f.name.is_empty() {
            return Err(Problem::new(at!["flow", n, "name"], "a flow without a name")
                .help("write for example name = \"bulk\""));
        }
        if !names.insert(&f.name) {
            return Err(Problem::new(at!["flow", n, "name"], format!("two flows are named \"{}\"", f.name))
                .help("give each a name of its own"));
        }
        flow(spec, f, n, &nodes)?;
    }
    Ok(())
}

/// Names of all nodes: those the links name.
fn nodes(spec: &Spec) -> Vec<&str> {
    let all: BTreeSet<&str> = spec.link.iter().flat_map(|l| [l.from.as_str(), l.to.as_str()]).collect();
    all.into_iter().collect()
}

fn known(name: &str, nodes: &[&str], at: Vec<Key>) -> Result<(), Problem> {
    if nodes.contains(&name) { Ok(()) } else { Err(Problem::unknown(at, "node", name, nodes)) }
}

/// `at` with one more key.
fn below(at: &[Key], key: &str) -> Vec<Key> {
    at.iter().cloned().chain([Key::from(key)]).collect()
}

fn probability(p: f64, at: Vec<Key>) -> Result<(), Problem> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    Err(Problem::new(at, format!("{p} is no probability"))
        .help("write a number from 0 to 1: one percent is 0.01"))
}

fn positive(rate: Rate, at: Vec<Key>) -> Result<(), Problem> {
    if rate.0 > 0 {
        return Ok(());
    }
    Err(Problem::new(at, "a rate of zero carries nothing").help("take the link down with up = false"))
}

fn link(link: &Link, at: Vec<Key>, duration: Duration) -> Result<(), Problem> {
    if link.from == link.to {
        return Err(Problem::new(below(&at, "to"), format!("a link from \"{}\" to itself", link.to))
            .help("name the node at the other end"));
    }
    positive(link.rate.mean(), below(&at, "rate"))?;
    probability(link.loss, below(&at, "loss"))?;
    probability(link.duplication, below(&at, "duplication"))?;
    probability(link.corruption, below(&at, "corruption"))?;
    let back = |key| below(&below(&at, "back"), key);
    link.back.rate.as_ref().map_or(Ok(()), |r| positive(r.mean(), back("rate")))?;
    link.queue.check(link.bdp(true), &below(&at, "queue"))?;
    link.back.queue.map_or(Ok(()), |queue| queue.check(link.bdp(false), &back("queue")))?;
    link.back.loss.map_or(Ok(()), |p| probability(p, back("loss")))?;
    if let Some(r) = link.reordering {
        probability(r.probability, below(&below(&at, "reordering"), "probability"))?;
    }
    if !(68..=65_535).contains(&link.mtu) {
        let problem = Problem::new(below(&at, "mtu"), format!("{} bytes", link.mtu));
        return Err(problem.help("an IPv4 MTU lies between 68 and 65535 (RFC 791)"));
    }
    holds_a_packet(&link.queue, link, true, below(&at, "queue"))?;
    link.back.queue.map_or(Ok(()), |queue| holds_a_packet(&queue, link, false, back("queue")))?;
    changes(link, at, duration)
}

/// A queue in bytes that holds no packet of the link's MTU drops all that are as large once the link is busy. One of no bytes at all is no queue.
fn holds_a_packet(queue: &Queue, link: &Link, forward: bool, at: Vec<Key>) -> Result<(), Problem> {
    match queue.limit(link.bdp(forward)) {
        QueueLimit::Bytes(bytes @ 1..) if bytes < u64::from(link.mtu) => {
            let problem = format!("{bytes} bytes hold no packet of {} bytes, the link's mtu", link.mtu);
            Err(Problem::new(at, problem).help("write a larger number of bytes, or packets: \"10p\""))
        }
        _ => Ok(()),
    }
}

fn changes(link: &Link, at: Vec<Key>, duration: Duration) -> Result<(), Problem> {
    let mut before = Duration::ZERO;
    for (n, change) in link.change.iter().enumerate() {
        let here: Vec<Key> = at.iter().cloned().chain(at!["change", n]).collect();
        let at = |key: &str| below(&here, key);
        if (Change { at: change.at, ..Change::default() }) == *change {
            return Err(Problem::new(here, "changes nothing").help("add rate, delay, loss, up or back"));
        }
        if change.at.0 >= duration {
            return Err(Problem::new(at("at"), "after the end of the run")
                .help(format!("the run takes {}", Human(duration))));
        }
        if change.at.0 < before {
            return Err(Problem::new(at("at"), "earlier than the change above it")
                .help("put changes in order of time"));
        }
        before = change.at.0;
        for (there, at) in [(true, here.clone()), (false, at("back"))] {
            let own = if there { (change.rate, change.loss) } else { (change.back.rate, change.back.loss) };
            own.0.map_or(Ok(()), |r| positive(r.0, below(&at, "rate")))?;
            own.1.map_or(Ok(()), |p| probability(p, below(&at, "loss")))?;
            if link.changed_rate(change, there).is_some() && link.rate_of(there).trace().is_some() {
                let at = if own.0.is_some() { below(&at, "rate") } else { below(&here, "rate") };
                return Err(Problem::new(at, "the rate of this link follows a trace")
                    .help("leave it out: the trace says what the rate is at any time"));
            }
        }
    }
    Ok(())
}

fn host(host: &Host, at: Vec<Key>, nodes: &[&str]) -> Result<(), Problem> {
    known(&host.name, nodes, below(&at, "name"))?;
    if host.clock_drift_ppm.abs() <= 500.0 {
        return Ok(());
    }
    Err(Problem::new(below(&at, "clock_drift_ppm"), format!("{} ppm", host.clock_drift_ppm))
        .help("clocks run right to within 500 parts per million"))
}

fn flow(spec: &Spec, flow: &Flow, n: usize, nodes: &[&str]) -> Result<(), Problem> {
    let at = |key| at!["flow", n, key];
    known(&flow.from, nodes, at("from"))?;
    known(&flow.to, nodes, at("to"))?;
    if flow.from == flow.to {
        return Err(
            Problem::new(at("to"), "a flow from a node to itself").help("name the node that receives")
        );
    }
    if let Start::Between(a, b) = flow.start
        && b < a
    {
        return Err(Problem::new(at("start"), format!("the range ends at {b}, before it begins at {a}"))
            .help(format!("write start = [\"{b}\", \"{a}\"]")));
    }
    times(spec, flow, n)?;
    if flow.paths.is_empty() || flow.paths.len() > MAX_PATHS {
        return Err(Problem::new(at("paths"), format!("{} paths", flow.paths.len()))
            .help(format!("write 1 to {MAX_PATHS}, for example paths = [[\"r1\"], [\"r2\"]]")));
    }
    for (m, via) in flow.paths.iter().enumerate() {
        route(spec, flow, via, at!["flow", n, "paths", m], nodes)?;
        let same = |earlier: &Vec<String>| spec.hops_of(flow, earlier) == spec.hops_of(flow, via);
        if let Some(first) = flow.paths[..m].iter().position(same).filter(|_| !flow.apart) {
            return Err(Problem::new(at!["flow", n, "paths", m], format!("the same way as path {first}"))
                .help(
                    "lead it through a node of its own: paths of one connection are told apart by their ways",
                ));
        }
    }
    traffic(spec, flow, n)?;
    secure(spec, flow, at("secure"))?;
    if flow.oracle && (!flow.configured || flow.secure) {
        let problem =
            Problem::new(at("oracle"), "an oracle needs configured rates, and connections without security");
        return Err(problem.help("add configured = true, without secure = true"));
    }
    if flow.apart && (flow.traffic != Traffic::Tcp || flow.size.is_some()) {
        let problem = Problem::new(at("apart"), "connections apart are TCP without end");
        return Err(problem.help("leave out size and traffic, or make a flow for each path"));
    }
    segment_size(spec, flow, at("mss"))
}

/// It starts before the run ends, and stops after it started, whatever the seed.
fn times(spec: &Spec, flow: &Flow, n: usize) -> Result<(), Problem> {
    let (first, last) = match flow.start {
        Start::At(at) => (at, at),
        Start::Between(from, to) => (from, to),
    };
    if last >= spec.duration {
        return Err(Problem::new(at!["flow", n, "start"], "not before the end of the run")
            .help(format!("the run takes {}", spec.duration)));
    }
    let Some(stop) = flow.stop else { return Ok(()) };
    let refused = |why: &str, help: String| Err(Problem::new(at!["flow", n, "stop"], why).help(help));
    if stop <= last {
        let drawn = if first == last { "" } else { " at the latest" };
        return refused("not after the start", format!("it starts at {last}{drawn}"));
    }
    if stop > spec.duration {
        return refused("after the end of the run", format!("the run takes {}; leave it out", spec.duration));
    }
    Ok(())
}

/// Every two neighbours on the path have a link.
fn route(spec: &Spec, flow: &Flow, via: &[String], at: Vec<Key>, nodes: &[&str]) -> Result<(), Problem> {
    via.iter().try_for_each(|node| known(node, nodes, at.clone()))?;
    let stations = spec.stations(flow, via);
    let Some(gap) = stations.windows(2).find(|pair| spec.link_between(pair[0], pair[1]).is_none()) else {
        return Ok(());
    };
    let beside: Vec<&str> =
        nodes.iter().copied().filter(|n| spec.link_between(gap[0], n).is_some()).collect();
    Err(Problem::new(at, format!("no link joins \"{}\" and \"{}\"", gap[0], gap[1])).help(format!(
        "links of \"{}\" go to: {}",
        gap[0],
        beside.join(", ")
    )))
}

fn traffic(spec: &Spec, flow: &Flow, n: usize) -> Result<(), Problem> {
    let (kind, rate, packet) = match flow.traffic {
        Traffic::Tcp => return Ok(()),
        Traffic::Cbr { rate, packet } => ("cbr", rate, packet),
        Traffic::OnOff { rate, packet, .. } => ("on_off", rate, packet),
    };
    if rate.0.0 == 0 {
        let problem = Problem::new(at!["flow", n, "traffic", kind, "rate"], "a rate of zero sends nothing");
        return Err(problem.help("leave the flow out, or let it start later and stop earlier"));
    }
    if let Traffic::OnOff { on, .. } = flow.traffic
        && on.0 == Duration::ZERO
    {
        let problem = Problem::new(at!["flow", n, "traffic", kind, "on"], "it is never on");
        return Err(problem.help("write a mean time on above zero, for example on = \"500ms\""));
    }
    if !(28..=65_535).contains(&packet.0.0) {
        let problem = Problem::new(at!["flow", n, "traffic", kind, "packet"], format!("{packet}"));
        return Err(problem.help("with its IP and UDP headers a packet has 28 to 65535 bytes"));
    }
    let mtu = flow.paths.iter().map(|via| spec.path_mtu(flow, via)).min().unwrap_or(0);
    if packet.0.0 > u64::from(mtu) {
        let problem = format!("{} bytes do not fit the path's MTU of {mtu}", packet.0.0);
        return Err(Problem::new(at!["flow", n, "traffic", kind, "packet"], problem)
            .help(format!("at most \"{mtu}B\", headers included; or give its links a larger mtu")));
    }
    if flow.configured {
        return Err(Problem::new(at!["flow", n, "configured"], "UDP has no connection to configure")
            .help("leave it out"));
    }
    if flow.paths.len() > 1 {
        return Err(
            Problem::new(at!["flow", n, "paths"], "UDP takes one path").help("make a flow for each path")
        );
    }
    if flow.size.is_some() {
        return Err(Problem::new(at!["flow", n, "size"], "a size is for TCP, UDP sends until it stops")
            .help("leave it out, or write for example stop = \"10s\""));
    }
    if flow.mss.is_some() {
        return Err(Problem::new(at!["flow", n, "mss"], "segments are for TCP")
            .help(format!("leave it out: packet = \"{packet}\" is the size of a UDP packet")));
    }
    Ok(())
}

/// Either end is secure in all its TCP flows or in none.
fn secure(spec: &Spec, flow: &Flow, at: Vec<Key>) -> Result<(), Problem> {
    if flow.secure && flow.traffic != Traffic::Tcp {
        return Err(
            Problem::new(at, "only TCP flows can be secure").help("leave it out, or leave traffic out")
        );
    }
    let ends = [&flow.from, &flow.to];
    let meets = |f: &&Flow| f.traffic == Traffic::Tcp && (ends.contains(&&f.from) || ends.contains(&&f.to));
    let Some(other) = spec.flow.iter().filter(meets).find(|f| flow.secure && !f.secure) else {
        return Ok(());
    };
    Err(Problem::new(at, format!("\"{}\" has a host in common with it and is not secure", other.name))
        .help("a secure host speaks to secure hosts only"))
}

fn segment_size(spec: &Spec, flow: &Flow, at: Vec<Key>) -> Result<(), Problem> {
    let Some(mss) = flow.mss else { return Ok(()) };
    let (mtu, headers) =
        (flow.paths.iter().map(|via| spec.path_mtu(flow, via)).min().unwrap_or(0), flow.headers());
    if mss > 0 && mss.saturating_add(headers) <= mtu {
        return Ok(());
    }
    Err(Problem::new(at, format!("{mss} bytes and {headers} of headers do not fit the path's MTU of {mtu}"))
        .help(format!("at most {}", mtu.saturating_sub(headers))))
}
