//! Links that mark packets instead of dropping them (RFC 3168), under both lanes.

use super::common::{Host, Pair, link, ready};
use super::tcp::{connected, transfer};
use polypath_hop::{CodelConfig, Discipline, HopConfig, HopStats, QueueLimit};

const MB: usize = 1 << 20;
/// Its connections travel as packets.
const EXCLUDED: u16 = 81;

/// A link with CoDel in front of it, towards the second host.
fn codel(mbps: u64, ms: u64) -> [HopConfig; 2] {
    let [there, back] = link(mbps, ms);
    let (discipline, queue) = (Discipline::Codel(CodelConfig::default()), QueueLimit::Packets(1000));
    [HopConfig { discipline, queue, ..there }, back]
}

fn hops(pair: &Pair) -> Vec<HopStats> {
    pair.bed.paths.iter().map(|path| path.link.stats().hops[0]).collect()
}

/// What `len` bytes to `port` of the second host had happen on each link: packets marked, and dropped.
fn sent(pair: &Pair, port: u16, len: usize) -> Vec<(u64, u64)> {
    let before = hops(pair);
    let (client, server) = connected(pair, 0, port);
    transfer(client, server, len);
    let since = |(then, now): (&HopStats, &HopStats)| {
        (now.marked - then.marked, now.dropped_total() - then.dropped_total())
    };
    before.iter().zip(&hops(pair)).map(since).collect()
}

#[test]
fn both_lanes_are_marked_and_lose_next_to_nothing() {
    if !ready() {
        return;
    }
    let change = |_: usize, text: String| text + &format!("[lane]\nexclude_ports = [{EXCLUDED}]\n");
    let pair = Pair::start(&[codel(40, 5), codel(20, 10)], change);
    // By the time of the second heartbeat of each path ECN is proved.
    pair.wait(|pair| {
        let answered = |host: &Host| host.status().peers[0].paths.iter().all(|path| path.delay_ms.is_some());
        pair.hosts.iter().all(answered)
    });
    for port in [80, EXCLUDED] {
        let marks = sent(&pair, port, 30 * MB);
        println!("port {port}: marked and dropped {marks:?}");
        for (marked, dropped) in marks {
            assert!(marked > 0 && dropped <= 5, "port {port}: {marked} marked, {dropped} dropped");
        }
    }
}
