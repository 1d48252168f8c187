//! A link beyond the router that carries less than our own.

use std::time::Duration;

use super::bed::{Bed, end, json, tool};

/// Hosts joined by the link through the router alone.
fn bed() -> Option<Bed> {
    let bed = Bed::slow()?;
    tool(&bed.hosts[0], "ip link set a1 down");
    Some(bed)
}

/// The far link takes packets of 1,400 bytes from now on.
fn narrow(bed: &Bed) {
    tool(&bed.router, "ip link set r1 mtu 1400");
    tool(&bed.hosts[1], "ip link set b0 mtu 1400");
}

/// Nothing that routers say reaches the hosts.
fn silence(bed: &Bed) {
    let rule = "nft add rule ip filter in icmp type destination-unreachable drop";
    for host in &bed.hosts {
        tool(host, "nft add table ip filter");
        tool(host, "nft add chain ip filter in { type filter hook input priority 0; }");
        tool(host, rule);
    }
}

/// Sends 12 MB, which take 5 s, over a link that is narrow from the beginning or becomes so; the size of packets in the end.
fn send(silent: bool, at_once: bool) -> Option<u64> {
    let bed = bed()?;
    if silent {
        silence(&bed);
    }
    if at_once {
        narrow(&bed);
    }
    let hits = bed.hits();
    let file = bed.file("big", 12_000_000);
    let receiver = bed.receive(&hits[0]);
    let sender = bed.send(&file, &hits[1]);
    if !at_once {
        std::thread::sleep(Duration::from_secs(2));
        narrow(&bed);
    }
    let (sent, received) = (end(sender, 60), end(receiver, 20));
    let report = json(&sent);
    assert!(received.status.success(), "{received:?}");
    assert!(bed.arrived("big"));
    report["paths"][0]["mtu"].as_u64()
}

#[test]
fn a_narrow_link_whose_router_says_so() {
    assert!(send(false, true).is_none_or(|mtu| mtu == 1400));
}

#[test]
fn a_narrow_link_whose_router_is_not_heard() {
    assert!(send(true, true).is_none_or(|mtu| (1280..=1400).contains(&mtu)));
}

#[test]
fn a_link_that_becomes_narrow_and_says_so() {
    assert!(send(false, false).is_none_or(|mtu| mtu == 1400));
}

#[test]
fn a_link_that_becomes_narrow_in_silence() {
    assert!(send(true, false).is_none_or(|mtu| (1280..=1400).contains(&mtu)));
}
