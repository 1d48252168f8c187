//! A client whose packets a router on the way to the daemon may cut into fragments, and does.

use std::net::{TcpListener, TcpStream};
use std::process::Command as Tool;
use std::time::Duration;

use polypath_testbed::netns::Netns;

use super::common::{Pair, link, ready, sh};
use super::tcp::transfer;

/// A test fails after this long without a byte.
const STALLED: Duration = Duration::from_secs(20);

/// A cable between `device` in one namespace and in another, each with an address and the cable's MTU.
fn cable(ends: [(&Netns, &str, &str); 2], mtu: u32) {
    let [(ns, device, _), (other, far, _)] = ends;
    // A namespace has no name for `ip`: the far end is moved to a process that lives in it.
    let mut there = other.run(|| Tool::new("sleep").arg("60").spawn().unwrap()).unwrap();
    sh(ns, &format!("ip link add {device} type veth peer name {far} netns {}", there.id()));
    for (ns, device, address) in ends {
        sh(
            ns,
            &format!(
                "ip addr add {address}/24 dev {device} && ip link set {device} mtu {mtu} && ip link set {device} up"
            ),
        );
    }
    there.kill().and_then(|()| there.wait()).unwrap();
}

#[test]
fn segments_that_a_router_cut_into_fragments_arrive() {
    if !ready() {
        return;
    }
    let change = |side, text: String| match side {
        0 => text + "[lane]\nexclude_ports = [81]\n",
        _ => text.replace("prefixes = [", "prefixes = [\"10.0.1.0/24\", "),
    };
    let pair = Pair::start(&[link(80, 5)], change);
    let [client, router] = ["client", "router"].map(|name| Netns::create(name).unwrap());
    let host = &pair.hosts[0].ns;
    cable([(&client, "eth0", "10.0.1.2"), (&router, "lan", "10.0.1.1")], 1500);
    cable([(&router, "eth0", "10.0.0.2"), (host, "lan", "10.0.0.1")], 800);
    sh(&client, "ip route add default via 10.0.1.1 && sysctl -q net.ipv4.ip_no_pmtu_disc=1");
    sh(&router, "ip route add default via 10.0.0.1 && sysctl -q net.ipv4.ip_forward=1");
    sh(host, "ip route add 10.0.1.0/24 via 10.0.0.2 && sysctl -q net.ipv4.ip_forward=1");
    // As a connection, and as packets.
    for port in [80, 81] {
        let at = Pair::at(1, port);
        let listener = pair.hosts[1].ns.run(|| TcpListener::bind(at).unwrap()).unwrap();
        let sender = client.run(|| TcpStream::connect(at).unwrap()).unwrap();
        let (receiver, from) = listener.accept().unwrap();
        assert_eq!(from.ip().to_string(), "10.0.1.2");
        sender.set_write_timeout(Some(STALLED)).unwrap();
        receiver.set_read_timeout(Some(STALLED)).unwrap();
        let answers = (sender.try_clone().unwrap(), receiver.try_clone().unwrap());
        transfer(sender, receiver, 1 << 20);
        transfer(answers.1, answers.0, 1 << 20);
    }
    let said = router.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap()).unwrap();
    let [names, counts] =
        [0, 1].map(|n| said.lines().filter(|line| line.starts_with("Ip:")).nth(n).unwrap().split(' '));
    let (_, made) = names.zip(counts).find(|(name, _)| *name == "FragCreates").unwrap();
    assert!(made.parse::<u64>().unwrap() > 2000, "{made} fragments");
    let lane = pair.hosts[0].status().lane;
    assert_eq!((lane.fragments, lane.malformed, lane.outgoing), (0, 0, 1), "{lane:?}");
    let sent = pair.hosts[0].status().peers[0].packets.sent;
    assert!(sent > 1400, "{sent}: a packet for each fragment");
}
