//! How transfers end: Ctrl-C or SIGTERM at an end, a disk that is full; and what a terminal shows meanwhile.

use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::bed::{Bed, end, json, tool};

const SIZE: u64 = 20_000_000;

/// A transfer that has gone on for a while: the HITs, the file, the sender and the receiver.
fn under_way(bed: &Bed) -> ([String; 2], PathBuf, Child, Child) {
    let hits = bed.hits();
    let file = bed.file("big", SIZE);
    let receiver = bed.receive(&hits[0]);
    let sender = bed.send(&file, &hits[1]);
    std::thread::sleep(Duration::from_secs(3));
    (hits, file, sender, receiver)
}

fn kill(bed: &Bed, signal: &str, child: &Child) {
    tool(&bed.hosts[0], &format!("kill -{signal} {}", child.id()));
}

/// Bytes of the unfinished file at the receiver.
fn partial(bed: &Bed) -> u64 {
    let entries = std::fs::read_dir(bed.path("in")).unwrap().map(Result::unwrap);
    let part = entries.filter(|e| e.file_name().to_string_lossy().ends_with(".part"));
    part.map(|e| e.metadata().unwrap().len()).sum()
}

/// Nobody on that host has a UDP socket.
fn assert_no_sockets(bed: &Bed, side: usize) {
    let ss = || std::process::Command::new("ss").args(["-uanH"]).output();
    let open = bed.hosts[side].run(ss).unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&open.stdout), "");
}

#[test]
fn ctrl_c_at_the_sender_ends_it_and_the_next_attempt_goes_on() {
    let Some(bed) = Bed::slow() else { return };
    let (hits, file, sender, receiver) = under_way(&bed);
    kill(&bed, "INT", &sender);
    let ended = end(sender, 5);
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("interrupted") && said.contains("continues where it stopped"), "{said}");
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "", "no report of what did not happen");
    assert_no_sockets(&bed, 0);
    assert!((1_000_000..SIZE).contains(&partial(&bed)), "{}", partial(&bed));
    let report = json(&end(bed.send(&file, &hits[1]), 60));
    assert!(report["files"][0]["resumed_at"].as_u64() > Some(1_000_000), "{report:#}");
    assert!(end(receiver, 10).status.success());
    assert!(bed.arrived("big"));
    assert_eq!(partial(&bed), 0);
}

#[test]
fn sigterm_at_the_receiver_ends_it_and_the_sender_waits_for_the_next() {
    let Some(bed) = Bed::slow() else { return };
    let (hits, _, sender, receiver) = under_way(&bed);
    kill(&bed, "TERM", &receiver);
    let ended = end(receiver, 5);
    assert_eq!(ended.status.code(), Some(143), "{ended:?}");
    assert_no_sockets(&bed, 1);
    assert!((1_000_000..SIZE).contains(&partial(&bed)), "{}", partial(&bed));
    let receiver = bed.receive(&hits[0]);
    let (sent, received) = (end(sender, 60), end(receiver, 10));
    let report = json(&sent);
    assert!(report["files"][0]["resumed_at"].as_u64() > Some(1_000_000), "{report:#}");
    assert!(received.status.success(), "{received:?}");
    assert!(bed.arrived("big"));
}

#[test]
fn a_receiver_who_cannot_store_it_says_so_and_the_sender_ends() {
    let Some(bed) = Bed::slow() else { return };
    let hits = bed.hits();
    let file = bed.file("big", SIZE);
    std::fs::create_dir_all(bed.path("in")).unwrap();
    // Files of at most 2,000 KiB, and an error instead of a signal.
    let limited = format!(
        "trap '' XFSZ; ulimit -f 2000; exec {} receive --dir {} --allow {}",
        env!("CARGO_BIN_EXE_polypath"),
        bed.path("in").display(),
        hits[0]
    );
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &limited]).env("XDG_CONFIG_HOME", bed.path("config1"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let receiver = bed.hosts[1].run(|| command.spawn().unwrap()).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let sent = end(bed.send(&file, &hits[1]), 30);
    assert_eq!(sent.status.code(), Some(3), "{sent:?}");
    let said = String::from_utf8_lossy(&sent.stderr);
    assert!(said.contains("big: the receiver could not store it"), "{said}");
    kill(&bed, "INT", &receiver);
    let told = end(receiver, 5);
    assert!(String::from_utf8_lossy(&told.stderr).contains("File too large"), "{told:?}");
}

#[test]
fn a_terminal_shows_a_bar_for_the_file_and_one_for_each_path() {
    let Some(bed) = Bed::slow() else { return };
    let hits = bed.hits();
    let file = bed.file("big", SIZE);
    let receiver = bed.receive(&hits[0]);
    let to = format!("{}@192.0.2.2,fd00:1::2", hits[1]);
    let binary = env!("CARGO_BIN_EXE_polypath");
    let line = format!("stty cols 120 rows 30; {binary} send {} {to}", file.display());
    let mut command = std::process::Command::new("script");
    let typescript = bed.path("typescript");
    command.args(["-qec", &line, typescript.to_str().unwrap()]).env("XDG_CONFIG_HOME", bed.path("config0"));
    command.env("TERM", "xterm").stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
    let sender = bed.hosts[0].run(|| command.spawn().expect("script, of util-linux")).unwrap();
    let (sent, received) = (end(sender, 60), end(receiver, 10));
    let shown = std::fs::read_to_string(typescript).unwrap();
    assert!(sent.status.success() && received.status.success(), "{shown}");
    for part in
        ["big  ━", "of 19.07 MiB", "10.0.0.2 → 192.0.2.2:10500:", "fd00:1::1 → [fd00:1::2]:10500:", "Mbit/s"]
    {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
    let at = |part: &str| shown.rfind(part).unwrap();
    assert!(at("BLAKE3") > at(" Mbit/s\u{1b}") || at("BLAKE3") > at("━"), "the report comes after the bars");
}
