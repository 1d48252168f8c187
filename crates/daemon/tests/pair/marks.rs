//! Links that mark packets instead of dropping them (RFC 3168), under both lanes.

use super::common::{Host, Pair, link, ready, sh};
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

/// What is proved may change: packets that may be marked are dropped from now on, all others are not.
#[test]
fn where_ect_begins_to_be_dropped_it_is_given_up_and_all_arrives() {
    let pair = ready().then(|| Pair::start(&[link(40, 5), link(20, 10)], |_, text| text));
    let Some(pair) = pair else { return };
    assert!(sent(&pair, 80, MB).iter().all(|(marked, _)| *marked == 0));
    for host in &pair.hosts {
        sh(&host.ns, "nft add table inet marks");
        sh(&host.ns, "nft add chain inet marks in { type filter hook input priority 0; }");
        sh(&host.ns, "nft add rule inet marks in udp dport 10501 ip ecn ect0 counter drop");
    }
    sent(&pair, 80, 10 * MB);
    let paths =
        |host: &Host| host.status().peers[0].paths.iter().filter(|path| path.up && path.answers).count();
    pair.wait(|pair| pair.hosts.iter().all(|host| paths(host) == 2));
    let began = std::time::Instant::now();
    sent(&pair, 80, 10 * MB);
    println!("10 MiB after {:?}", began.elapsed());
}
