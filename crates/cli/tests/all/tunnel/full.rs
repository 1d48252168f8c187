//! Disks that are full.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use polypath_testing::installed;
use serde_json::Value;

use super::host::{Host, hosts, introduce, meet, reaches, wait};

/// Runs a program with a file system of its own, of 64 KiB, on the directory `small`, where its messages are too.
const SMALL: [&str; 6] =
    ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=64k none small; exec \"$@\" 2> small/said", "sh"];

/// A file or directory as the daemon sees it.
pub fn seen_by(host: &Host, name: &str) -> PathBuf {
    let pid = host.daemon.as_ref().unwrap().id();
    let inside = host.dir.path().join(name);
    Path::new(&format!("/proc/{pid}/root")).join(inside.strip_prefix("/").unwrap())
}

/// Leaves no room in a directory.
pub fn fill(dir: &Path) {
    let mut filler = File::options().create(true).append(true).open(dir.join("filler")).unwrap();
    let full = std::iter::repeat_with(|| filler.write_all(&[0; 64])).find_map(Result::err).unwrap();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
}

/// A server with a small disk, on which its state and its events are, and its router.
fn pair() -> Option<[Host; 2]> {
    let [mut router, mut server] = hosts()?;
    if !installed(&["unshare", "mount"]) {
        return None;
    }
    introduce(&router, &server, &["--assign", "10.99.0.0/24"]);
    server.edit(|text| {
        text.replace("# state = \"/var/lib/polypath\"", "state = \"small\"")
            .replace("quota = {}", "quota = { eth0 = \"1 kB\" }")
    });
    fs::create_dir(server.dir.path().join("small")).unwrap();
    server.start(&SMALL, &["up", "polypath.toml", "--events", "small/events", "--detail", "packets"], &[]);
    router.up();
    meet(&router, &server);
    Some([router, server])
}

fn log(host: &Host) -> String {
    String::from_utf8(host.ask(&["log"]).stdout).unwrap()
}

/// Has the quota be a little more than what was used, and that be used up too, which is written.
fn use_up(server: &Host, router: &Host) {
    let used = || {
        let status: Value = serde_json::from_slice(&server.status(&["--json"]).stdout).unwrap();
        status["interfaces"][0]["quota"]["used"].as_u64().unwrap()
    };
    let (most, times) = (used() / 1000 + 3, || log(server).matches("the quota of eth0 is used up").count());
    let before = times();
    let quota = |line: &str| match line.starts_with("quota = ") {
        true => format!("quota = {{ eth0 = \"{most} kB\" }}\n"),
        false => format!("{line}\n"),
    };
    server.edit(|text| text.lines().map(quota).collect());
    let reload = server.ask(&["reload"]);
    assert!(reload.status.success(), "nothing else has to be written: {reload:?}");
    wait("a quota that is used up", || {
        reaches(router, server);
        times() > before
    });
}

#[test]
fn a_daemon_whose_disk_is_full_carries_on_and_says_once_what_it_could_not_keep() {
    let Some([router, mut server]) = pair() else { return };
    let small = seen_by(&server, "small");
    let kept = |name: &str| fs::read_to_string(small.join(name)).unwrap_or_default();
    wait("an amount that is kept", || kept("quota.json").contains("eth0"));
    fill(&small);
    let before = ["quota.json", "leases.json"].map(kept);
    let said = |what: &str| log(&server).matches(what).count();
    wait("a warning of events", || {
        reaches(&router, &server);
        said("the file of events takes no more: No space left on device") == 1
    });
    for _ in 0..3 {
        use_up(&server, &router);
    }
    wait("a warning of quotas", || said("quota.json: No space left on device") == 1);

    // An address that could not be kept is given to nobody.
    let hit = "2001:22:88e0:5362:e35e:1c8f:b38e:ef19";
    server.edit(|text| format!("{text}[[peer]]\nhit = \"{hit}\"\n"));
    fill(&small);
    let refused = server.ask(&["reload"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && told.contains("leases.json"), "{told}");
    let parts = ["daemon.state: ", "No space left on device", "--> polypath.toml:", "the disk is full"];
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    assert!(!String::from_utf8(server.ask(&["peers"]).stdout).unwrap().contains(hit));
    reaches(&router, &server);

    // What was there is there, and nothing else.
    assert_eq!(["quota.json", "leases.json"].map(kept), before);
    let mut names: Vec<_> = fs::read_dir(&small).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["events", "filler", "leases.json", "quota.json", "said"]);
    let events = kept("events");
    let whole = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    assert!(events.ends_with('\n') && events.lines().all(whole), "no line is there in part");
    for once in ["the file of events takes no more", "quota.json: No space left"] {
        assert_eq!(said(once), 1, "{}", log(&server));
    }

    fs::remove_file(small.join("filler")).unwrap();
    use_up(&server, &router);
    assert!(kept("leases.json").contains(hit));
    wait("an amount that is kept again", || {
        kept("quota.json") != before[0] && said("quota.json is written again") == 1
    });
    wait("events that are kept again", || {
        reaches(&router, &server);
        said("the file of events is written again") == 1
    });
    let down = server.ask(&["down"]);
    assert!(down.status.success(), "{down:?}");
    // Events are missing, which its exit status says.
    assert_eq!(server.daemon.take().unwrap().wait().unwrap().code(), Some(3));
}
