//! A host behind two NATs, one for each of its links, as a home with fibre and LTE is.

use polypath_testbed::emulated_link::EmulatedLink;
use polypath_testbed::netns::Netns;

use super::bed::{Bed, emulated, end, join, json, masquerade, tool};

/// A second router that masquerades, and ordinary default routes of both links.
fn second_nat(bed: &Bed) -> (Netns, EmulatedLink) {
    let (router, [a, b]) = (Netns::create("r2").unwrap(), &bed.hosts);
    tool(a, "ip link del a1");
    let link = emulated((a, "a1", "10.1.0.2"), (&router, "s0", "10.1.0.1"));
    join((&router, "s1", "198.51.100.1/24"), (b, "b2", "198.51.100.2/24"));
    masquerade(&router, "s1");
    tool(a, "ip route del 192.0.2.0/24");
    tool(a, "ip route add default via 10.0.0.1 dev a0 metric 100");
    tool(a, "ip route add default via 10.1.0.1 dev a1 metric 200");
    (router, link)
}

#[test]
fn both_links_carry_though_each_is_behind_a_nat_and_no_routing_rule_is_set() {
    let Some(bed) = Bed::slow() else { return };
    let _second = second_nat(&bed);
    let hits = bed.hits();
    let file = bed.file("big", 15_000_000);
    let receiver = bed.receive(&hits[0]);
    let sender = bed.send_to(&file, &format!("{}@192.0.2.2,198.51.100.2", hits[1]));
    let (sent, received) = (end(sender, 60), end(receiver, 20));
    let report = json(&sent);
    assert!(received.status.success(), "{received:?}");
    assert!(bed.arrived("big"));
    let paths = report["paths"].as_array().unwrap();
    let bytes = |local: &str| -> u64 {
        let of = paths.iter().filter(|p| p["local"].as_str().unwrap().starts_with(local));
        of.filter_map(|p| p["bytes"].as_u64()).sum()
    };
    assert!(bytes("10.0.0.2") > 4_000_000 && bytes("10.1.0.2") > 4_000_000, "{report:#}");
}
