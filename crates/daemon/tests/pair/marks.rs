//! Links that mark packets instead of dropping them (RFC 3168), under both lanes.

use std::net::IpAddr;

use polypath_hop::{CodelConfig, Discipline, HopConfig, HopStats, QueueLimit};

use super::common::{Host, Pair, link, on, ready, sh};
use super::tcp::{connected, transfer};

const MB: usize = 1 << 20;
/// Its connections travel as packets.
const EXCLUDED: u16 = 81;

/// A link with CoDel in front of it, towards the second host.
fn codel(mbps: u64, ms: u64) -> [HopConfig; 2] {
    let [there, back] = link(mbps, ms);
    let (discipline, queue) = (Discipline::Codel(CodelConfig::default()), QueueLimit::Packets(1000));
    [HopConfig { discipline, queue, ..there }, back]
}

/// Two such links, so slow that a busy machine fills them, too; `change` may add to the text of either configuration.
fn marking(change: impl Fn(usize, String) -> String) -> Pair {
    let excluded = |text: String| text + &format!("[lane]\nexclude_ports = [{EXCLUDED}]\n");
    Pair::start(&[codel(12, 5), codel(6, 10)], |side, text| change(side, excluded(text)))
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

/// Packets of programs of the first host that were lost on the way.
fn lost(pair: &Pair) -> u64 {
    pair.hosts[0].status().peers[0].packets.lost
}

/// Waits until heartbeats have shown on every path that it leaves marks alone.
fn wait_until_proved(pair: &Pair) {
    pair.wait(|pair| pair.hosts.iter().all(|host| host.status().paths().all(|(_, path)| path.ecn)));
}

/// Both lanes are marked and lose next to nothing, and both hosts' status shows it.
fn are_marked(pair: &Pair) {
    wait_until_proved(pair);
    for port in [80, EXCLUDED] {
        let all_marked = || {
            let before = lost(pair);
            let marks = sent(pair, port, 5 * MB);
            // Reports of what came may not be marked, as acknowledgments (RFC 3168 §6.1.4), so links drop some beside packets.
            let lost = match port {
                EXCLUDED => lost(pair) - before,
                _ => marks.iter().map(|(_, dropped)| dropped).sum(),
            };
            println!("port {port}: marked and dropped {marks:?}; {lost} lost");
            assert!(lost <= 5, "port {port}: {marks:?}, {lost} lost");
            marks.iter().all(|(marked, _)| *marked > 0)
        };
        assert!((0..5).any(|_| all_marked()), "port {port}: a link marked nothing");
    }
    let sums = |host: &Host| {
        let status = host.status();
        let paths = || status.paths().map(|(_, path)| path);
        (
            paths().map(|path| path.marked_packets).sum::<u64>(),
            paths().map(|path| path.load.marks).sum::<u64>(),
        )
    };
    let [(back, reductions), (there, _)] = pair.hosts.each_ref().map(sums);
    let marked: u64 = hops(pair).iter().map(|hop| hop.marked).sum();
    println!("{marked} marked, {there} of them received; {reductions} reductions");
    assert!((marked.saturating_sub(5)..=marked).contains(&there), "{there} came with a mark, of {marked}");
    assert_eq!(back, 0, "nothing marks what goes the other way");
    // Of the flow of packets, which is still there, and of a connection that is ending. A lost CWR has one more (RFC 3168 §6.1.3).
    assert!(reductions > 0, "none for {marked} marks");
}

#[test]
fn both_lanes_are_marked_and_lose_next_to_nothing() {
    if ready() {
        are_marked(&marking(|_, text| text));
    }
}

#[test]
fn both_lanes_are_marked_over_ipv6_too() {
    if !ready() {
        return;
    }
    let ends = |n: usize| ["1", "2"].map(|end| format!("fd77:{n}::{end}"));
    let also_ipv6 = on(0, |text| {
        text.replace(
            "addresses = [\"10.77",
            "addresses = [\"[fd77:0::2]:10501\", \"[fd77:1::2]:10501\", \"10.77",
        )
    });
    let pair = marking(also_ipv6);
    for n in [1, 0] {
        for (host, end) in pair.hosts.iter().zip(ends(n)) {
            sh(&host.ns, &format!("ip addr flush dev path{n}; ip addr add {end}/64 dev path{n} nodad"));
        }
        let local: IpAddr = ends(n)[0].parse().unwrap();
        let is_up = |pair: &Pair| {
            let status = pair.hosts[0].status();
            status.paths().any(|(_, path)| path.works() && path.local.ip() == local)
        };
        pair.wait(is_up);
    }
    let only_ipv6 = |host: &Host| {
        let status = host.status();
        status.paths().count() == 2 && status.paths().all(|(_, path)| path.works() && path.local.is_ipv6())
    };
    pair.wait(|pair| pair.hosts.iter().all(only_ipv6));
    are_marked(&pair);
}

/// What the kernel of a host has counted under that name of `TcpExt`.
fn counted(host: &Host, name: &str) -> u64 {
    let said = host.ns.run(|| std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap()).unwrap();
    let mut lines = said.lines().filter(|line| line.starts_with("TcpExt:")).map(|line| line.split(' '));
    let (names, counts) = (lines.next().unwrap(), lines.next().unwrap());
    let found = names.zip(counts).find(|(one, _)| *one == name);
    found.unwrap().1.parse().unwrap()
}

/// The queue in front of the paths marks packets of programs, too.
#[test]
fn a_program_that_may_be_marked_hears_that_its_packets_wait_and_loses_none() {
    if !ready() {
        return;
    }
    let excluded = |_, text: String| text + &format!("[lane]\nexclude_ports = [{EXCLUDED}]\n");
    let pair = Pair::start(&[link(8, 5)], excluded);
    for host in &pair.hosts {
        host.ns.run(|| std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").unwrap()).unwrap();
    }
    sent(&pair, EXCLUDED, 4 * MB);
    let packets = &pair.hosts[0].status().peers[0].packets;
    let heard = counted(&pair.hosts[0], "TCPDeliveredCE");
    println!("{} marked, {heard} of them delivered; {} dropped", packets.marked, packets.dropped);
    assert!(packets.marked > 0 && heard > 0 && packets.dropped == 0, "{heard}: {packets:?}");
}

#[test]
fn without_ecn_at_one_end_nothing_is_marked_in_either_direction() {
    if !ready() {
        return;
    }
    for end in 0..2 {
        let change = |side: usize, text: String| match side == end {
            true => text.replace("[tunnel]", "[tunnel]\necn = false"),
            false => text,
        };
        let pair = marking(change);
        // Had it been proved, it would be by the second heartbeat.
        let beaten = |host: &Host| host.status().paths().all(|(_, path)| path.sent_packets > 8);
        pair.wait(|pair| pair.hosts.iter().all(beaten));
        for port in [80, EXCLUDED] {
            let marks = sent(&pair, port, 5 * MB);
            assert!(marks.iter().all(|(marked, _)| *marked == 0), "port {port}: {marks:?}");
            assert!(
                marks.iter().any(|(_, dropped)| *dropped > 0),
                "port {port}: CoDel dropped none: {marks:?}"
            );
        }
        assert!(lost(&pair) > 0, "what CoDel dropped does not count as lost");
        let is_off =
            |host: &Host| host.status().paths().all(|(_, path)| !path.ecn && path.marked_packets == 0);
        assert!(pair.hosts.iter().all(is_off));
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
