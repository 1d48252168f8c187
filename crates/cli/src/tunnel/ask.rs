//! `polypath status`, `reload` and `down`: a running daemon is asked.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use polypath_daemon::control::{Answer, Command, ControlError, ask, ended};
use polypath_daemon::kill_switch;
use polypath_daemon::{LaneStatus, PacketStatus, PeerPackets, PeerStatus, Status};

use super::lists::of_quota;
use super::watch;
use crate::args::{DownArgs, ReloadArgs, StatusArgs};
use crate::failure::{Failure, print_json, printed};

/// How long a daemon may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Prints how a daemon is.
pub fn status(args: &StatusArgs) -> Result<(), Failure> {
    if args.watch {
        return watch::watch(args);
    }
    let status = current(&args.socket)?;
    match args.json {
        true => print_json(&status),
        false => printed(io::stdout().write_all(text(&status).as_bytes())),
    }
}

/// How the daemon is that answers at `socket`.
pub(super) fn current(socket: &Path) -> Result<Status, Failure> {
    match answer(socket, &Command::Status)? {
        Answer::Status(status) => Ok(*status),
        _ => Err(other()),
    }
}

/// Has a daemon end.
pub fn down(args: &DownArgs) -> Result<(), Failure> {
    if args.lift_kill_switch {
        return lift(&args.socket);
    }
    match answer(&args.socket, &Command::Down)? {
        Answer::Ending => {
            ended(&args.socket, PATIENCE).map_err(|e| {
                Failure::unmet(e.to_string()).help("`kill -9` ends it; what it says is in its log")
            })?;
            match kill_switch::is_armed() {
                true => Err(Failure::unmet("the daemon has ended, and a kill switch stands")
                    .help("`polypath down --lift-kill-switch` lifts it")),
                false => Ok(()),
            }
        }
        _ => Err(other()),
    }
}

/// Takes away what daemons left that ended otherwise than by `down`.
fn lift(socket: &Path) -> Result<(), Failure> {
    match ask(socket, &Command::Status) {
        Err(ControlError::Nobody(_)) => {}
        Err(error @ ControlError::Os { .. }) => {
            return Err(Failure::system("cannot lift it", error).help("only root may"));
        }
        _ => {
            return Err(Failure::usage(format!("a daemon is running: it answers on {}", socket.display()))
                .help("`polypath down` ends it and lifts its kill switch"));
        }
    }
    let failed = |e| Failure::system("cannot lift it", e).help("only root may");
    match kill_switch::lift_left_behind().map_err(failed)? {
        true => eprintln!("the kill switch is lifted"),
        false => eprintln!("there is no kill switch"),
    }
    Ok(())
}

/// Has a daemon read its configuration again.
pub fn reload(args: &ReloadArgs) -> Result<(), Failure> {
    order(&args.socket, &Command::Reload)
}

/// Has a daemon do something.
pub(super) fn order(socket: &Path, command: &Command) -> Result<(), Failure> {
    match answer(socket, command)? {
        Answer::Done => Ok(()),
        Answer::Refused { why, help } => Err(Failure::usage(why).help(help)),
        _ => Err(other()),
    }
}

pub(super) fn answer(socket: &Path, command: &Command) -> Result<Answer, Failure> {
    explained(ask(socket, command))
}

/// An answer, or why there is none and what to do about it.
pub(super) fn explained(asked: Result<Answer, ControlError>) -> Result<Answer, Failure> {
    asked.map_err(|error| {
        let failure = Failure::system("cannot ask", &error);
        match error {
            ControlError::Nobody(_) if kill_switch::is_armed() => failure.help(
                "its kill switch stands: `polypath up` continues behind it, `polypath down --lift-kill-switch` lifts it",
            ),
            ControlError::Nobody(_) => {
                failure.help("`polypath up` starts one; --socket names another one's [control] socket")
            }
            ControlError::Os { ref source, .. } if source.kind() == io::ErrorKind::InvalidInput => {
                failure.help("--socket names the daemon's [control] socket, 107 bytes at most")
            }
            ControlError::Os { .. } => failure.help("only root may ask, the daemon's user, and members of [control] group"),
            _ => failure,
        }
    })
}

pub(super) fn other() -> Failure {
    Failure::system("cannot ask", ControlError::Language)
}

fn text(status: &Status) -> String {
    let mut text = format!("{} on {}\n", status.hit, status.device);
    for peer in &status.peers {
        text += &of_peer(peer);
    }
    text + &of_quotas(status) + &of_lane(&status.lane) + &of_packets(&status.packets)
}

fn of_peer(peer: &PeerStatus) -> String {
    let state = match peer.associated {
        true if peer.silent => "does not answer",
        true => "up",
        false => "down",
    };
    let (sent, received) = (human(peer.sent), human(peer.received));
    let mut text = format!("\npeer {}: {state}, sent {sent}, received {received}\n", peer.name);
    for path in &peer.paths {
        let state = match path.up {
            true if !path.answers => "silent",
            true => "up",
            false => "down",
        };
        let delay = path.delay_ms.map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
        let rate = path.rate_mbps.map_or("-".to_owned(), |rate| format!("{rate:.1} Mbit/s"));
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "  {} → {}: {state}, {delay} one way, {rate}, {} packets sent",
            path.local, path.remote, path.sent_packets
        );
    }
    text + &of_exchange(&peer.packets)
}

fn of_quotas(status: &Status) -> String {
    let all = status.interfaces.iter().filter_map(|one| Some((&one.name, one.quota.as_ref()?)));
    let lines = all.map(|(name, quota)| format!("\nquota of {name} in this month: {}\n", of_quota(quota)));
    lines.collect()
}

fn of_exchange(packets: &PeerPackets) -> String {
    let PeerPackets { sent, copies, received, duplicates, dropped, marked, lost, late, .. } = packets;
    let lost = lost.saturating_sub(*late);
    let text = format!(
        "  packets: {sent} sent, {received} received; {lost} lost, {dropped} dropped and {marked} marked in the queue\n"
    );
    match copies + duplicates {
        0 => text,
        _ => text + &format!("  copies: {copies} sent, {duplicates} received and dropped\n"),
    }
}

fn of_lane(lane: &LaneStatus) -> String {
    let LaneStatus { open, outgoing, incoming, by_packets, .. } = lane;
    let mut text = format!(
        "\nconnections: {open} open, {outgoing} sent out, {incoming} taken in, {by_packets} as packets since too many were open\n"
    );
    for (count, what) in [
        (lane.no_peer, "connections to addresses behind no peer"),
        (lane.no_association, "connections to a peer that could not be reached"),
        (lane.busy, "connections of peers too many at a time (they go on as packets)"),
        (lane.forbidden, "connections from addresses that are not their peer's"),
        (lane.fragments, "fragments of TCP segments"),
        (lane.malformed, "malformed packets"),
        (lane.refused, "packets that the device did not take"),
    ] {
        if count > 0 {
            let _ = writeln!(text, "dropped: {count} {what}");
        }
    }
    text
}

fn of_packets(packets: &PacketStatus) -> String {
    let counts = [
        (packets.no_peer, "packets to addresses behind no peer"),
        (packets.no_association, "packets to a peer that could not be reached"),
        (packets.too_big, "packets larger than the paths carry"),
        (packets.forbidden, "packets from addresses that are not their peer's"),
        (packets.malformed, "packets that are no IP"),
        (packets.overrun, "packets as this host was too busy"),
    ];
    let dropped = counts.into_iter().filter(|(count, _)| *count > 0);
    dropped.map(|(count, what)| format!("dropped: {count} {what}\n")).collect()
}

pub(super) fn human(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
