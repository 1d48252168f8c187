//! Disks that are full.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use polypath_testing::installed;

use super::host::{Host, hosts, reaches, wait};

/// Runs a program with a file system of its own, of 64 KiB, on the directory `small`, where its messages are too.
const SMALL: [&str; 6] =
    ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=64k none small; exec \"$@\" 2> small/said", "sh"];

/// A file or directory as the daemon sees it.
fn seen_by(host: &Host, name: &str) -> PathBuf {
    let pid = host.daemon.as_ref().unwrap().id();
    let inside = host.dir.path().join(name);
    Path::new(&format!("/proc/{pid}/root")).join(inside.strip_prefix("/").unwrap())
}

/// Leaves no room in a directory.
fn fill(dir: &Path) {
    let mut filler = File::options().create(true).append(true).open(dir.join("filler")).unwrap();
    let full = std::iter::repeat_with(|| filler.write_all(&[0; 64])).find_map(Result::err).unwrap();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
}

#[test]
fn a_daemon_whose_disk_is_full_carries_on_and_says_what_it_could_not_keep() {
    let Some([mut router, mut server]) = hosts() else { return };
    if !installed(&["unshare", "mount"]) {
        return;
    }
    let there = server.init(&["--assign", "10.99.0.0/24"]);
    let back = router.obey(&there);
    server.obey(&back);
    server.edit(|text| {
        text.replace("# state = \"/var/lib/polypath\"", "state = \"small\"")
            .replace("quota = {}", "quota = { eth0 = \"10 GB\" }")
    });
    fs::create_dir(server.dir.path().join("small")).unwrap();
    server.start(&SMALL, &["up", "polypath.toml", "--events", "small/events", "--detail", "packets"], &[]);
    router.up();
    wait("an association", || router.is_associated() && server.is_associated());
    let small = seen_by(&server, "small");
    let log = || String::from_utf8(server.ask(&["log"]).stdout).unwrap();
    fill(&small);
    wait("a warning of events", || {
        reaches(&router, &server);
        log().contains("the file of events ends here: No space left on device")
    });
    server.edit(|text| text.replace("10 GB", "1 kB"));
    assert!(server.ask(&["reload"]).status.success(), "nothing has to be written");
    wait("a warning of quotas", || log().contains("quota.json: No space left on device"));

    // An address that could not be kept is given to nobody.
    let hit = "2001:22:88e0:5362:e35e:1c8f:b38e:ef19";
    server.edit(|text| format!("{text}[[peer]]\nhit = \"{hit}\"\n"));
    fill(&small);
    let refused = server.ask(&["reload"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("leases.json"), "{said}");
    let parts = ["daemon.state: ", "No space left on device", "--> polypath.toml:", "the disk is full"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    assert!(!String::from_utf8(server.ask(&["peers"]).stdout).unwrap().contains(hit));
    reaches(&router, &server);
    fs::remove_file(small.join("filler")).unwrap();
    assert!(server.ask(&["reload"]).status.success());
    assert!(fs::read_to_string(small.join("leases.json")).unwrap().contains(hit));
    let down = server.ask(&["down"]);
    assert!(down.status.success(), "{down:?}");
    // What began is not whole, which its exit status says.
    assert_eq!(server.daemon.take().unwrap().wait().unwrap().code(), Some(3));
}
