//! What real programs put underneath a path: a DHCP client its address, WireGuard its packets; and a first link that is dead.

use std::fs;
use std::process::{self, Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use polypath_testing::installed;

use super::common::{Host, Pair, link, ready, sh};
use super::tcp::{connected, transfer};
use super::uplinks::{cable, working};

const MB: usize = 1 << 20;

/// A program on a host, which ends with the test.
struct Running(Child);

impl Running {
    fn new(host: &Host, words: &[&str]) -> Self {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(host.ns.run(|| command.spawn().unwrap()).unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two hosts with a cable `usb0`, whose second one is called at `address` too; over the cable itself leads no path if `hidden`.
fn pair(address: &str, hidden: bool) -> Pair {
    let exclude = if hidden { "[paths]\nexclude = [\"usb0\"]\n" } else { "" };
    let change = |_, text: String| {
        text.replace("addresses = [\"10.77", &format!("addresses = [\"{address}:10501\", \"10.77")) + exclude
    };
    let pair = Pair::start(&[link(80, 5)], change);
    cable([&pair.hosts[0], &pair.hosts[1]], "usb0");
    pair
}

/// What udhcpc runs at each event.
const CLIENT: &str = r#"#!/bin/sh
ip address flush dev "$interface"
case $1 in bound|renew) ip address add "$ip/24" dev "$interface"; ip route replace default via "$router" dev "$interface";; esac
"#;

#[test]
fn an_address_that_a_dhcp_client_gets_and_then_another_one_carry_a_path() {
    if !ready() || !installed(&["busybox"]) {
        return;
    }
    let (pair, dir) = (pair("10.78.5.1", false), tempfile::tempdir().unwrap());
    let [client, server] = &pair.hosts;
    sh(&server.ns, "ip address add 10.78.5.1/24 dev usb0");
    let [script, leases, config] = ["script", "leases", "config"].map(|name| dir.path().join(name));
    fs::write(&script, CLIENT).unwrap();
    sh(&client.ns, &format!("chmod 755 {}", script.display()));
    fs::write(&leases, "").unwrap();
    for (last, port) in [(20, 80), (30, 81)] {
        let pool = format!(
            "start 10.78.5.{last}\nend 10.78.5.{last}\ninterface usb0\noption subnet 255.255.255.0\n"
        );
        let files = format!("opt router 10.78.5.1\nlease_file {}\npidfile /dev/null\n", leases.display());
        fs::write(&config, pool + &files).unwrap();
        let _server = Running::new(server, &["busybox", "udhcpd", "-f", config.to_str().unwrap()]);
        let ask = ["busybox", "udhcpc", "-f", "-i", "usb0", "-s", script.to_str().unwrap()];
        let _client = Running::new(client, &ask);
        pair.wait(|pair| working(&pair.hosts[0].status(), &format!("10.78.5.{last}")).is_some());
        sh(&client.ns, "ip link set path0 down");
        let (from, to) = connected(&pair, 0, port);
        transfer(from, to, MB);
        sh(&client.ns, "ip link set path0 up");
        pair.wait(|pair| working(&pair.hosts[0].status(), "10.77.0.1").is_some());
    }
}

#[test]
fn a_wireguard_tunnel_carries_a_path_as_an_uplink_does() {
    if !ready() || !installed(&["wireguard-go", "wg"]) {
        return;
    }
    let (pair, dir) = (pair("10.78.7.2", true), tempfile::tempdir().unwrap());
    // All namespaces share the directory of its sockets.
    let names = [1, 2].map(|end| format!("wg{}x{end}", process::id()));
    let keys = [1, 2].map(|end| {
        let file = dir.path().join(end.to_string()).display().to_string();
        let line = format!("umask 077; wg genkey > {file}; wg pubkey < {file}");
        let made = Command::new("sh").args(["-ec", &line]).output().unwrap();
        (file, String::from_utf8(made.stdout).unwrap().trim().to_owned())
    });
    let guards = [0, 1].map(|side| Running::new(&pair.hosts[side], &["wireguard-go", "-f", &names[side]]));
    for (side, host) in pair.hosts.iter().enumerate() {
        let (name, (key, _), (_, peer)) = (&names[side], &keys[side], &keys[1 - side]);
        let [here, there] = [side + 1, 2 - side];
        sh(&host.ns, &format!("for n in $(seq 100); do ip link show {name} && break; sleep 0.1; done"));
        let of_peer = format!("peer {peer} allowed-ips 10.78.7.0/24 endpoint 10.78.6.{there}:51820");
        sh(&host.ns, &format!("ip address add 10.78.6.{here}/24 dev usb0"));
        sh(&host.ns, &format!("wg set {name} listen-port 51820 private-key {key} {of_peer}"));
        sh(&host.ns, &format!("ip address add 10.78.7.{here}/32 dev {name} && ip link set {name} up"));
        sh(&host.ns, &format!("ip route add 10.78.7.{there}/32 dev {name}"));
    }
    pair.wait(|pair| {
        let path = working(&pair.hosts[0].status(), "10.78.7.1");
        // The MTU of WireGuard, found to within 16 bytes.
        path.is_some_and(|path| (1405..=1420).contains(&path.mtu))
    });
    sh(&pair.hosts[0].ns, "ip link set path0 down");
    let (from, to) = connected(&pair, 0, 80);
    transfer(from, to, MB);
    // It goes, and with it its path.
    sh(&pair.hosts[0].ns, "ip link set path0 up");
    drop(guards);
    pair.wait(|pair| {
        let status = pair.hosts[0].status();
        working(&status, "10.78.7.1").is_none() && working(&status, "10.77.0.1").is_some()
    });
    let (from, to) = connected(&pair, 0, 81);
    transfer(from, to, MB);
}

#[test]
fn a_first_link_that_is_dead_from_the_start_keeps_nobody_apart_and_is_used_once_it_works() {
    if !ready() || !installed(&["nft"]) {
        return;
    }
    let mut pair = Pair::start(&[link(80, 5), link(40, 10)], |_, text| text);
    for host in &pair.hosts {
        for line in [
            "nft add table inet dead",
            "nft add chain inet dead in { type filter hook input priority 0; }",
            "nft add rule inet dead in iifname path0 drop",
        ] {
            sh(&host.ns, line);
        }
    }
    pair.hosts.iter_mut().for_each(Host::stop);
    thread::sleep(Duration::from_millis(500));
    pair.hosts.iter_mut().rev().for_each(Host::restart);
    let began = Instant::now();
    pair.wait(|pair| working(&pair.hosts[0].status(), "10.77.1.1").is_some());
    println!("a path over the second link after {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed()); // 0.13 s when it was written
    let (from, to) = connected(&pair, 0, 80);
    transfer(from, to, MB);
    assert!(working(&pair.hosts[0].status(), "10.77.0.1").is_none());
    pair.hosts.iter().for_each(|host| sh(&host.ns, "nft delete table inet dead"));
    pair.wait(|pair| working(&pair.hosts[0].status(), "10.77.0.1").is_some());
}
