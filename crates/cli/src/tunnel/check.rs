//! `polypath check`: what `polypath up` would do with a configuration, or what is wrong with it.

use std::io::{self, Write};
use std::iter::once;
use std::path::Path;

use ipnet::IpNet;
use polypath_daemon::config::Peer;
use polypath_daemon::control::ControlSocket;
use polypath_daemon::{Config, InterfaceStatus, Place, Use};
use serde_json::{Value, json};

use super::prepared::{Prepared, no_socket, placed};
use super::state;
use crate::args::CheckConfigArgs;
use crate::failure::{Failure, print_json, printed};

/// Peers that are named one by one.
const NAMED: usize = 20;

/// Reads a configuration as `up` does, and prints what `up` would do. Changes nothing.
pub fn check(args: &CheckConfigArgs) -> Result<(), Failure> {
    let file = &args.config;
    let prepared = Prepared::read(file, args.user.as_deref())?;
    let config = &prepared.config;
    state::check(config, prepared.user.as_ref())
        .map_err(|failure| placed(file, Place::Value(["daemon", "state"]), failure))?;
    ControlSocket::check(&config.control.socket).map_err(|e| no_socket(file, &e))?;
    config.check_leases().map_err(|e| super::no_lease(file, &e))?;
    let interfaces = config.interfaces();
    let warnings = config.doubts(&interfaces);
    if args.json {
        return print_json(&object(file, &prepared, &interfaces, &warnings));
    }
    warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    printed(write!(io::stdout(), "{}", text(file, &prepared, &interfaces)))
}

fn user(prepared: &Prepared) -> Option<&str> {
    prepared.user.as_ref().map(|user| user.name.as_str())
}

fn object(file: &Path, prepared: &Prepared, interfaces: &[InterfaceStatus], warnings: &[String]) -> Value {
    let Config { identity, tunnel, listen, control, metrics, peers, .. } = &prepared.config;
    json!({
        "config": file,
        "hit": prepared.identity.hit(),
        "key": identity.key,
        "device": tunnel.name,
        "addresses": tunnel.addresses,
        "addresses_from": tunnel.addresses_from,
        "assign": tunnel.assign,
        "mtu": tunnel.mtu,
        "queues": tunnel.queues,
        "kill_switch": tunnel.kill_switch,
        "port": listen.port,
        "user": user(prepared),
        "socket": control.socket,
        "metrics": metrics.listen,
        "interfaces": interfaces,
        "peers": peers,
        "warnings": warnings,
    })
}

fn text(file: &Path, prepared: &Prepared, interfaces: &[InterfaceStatus]) -> String {
    let Config { identity, tunnel, listen, peers, .. } = &prepared.config;
    let port = match listen.port {
        0 => "a free one on each address".to_owned(),
        port => port.to_string(),
    };
    let user = match user(prepared) {
        Some(name) => format!("becomes {name}"),
        None => "stays who starts it".to_owned(),
    };
    let lines = [
        ("this host", format!("{}, key in {}", prepared.identity.hit(), identity.key.display())),
        ("device", device(&prepared.config)),
        ("interfaces", used(interfaces)),
        ("UDP port", port),
        ("user", user),
    ];
    let named = peers.iter().take(NAMED).map(|peer| ("peer", of_peer(peer, tunnel.assign)));
    let others = match peers.len().saturating_sub(NAMED) {
        _ if peers.is_empty() => Some("none yet: `polypath init --peer` adds one".to_owned()),
        0 => None,
        more => Some(format!("and {more} more")),
    };
    let all = lines.into_iter().chain(named).chain(others.map(|others| ("peers", others)));
    let all = all.map(|(what, said)| format!("{what:<12}{said}\n"));
    once(format!("{}: no mistake found\n", file.display())).chain(all).collect()
}

fn device(config: &Config) -> String {
    let tunnel = &config.tunnel;
    let mut addresses: Vec<_> = tunnel.addresses.iter().map(IpNet::to_string).collect();
    addresses.extend(tunnel.addresses_from.map(|peer| format!("the address that {peer} assigns")));
    let queues = if tunnel.queues > 1 { format!(", {} queues", tunnel.queues) } else { String::new() };
    let rest = if tunnel.kill_switch { ", kill switch" } else { "" };
    format!("{}, {}, MTU {}{queues}{rest}", tunnel.name, addresses.join(" "), tunnel.mtu)
}

fn used(interfaces: &[InterfaceStatus]) -> String {
    if interfaces.is_empty() {
        return "none has a usable address now".to_owned();
    }
    let one = |one: &InterfaceStatus| match one.used {
        Use::Used | Use::NoPath => one.name.clone(),
        Use::Spill => format!("{} for overflow", one.name),
        Use::Backup => format!("{} as a backup", one.name),
        Use::Excluded => format!("not {}", one.name),
    };
    interfaces.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn of_peer(peer: &Peer, assign: Option<IpNet>) -> String {
    let name = if peer.name.is_empty() { String::new() } else { format!("{}, ", peer.name) };
    let called = match peer.addresses.as_slice() {
        [] => "calls this host".to_owned(),
        all => format!("called at {}", all.join(" ")),
    };
    let behind = match (peer.prefixes.as_slice(), assign) {
        ([], Some(network)) => format!("an address of {network}"),
        (all, _) => all.iter().map(IpNet::to_string).collect::<Vec<_>>().join(" "),
    };
    format!("{name}{}: {called}; behind it: {behind}", peer.hit)
}
