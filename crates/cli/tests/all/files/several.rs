//! Several programs and several addresses: a receiver that is killed and started again, two senders at once, interfaces with
//! more than one address.

use std::process::Child;
use std::time::Duration;

use super::bed::{Bed, end, json, tool};

/// A receiver that goes on until it is killed.
fn receiver(bed: &Bed, allow: &str) -> Child {
    std::fs::create_dir_all(bed.path("in")).unwrap();
    let child = bed.spawn(1, &["receive", "--dir", bed.path("in").to_str().unwrap(), "--allow", allow]);
    std::thread::sleep(Duration::from_millis(500));
    child
}

#[test]
fn a_receiver_that_was_killed_and_started_again_goes_on_with_the_same_sender() {
    let Some(bed) = Bed::slow() else { return };
    let hits = bed.hits();
    let file = bed.file("big", 20_000_000);
    let mut first = receiver(&bed, &hits[0]);
    let sender = bed.send(&file, &hits[1]);
    std::thread::sleep(Duration::from_secs(3));
    first.kill().unwrap();
    first.wait().unwrap();
    let second = bed.receive(&hits[0]);
    // The file takes 4 s more; a stall that nobody noticed would take 20 s alone.
    let report = json(&end(sender, 20));
    assert!(report["files"][0]["resumed_at"].as_u64() > Some(1_000_000), "{report:#}");
    let second = end(second, 10);
    assert!(second.status.success());
    let said = String::from_utf8(second.stderr).unwrap();
    let until_it_goes_on = said.split("are there already").next().unwrap();
    assert!(
        !until_it_goes_on.contains("is gone"),
        "the first association is used, and its paths stay: {said}"
    );
    assert!(bed.arrived("big"));
}

#[test]
fn two_senders_of_one_host_do_not_get_in_each_others_way() {
    let Some(bed) = Bed::slow() else { return };
    let hits = bed.hits();
    let files = ["one", "two"].map(|name| bed.file(name, 10_000_000));
    let mut receiver = receiver(&bed, &hits[0]);
    let senders = files.each_ref().map(|file| bed.send(file, &hits[1]));
    for sender in senders {
        let report = json(&end(sender, 30));
        assert_eq!(report["files"][0]["resumed_at"], 0, "in one go: {report:#}");
    }
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    assert!(bed.arrived("one") && bed.arrived("two"));
}

#[test]
fn a_limited_interface_carries_no_more_and_the_other_one_the_rest() {
    let Some(bed) = Bed::slow() else { return };
    let hits = bed.hits();
    let file = bed.file("big", 10_000_000);
    let receiver = bed.receive(&hits[0]);
    let to = format!("{}@192.0.2.2,fd00:1::2", hits[1]);
    let sender = bed.spawn(0, &["send", file.to_str().unwrap(), &to, "--json", "--limit", "a1=2M"]);
    let report = json(&end(sender, 30));
    let limited =
        |path: &&serde_json::Value| path["local"].as_str().is_some_and(|local| local.contains("fd00"));
    let paths = report["paths"].as_array().unwrap();
    let bytes = paths.iter().find(limited).and_then(|path| path["bytes"].as_u64()).unwrap();
    let rate = bytes as f64 * 8.0 / report["seconds"].as_f64().unwrap();
    assert!(rate <= 2e6 && bytes > 100_000 && bytes < 2_000_000, "{report:#}");
    assert!(end(receiver, 10).status.success());
    assert!(bed.arrived("big"));
}

#[test]
fn any_address_of_an_interface_will_do_and_they_are_one_path() {
    let Some(bed) = Bed::slow() else { return };
    let [a, b] = &bed.hosts;
    tool(a, "ip addr add fd00:1::91/64 dev a1 nodad");
    tool(a, "ip addr add 10.1.0.1/24 dev a1");
    tool(b, "ip addr add fd00:1::92/64 dev b1 nodad");
    tool(b, "ip addr add 10.1.0.2/24 dev b1");
    let hits = bed.hits();
    let file = bed.file("big", 10_000_000);
    let receiver = bed.receive(&hits[0]);
    let report = json(&end(bed.send_to(&file, &format!("{}@192.0.2.2,fd00:1::92", hits[1])), 60));
    assert!(end(receiver, 10).status.success());
    let paths = report["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2, "{report:#}");
    assert!(paths.iter().any(|p| p["remote"] == "[fd00:1::92]:10500"), "{report:#}");
    assert!(paths.iter().any(|p| p["remote"] == "192.0.2.2:10500"), "{report:#}");
    assert!(bed.arrived("big"));
}
