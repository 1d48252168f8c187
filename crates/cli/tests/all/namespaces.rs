//! `polypath demo --netns` and `--curl` as root and as a user who is not, and what is left of it after Ctrl-C: nothing.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use polypath_testbed::netns::{Netns, may_create};
use polypath_testing::{excuse, installed, skip};
use serde_json::Value;
use tempfile::TempDir;

/// Makes who follows it a user without privileges.
const NOBODY: [&str; 6] = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
/// Root runs the program as it is.
const ROOT: [&str; 0] = [];

/// Whether a user without privileges may be root of a user namespace.
fn users_may() -> bool {
    let output = Command::new(NOBODY[0])
        .args(&NOBODY[1..])
        .args(["unshare", "--user", "--map-root-user", "--net", "true"])
        .output()
        .unwrap();
    if !output.status.success() {
        excuse(&format!("the kernel refuses user namespaces: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let device =
        Command::new(NOBODY[0]).args(&NOBODY[1..]).args(["test", "-w", "/dev/net/tun"]).status().unwrap();
    if !device.success() {
        excuse("only root may open /dev/net/tun here");
    }
    output.status.success() && device.success()
}

fn ready() -> bool {
    if !may_create() {
        skip("network namespaces need root");
    }
    may_create() && installed(&["setpriv", "unshare"])
}

/// The program where anybody may run it.
fn program() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("polypath");
    // By another process: a child of this one, forked meanwhile, would have the file open for writing, and it could not be executed.
    assert!(
        Command::new("cp")
            .args([env!("CARGO_BIN_EXE_polypath").as_ref(), program.as_os_str()])
            .status()
            .unwrap()
            .success()
    );
    for path in [dir.path(), &program] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    (dir, program)
}

/// A demo of who is named by `user`. It heeds signals even where this test runs under nohup.
fn demo(user: &[&str], program: &Path, args: &[&str]) -> Command {
    let words = [user, &["env", "--default-signal", program.to_str().unwrap(), "demo"], args].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    command
}

/// What a demo prints that succeeds.
fn report(user: &[&str], args: &[&str]) -> Value {
    let (_dir, program) = program();
    let done = demo(user, &program, args).output().unwrap();
    assert!(done.status.success(), "{user:?}: {done:?}");
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn curl_downloads_through_the_daemons_and_a_cut_does_not_stop_it() {
    if !ready() || !installed(&["curl"]) {
        return;
    }
    curl(&ROOT);
    if users_may() {
        curl(&NOBODY);
    }
}

fn curl(user: &[&str]) {
    let report = report(user, &["--curl", "--json", "--size", "8MiB"]);
    assert_eq!((&report["mode"], &report["sha256_match"]), (&"curl".into(), &true.into()), "{report:#}");
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_f64).unwrap();
    assert!(number("/cut/at_bytes") >= f64::from(4 << 20), "{report:#}");
    assert!(number("/cut/pause_s") > 0.0 && number("/cut/goodput_bps") < 40e6, "{report:#}");
    let alone = |path: usize| number(&format!("/alone/{path}/goodput_bps"));
    for (path, rate) in [(0, 80e6), (1, 40e6)] {
        assert!(alone(path) > 0.0 && alone(path) < rate, "{report:#}");
    }
}

#[test]
fn a_user_without_privileges_gets_namespaces() {
    if !(ready() && users_may()) {
        return;
    }
    let report = report(&NOBODY, &["--netns", "--size", "1MiB", "--json"]);
    assert_eq!((&report["mode"], &report["sha256_match"]), (&"netns".into(), &true.into()), "{report:#}");
}

#[test]
fn ctrl_c_leaves_no_namespace_and_no_interface() {
    if !ready() {
        return;
    }
    interrupted(&ROOT);
    if users_may() {
        interrupted(&NOBODY);
    }
}

/// Starts a demo in a namespace of its own, where nobody else comes and goes, and interrupts it.
fn interrupted(user: &[&str]) {
    let (_dir, program) = program();
    let here = Netns::create("here").unwrap();
    let before = here.run(interfaces).unwrap();
    let mut demo = demo(user, &program, &["--netns", "--path", "1mbit/20ms", "--path", "1mbit/30ms"]);
    demo.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = here.run(|| demo.spawn().unwrap()).unwrap();
    let made = namespaces_of(&mut child);
    assert!(held().is_superset(&made), "they are seen while they are there");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(130), "{user:?}");
    let left = left_of(made);
    assert!(left.is_empty(), "{user:?}: {left:?} are left");
    assert_eq!(here.run(interfaces).unwrap(), before, "{user:?}");
}

/// Which of `namespaces` still exist after 30 s. A namespace that was absent once counts as removed: other tests' namespaces reuse inodes.
fn left_of(mut namespaces: BTreeSet<String>) -> BTreeSet<String> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !namespaces.is_empty() && Instant::now() < deadline {
        namespaces = &namespaces & &held();
        std::thread::sleep(Duration::from_millis(10));
    }
    namespaces
}

/// The namespaces that a demo has made, once it has made one for each host.
fn namespaces_of(child: &mut Child) -> BTreeSet<String> {
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let (ours, deadline) = (held_by(Path::new("/proc/self")), Instant::now() + Duration::from_secs(30));
    loop {
        assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
        assert!(Instant::now() < deadline, "it makes no namespaces");
        let made = &held_by(&process) - &ours;
        if made.len() >= 2 {
            return made;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The network namespaces that a process holds, as `net:[inode]`: those its threads live in or have open.
fn held_by(process: &Path) -> BTreeSet<String> {
    let threads = entries(&process.join("task")).into_iter().map(|thread| thread.join("ns/net"));
    let links = threads.chain(entries(&process.join("fd")));
    let targets = links.filter_map(|link| fs::read_link(link).ok()?.into_os_string().into_string().ok());
    targets.filter(|target| target.starts_with("net:[")).collect()
}

/// Those that anybody holds.
fn held() -> BTreeSet<String> {
    entries(Path::new("/proc")).iter().flat_map(|process| held_by(process)).collect()
}

/// None where there is no directory, or none any more.
fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Those of the calling thread's namespace.
fn interfaces() -> String {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    table.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0)).collect::<Vec<_>>().join(" ")
}
