//! `polypath send` and `receive` between network namespaces: two links, one of them behind a NAT and
//! one IPv6; a link that is cut and restored; strangers; a transfer that goes on.
#![allow(clippy::unwrap_used)]

mod bed;
mod commands;
mod disk;
mod ends;
mod narrow;
mod native;
mod nats;
mod nobody;
mod record;
mod several;
mod slow;

use std::time::Duration;

use bed::{Bed, end, json, tool};

#[test]
fn a_link_is_cut_and_restored_behind_a_nat_and_beside_ipv6() {
    let Some(bed) = Bed::slow() else { return };
    let hits = bed.hits();
    let file = bed.file("big", 30_000_000);
    let receiver = bed.receive(&hits[0]);
    let sender = bed.send(&file, &hits[1]);
    std::thread::sleep(Duration::from_secs(2));
    tool(&bed.hosts[0], "ip link set a0 down");
    std::thread::sleep(Duration::from_secs(2));
    tool(&bed.hosts[0], "ip link set a0 up");
    bed.route();
    let (sent, received) = (end(sender, 120), end(receiver, 20));
    let report = json(&sent);
    assert!(received.status.success(), "{received:?}");
    assert!(bed.arrived("big"));
    let paths = report["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2, "{report:#}");
    assert!(paths.iter().all(|p| p["bytes"].as_u64() > Some(1_000_000)), "{report:#}");
    assert!(paths.iter().all(|p| p["esp_suite"] == "AES-128-GCM-16, implicit IV"), "{report:#}");
    let told = String::from_utf8_lossy(&received.stderr);
    assert!(told.contains("is gone"), "the cut was noticed: {told}");
    assert!(told.contains("192.0.2.1:"), "the NAT's address: {told}");
    assert!(!told.contains("10.0.0.2"), "{told}");
}

#[test]
fn a_link_of_the_receiver_that_the_sender_was_not_told_of_is_used_when_it_comes_up() {
    let Some(bed) = Bed::slow() else { return };
    let [a, b] = &bed.hosts;
    tool(a, "ip link set a1 down");
    tool(b, "ip link set b1 down");
    let hits = bed.hits();
    let file = bed.file("big", 20_000_000);
    let receiver = bed.receive(&hits[0]);
    let sender = bed.send_to(&file, &format!("{}@192.0.2.2", hits[1]));
    std::thread::sleep(Duration::from_secs(2));
    for (host, device, address) in [(a, "a1", "fd00:1::1/64"), (b, "b1", "fd00:1::2/64")] {
        tool(host, &format!("ip link set {device} up"));
        tool(host, &format!("ip addr replace {address} dev {device} nodad"));
    }
    let (sent, received) = (end(sender, 120), end(receiver, 20));
    let report = json(&sent);
    assert!(received.status.success(), "{received:?}");
    assert!(bed.arrived("big"));
    let paths = report["paths"].as_array().unwrap();
    let bytes = |to: &str| {
        let path = paths.iter().find(|p| p["remote"].as_str().unwrap().starts_with(to));
        path.and_then(|p| p["bytes"].as_u64()).unwrap_or_default()
    };
    assert!(bytes("192.0.2.2") > 1_000_000 && bytes("[fd00:1::2]") > 1_000_000, "{report:#}");
}

#[test]
fn an_interrupted_transfer_goes_on_where_it_stopped() {
    let Some(bed) = Bed::slow() else { return };
    let hits = bed.hits();
    let file = bed.file("big", 20_000_000);
    let mut receiver = bed.receive(&hits[0]);
    let mut sender = bed.send(&file, &hits[1]);
    std::thread::sleep(Duration::from_secs(3));
    sender.kill().unwrap();
    sender.wait().unwrap();
    let report = json(&end(bed.send(&file, &hits[1]), 120));
    let resumed = report["files"][0]["resumed_at"].as_u64().unwrap();
    assert!((1_000_000..20_000_000).contains(&resumed), "{report:#}");
    assert!(bed.arrived("big"));
    if receiver.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_secs(2));
    }
    assert!(end(receiver, 10).status.success());
}

#[test]
fn what_a_short_transfer_took_over_its_paths_is_counted_whole() {
    let Some(bed) = Bed::new() else { return };
    let hits = bed.hits();
    let file = bed.file("small", 100_000);
    let receiver = bed.receive(&hits[0]);
    let report = json(&end(bed.send(&file, &hits[1]), 30));
    let received = end(receiver, 10);
    assert!(received.status.success(), "{received:?}");
    let paths = report["paths"].as_array().unwrap();
    let carried: u64 = paths.iter().filter_map(|path| path["bytes"].as_u64()).sum();
    assert!(carried >= 100_000, "{report:#}");
}

#[test]
fn a_stranger_is_refused_and_told_what_to_do() {
    let Some(bed) = Bed::new() else { return };
    let hits = bed.hits();
    let file = bed.file("small", 1000);
    let mut receiver = bed.receive(&hits[1]);
    let refused = end(bed.send(&file, &hits[1]), 30);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        said.contains("refused the association") && said.contains(&format!("--allow {}", hits[0])),
        "{said}"
    );
    receiver.kill().unwrap();
    let told = receiver.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&told.stderr);
    assert!(told.contains(&format!("refused {}", hits[0])), "{told}");
    assert!(!bed.path("in/small").exists());
}
