//! Nobody answers: each reason has its own message.

use super::bed::{Bed, end, tool};

/// What `send` says of a target, and how long it was tried.
fn said(bed: &Bed, to: &str, more: &[&str]) -> String {
    let file = bed.file("small", 1000);
    let args = [&["send", file.to_str().unwrap(), to], more].concat();
    let output = end(bed.spawn(0, &args), 60);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_closed_port_a_wrong_name_and_a_host_that_is_not_there_are_told_apart() {
    let Some(bed) = Bed::new() else { return };
    let hits = bed.hits();
    let closed = said(&bed, &format!("{}@192.0.2.2:10509,fd00:1::2", hits[1]), &[]);
    assert!(
        closed.contains("192.0.2.2:10509 is closed") && closed.contains("polypath receive --allow"),
        "{closed}"
    );
    let mut receiver = bed.receive(&hits[0]);
    let other = {
        let output =
            bed.polypath(0, &["keygen", "--out", bed.path("other").to_str().unwrap()]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace().last().unwrap().to_owned()
    };
    let wrong = said(&bed, &format!("{other}@192.0.2.2"), &[]);
    assert!(wrong.contains(&format!("192.0.2.2:10500 is not {other}: {} answers there", hits[1])), "{wrong}");
    let waited = said(&bed, &format!("{other}@192.0.2.2"), &["--wait", "4"]);
    let reason = format!("192.0.2.2:10500 is not {other}: {} answers there", hits[1]);
    assert_eq!(waited.matches(&reason).count(), 2, "while it waits and at the end: {waited}");
    assert_eq!(waited.matches("help:").count(), 1, "{waited}");
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    let unknown = said(&bed, &format!("{}@203.0.113.1", hits[1]), &[]);
    assert!(unknown.contains("no route to 203.0.113.1:10500"), "{unknown}");
    let missing = said(&bed, &format!("{}@10.0.0.77", hits[1]), &[]);
    assert!(
        missing.contains("no route to 10.0.0.77:10500") && missing.contains("No route to host"),
        "{missing}"
    );
}

#[test]
fn silence_is_told_as_such_after_as_long_as_was_asked_for() {
    let Some(bed) = Bed::new() else { return };
    let hit = bed.hit(1);
    bed.hit(0);
    tool(&bed.hosts[1], "nft add table inet filter");
    tool(&bed.hosts[1], "nft add chain inet filter in { type filter hook input priority 0; }");
    tool(&bed.hosts[1], "nft add rule inet filter in meta l4proto udp drop");
    let silent = said(&bed, &format!("{hit}@192.0.2.2:10509,fd00:1::2"), &["--wait", "3"]);
    assert!(
        silent.contains("no answer") && silent.contains("does UDP port 10500 or 10509 reach it"),
        "{silent}"
    );
}

#[test]
fn who_is_told_to_wait_meets_a_receiver_that_comes_later() {
    let Some(bed) = Bed::new() else { return };
    let hits = bed.hits();
    let file = bed.file("small", 1000);
    let to = format!("{}@192.0.2.2", hits[1]);
    let sender = bed.spawn(0, &["send", file.to_str().unwrap(), &to, "--wait", "40"]);
    std::thread::sleep(std::time::Duration::from_secs(4));
    let receiver = bed.receive(&hits[0]);
    let (sent, received) = (end(sender, 60), end(receiver, 20));
    assert!(sent.status.success() && received.status.success(), "{sent:?} {received:?}");
}
