//! What can be sent, and in which direction one calls.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::bed::{Bed, end, json, tool};

/// A host that offers `what` to whoever comes.
fn offer(bed: &Bed, what: &[&Path]) -> Child {
    let mut args = vec!["send"];
    args.extend(what.iter().map(|path| path.to_str().unwrap()));
    args.extend(["--allow", "any", "--once"]);
    let child = bed.spawn(1, &args);
    std::thread::sleep(Duration::from_millis(500));
    child
}

#[test]
fn a_receiver_behind_a_nat_fetches_what_is_offered() {
    let Some(bed) = Bed::new() else { return };
    let (hit, big, small) = (bed.hit(1), bed.file("big", 3_000_000), bed.file("small", 1000));
    let offering = offer(&bed, &[&big, &small]);
    let dir = bed.path("fetched");
    let from = format!("{hit}@192.0.2.2");
    let fetch = bed.spawn(0, &["receive", "--from", &from, "--dir", dir.to_str().unwrap(), "--json"]);
    let (fetched, offered) = (end(fetch, 60), end(offering, 20));
    let report = json(&fetched);
    assert_eq!(report["files"].as_array().unwrap().len(), 2, "{report:#}");
    let carried = report["paths"].as_array().unwrap().iter().filter_map(|path| path["bytes"].as_u64());
    assert!(carried.sum::<u64>() >= 3_001_000, "{report:#}");
    assert!(offered.status.success(), "{offered:?}");
    let told = String::from_utf8_lossy(&offered.stderr);
    assert!(told.contains(&format!("to fetch from here: polypath receive --from {hit}@")), "{told}");
    for file in [big, small] {
        let name = file.file_name().unwrap();
        assert!(std::fs::read(dir.join(name)).unwrap() == std::fs::read(&file).unwrap(), "{name:?}");
    }
}

#[test]
fn without_ecn_nothing_leaves_that_may_be_marked() {
    let Some(bed) = Bed::new() else { return };
    let (hits, file) = ([bed.hit(0), bed.hit(1)], bed.file("some", 3_000_000));
    let host = &bed.hosts[0];
    tool(host, "nft add table inet marks");
    tool(host, "nft add chain inet marks out { type filter hook output priority 0; }");
    for family in ["ip", "ip6"] {
        tool(host, &format!("nft add rule inet marks out {family} ecn ect0 counter"));
    }
    let to = format!("{}@192.0.2.2,fd00:1::2", hits[1]);
    let marked = |more: &[&str]| {
        let receiver = bed.receive(&hits[0]);
        let send = [&["send", file.to_str().unwrap(), &to, "--json"], more].concat();
        let (sent, received) = (end(bed.spawn(0, &send), 60), end(receiver, 20));
        assert!(sent.status.success() && received.status.success(), "{sent:?} {received:?}");
        std::fs::remove_file(bed.path("in/some")).unwrap();
        let mut list = Command::new("nft");
        let list = list.args(["list", "table", "inet", "marks"]).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
        let list = String::from_utf8(host.run(|| list.output().unwrap()).unwrap().stdout).unwrap();
        let counts = list.split("packets ").skip(1);
        counts.map(|rest| rest.split(' ').next().unwrap().parse::<u64>().unwrap()).sum::<u64>()
    };
    assert_eq!(marked(&["--no-ecn"]), 0);
    assert!(marked(&[]) > 0, "how much depends on how soon heartbeats come back");
}

#[test]
fn who_sends_to_a_host_that_offers_is_told_so() {
    let Some(bed) = Bed::new() else { return };
    let (hit, file) = (bed.hit(1), bed.file("small", 1000));
    let mut offering = offer(&bed, &[&file]);
    let sent = end(bed.send(&file, &hit), 30);
    assert_eq!(sent.status.code(), Some(3), "{sent:?}");
    let said = String::from_utf8_lossy(&sent.stderr);
    assert!(said.contains("it offers some") && said.contains("polypath receive --from"), "{said}");
    offering.kill().unwrap();
    offering.wait().unwrap();
}

#[test]
fn a_directory_and_standard_input_go_in_one_command() {
    let Some(bed) = Bed::new() else { return };
    let hits = bed.hits();
    let album = bed.path("album/2024");
    std::fs::create_dir_all(&album).unwrap();
    for n in 0..30u8 {
        std::fs::write(album.join(format!("{n}.jpg")), vec![n; 1000 * usize::from(n)]).unwrap();
    }
    std::os::unix::fs::symlink("/etc/passwd", album.join("link")).unwrap();
    let receiver = bed.receive(&hits[0]);
    let (album, to) = (bed.path("album"), format!("{}@192.0.2.2", hits[1]));
    let args = ["send", album.to_str().unwrap(), "-", "--name", "said.txt", &to, "--json"];
    let mut command = bed.polypath(0, &args);
    command.stdin(Stdio::piped());
    let mut sender = bed.hosts[0].run(|| command.spawn().unwrap()).unwrap();
    let mut input = sender.stdin.take().unwrap();
    for n in 0..3 {
        writeln!(input, "line {n}").unwrap();
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(input);
    let (sent, received) = (end(sender, 60), end(receiver, 20));
    assert!(received.status.success(), "{received:?}");
    let report = json(&sent);
    assert_eq!(report["files"].as_array().unwrap().len(), 33, "30 photos, two directories, what was said");
    assert!(String::from_utf8_lossy(&sent.stderr).contains("link: is a symbolic link"), "{sent:?}");
    let inbox = bed.path("in");
    for n in 0..30u8 {
        let stored = std::fs::read(inbox.join(format!("album/2024/{n}.jpg"))).unwrap();
        assert!(stored == vec![n; 1000 * usize::from(n)], "{n}");
    }
    assert_eq!(std::fs::read_to_string(inbox.join("said.txt")).unwrap(), "line 0\nline 1\nline 2\n");
    assert!(!inbox.join("album/2024/link").exists());
}

#[test]
fn ctrl_c_ends_who_waits_for_standard_input() {
    let Some(bed) = Bed::new() else { return };
    let hits = bed.hits();
    let mut receiver = bed.receive(&hits[0]);
    let mut command = bed.polypath(0, &["send", "-", &format!("{}@192.0.2.2", hits[1])]);
    command.stdin(Stdio::piped());
    let sender = bed.hosts[0].run(|| command.spawn().unwrap()).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    super::bed::tool(&bed.hosts[0], &format!("kill -INT {}", sender.id()));
    // Standard input stays open as long as `sender` is there.
    let ended = end(sender, 10);
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    let left: Vec<_> = std::fs::read_dir(bed.path("in")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn only_the_interfaces_that_are_asked_for_are_used_and_a_backup_when_nothing_else_is() {
    let Some(bed) = Bed::new() else { return };
    let hits = bed.hits();
    let (file, to) = (bed.file("big", 1_000_000), format!("{}@192.0.2.2,fd00:1::2", hits[1]));
    let locals = |choice: &[&str]| {
        let receiver = bed.receive(&hits[0]);
        let args = [&["send", file.to_str().unwrap(), &to, "--json"], choice].concat();
        let sent = end(bed.spawn(0, &args), 30);
        assert!(end(receiver, 10).status.success());
        let report = json(&sent);
        let paths = report["paths"].as_array().unwrap().clone();
        let local = |path: &serde_json::Value| path["local"].as_str().unwrap().to_owned();
        let mut locals: Vec<_> = paths.iter().map(local).collect();
        locals.sort();
        locals
    };
    let only = |locals: &[String], begin: &str| locals.len() == 1 && locals[0].starts_with(begin);
    assert!(only(&locals(&["--only", "a1"]), "[fd00:1::1]"));
    assert!(only(&locals(&["--backup", "a1"]), "10.0.0.2"));
    super::bed::tool(&bed.hosts[0], "ip link set a0 down");
    assert!(only(&locals(&["--backup", "a1"]), "[fd00:1::1]"));
    let args = ["send", file.to_str().unwrap(), &to, "--only", "eth9"];
    let said = end(bed.spawn(0, &args), 10);
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    assert!(
        String::from_utf8_lossy(&said.stderr).contains("no network interface is called eth9"),
        "{said:?}"
    );
}

#[test]
fn a_backup_steps_in_while_the_other_link_is_silent() {
    let Some(bed) = Bed::slow() else { return };
    let hits = bed.hits();
    let (file, to) = (bed.file("big", 12_000_000), format!("{}@192.0.2.2,fd00:1::2", hits[1]));
    let receiver = bed.receive(&hits[0]);
    let sender = bed.spawn(0, &["send", file.to_str().unwrap(), &to, "--backup", "a1", "--json"]);
    std::thread::sleep(Duration::from_secs(2));
    // The router drops every packet. Both hosts keep their addresses, and no error is sent to them.
    super::bed::tool(
        &bed.router,
        "nft add chain ip nat through { type filter hook forward priority 0; policy drop; }",
    );
    let (sent, received) = (end(sender, 60), end(receiver, 20));
    let report = json(&sent);
    assert!(received.status.success(), "{received:?}");
    let paths = report["paths"].as_array().unwrap();
    let carried = |begin: &str| {
        let path = paths.iter().find(|path| path["local"].as_str().unwrap().starts_with(begin));
        path.and_then(|path| path["bytes"].as_u64()).unwrap_or_default()
    };
    assert!(carried("10.0.0.2") > 500_000 && carried("[fd00:1::1]") > 500_000, "{report:#}");
    assert!(bed.arrived("big"));
}

#[test]
fn what_was_fetched_is_not_fetched_again() {
    let Some(bed) = Bed::new() else { return };
    let (hit, big, small) = (bed.hit(1), bed.file("big", 3_000_000), bed.file("small", 1000));
    let (dir, from) = (bed.path("fetched"), format!("{hit}@192.0.2.2"));
    for expected in [0, 3_000_000] {
        let offering = offer(&bed, &[&big, &small]);
        let fetch = bed.spawn(0, &["receive", "--from", &from, "--dir", dir.to_str().unwrap(), "--json"]);
        let report = json(&end(fetch, 60));
        let files = report["files"].as_array().unwrap();
        let fetched = files.iter().find(|file| file["name"] == "big").unwrap();
        assert_eq!(fetched["resumed_at"], expected, "{report:#}");
        assert!(end(offering, 20).status.success());
    }
}

#[test]
fn a_transfer_that_fails_as_a_whole_has_its_json_too() {
    let Some(bed) = Bed::new() else { return };
    let file = bed.file("small", 1000);
    let ended = end(bed.send_to(&file, &format!("{}@192.0.2.2:10509", bed.hit(1))), 30);
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    let report: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert!(report["error"].as_str().unwrap().contains("is closed"), "{report:#}");
    assert_eq!(report["files"].as_array().map(Vec::len), Some(0), "{report:#}");
}

#[test]
fn a_directory_that_cannot_be_read_fails_alone() {
    let Some(bed) = Bed::new() else { return };
    let hits = bed.hits();
    let album = bed.path("album");
    std::fs::create_dir_all(album.join("closed")).unwrap();
    std::fs::write(album.join("x"), "x").unwrap();
    std::fs::set_permissions(album.join("closed"), std::fs::Permissions::from_mode(0o000)).unwrap();
    let mut receiver = bed.receive(&hits[0]);
    // Root without its privilege to read everything.
    let mut command = std::process::Command::new("setpriv");
    command.args([
        "--bounding-set",
        "-dac_override,-dac_read_search",
        env!("CARGO_BIN_EXE_polypath"),
        "send",
    ]);
    command.args([album.to_str().unwrap(), &format!("{}@192.0.2.2", hits[1])]);
    command.env("XDG_CONFIG_HOME", bed.path("config0")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let sent = end(bed.hosts[0].run(|| command.spawn().unwrap()).unwrap(), 30);
    assert_eq!(sent.status.code(), Some(3), "{sent:?}");
    let said = String::from_utf8_lossy(&sent.stderr);
    assert!(said.contains("album/closed: Permission denied"), "{said}");
    assert_eq!(std::fs::read(bed.path("in/album/x")).unwrap(), b"x");
    receiver.kill().unwrap();
    receiver.wait().unwrap();
}

#[test]
fn a_port_that_is_taken_and_a_directory_that_is_a_file_are_told() {
    let Some(bed) = Bed::new() else { return };
    let (file, dir) = (bed.file("small", 10), bed.path("in"));
    let mut first = bed.receive("any");
    for (dir, what) in [(&dir, "does another polypath run here? --port"), (&file, "it is no directory")] {
        let ended = end(bed.spawn(1, &["receive", "--dir", dir.to_str().unwrap(), "--allow", "any"]), 10);
        assert_eq!(ended.status.code(), Some(3), "{ended:?}");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(said.contains(what), "{said}");
    }
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn arguments_that_make_no_sense_say_what_would() {
    let Some(bed) = Bed::new() else { return };
    let (hit, file) = (bed.hit(1), bed.file("small", 10));
    let file = file.to_str().unwrap();
    let (to, near) = (format!("{hit}@192.0.2.2"), format!("{hit}@fe80::1%b0"));
    let port = format!("{to}:99999");
    let refused = |args: &[&str], status: i32, what: &str| {
        let output = end(bed.spawn(0, args), 10);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
        assert!(said.contains(what), "{args:?}: {said}");
    };
    for (args, what) in [
        (&["send", file][..], "the last argument names the receiver"),
        (&["send", &to], "nothing to send"),
        (&["send", &to, &to], "the receiver comes last, and only once"),
        (&["send", "-", "-", &to], "standard input can be read once only"),
        (&["send", "-", "--name", "../x", &to], "--name ../x: leads out of the directory"),
        (&["send", "-", "--allow", "any"], "standard input cannot be fetched"),
        (&["send", file, &to, "--name", "x"], "--name is for standard input, and none is sent"),
        (&["send", file, &near], "fe80::1%b0 is link-local, which is not supported"),
        (&["send", "/dev/null", &to], "neither a file nor a directory"),
        (&["send", file, &to, "--cc", "reno"], "invalid value 'reno'"),
        (&["send", file, &port], "192.0.2.2:99999 does not: 99999 is not a UDP port: 1 to 65535"),
        (&["send", file, &hit], "`polypath receive` on that host prints"),
    ] {
        refused(args, 2, what);
    }
    refused(&["send", "missing", &to], 3, "cannot send missing: No such file");
    refused(&["send", "no\u{1b}[31m\nne", &to], 3, "no\u{fffd}[31m\u{fffd}ne: No such file");
}

#[test]
fn who_takes_any_port_is_told_which_it_is() {
    let Some(bed) = Bed::new() else { return };
    let (hit, file) = (bed.hit(1), bed.file("small", 1000));
    let inbox = bed.path("in");
    let args = ["receive", "--dir", inbox.to_str().unwrap(), "--allow", "any", "--once", "--port", "0"];
    let mut receiver = bed.spawn(1, &args);
    let mut lines = BufReader::new(receiver.stderr.take().unwrap()).lines();
    let ready = lines.find_map(|line| line.ok().filter(|line| line.contains("ready"))).unwrap();
    let port: u16 = ready.split("192.0.2.2:").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    let sent = end(bed.send_to(&file, &format!("{hit}@192.0.2.2:{port}")), 30);
    assert!(port > 0 && sent.status.success(), "{ready}: {sent:?}");
    assert!(end(receiver, 20).status.success());
}
