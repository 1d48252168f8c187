//! `polypath status`: how a running daemon is.

use std::fmt::Write as _;
use std::io::{self, Write};

use polypath_daemon::{LaneStatus, OutsideStatus, PacketStatus, PathStatus, PeerPackets, PeerStatus, Status};

use super::ask::current;
use super::lists::{human, of_quota};
use super::watch;
use crate::args::StatusArgs;
use crate::failure::{Failure, print_json, printed};

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

fn text(status: &Status) -> String {
    let mut text = format!("{} on {}\n", status.hit, status.device);
    for peer in &status.peers {
        text += &of_peer(peer);
    }
    text + &of_quotas(status)
        + &of_lane(&status.lane)
        + &of_packets(&status.packets)
        + &of_outside(&status.outside)
}

fn of_peer(peer: &PeerStatus) -> String {
    let state = match peer.associated {
        true if peer.silent => "does not answer",
        true => "up",
        false => "down",
    };
    let (sent, received) = (human(peer.sent), human(peer.received));
    let mut text = format!("\npeer {}: {state}\n", peer.name);
    if let Some(why) = &peer.why {
        text += &format!("  {why}\n");
    }
    for path in &peer.paths {
        let state = match path.up {
            true if !path.answers => "silent",
            true => "up",
            false => "down",
        };
        let delay = path.delay_ms.map_or("delay not measured".to_owned(), |ms| format!("{ms:.1} ms one way"));
        let rate = path
            .rate_mbps
            .map_or("link rate not measured".to_owned(), |rate| format!("link rate about {rate:.1} Mbit/s"));
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "  {} → {}: {state}, {delay}, {rate}, {} packets sent, carries packets of up to {} bytes{}",
            path.local,
            path.remote,
            path.sent_packets,
            path.carries,
            of_marks(path)
        );
    }
    text += &format!("  TCP connections: sent {sent}, received {received}\n");
    text + &of_exchange(&peer.packets)
}

/// What queues marked on a path, if anything.
fn of_marks(path: &PathStatus) -> String {
    match path.marked_packets {
        0 => String::new(),
        marked => format!(", {marked} packets received with a mark (ECN)"),
    }
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
        "  other packets: {sent} sent, {received} received; {lost} lost, {dropped} dropped and {marked} marked in the queue\n"
    );
    match copies + duplicates {
        0 => text,
        _ => text + &format!("  copies: {copies} sent, {duplicates} received and dropped\n"),
    }
}

fn of_lane(lane: &LaneStatus) -> String {
    let LaneStatus { open, outgoing, incoming, by_packets, .. } = lane;
    let text = format!(
        "\nTCP connections: {open} open; since the start {outgoing} from here, {incoming} from peers\n"
    );
    let as_packets = [
        (*by_packets, "connections from here that travel as packets, because too many were open"),
        (lane.busy, "connections from peers that travel as packets, because too many were open"),
    ];
    text + &counted("", as_packets)
        + &dropped([
            (lane.no_peer, "connections to addresses behind no peer"),
            (lane.no_association, "connections to a peer that could not be reached"),
            (lane.forbidden, "connections from addresses that are not behind the peer"),
            (lane.fragments, "fragments of TCP segments without the others"),
            (lane.malformed, "malformed packets"),
            (lane.refused, "packets that the device did not take"),
        ])
}

fn of_packets(packets: &PacketStatus) -> String {
    dropped([
        (packets.no_peer, "packets to addresses behind no peer"),
        (packets.no_association, "packets to a peer that could not be reached"),
        (packets.too_big, "packets larger than the paths carry"),
        (packets.forbidden, "packets from addresses that are not behind the peer"),
        (packets.malformed, "packets that are not IP"),
        (packets.overrun, "packets because this host was too busy"),
    ])
}

/// Without what is late, of which every start over several links has some.
fn of_outside(outside: &OutsideStatus) -> String {
    dropped([
        (outside.unknown, "datagrams from outside that are neither HIP nor ESP"),
        (outside.malformed, "HIP packets from outside that are malformed or damaged"),
        (
            outside.uninvited,
            "HIP packets from outside that are of no peer or no association, forged or over a limit",
        ),
        (outside.unknown_spi, "datagrams from outside that belong to no association"),
        (outside.refused, "datagrams from outside that are forged, damaged or sent before"),
    ])
}

/// What was dropped.
fn dropped<const N: usize>(counts: [(u64, &str); N]) -> String {
    counted("dropped ", counts)
}

/// A line for each count that is not 0.
fn counted<const N: usize>(became: &str, counts: [(u64, &str); N]) -> String {
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{became}{what}: {count}\n")).collect()
}
