//! Hints where the package's service is installed, and what is said to who names one of several wrongly.

use std::process::Command;

use polypath_testbed::netns::may_create;
use polypath_testing::{installed, skip};

use super::host::{hosts, wait};

/// Runs a shell script, in which `$0` is the program, where all of /etc and /run is its own.
fn alone(script: &str) -> Option<String> {
    if !may_create() {
        skip("a mount namespace needs root");
        return None;
    }
    if !installed(&["unshare", "mount"]) {
        return None;
    }
    let own = "mount -t tmpfs none /run; mount -t tmpfs none /etc; exec 2>&1; ";
    let words = ["--mount", "--net", "sh", "-ec", &(own.to_owned() + script), env!("CARGO_BIN_EXE_polypath")];
    let done = Command::new("unshare").args(words).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    Some(String::from_utf8(done.stdout).unwrap())
}

/// What is said to who has not started it yet.
const BEFORE: &str = "$0 init --yes; $0 init --peer 2001:22:88e0:5362:e35e:1c8f:b38e:ef19 --behind 10.99.0.2/32; $0 status || true";

#[test]
fn hints_name_the_service_where_it_is_installed_and_only_there() {
    let service = "mkdir -p /run/systemd/system; touch /run/systemd/system/polypath.service; ";
    let Some(with) = alone(&format!("{service}{BEFORE}; $0 status --socket /run/x || true")) else { return };
    let Some(without) = alone(BEFORE) else { return };
    for (said, parts) in [
        (
            &with,
            &[
                "start it here with: systemctl enable --now polypath (its log: journalctl -u polypath)",
                "help: `systemctl start polypath` starts one; `journalctl -u polypath` says why",
                "no daemon answers on /run/x\nhelp: `polypath up` starts one",
            ][..],
        ),
        (
            &without,
            &["start it here and there with: polypath up\n", "help: `polypath up` starts one; --socket"],
        ),
    ] {
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
    assert!(!without.contains("systemctl"), "{without}");
}

#[test]
fn an_interface_that_init_does_not_find_is_answered_with_the_nearest() {
    let Some([router, _server]) = hosts() else { return };
    let init = ["init", "polypath.toml", "--identity", "identity.pem", "--yes", "--only", "eht0"];
    let said = String::from_utf8(router.run(router.command(&init)).stderr).unwrap();
    let parts = ["no interface fits \"eht0\" now: did you mean \"eth0\"?", "no interface carries paths"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
}

#[test]
fn who_misspells_one_of_several_is_told_the_nearest() {
    let Some([mut router, _server]) = hosts() else { return };
    router.init(&[]);
    router.up();
    wait("an answer", || router.status(&[]).status.success());
    let told = |args: &[&str]| {
        let done = if args[0] == "paths" { router.ask(args) } else { router.run(router.command(args)) };
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    for (args, nearest) in [
        (&["paths", "remove", "eht0"][..], "did you mean eth0?"),
        (&["paths", "limit", "eht0", "10M"], "did you mean eth0?"),
        (&["testbed", "up", "fibre-let"], "a similar value exists: 'fibre-lte'"),
        (&["demo", "--cc", "polypaht"], "a similar value exists: 'polypath'"),
        (&["paths", "remvoe", "eth0"], "a similar subcommand exists: 'remove'"),
    ] {
        let (code, said) = told(args);
        assert!(code == Some(2) && said.contains(nearest), "{args:?}: {said}");
    }
}
