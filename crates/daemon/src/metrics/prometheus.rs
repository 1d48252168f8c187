//! A status as Prometheus reads it (text exposition format 0.0.4).

use std::fmt::Write;

use crate::quota::QuotaStatus;
use crate::status::{PathStatus, PeerStatus, Status};

/// The text.
pub(super) fn text(status: &Status) -> String {
    let mut out = String::new();
    of_lane(status, &mut out);
    of_peers(status, &mut out);
    of_paths(status, &mut out);
    of_quotas(status, &mut out);
    of_drops(status, &mut out);
    out
}

/// One metric: its help, its kind, and its samples.
fn family<'a>(
    out: &mut String,
    (name, kind, help): (&str, &str, &str),
    samples: impl IntoIterator<Item = (Vec<(&'a str, String)>, f64)>,
) {
    // Writing into a string cannot fail.
    let _ = writeln!(out, "# HELP polypath_{name} {help}\n# TYPE polypath_{name} {kind}");
    for (labels, value) in samples {
        let labels: Vec<_> =
            labels.iter().map(|(key, text)| format!("{key}=\"{}\"", escaped(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(out, "polypath_{name}{labels} {value}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn of_lane(status: &Status, out: &mut String) {
    let lane = &status.lane;
    let one = |value: f64| [(Vec::new(), value)];
    family(out, ("connections_open", "gauge", "TCP connections carried now."), one(lane.open as f64));
    family(
        out,
        ("connections_memory_bytes", "gauge", "Bytes that TCP connections hold in buffers."),
        one(lane.memory as f64),
    );
    let ways = [("out", lane.outgoing), ("in", lane.incoming), ("by_packets", lane.by_packets)];
    let ways = ways.map(|(way, count)| (vec![("way", way.to_owned())], count as f64));
    family(
        out,
        (
            "connections_total",
            "counter",
            "TCP connections since the start: from here (out), from peers (in), from here as packets because too many were open (by_packets).",
        ),
        ways,
    );
}

fn of_peers(status: &Status, out: &mut String) {
    let mut each = |name, kind, help, value: fn(&PeerStatus) -> f64| {
        let samples = status.peers.iter().map(|peer| (vec![("peer", peer.name.clone())], value(peer)));
        family(out, (name, kind, help), samples);
    };
    each(
        "peer_up",
        "gauge",
        "1 if there is an association with the peer and it answers, otherwise 0.",
        |p| f64::from(u8::from(p.associated && !p.silent)),
    );
    each(
        "peer_sent_bytes_total",
        "counter",
        "Bytes of TCP connections sent to the peer, without those that travel as packets.",
        |p| p.sent as f64,
    );
    each(
        "peer_received_bytes_total",
        "counter",
        "Bytes of TCP connections received from the peer, without those that travel as packets.",
        |p| p.received as f64,
    );
    each("peer_packets_sent_total", "counter", "Packets of other traffic sent to the peer.", |p| {
        p.packets.sent as f64
    });
    each("peer_packets_received_total", "counter", "Packets of other traffic received from the peer.", |p| {
        p.packets.received as f64
    });
    each(
        "peer_packets_copied_total",
        "counter",
        "Copies of packets sent to the peer on a second path.",
        |p| p.packets.copies as f64,
    );
    each(
        "peer_packets_lost_total",
        "counter",
        "Packets of other traffic to the peer that were lost on paths.",
        |p| p.packets.lost as f64,
    );
    each(
        "peer_packets_dropped_total",
        "counter",
        "Packets of other traffic to the peer that were dropped in the queue.",
        |p| p.packets.dropped as f64,
    );
    each("peer_queue_bytes", "gauge", "Bytes of packets to the peer that wait for a path.", |p| {
        p.packets.waiting as f64
    });
}

fn of_paths(status: &Status, out: &mut String) {
    let mut each = |name, kind, help, value: fn(&PathStatus) -> Option<f64>| {
        let samples = status.paths().filter_map(|(peer, path)| {
            let ends = [("local", path.local.to_string()), ("remote", path.remote.to_string())];
            let labels = [("peer", peer.name.clone())].into_iter().chain(ends).collect();
            Some((labels, value(path)?))
        });
        family(out, (name, kind, help), samples);
    };
    each("path_up", "gauge", "1 if the path is up and the peer answers on it, otherwise 0.", |p| {
        Some(f64::from(u8::from(p.works())))
    });
    each("path_sent_bytes_total", "counter", "Bytes of UDP payload sent on the path.", |p| {
        Some(p.sent_bytes as f64)
    });
    each("path_received_bytes_total", "counter", "Bytes of UDP payload received on the path.", |p| {
        Some(p.received_bytes as f64)
    });
    each("path_sent_packets_total", "counter", "Packets sent on the path.", |p| Some(p.sent_packets as f64));
    let rtt = "Round trip time of the path: smoothed while data is in flight, otherwise the smallest of the heartbeats.";
    each("path_rtt_seconds", "gauge", rtt, |p| p.rtt_ms().map(|ms| ms / 1e3));
    let delay = "One-way delay of the path: half the smallest round trip time of the heartbeats.";
    each("path_delay_seconds", "gauge", delay, |p| p.delay_ms.map(|ms| ms / 1e3));
    each(
        "path_window_bytes",
        "gauge",
        "Congestion windows of connections with data in flight on the path, bytes.",
        |p| Some(p.load.window as f64),
    );
    each("path_in_flight_bytes", "gauge", "Bytes in flight on the path.", |p| Some(p.load.in_flight as f64));
    each(
        "path_multi_route_connections",
        "gauge",
        "Open connections that agreed on the multi-route option of R-M/TCP.",
        |p| Some(f64::from(p.load.multi_route)),
    );
    each("path_ecn", "gauge", "1 if queues may mark what is sent on the path (ECN), otherwise 0.", |p| {
        Some(f64::from(u8::from(p.ecn)))
    });
    each(
        "path_marked_packets_total",
        "counter",
        "Packets received on the path that a queue marked (ECN).",
        |p| Some(p.marked_packets as f64),
    );
    each(
        "path_mark_reductions",
        "gauge",
        "Reductions of windows on the path because queues marked what was sent (ECN): of open connections, and of other packets.",
        |p| Some(p.load.marks as f64),
    );
    each("path_mtu_bytes", "gauge", "Largest IP packet sent on the path, bytes.", |p| Some(f64::from(p.mtu)));
}

fn of_quotas(status: &Status, out: &mut String) {
    let mut each = |name, help, value: fn(&QuotaStatus) -> u64| {
        let samples = status.interfaces.iter().filter_map(|interface| {
            let quota = interface.quota.as_ref()?;
            Some((vec![("interface", interface.name.clone())], value(quota) as f64))
        });
        family(out, (name, "gauge", help), samples);
    };
    each("interface_quota_used_bytes", "Bytes that the interface carried in this calendar month.", |quota| {
        quota.used
    });
    each(
        "interface_quota_left_bytes",
        "Bytes that the interface may still carry in this month before it becomes a backup.",
        |quota| quota.left,
    );
}

fn of_drops(status: &Status, out: &mut String) {
    let Status { lane, packets, outside, .. } = status;
    let drops = [
        ("connection", "no_peer", lane.no_peer),
        ("connection", "no_association", lane.no_association),
        ("connection", "busy", lane.busy),
        ("connection", "forbidden", lane.forbidden),
        ("segment", "fragment", lane.fragments),
        ("segment", "malformed", lane.malformed),
        ("segment", "refused", lane.refused),
        ("packet", "no_peer", packets.no_peer),
        ("packet", "no_association", packets.no_association),
        ("packet", "too_big", packets.too_big),
        ("packet", "malformed", packets.malformed),
        ("packet", "forbidden", packets.forbidden),
        ("packet", "overrun", packets.overrun),
        ("datagram", "unknown", outside.unknown),
        ("datagram", "malformed", outside.malformed),
        ("datagram", "late", outside.late),
        ("datagram", "uninvited", outside.uninvited),
        ("datagram", "unknown_spi", outside.unknown_spi),
        ("datagram", "refused", outside.refused),
    ];
    let samples = drops
        .map(|(what, why, count)| (vec![("what", what.to_owned()), ("why", why.to_owned())], count as f64));
    family(
        out,
        (
            "dropped_total",
            "counter",
            "Connections, segments, packets and datagrams that were dropped, by cause.",
        ),
        samples,
    );
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What Grafana shows, as it is packaged.
    const DASHBOARD: &str = include_str!("../../../../packaging/grafana.json");

    #[test]
    fn the_dashboard_names_metrics_that_there_are_and_shows_all_but_three() {
        serde_json::from_str::<serde_json::Value>(DASHBOARD).unwrap();
        let named = DASHBOARD.split("polypath_").skip(1);
        let name =
            |text: &str| text.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap().to_owned();
        let shown: BTreeSet<String> = named.map(name).collect();
        let told = text(&Status::default());
        let of_line = |line: &str| Some(line.strip_prefix("# TYPE polypath_")?.split(' ').next()?.to_owned());
        let there: BTreeSet<String> = told.lines().filter_map(of_line).collect();
        assert_eq!(shown.difference(&there).collect::<Vec<_>>(), Vec::<&String>::new());
        assert_eq!(
            there.difference(&shown).collect::<Vec<_>>(),
            ["path_mtu_bytes", "path_multi_route_connections", "path_sent_packets_total"]
        );
    }

    #[test]
    fn labels_are_escaped() {
        let mut out = String::new();
        family(&mut out, ("x", "gauge", "Help."), [(vec![("peer", "a\"b\\c\nd".to_owned())], 1.5)]);
        let expected =
            "# HELP polypath_x Help.\n# TYPE polypath_x gauge\npolypath_x{peer=\"a\\\"b\\\\c\\nd\"} 1.5\n";
        assert_eq!(out, expected);
    }
}
