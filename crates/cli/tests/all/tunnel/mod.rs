//! `polypath init`, `up`, `status` and `down` as two administrators meet them, each in a namespace of its own.
#![allow(clippy::unwrap_used)]

mod abort;
mod check;
mod full;
mod hints;
mod host;
mod incidents;
mod init;
mod kill_switch;
mod mistakes;
mod orphans;
mod package;
mod peers;
mod plugged;
mod questions;
mod reload;
mod schema;
mod service;
mod testbed;

use std::io::BufRead;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use polypath_daemon::control;
use polypath_testing::installed;
use serde_json::Value;

use host::{Host, has_cables, hosts, meet, plug, reaches, wait};

#[test]
fn three_commands_on_each_host_and_a_program_reaches_the_other() {
    let Some([mut router, mut server]) = hosts() else { return };
    let there = server.init(&[]);
    assert!(there.contains("@192.0.2.2 --behind 10.99.0.1/32"), "{there}");
    let back = router.obey(&there);
    assert!(!back.contains('@'), "the router calls: {back}");
    assert_eq!(server.obey(&back), "", "nothing more to do");
    server.up();
    router.up();
    meet(&router, &server);

    reaches(&router, &server);
    let shown = String::from_utf8(router.status(&[]).stdout).unwrap();
    assert!(shown.contains("TCP connections: sent 5 B") && shown.contains("192.0.2.2:10500: up"), "{shown}");
    lists_and_changes(&router);
    tells(&router);
    follows(&router);
    ends(&mut router, &mut server);
}

#[test]
fn a_stranger_hears_nothing_and_is_told_what_to_look_at() {
    let Some([mut router, mut server]) = hosts() else { return };
    let there = server.init(&[]);
    router.obey(&there);
    server.up();
    router.up();
    let log = |host: &Host| {
        let log = host.ask(&["log"]);
        String::from_utf8(log.stdout).unwrap()
    };
    wait("that nobody answers", || log(&router).contains("no answer: is this host's tag, 2001:22:"));
    assert!(!log(&server).contains("WARN"), "{}", log(&server));
}

#[test]
fn a_port_that_is_taken_is_told_of_each_interface_and_is_an_error_on_all() {
    let Some([mut router, server]) = hosts() else { return };
    router.init(&[]);
    router.edit(|text| {
        text.replace("include = []", "include = [\"eth*\", \"nope*\"]")
            .replace("limit = {}", "limit = { wwan0 = \"5M\" }")
    });
    let taken = router.ns.run(|| UdpSocket::bind("192.0.2.1:10500").unwrap()).unwrap();
    router.own_socket();
    let up = router.run(router.command(&["up", "polypath.toml"]));
    let said = String::from_utf8_lossy(&up.stderr).into_owned();
    let parts = [
        "listen.port: no UDP socket on port 10500",
        "192.0.2.1:10500",
        "--> polypath.toml:",
        "write another one",
    ];
    assert!(up.status.code() == Some(3) && parts.iter().all(|part| said.contains(part)), "{said}");
    plug([&router, &server], "eth1", "192.0.3");
    wait("another cable", || has_cables(&router, 2));
    router.up();
    wait("an answer", || router.status(&[]).status.success());
    std::thread::sleep(Duration::from_secs(5)); // it looks again every 2 s
    let log = router.ask(&["log"]);
    let log = String::from_utf8(log.stdout).unwrap();
    for once in [
        "UDP socket on 192.0.2.1:10500",
        "[paths] include: no interface fits \"nope*\"",
        "[paths] limit: no interface fits \"wwan0\"",
    ] {
        assert_eq!(log.matches(once).count(), 1, "{once}: {log}");
    }
    drop(taken);
}

#[test]
fn the_port_is_free_once_a_daemon_has_ended() {
    let Some([mut router, _server]) = hosts() else { return };
    router.init(&[]);
    router.up();
    wait("an answer", || router.status(&[]).status.success());
    let socket = router.socket();
    // As `polypath down` does, but without the time that a process takes to start and to end.
    let port = router.ns.run(|| {
        assert_eq!(control::ask(&socket, &control::Command::Down).unwrap(), control::Answer::Ending);
        control::ended(&socket, Duration::from_secs(10)).unwrap();
        UdpSocket::bind("192.0.2.1:10500")
    });
    assert!(port.unwrap().is_ok(), "the next daemon has it");
}

/// What a daemon is asked for beside its status.
fn lists_and_changes(host: &Host) {
    let ask = |args: &[&str]| {
        let done = host.ask(args);
        (
            done.status.code(),
            String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap(),
        )
    };
    let (_, paths) = ask(&["paths"]);
    assert!(paths.contains("eth0       used  192.0.2.1") && paths.contains("192.0.2.2:10500"), "{paths}");
    let (_, json) = ask(&["paths", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["interfaces"][0]["name"], &json["paths"][0]["path"]["up"]),
        (&"eth0".into(), &true.into())
    );
    let done = |said: &str| (Some(0), said.to_owned());
    assert_eq!(ask(&["paths", "limit", "eth0", "50M"]), done("eth0: limited to 50 Mbit/s\n"));
    assert!(ask(&["paths"]).1.contains("50 Mbit/s"));
    assert_eq!(ask(&["paths", "add", "eth0"]), done("eth0: used\n"));
    assert_eq!(ask(&["paths", "prefer", "eth0", "eth0"]), done("eth0: preferred\n"));
    assert_eq!(ask(&["paths", "prefer"]), done("no interface is preferred\n"));
    let (_, json) = ask(&["paths", "limit", "eth0", "40M", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["interfaces"][0]["limit_mbps"], 40.0);
    for (args, parts) in [
        (&["paths", "remove", "eth0"][..], ["no other interface", "help: `polypath paths add IFACE`"]),
        (&["paths", "add", "lo"], ["leads to no other host", "help: name an interface"]),
        (&["paths", "prefer", "eth7"], ["called eth7", "usable address: eth0"]),
        (&["paths", "limit", "eth0", "fast"], ["is not a rate", "10M"]),
        (&["paths", "limit", "eth0", "-5M"], ["\"-5M\" is not a rate", "10M"]),
        (&["log", "-n", "-1"], ["not a number of lines", "for example 20"]),
    ] {
        let (code, said) = ask(args);
        assert!(code == Some(2) && parts.iter().all(|part| said.contains(part)), "{code:?} {said}");
    }
    let (_, log) = ask(&["log"]);
    for line in ["limit eth0 50M", "add eth0", "prefer eth0", "prefer, no interface", "limit eth0 40M"] {
        assert_eq!(log.matches(&format!("INFO paths {line}\n")).count(), 1, "{line}: {log}");
    }
    assert!(!log.contains("paths remove"), "it was refused: {log}");
    assert_eq!(ask(&["reload"]), done("configuration read again: 1 peer, paths over eth0\n"));
    assert!(!ask(&["paths"]).1.contains("40 Mbit/s"), "the configuration sets no limit");
    let (_, peers) = ask(&["peers"]);
    assert!(peers.contains("2001:22:") && peers.contains("up"), "{peers}");
}

/// A daemon tells what it said, and goes on telling.
fn tells(host: &Host) {
    let socket = host.socket();
    let log = |args: &[&str]| host.command(&[&["log", "--socket", socket.to_str().unwrap()], args].concat());
    let said = String::from_utf8(host.run(log(&[])).stdout).unwrap();
    assert!(said.contains("INFO up device=polypath0") && said.contains("association is up"), "{said}");
    let last = String::from_utf8(host.run(log(&["-n", "1", "--json"])).stdout).unwrap();
    let last: Value = serde_json::from_str(&last).unwrap();
    assert!(said.trim_end().ends_with(last["text"].as_str().unwrap()), "{last} of {said}");
    let mut follower = log(&["--follow", "-n", "1"]);
    let mut follower = host.ns.run(|| follower.stdout(Stdio::piped()).spawn().unwrap()).unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(follower.stdout.take().unwrap()));
    let reload = ["reload", "--socket", socket.to_str().unwrap()];
    assert!(lines.next().unwrap().unwrap().ends_with(last["text"].as_str().unwrap()));
    assert!(host.run(host.command(&reload)).status.success());
    assert!(lines.next().unwrap().unwrap().contains("configuration"), "a reload is reported");
    follower.kill().unwrap();
    follower.wait().unwrap();
}

/// A daemon is followed, as lines and on a screen.
fn follows(host: &Host) {
    let socket = host.socket();
    let watch = ["status", "--watch", "--socket", socket.to_str().unwrap()];
    let mut lines = host.command(&[&watch[..], &["--json"]].concat());
    let mut lines = host.ns.run(|| lines.stdout(Stdio::piped()).spawn().unwrap()).unwrap();
    let out = std::io::BufReader::new(lines.stdout.take().unwrap());
    let told: Vec<String> = std::io::BufRead::lines(out).take(2).map(Result::unwrap).collect();
    let time = |line: &String| serde_json::from_str::<Value>(line).unwrap()["time"].as_f64().unwrap();
    let times: Vec<f64> = told.iter().map(time).collect();
    lines.kill().unwrap();
    lines.wait().unwrap();
    assert!(times[0] < times[1], "{times:?}");
    std::fs::write(host.dir.path().join("run.log"), told.join("\n")).unwrap();
    let replayed = host.run(host.command(&["lab", "replay", "run.log"]));
    let said = String::from_utf8_lossy(&replayed.stderr).into_owned();
    assert!(said.contains("run.log: 2 lines: rates take at least 3"), "it reads what a daemon tells: {said}");
    let refused = host.run(host.command(&watch));
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not a terminal"));
    if installed(&["script"]) {
        let program = [&[env!("CARGO_BIN_EXE_polypath")], &watch[..]].concat().join(" ");
        let mut screen = Command::new("sh");
        screen.args([
            "-c",
            &format!("(sleep 2; printf q) | script -qec 'stty cols 120 rows 20; {program}' /dev/null"),
        ]);
        let seen = host.run(screen);
        let seen = String::from_utf8_lossy(&seen.stdout).into_owned();
        let (enters, leaves) = (seen.find("\x1b[?1049h"), seen.rfind("\x1b[?1049l"));
        assert!(enters.is_some() && enters < leaves, "the terminal is as it was: {seen:?}");
        assert!(seen.contains("1 of 1 peers"), "{seen:?}");
    }
}

/// One ends by a command, the other by a signal; nothing is left of either.
fn ends(router: &mut Host, server: &mut Host) {
    let socket = router.socket();
    let follow = || {
        let mut log = router.command(&["log", "--follow", "--socket", socket.to_str().unwrap()]);
        router.ns.run(|| log.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()).unwrap()
    };
    let first_line = |follower: &mut Child| {
        let mut line = String::new();
        std::io::BufReader::new(follower.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line
    };
    let (mut stopped, mut follower) = (follow(), follow());
    let first = [&mut stopped, &mut follower].map(first_line);
    assert!(Command::new("kill").args(["-INT", &stopped.id().to_string()]).status().unwrap().success());
    let stopped = stopped.wait_with_output().unwrap();
    assert_eq!(
        (stopped.status.code(), stopped.stderr.as_slice()),
        (Some(130), &b""[..]),
        "after {first:?}: Ctrl-C is how it ends"
    );
    let down = || router.ask(&["down"]);
    let first = down();
    assert!(first.status.success(), "{first:?}");
    let follower = follower.wait_with_output().unwrap();
    assert!(
        follower.status.success() && follower.stderr.starts_with(b"the daemon has ended"),
        "{follower:?}"
    );
    let (again, none) = (down(), "no daemon answers on");
    assert_eq!(again.status.code(), Some(3), "it has ended when `down` has");
    assert!(String::from_utf8_lossy(&again.stderr).contains(none), "{again:?}");
    let pid = server.daemon.as_ref().unwrap().id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    for (host, code) in [(router, 0), (server, 143)] {
        assert_eq!(host.daemon.take().unwrap().wait().unwrap().code(), Some(code));
        let events = std::fs::read_to_string(host.dir.path().join("events")).unwrap();
        let mut events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        assert!(events.any(|event| event["event"] == "association" && event["state"] == "Established"));
        let device = host.ns.run(|| Path::new("/proc/thread-self/net/dev_snmp6/polypath0").exists()).unwrap();
        assert!(!device && !host.socket().exists(), "something is left");
        let answer = host.status(&[]);
        assert_eq!(answer.status.code(), Some(3));
        assert!(String::from_utf8_lossy(&answer.stderr).contains("help: `polypath up` starts one"));
    }
}

#[test]
fn a_bad_configuration_is_told_where_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("polypath.toml");
    std::fs::write(&file, "[tunnel]\naddresses = [\"10.99.0.1/24\"]\nmut = 1400\n").unwrap();
    let up = Command::new(env!("CARGO_BIN_EXE_polypath")).arg("up").arg(&file).output().unwrap();
    assert_eq!(up.status.code(), Some(2));
    let said = String::from_utf8(up.stderr).unwrap();
    let parts = ["tunnel.mut: unknown key `mut`", "polypath.toml:3:1", "help: did you mean `mtu`?"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
}
