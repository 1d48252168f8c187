//! HIP and ESP without UDP.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::bed::{Bed, end, json, tool};

/// Hosts without a NAT between them, which would let nothing through.
fn without_nat() -> Option<Bed> {
    let bed = Bed::slow()?;
    tool(&bed.router, "nft flush chain ip nat post");
    tool(&bed.hosts[1], "ip route add 10.0.0.0/24 via 192.0.2.1");
    Some(bed)
}

/// What sender and receiver end with after `big`, `bytes` long, went to these addresses. `meanwhile` runs once both were started.
fn transfer(bed: &Bed, bytes: u64, addresses: &str, meanwhile: impl FnOnce()) -> [Output; 2] {
    let hits = bed.hits();
    let file = bed.file("big", bytes);
    let dir = bed.path("in");
    std::fs::create_dir_all(&dir).unwrap();
    let dir = dir.to_str().unwrap();
    let receiver = bed.spawn(1, &["receive", "--native", "--dir", dir, "--allow", &hits[0], "--once"]);
    std::thread::sleep(Duration::from_millis(500));
    let to = format!("{}@{addresses}", hits[1]);
    let sender = bed.spawn(0, &["send", "--native", file.to_str().unwrap(), &to, "--json"]);
    meanwhile();
    [end(sender, 60), end(receiver, 20)]
}

/// As after a forged message of a router: Linux accepts none that names less than 552 bytes.
#[test]
fn a_host_that_is_told_of_less_than_every_network_carries_goes_on() {
    let Some(bed) = without_nat() else { return };
    tool(&bed.hosts[0], "ip link set a1 down");
    let [sent, received] = transfer(&bed, 5_000_000, "192.0.2.2", || {
        std::thread::sleep(Duration::from_secs(1));
        tool(&bed.hosts[0], "ip route replace 192.0.2.0/24 via 10.0.0.1 mtu 552");
    });
    assert!(received.status.success() && bed.arrived("big"), "{received:?}");
    assert_eq!(json(&sent)["paths"][0]["mtu"], 576);
}

#[test]
fn without_udp_over_both_families() {
    let Some(bed) = without_nat() else { return };
    for host in &bed.hosts {
        tool(host, "nft add table inet filter");
        tool(host, "nft add chain inet filter out { type filter hook output priority 0; }");
        tool(host, "nft add rule inet filter out meta l4proto udp drop");
    }
    let [sent, received] = transfer(&bed, 10_000_000, "192.0.2.2,fd00:1::2", || {});
    assert!(received.status.success(), "{received:?}");
    let report = json(&sent);
    assert!(bed.arrived("big"));
    let paths = report["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2, "{report:#}");
    for path in paths {
        assert!(path["remote"].as_str().unwrap().ends_with(":0"), "{report:#}");
        assert!(path["bytes"].as_u64() > Some(100_000), "{report:#}");
        assert_eq!(path["mtu"], 1500, "{report:#}");
    }
    let said = String::from_utf8_lossy(&received.stderr);
    assert!(said.contains("polypath send --native FILE"), "{said}");
}

#[test]
fn who_may_not_open_raw_sockets_is_told_so() {
    let Some(bed) = Bed::new() else { return };
    let hit = bed.hit(0);
    let file = bed.file("small", 10);
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-net_raw", "--inh-caps", "-net_raw", env!("CARGO_BIN_EXE_polypath")]);
    command.args(["send", "--native", file.to_str().unwrap(), &format!("{hit}@192.0.2.2")]);
    command.env("XDG_CONFIG_HOME", bed.path("config0")).stderr(Stdio::piped()).stdout(Stdio::piped());
    let child = bed.hosts[0].run(|| command.spawn().unwrap()).unwrap();
    let output = end(child, 20);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--native needs root") && said.contains("not permitted"), "{said}");
}
