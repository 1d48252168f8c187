//! `polypath testbed`: namespaces and links that come and go.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use polypath_testbed::netns::may_create;
use polypath_testing::{installed, skip};

use super::host::wait;

const BINARY: &str = env!("CARGO_BIN_EXE_polypath");

fn testbed(words: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", BINARY, "testbed"]).args(words).stdin(Stdio::null());
    command
}

/// A testbed that is up, and what it printed to be tried.
fn up(scenario: &str) -> (Child, Vec<String>) {
    let mut child = testbed(&["up", scenario]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut all = Vec::new();
    for line in lines {
        all.push(line);
        if all.last().unwrap().contains("--watch") {
            break;
        }
    }
    (child, all)
}

fn is_there() -> bool {
    ["/run/netns/polypath-a", "/run/netns/polypath-b", "/run/polypath-testbed"]
        .iter()
        .any(|path| Path::new(path).exists())
}

/// Both lines of the first host reach the second over the link that they share.
fn shared() {
    let (mut bed, printed) = up("shared");
    assert!(printed[0].ends_with("2 through 8 Mbit/s 30 ms"), "{printed:?}");
    for line in ["path0", "path1"] {
        let words = ["netns", "exec", "polypath-a", "ping", "-c", "1", "-W", "5", "-I", line, "10.77.0.2"];
        let ping = Command::new("ip").args(words).output().unwrap();
        assert!(ping.status.success(), "{line}: {ping:?}");
    }
    assert!(testbed(&["down"]).status().unwrap().success() && bed.wait().unwrap().success());
    assert!(!Path::new("/run/netns/polypath-r").exists());
}

#[test]
fn what_it_prints_works_and_nothing_is_left_however_it_ends() {
    if !may_create() || !Path::new("/run/netns").exists() && std::fs::create_dir("/run/netns").is_err() {
        return skip("named namespaces need root");
    }
    if !installed(&["ip", "env", "ping"]) {
        return;
    }
    let listed = testbed(&["list"]).output().unwrap();
    assert!(
        String::from_utf8(listed.stdout).unwrap().contains("fibre-lte   100 Mbit/s 10 ms + 40 Mbit/s 40 ms")
    );
    let (mut bed, printed) = up("fibre-lte");
    let second = testbed(&["up", "dsl"]).output().unwrap();
    assert!(String::from_utf8_lossy(&second.stderr).contains("a testbed is up already"), "{second:?}");
    let tried = |what: &str| {
        let line = printed.iter().find(|line| line.contains(what)).unwrap();
        let words: Vec<&str> = line.split("     ").next().unwrap().split_whitespace().collect();
        let mut command = Command::new(words[0]);
        let words = words[1..].iter().map(|word| if *word == "polypath" { BINARY } else { *word });
        command.args(words).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").stderr(Stdio::null());
        command
    };
    let mut daemons: Vec<_> = ["up /run/polypath-testbed/b", "up /run/polypath-testbed/a"]
        .map(|up| tried(up).spawn().unwrap())
        .into();
    wait("an answer through the tunnel", || {
        tried("ping").args(["-c", "1", "-W", "1"]).output().unwrap().status.success()
    });
    assert!(testbed(&["down"]).status().unwrap().success());
    for daemon in &mut daemons {
        assert_eq!(daemon.wait().unwrap().code(), Some(143), "it was told to end");
    }
    assert!(bed.wait().unwrap().success() && !is_there());

    let (mut hole, _) = up("small-mtu");
    for (size, passes) in [("1300", true), ("1472", false)] {
        let ping = [
            "netns",
            "exec",
            "polypath-a",
            "ping",
            "-c",
            "1",
            "-W",
            "1",
            "-M",
            "do",
            "-s",
            size,
            "10.77.0.2",
        ];
        let ping = Command::new("ip").args(ping).output().unwrap();
        assert_eq!(ping.status.success(), passes, "{size} bytes: {ping:?}");
    }
    assert!(testbed(&["down"]).status().unwrap().success() && hole.wait().unwrap().success());

    shared();

    let (mut interrupted, _) = up("dsl");
    let signal = Command::new("kill").args(["-INT", &interrupted.id().to_string()]).status();
    assert!(signal.unwrap().success());
    assert!(interrupted.wait().unwrap().success() && !is_there());

    for _ in 0..2 {
        let (mut killed, printed) = up("dsl");
        assert!(printed.len() > 1, "what a killed one left is removed");
        killed.kill().unwrap();
        killed.wait().unwrap();
    }
    assert!(testbed(&["down"]).status().unwrap().success() && !is_there());
    let none = testbed(&["down"]).output().unwrap();
    assert!(String::from_utf8_lossy(&none.stderr).contains("no testbed is up"), "{none:?}");
}
