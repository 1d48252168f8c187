//! A daemon under a service manager: another user, without rights but for the network, that says how it is.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use polypath_daemon::SOCKET;
use polypath_testing::installed;

use super::host::{Host, hosts, introduce, lists, meet, plug, reaches, wait};

/// A user and a group that every Debian has.
const NOBODY: u32 = 65534;
const GROUP: (&str, u32) = ("daemon", 1);
/// NET_BIND_SERVICE, NET_ADMIN and NET_RAW (capability.h).
const KEPT: &str = "0000000000003400";
/// The same, DAC_OVERRIDE and CHOWN.
const OF_ROOT: &str = "0000000000003403";

const UNIT: &str = include_str!("../../../../../packaging/polypath.service");

/// A line of proc_pid_status(5).
fn line(host: &Host, name: &str) -> String {
    let pid = host.daemon.as_ref().unwrap().id();
    line_of(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap(), name)
}

fn line_of(status: &str, name: &str) -> String {
    status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim_start_matches(':').trim().to_owned()
}

/// `polypath status` as another user.
fn asks(host: &Host, uid: u32, gid: u32) -> Output {
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={uid}"), &format!("--regid={gid}"), "--clear-groups"]);
    command.args([env!("CARGO_BIN_EXE_polypath"), "status", "--socket"]).arg(host.socket());
    host.run(command)
}

/// A router whose daemon becomes nobody, and its server.
fn pair() -> Option<[Host; 2]> {
    let [router, server] = hosts()?;
    introduce(&router, &server, &[]);
    router.edit(|text| {
        let text = text.replace("# group = \"polypath-admin\"", &format!("group = \"{}\"", GROUP.0));
        text.replace("# user = \"polypath\"", "user = \"nobody\"")
            .replace("kill_switch = false", "kill_switch = true")
    });
    for (file, mode) in [("", 0o755), ("polypath.toml", 0o644)] {
        fs::set_permissions(router.dir.path().join(file), Permissions::from_mode(mode)).unwrap();
    }
    Some([router, server])
}

#[test]
fn once_set_up_it_is_another_user_with_the_rights_that_it_needs_and_no_others() {
    let Some([mut router, mut server]) = pair() else { return };
    router.edit(|text| text.replace("queues = 1", "queues = 3"));
    server.up();
    router.up();
    meet(&router, &server);
    assert_eq!(line(&router, "Uid"), [NOBODY; 4].map(|id| id.to_string()).join("\t"));
    assert_eq!(line(&router, "Gid"), [NOBODY; 4].map(|id| id.to_string()).join("\t"));
    for set in ["CapEff", "CapPrm"] {
        assert_eq!(line(&router, set), KEPT, "{set}");
    }
    assert_eq!((line(&router, "CapInh"), line(&router, "NoNewPrivs")), ("0".repeat(16), "1".to_owned()));
    assert_eq!(line(&router, "CapBnd"), KEPT);
    let queues = super::abort::queues(router.daemon.as_ref().unwrap().id());
    assert_eq!(queues.len(), 3);
    for status in queues {
        assert_eq!(line_of(&status, "Uid"), [NOBODY; 4].map(|id| id.to_string()).join("\t"));
        for set in ["CapEff", "CapPrm", "CapInh"] {
            assert_eq!(line_of(&status, set), "0".repeat(16), "{set}");
        }
    }
    changes(&router, &server);
    who_may_ask(&router, NOBODY);
    ends(router);
}

#[test]
fn once_set_up_root_without_a_user_has_the_rights_that_it_needs_and_no_others_in_every_thread() {
    let Some([mut router, mut server]) = pair() else { return };
    router.edit(|text| text.replace("user = \"nobody\"", ""));
    server.up();
    router.up();
    meet(&router, &server);
    let tasks = format!("/proc/{}/task", router.daemon.as_ref().unwrap().id());
    let tasks = fs::read_dir(tasks).unwrap().map(|task| task.unwrap().path().join("status"));
    let tasks: Vec<String> = tasks.map(|status| fs::read_to_string(status).unwrap()).collect();
    assert!(tasks.len() > 1, "one writes the events");
    for status in tasks {
        assert_eq!(line_of(&status, "Uid"), ["0"; 4].join("\t"));
        for set in ["CapEff", "CapPrm", "CapBnd"] {
            assert_eq!(line_of(&status, set), OF_ROOT, "{set}");
        }
        assert_eq!(
            (line_of(&status, "CapInh"), line_of(&status, "NoNewPrivs")),
            ("0".repeat(16), "1".into())
        );
    }
    changes(&router, &server);
    who_may_ask(&router, 0);
    fs::remove_file(router.socket()).unwrap();
    wait("the socket again", || router.status(&[]).status.success());
    who_may_ask(&router, 0);
    ends(router);
}

/// What a daemon does once it is set up.
fn changes(router: &Host, server: &Host) {
    reaches(router, server);
    // What it does later needs its rights: routes and rules, and sockets that are bound to an interface and marked.
    router.edit(|text| text.replace("prefixes = [", "prefixes = [\"10.98.0.0/24\", "));
    let reload = router.ask(&["reload"]);
    assert!(reload.status.success(), "{reload:?}");
    assert!(lists(router, "route", "10.98.0.0/24 dev polypath0"));
    assert!(lists(router, "rule", "to 10.98.0.0/24 unreachable"));
    plug([router, server], "eth1", "192.0.3");
    wait("a path over an interface that came later", || {
        let status = String::from_utf8(router.status(&[]).stdout).unwrap();
        status.contains("192.0.3.1:10500 → 192.0.3.2:10500: up")
    });
    reaches(router, server);
}

fn ends(mut router: Host) {
    let down = router.ask(&["down"]);
    assert!(down.status.success(), "{down:?}");
    assert_eq!(router.daemon.take().unwrap().wait().unwrap().code(), Some(0));
    assert!(!lists(&router, "rule", "unreachable"), "the kill switch is lifted");
}

/// Root, the daemon's `user` and members of the group.
fn who_may_ask(router: &Host, user: u32) {
    let socket = fs::metadata(router.socket()).unwrap();
    assert_eq!((socket.mode() & 0o777, socket.uid(), socket.gid()), (0o660, user, GROUP.1));
    if !installed(&["setpriv"]) {
        return;
    }
    for (uid, gid, may) in [(user, user, true), (12_345, GROUP.1, true), (12_345, 12_345, false)] {
        let asked = asks(router, uid, gid);
        assert_eq!(asked.status.success(), may, "{uid} {gid}: {asked:?}");
        let said = String::from_utf8_lossy(&asked.stderr).into_owned();
        assert!(may || said.contains("[control] group"), "{said}");
    }
}

#[test]
fn the_socket_of_a_user_without_rights_is_made_again_in_a_directory_of_its_own() {
    let Some([mut router, _server]) = pair() else { return };
    if !installed(&["unshare", "mount", "setpriv"]) {
        return;
    }
    // The default path, where /run is nobody else's.
    router.edit(|text| text.replace(&format!("socket = {SOCKET:?}"), ""));
    let alone = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /run && exec \"$@\"", "sh"];
    let rights = rights(UNIT);
    router.up_under(&[&alone[..], &rights.each_ref().map(String::as_str)].concat(), &[]);
    let socket = format!("/proc/{}/root{SOCKET}", router.daemon.as_ref().unwrap().id());
    let asks = || router.run(router.command(&["status", "--socket", &socket])).status.success();
    wait("an answer", asks);
    let (dir, made) = (Path::new(&socket).parent().unwrap(), fs::metadata(&socket).unwrap().ino());
    let owner = fs::metadata(dir).unwrap();
    assert_eq!((owner.uid(), owner.gid(), owner.mode() & 0o7777), (NOBODY, GROUP.1, 0o2755));
    // Its file system gives the number to no other one while this stays.
    fs::hard_link(&socket, dir.join("kept")).unwrap();
    fs::remove_file(&socket).unwrap();
    wait("the socket again", asks);
    let again = fs::metadata(&socket).unwrap();
    assert!(
        again.ino() != made && (again.uid(), again.gid(), again.mode() & 0o777) == (NOBODY, GROUP.1, 0o660)
    );
}

/// setpriv(1) with the rights of `unit`, a file of systemd.unit(5).
fn rights(unit: &str) -> [String; 2] {
    let line = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).unwrap();
    let rights = line.split_whitespace().map(|right| right.strip_prefix("CAP_").unwrap().to_lowercase());
    let set: String = rights.map(|right| format!(",+{right}")).collect();
    ["setpriv".into(), format!("--bounding-set=-all{set}")]
}

#[test]
fn the_rights_of_the_unit_are_enough_to_start_again_over_a_dead_daemons_socket_and_to_reload() {
    let Some([mut router, _server]) = pair() else { return };
    if !installed(&["setpriv"]) {
        return;
    }
    let rights = rights(UNIT);
    let under = rights.each_ref().map(String::as_str);
    let socket = router.socket();
    for _ in 0..2 {
        router.up_under(&under, &[]);
        wait("an answer", || router.status(&[]).status.success());
        assert_eq!(line(&router, "Uid"), [NOBODY; 4].map(|id| id.to_string()).join("\t"));
        assert_eq!(line(&router, "CapEff"), KEPT);
        let words = ["reload", "--socket", socket.to_str().unwrap()];
        let reload = router.run(router.command_under(&under, &words));
        assert!(reload.status.success(), "{reload:?}");
        let mut daemon = router.daemon.take().unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        assert_eq!(fs::metadata(&socket).unwrap().uid(), NOBODY, "it stays, and is nobody's");
        wait("the end of the device", || !lists(&router, "link", "polypath0"));
    }
}

#[test]
fn who_starts_it_by_sudo_may_own_the_configuration_and_the_key_and_nobody_else() {
    let Some([mut router, _server]) = pair() else { return };
    let (user, other) = ("12345", "12346");
    for file in ["polypath.toml", "identity.pem"] {
        chown(router.dir.path().join(file), Some(12_345), None).unwrap();
        let mut up = router.command(&["up", "polypath.toml"]);
        up.env("SUDO_UID", other);
        let up = router.run(up);
        let said = String::from_utf8_lossy(&up.stderr).into_owned();
        assert!(up.status.code() == Some(2) && said.contains("belongs to another user"), "{said}");
    }
    router.up_with(&[("SUDO_UID", user)]);
    wait("an answer", || router.status(&[]).status.success());
    router.edit(|text| text.replace("prefixes = [", "prefixes = [\"10.98.0.0/24\", "));
    let reload = router.ask(&["reload"]);
    assert!(reload.status.success(), "as another user, too: {reload:?}");
    assert!(lists(&router, "route", "10.98.0.0/24 dev polypath0"));
}

#[test]
fn a_hangup_has_the_configuration_read_again_and_what_is_wrong_with_it_logged() {
    let Some([mut router, _server]) = pair() else { return };
    router.up_under(&[], &[]);
    wait("an answer", || router.status(&[]).status.success());
    let hang_up = || {
        let pid = router.daemon.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    };
    router.edit(|text| text.replace("prefixes = [", "prefixes = [\"10.98.0.0/24\", "));
    hang_up();
    wait("a route", || lists(&router, "route", "10.98.0.0/24 dev polypath0"));
    router.edit(|text| text.replace("mtu = 1400", "mtu = 1300").replace("spare = 8", "spare = 7"));
    hang_up();
    let log = || router.ask(&["log"]).stdout;
    let refused = "SIGHUP: tunnel.mtu, lane.spare cannot change while the daemon runs";
    wait("a refusal", || String::from_utf8_lossy(&log()).contains(refused));
}

#[test]
fn a_server_that_gives_addresses_reads_its_configuration_again_as_its_user() {
    let Some([_router, mut server]) = hosts() else { return };
    server.init(&["--assign", "10.99.0.0/24"]);
    let state = server.dir.path().join("state");
    server.edit(|text| {
        text.replace("# user = \"polypath\"", "user = \"nobody\"")
            .replace("# state = \"/var/lib/polypath\"", &format!("state = {state:?}"))
            + "[[peer]]\nhit = \"2001:22:88e0:5362:e35e:1c8f:b38e:ef19\"\n"
    });
    for (file, mode) in [("", 0o755), ("polypath.toml", 0o644)] {
        fs::set_permissions(server.dir.path().join(file), Permissions::from_mode(mode)).unwrap();
    }
    server.up();
    wait("an answer", || server.status(&[]).status.success());
    assert_eq!(fs::metadata(state.join("leases.json")).unwrap().uid(), NOBODY);
    server.edit(|text| text.to_owned() + "[[peer]]\nhit = \"2001:22:a7c6:c53:8d7b:5b0a:a1cf:a9c8\"\n");
    let reload = server.ask(&["reload"]);
    assert!(reload.status.success(), "{reload:?}");
    let leases = fs::read_to_string(state.join("leases.json")).unwrap();
    assert!(leases.contains("10.99.0.2") && leases.contains("10.99.0.3"), "{leases}");
}

#[test]
fn a_daemon_that_cannot_become_its_user_leaves_nothing_but_the_kill_switch_and_says_so() {
    let Some([router, _server]) = pair() else { return };
    if !installed(&["setpriv"]) {
        return;
    }
    let socket = router.own_socket();
    let under = ["setpriv", "--bounding-set=-setuid"];
    let up = router.run(router.command_under(&under, &["up", "polypath.toml"]));
    let said = String::from_utf8_lossy(&up.stderr).into_owned();
    assert!(!up.status.success() && said.contains("cannot become the user nobody"), "{said}");
    assert!(said.contains("the kill switch stays"), "{said}");
    assert!(!lists(&router, "link", "polypath0") && !socket.exists());
}

#[test]
fn an_unknown_user_or_group_or_an_impossible_socket_is_named_with_its_line() {
    let Some([router, _server]) = hosts() else { return };
    router.init(&[]);
    for (key, status, parts) in [
        (
            "user = \"nobody-here\"",
            2,
            ["there is no user nobody-here", "help: did you mean nobody? Otherwise: adduser"],
        ),
        ("group = \"none-here\"", 2, ["control.group: there is no group none-here", "help: addgroup"]),
        ("socket = \"none/here\"", 3, ["control.socket: ", "help: make its directory"]),
        (
            "socket = \"polypath.toml\"",
            3,
            ["polypath.toml is there, and is no socket", "help: name another path"],
        ),
    ] {
        router.edit(|text| {
            let written = |line: &str| {
                if line.trim_start_matches("# ").split('=').next() == key.split('=').next() {
                    key.to_owned()
                } else {
                    line.to_owned()
                }
            };
            text.lines().map(written).collect::<Vec<_>>().join("\n")
        });
        let up = router.run(router.command(&["up", "polypath.toml"]));
        let said = String::from_utf8_lossy(&up.stderr).into_owned();
        assert!(up.status.code() == Some(status) && parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(said.contains("--> polypath.toml:") && said.contains(&format!("| {key}")), "{said}");
        router.edit(|text| text.replace(key, &format!("# {key}")));
    }
    let up = router.run(router.command(&["up", "polypath.toml", "--user", "nobody-here"]));
    let said = String::from_utf8_lossy(&up.stderr).into_owned();
    assert!(up.status.code() == Some(2) && said.contains("--user: there is no user nobody-here"), "{said}");
}

#[test]
fn a_service_manager_hears_that_it_is_ready_alive_and_ending() {
    let Some([mut router, _server]) = hosts() else { return };
    router.init(&[]);
    let at = router.dir.path().join("notify");
    let manager = UnixDatagram::bind(&at).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    router.up_with(&[("NOTIFY_SOCKET", at.to_str().unwrap()), ("WATCHDOG_USEC", "400000")]);
    let hear = || {
        let mut said = [0; 500];
        let len = manager.recv(&mut said).unwrap();
        String::from_utf8_lossy(&said[..len]).into_owned()
    };
    assert_eq!(hear().trim(), "READY=1");
    assert!(!router.status(&[]).stdout.is_empty(), "it is");
    for _ in 0..3 {
        assert_eq!(hear().trim(), "WATCHDOG=1\nSTATUS=0 of 0 peers, 0 connections");
    }
    let pid = router.daemon.as_ref().unwrap().id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let last = (0..10).map(|_| hear()).find(|said| !said.contains("WATCHDOG"));
    assert_eq!(last.unwrap().trim(), "STOPPING=1");
    router.daemon.take().unwrap().wait().unwrap();
}

#[test]
fn the_journal_gets_priorities_and_no_time_of_ours() {
    let Some([mut router, _server]) = hosts() else { return };
    router.init(&[]);
    let log = router.dir.path().join("log");
    let journal = "exec 2> \"$LOG\"; export JOURNAL_STREAM=$(stat -c %d:%i \"$LOG\"); exec \"$@\"";
    let under = ["sh", "-c", journal, "sh"];
    router.up_under(&under, &[("LOG", log.to_str().unwrap())]);
    wait("an answer", || router.status(&[]).status.success());
    router.edit(|text| text.replace("include = []", "include = [\"none*\", \"eth*\"]"));
    assert!(router.ask(&["reload"]).status.success());
    router.end("-TERM");
    let said = fs::read_to_string(&log).unwrap();
    assert!(said.starts_with("<6> INFO up device=polypath0 "), "{said}");
    assert!(said.lines().any(|line| line.starts_with("<4> WARN") && line.contains("none*")), "{said}");
    router.edit(|text| text.replace("mtu = ", "mtuu = "));
    let mut up = router.command_under(&under, &["up", "polypath.toml"]);
    up.env("LOG", &log);
    assert_eq!(router.run(up).status.code(), Some(2));
    let said = fs::read_to_string(log).unwrap();
    assert!(said.starts_with("<3>error: ") && said.contains("\n<3>help: did you mean `mtu`?"), "{said}");
}

#[test]
fn of_a_daemon_that_hangs_it_is_said_what_to_do() {
    let Some([mut router, _server]) = hosts() else { return };
    router.init(&[]);
    router.up_under(&[], &[]);
    wait("an answer", || router.status(&[]).status.success());
    let pid = router.daemon.as_ref().unwrap().id().to_string();
    assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
    let asked = router.status(&[]);
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(asked.status.code() == Some(3) && said.contains("did not answer within 5 s"), "{said}");
    assert!(said.contains("help: it is busy, stopped or hangs"), "{said}");
    router.end("-KILL");
}

#[test]
fn a_mistake_is_not_tried_again_and_other_failures_after_longer_and_longer_pauses() {
    for line in
        ["Restart=on-failure", "RestartPreventExitStatus=2", "RestartSteps=5", "RestartMaxDelaySec=10"]
    {
        assert!(UNIT.lines().any(|other| other == line), "{line}");
    }
}

#[test]
fn a_service_without_a_configuration_is_not_skipped_in_silence() {
    assert!(UNIT.contains("\nAssertPathExists=/etc/polypath/polypath.toml\n"));
    assert!(!UNIT.contains("ConditionPathExists"), "a start that is skipped succeeds");
}
