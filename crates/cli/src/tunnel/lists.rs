//! `polypath paths` and `polypath peers`: the paths and the peers of a running daemon, and changes of its interfaces.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::IpAddr;

use polypath_daemon::control::Command;
use polypath_daemon::{InterfaceStatus, PathStatus, PathsChange, PeerStatus, QuotaStatus, Status, Use};
use serde_json::json;

use super::ask::{current, order};
use super::in_force::of_change;
use crate::args::{PathsArgs, PathsCommand, PeersArgs};
use crate::failure::{Failure, print_json, printed};
use crate::table::plain;

/// Prints the interfaces and paths of a daemon, or changes which interfaces it uses and prints what is in force.
pub fn paths(args: &PathsArgs) -> Result<(), Failure> {
    let change = args.command.as_ref().map(change);
    if let Some(change) = &change {
        order(&args.socket, &Command::Paths(change.clone()))?;
    }
    let status = current(&args.socket)?;
    if args.json {
        let paths: Vec<_> =
            status.paths().map(|(peer, path)| json!({ "peer": peer.name, "path": path })).collect();
        return print_json(&json!({ "interfaces": status.interfaces, "paths": paths }));
    }
    let text = match &change {
        Some(change) => of_change(change, &status.interfaces),
        None => format!("{}\n\n{}", of_interfaces(&status), of_paths(&status)),
    };
    printed(writeln!(io::stdout(), "{text}"))
}

fn change(command: &PathsCommand) -> PathsChange {
    match command.clone() {
        PathsCommand::Add { interfaces } => PathsChange::Add(once_each(interfaces)),
        PathsCommand::Remove { interfaces } => PathsChange::Remove(once_each(interfaces)),
        PathsCommand::Limit { interface, rate } => PathsChange::Limit(interface, rate.0),
        PathsCommand::Prefer { interfaces } => PathsChange::Prefer(once_each(interfaces)),
    }
}

fn once_each(mut interfaces: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    interfaces.retain(|name| seen.insert(name.clone()));
    interfaces
}

fn of_interfaces(status: &Status) -> String {
    if status.interfaces.is_empty() {
        return "no interface has a usable address (`ip address` lists them)".to_owned();
    }
    let mut table = plain(vec!["interface", "use", "addresses", "limit", "quota"], 3);
    let mut reasons = String::new();
    for InterfaceStatus { name, addresses, used, limit_mbps, quota, why } in &status.interfaces {
        if let Some(why) = why {
            reasons += &format!("\nno path over {name} yet: {why}");
        }
        let used = match used {
            Use::Used => "used",
            Use::Spill => "spill",
            Use::Backup => "backup",
            Use::Excluded => "excluded",
            Use::NoPath => "no path yet",
        };
        let addresses: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
        let limit = limit_mbps.map_or("-".to_owned(), |rate| format!("{rate} Mbit/s"));
        let quota = quota.as_ref().map_or("-".to_owned(), of_quota);
        table.add_row(vec![name.clone(), used.into(), addresses.join(" "), limit, quota]);
    }
    table.trim_fmt() + &reasons
}

/// What an interface carried in this month, and what it may carry.
pub(super) fn of_quota(quota: &QuotaStatus) -> String {
    let left = if quota.left == 0 { "used up".to_owned() } else { format!("{} left", human(quota.left)) };
    format!("{} of {}, {left}", human(quota.used), human(quota.bytes))
}

/// A number of bytes, in the unit that makes it short.
pub(super) fn human(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

fn of_paths(status: &Status) -> String {
    let headers =
        vec!["peer", "interface", "local", "remote", "state", "delay, ms", "link, Mbit/s", "packets"];
    let mut table = plain(headers, 5);
    for (peer, path) in status.paths() {
        let interface = status.interface_of(path).map_or("-", |one| &one.name);
        let number = |number: Option<f64>| number.map_or("-".to_owned(), |number| format!("{number:.1}"));
        table.add_row(vec![
            peer.name.clone(),
            interface.to_owned(),
            path.local.to_string(),
            path.remote.to_string(),
            state(path).to_owned(),
            number(path.delay_ms),
            number(path.rate_mbps),
            path.sent_packets.to_string(),
        ]);
    }
    table.trim_fmt()
}

/// Whether a path can be used, in a word.
pub(super) fn state(path: &PathStatus) -> &'static str {
    match path {
        PathStatus { up: false, .. } => "down",
        PathStatus { answers: false, .. } => "silent",
        _ => "up",
    }
}

/// Prints the peers of a daemon.
pub fn peers(args: &PeersArgs) -> Result<(), Failure> {
    let status = current(&args.socket)?;
    if args.json {
        return print_json(&status.peers);
    }
    let mut table = plain(vec!["peer", "tag", "state", "paths", "sent", "received"], 3);
    for peer in &status.peers {
        table.add_row(vec![
            if peer.name == peer.hit.to_string() { "-".to_owned() } else { peer.name.clone() },
            peer.hit.to_string(),
            state_of_peer(peer).into(),
            peer.paths.iter().filter(|path| path.works()).count().to_string(),
            human(peer.sent),
            human(peer.received),
        ]);
    }
    printed(writeln!(io::stdout(), "{}", table.trim_fmt()))
}

/// Its state in one word.
fn state_of_peer(peer: &PeerStatus) -> &'static str {
    match (peer.associated, peer.silent) {
        (true, true) => "silent",
        (true, false) => "up",
        (false, _) => "down",
    }
}
