//! Uplinks without a network of their own, as PPP and WireGuard have them: point-to-point devices whose address, route and MTU come and go.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use polypath_daemon::{PathStatus, Status};
use polypath_node::Clock;
use polypath_testbed::namespace_link;
use polypath_wire::Seed;

use super::common::{Host, Pair, link, ready, sh};
use super::moved::{Ends, flow};
use super::tcp::{connected, transfer};

const MB: usize = 1 << 20;

/// How an uplink gets an address and a route, `path1` being its device, and what it carries.
struct Uplink {
    what: &'static str,
    /// The address, which `#` in the commands stands for, and the next one that it gets.
    addresses: [&'static str; 2],
    add: &'static str,
    del: &'static str,
    route: &'static str,
    mtu: u32,
}

const UPLINKS: [Uplink; 3] = [
    Uplink {
        what: "PPP over Ethernet",
        addresses: ["100.64.7.1", "100.64.7.2"],
        add: "ip addr add # peer 100.64.0.1/32 dev path1",
        del: "ip addr del # peer 100.64.0.1/32 dev path1",
        route: "ip route replace default dev path1",
        mtu: 1492,
    },
    Uplink {
        what: "WireGuard",
        addresses: ["100.65.8.1", "100.65.8.2"],
        add: "ip addr add #/32 dev path1",
        del: "ip addr del #/32 dev path1",
        route: "ip route replace 10.77.1.2/32 dev path1",
        mtu: 1420,
    },
    Uplink {
        what: "a phone on USB, which gives addresses by DHCP",
        addresses: ["100.66.42.129", "100.66.42.130"],
        add: "ip addr add #/24 dev path1",
        del: "ip addr del #/24 dev path1",
        route: "ip route replace default via 100.66.42.1 dev path1",
        mtu: 1500,
    },
];

impl Uplink {
    fn run(&self, host: &Host, line: &str, address: &str) {
        sh(&host.ns, &line.replace('#', address));
    }

    /// Its address comes, and a moment later the route.
    fn rise(&self, host: &Host, address: &str) {
        self.run(host, self.add, address);
        thread::sleep(Duration::from_millis(1500));
        self.run(host, self.route, address);
    }
}

/// The path of a host from that address that works.
pub fn working(status: &Status, address: &str) -> Option<PathStatus> {
    let is_it = |path: &&PathStatus| path.works() && path.local.ip().to_string() == address;
    status.peers[0].paths.iter().find(is_it).cloned()
}

/// Waits until there is one, of the MTU of the uplink.
fn wait_for(pair: &Pair, uplink: &Uplink, address: &str) {
    let began = Instant::now();
    pair.wait(|pair| working(&pair.hosts[0].status(), address).is_some());
    println!("{}: a path from {address} after {:?}", uplink.what, began.elapsed());
    pair.wait(|pair| {
        let path = working(&pair.hosts[0].status(), address);
        // It is found to within 16 bytes.
        path.is_some_and(|path| path.mtu <= uplink.mtu && path.mtu + 16 > uplink.mtu)
    });
}

#[test]
fn an_uplink_that_is_point_to_point_carries_a_path_when_its_address_comes_and_when_it_changes() {
    if !ready() {
        return;
    }
    let pair = Pair::start(&[link(80, 5), link(40, 10)], |_, text| text);
    let [client, server] = &pair.hosts;
    sh(&client.ns, "ip addr flush dev path1");
    sh(&server.ns, "ip route add 100.64.0.0/10 dev path1");
    pair.wait(|pair| working(&pair.hosts[0].status(), "10.77.1.1").is_none());
    for (uplink, port) in UPLINKS.iter().zip(80..) {
        for host in [client, server] {
            sh(&host.ns, &format!("ip link set path1 mtu {}", uplink.mtu));
        }
        let (from, to) = connected(&pair, 0, port);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let _ends = Ends(&stop);
            scope.spawn(|| flow(from, to, &stop));
            let [first, second] = uplink.addresses;
            uplink.rise(client, first);
            wait_for(&pair, uplink, first);
            uplink.run(client, uplink.del, first);
            uplink.rise(client, second);
            wait_for(&pair, uplink, second);
        });
        // The other link fails.
        sh(&client.ns, "ip link set path0 down");
        let (from, to) = connected(&pair, 0, port + 100);
        transfer(from, to, MB);
        sh(&client.ns, "ip link set path0 up");
        uplink.run(client, uplink.del, uplink.addresses[1]);
        pair.wait(|pair| working(&pair.hosts[0].status(), "10.77.0.1").is_some());
    }
}

#[test]
fn a_device_that_goes_and_comes_back_at_once_with_its_address_carries_a_path_again() {
    if !ready() {
        return;
    }
    let mut pair = Pair::start(&[link(80, 5), link(40, 10)], |_, text| text);
    drop(pair.bed.paths.pop().unwrap());
    for round in 0..3 {
        let again = || namespace_link(1, link(40, 10), &pair.bed.hosts, Seed(round), Clock::start());
        // The device of the link before goes a moment after it.
        let _again = (0..100_000).find_map(|_| again().ok()).unwrap();
        thread::sleep(Duration::from_secs(3)); // addresses are looked at every 2 s
        for host in &pair.hosts {
            sh(&host.ns, "ip link set path0 down");
        }
        let (from, to) = connected(&pair, 0, 80 + round as u16);
        transfer(from, to, MB);
        for host in &pair.hosts {
            sh(&host.ns, "ip link set path0 up");
        }
        let both = |host: &Host| host.status().peers[0].paths.iter().filter(|path| path.works()).count() == 2;
        pair.wait(|pair| pair.hosts.iter().all(both));
    }
}

#[test]
fn an_address_of_ipv6_whose_route_comes_later_carries_a_path() {
    if !ready() {
        return;
    }
    let also_ipv6 = |_, text: String| text.replace("\"10.77.1.2:", "\"[fd77::2]:10501\", \"10.77.1.2:");
    let pair = Pair::start(&[link(80, 5), link(40, 10)], also_ipv6);
    let [client, server] = &pair.hosts;
    sh(&server.ns, "ip addr add fd77::2/64 dev path1 nodad && ip -6 route add fd78::/64 dev path1");
    sh(&client.ns, "ip addr flush dev path1");
    for address in ["fd78::1", "fd78::2"] {
        sh(&client.ns, &format!("ip addr add {address}/128 dev path1 nodad"));
        thread::sleep(Duration::from_millis(1500));
        sh(&client.ns, "ip -6 route replace fd77::2/128 dev path1");
        let began = Instant::now();
        pair.wait(|pair| working(&pair.hosts[0].status(), address).is_some());
        println!("a path from {address} {:?} after its route", began.elapsed());
        sh(&client.ns, &format!("ip addr del {address}/128 dev path1; ip -6 route flush fd77::2/128"));
        pair.wait(|pair| working(&pair.hosts[0].status(), address).is_none());
    }
}

/// What is made of the Ethernet device `lan` on a host, `#` being 1 or 2, and the address that carries a path then.
const OF_ETHERNET: [(&str, [&str; 2], &str); 5] = [
    (
        "a bridge",
        [
            "ip link add br9 type bridge && ip link set lan master br9 && ip link set br9 up && ip addr add 10.78.1.1/24 dev br9",
            "ip addr add 10.78.1.2/24 dev lan",
        ],
        "10.78.1.1",
    ),
    (
        "a tunnel in UDP",
        [
            "ip link add vx9 type vxlan id 9 dstport 4789 local 10.78.1.1 remote 10.78.1.2 && ip addr add 10.78.2.1/24 dev vx9 && ip link set vx9 up",
            "ip link add vx9 type vxlan id 9 dstport 4789 local 10.78.1.2 remote 10.78.1.1 && ip addr add 10.78.2.2/24 dev vx9 && ip link set vx9 up",
        ],
        "10.78.2.1",
    ),
    (
        "a second device of one card",
        [
            "ip link add link br9 name mv9 type macvlan mode bridge && ip addr add 10.78.1.3/24 dev mv9 && ip link set mv9 up",
            "true",
        ],
        "10.78.1.3",
    ),
    (
        "a VLAN",
        [
            "ip link add link br9 name lan.9 type vlan id 9 && ip addr add 10.78.3.1/24 dev lan.9 && ip link set lan.9 up",
            "ip link add link lan name lan.9 type vlan id 9 && ip addr add 10.78.3.2/24 dev lan.9 && ip link set lan.9 up",
        ],
        "10.78.3.1",
    ),
    (
        "an interface with link-local and unique local addresses of IPv6 alone",
        ["ip addr add fd78::1/64 dev lan6 nodad", "ip addr add fd78::2/64 dev lan6 nodad"],
        "fd78::1",
    ),
];

/// A cable called `name` between two hosts.
pub fn cable(hosts: [&Host; 2], name: &str) {
    // A namespace has no name for `ip`: the far end is moved to a process that lives in it.
    let mut there = hosts[1].ns.run(|| Command::new("sleep").arg("60").spawn().unwrap()).unwrap();
    sh(&hosts[0].ns, &format!("ip link add {name} type veth peer name {name} netns {}", there.id()));
    hosts.iter().for_each(|host| sh(&host.ns, &format!("ip link set {name} up")));
    there.kill().and_then(|()| there.wait()).unwrap();
}

/// Whether `line` could be run: not every kernel has every kind of device.
fn runs(host: &Host, line: &str) -> bool {
    let mut tool = Command::new("sh");
    tool.args(["-c", line]).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    host.ns.run(|| tool.status().unwrap()).unwrap().success()
}

#[test]
fn bridges_vlans_tunnels_and_local_addresses_of_ipv6_carry_paths_by_themselves() {
    if !ready() {
        return;
    }
    let called = "[\"10.78.1.2:10501\", \"10.78.2.2:10501\", \"10.78.3.2:10501\", \"[fd78::2]:10501\", ";
    let more =
        |_, text: String| text.replace("addresses = [\"10.77", &format!("addresses = {called}\"10.77"));
    let pair = Pair::start(&[link(80, 5)], more);
    let [client, server] = &pair.hosts;
    ["lan", "lan6"].iter().for_each(|name| cable([client, server], name));
    let mut there = Vec::new();
    for (what, lines, address) in OF_ETHERNET {
        if ![server, client].iter().zip([lines[1], lines[0]]).all(|(host, line)| runs(host, line)) {
            polypath_testing::excuse(&format!("this kernel has no device for {what}"));
            continue;
        }
        pair.wait(|pair| working(&pair.hosts[0].status(), address).is_some());
        there.push(address);
    }
    assert!(there.len() >= 2, "{there:?}");
    let link_local =
        client.status().peers[0].paths.iter().any(|path| path.local.to_string().contains("fe80"));
    assert!(!link_local, "the peer is not called there");
    sh(&client.ns, "ip link set path0 down");
    let (from, to) = connected(&pair, 0, 80);
    transfer(from, to, MB);
}
