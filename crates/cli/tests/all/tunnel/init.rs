//! What `polypath init` writes, and what `up` makes of it from elsewhere.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const PEER: &str = "2001:22:88e0:5362:e35e:1c8f:b38e:ef19";

fn polypath(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_polypath")).args(args).current_dir(dir).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A host whose configuration and key are in the directory `a`.
fn host() -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let done = polypath(dir.path(), &["init", "a/a.toml", "--identity", "a/x.pem"]);
    assert!(done.status.success(), "{}", said(&done));
    let hit = polypath(dir.path(), &["hit", "a/x.pem"]).stdout;
    (dir, String::from_utf8(hit).unwrap().trim().to_owned())
}

#[test]
fn on_a_full_disk_the_configuration_stays_as_it_was() {
    let (dir, _) = host();
    let files = || fs::read_dir(dir.path().join("a")).unwrap().count();
    let before = (fs::read_to_string(dir.path().join("a/a.toml")).unwrap(), files());
    // A file of 1 KiB at most; what is more is an error, as on a full disk.
    let line = format!(
        "trap '' XFSZ; ulimit -f 1; exec \"$0\" init a/a.toml --peer {PEER}@192.0.2.1 --behind 10.99.0.2/32"
    );
    let mut sh = Command::new("bash");
    let full =
        sh.args(["-c", &line, env!("CARGO_BIN_EXE_polypath")]).current_dir(dir.path()).output().unwrap();
    assert!(
        full.status.code() == Some(3) && said(&full).contains("cannot write a/a.toml"),
        "{}",
        said(&full)
    );
    assert_eq!((fs::read_to_string(dir.path().join("a/a.toml")).unwrap(), files()), before);
}

#[test]
fn nothing_is_left_where_the_configuration_or_the_key_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let left = || fs::read_dir(dir.path()).unwrap().count();
    for (config, key, wrong) in [
        ("/proc/none/a.toml", "new/x.pem", "/proc/none/a.toml"),
        ("new/and/a.toml", "/proc/none/x.pem", "/proc/none/x.pem"),
    ] {
        let failed = polypath(dir.path(), &["init", config, "--identity", key]);
        let named = format!("cannot write {wrong}");
        assert!(failed.status.code() == Some(3) && said(&failed).contains(&named), "{}", said(&failed));
        assert_eq!((left(), said(&failed).contains("made an identity")), (0, false), "{}", said(&failed));
    }
}

#[test]
fn a_peer_is_added_to_what_a_link_leads_to_and_owner_and_mode_stay() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let (dir, _) = host();
    let (file, link) = (dir.path().join("a/a.toml"), dir.path().join("link.toml"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    // The key is looked for beside the link.
    fs::copy(dir.path().join("a/x.pem"), dir.path().join("x.pem")).unwrap();
    symlink(&file, &link).unwrap();
    let uid = fs::metadata(&file).unwrap().uid();
    let added = polypath(dir.path(), &["init", "link.toml", "--peer", PEER, "--behind", "10.99.0.2/32"]);
    assert!(added.status.success(), "{}", said(&added));
    let found = fs::metadata(&file).unwrap();
    assert_eq!((found.uid(), found.mode() & 0o777), (uid, 0o600));
    assert!(link.is_symlink() && fs::read_to_string(&file).unwrap().contains(PEER));
}

#[test]
fn the_line_to_paste_has_the_tag_of_the_configuration_there_is() {
    let (dir, hit) = host();
    let peer = format!("{PEER}@192.0.2.1");
    let add = ["init", "a/a.toml", "--peer", &peer, "--behind", "10.99.0.2/32"];
    let other = polypath(dir.path(), &[&add[..], &["--identity", "b.pem"]].concat());
    assert!(other.status.code() == Some(2) && said(&other).contains("names a/x.pem"), "{}", said(&other));
    assert!(!dir.path().join("b.pem").exists());
    let added = polypath(dir.path(), &add);
    let line = String::from_utf8(added.stdout).unwrap();
    assert_eq!(line.trim(), format!("polypath init --peer {hit} --behind 10.99.0.1/32"));
}

#[test]
fn from_another_directory_the_key_is_found_and_the_own_tag_is_no_peer() {
    let (dir, hit) = host();
    let file = dir.path().join("a/a.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("key = \"x.pem\""), "{text}");
    let own = polypath(dir.path(), &["init", "a/a.toml", "--peer", &hit, "--behind", "10.99.0.2/32"]);
    assert!(own.status.code() == Some(2) && said(&own).contains("this host's own tag"), "{}", said(&own));
    fs::write(&file, format!("{text}[[peer]]\nhit = \"{hit}\"\nprefixes = [\"10.99.0.2/32\"]\n")).unwrap();
    let up = polypath(Path::new("/"), &["up", file.to_str().unwrap()]);
    let parts = ["peer[0].hit: this host's own tag", "a.toml:", "help: `polypath hit /etc/"];
    assert!(
        up.status.code() == Some(2) && parts.iter().all(|part| said(&up).contains(part)),
        "{}",
        said(&up)
    );
}

/// What `polypath init` says with `args` and a new configuration, and the line that it prints.
fn init(args: &[&str]) -> (Option<i32>, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let done = polypath(
        dir.path(),
        &[&["init", "a.toml", "--identity", "x.pem", "--at", "192.0.2.1"], args].concat(),
    );
    assert_eq!(done.status.success(), dir.path().join("a.toml").exists(), "{}", said(&done));
    assert_eq!(done.status.success(), dir.path().join("x.pem").exists(), "no key is left either");
    (done.status.code(), said(&done), String::from_utf8(done.stdout).unwrap())
}

#[test]
fn the_line_of_a_network_to_assign_from_is_one_that_the_other_host_takes() {
    for (args, behind) in [
        (&["--assign", "10.99.0.5/24"][..], "--behind 10.99.0.0/24"),
        (&["--assign", "10.98.0.0/24"], "--behind 10.98.0.0/24"),
        (
            &["--assign", "10.98.0.0/24", "--address", "10.99.0.1/24"],
            "--behind 10.98.0.0/24 --behind 10.99.0.1/32",
        ),
    ] {
        let (code, said, line) = init(args);
        assert!(code == Some(0) && line.trim().ends_with(&format!("@192.0.2.1 {behind}")), "{said}{line}");
        let words: Vec<&str> = line.split_whitespace().skip(2).collect();
        let (code, said, _) = init(&words);
        assert_eq!(code, Some(0), "{said}");
    }
}

#[test]
fn an_option_that_makes_no_sense_is_refused_with_what_to_write() {
    let peer = format!("{PEER}@192.0.2.1");
    let wrong = format!("{PEER}@192.0.2.1:99999");
    let inside = format!("{PEER}@10.99.0.2");
    let nowhere = format!("{PEER}@");
    for (args, parts) in [
        (&["--address", "10.99.0.0/24"][..], ["--address", "the network itself", "10.99.0.1/24"]),
        (&["--address", "10.99.0.255/24"], ["--address", "broadcast", "10.99.0.1/24"]),
        (&["--address", "10.99.0.7/32"], ["--address 10.99.0.7/32", "no other host", "10.99.0.1/24"]),
        (&["--address", "fd99::7/128"], ["--address fd99::7/128", "no other host", "help: "]),
        (&["--address", "10.99.0.1"], ["--address", "length", "10.99.0.1/24"]),
        (&["--assign", "10.99.0.1/32"], ["--assign", "no address for a peer", "10.99.0.1/24"]),
        (&["--peer", &peer], ["--peer", "nothing is behind it", "--behind 10.99.0.2/32"]),
        (&["--peer", &peer, "--behind", "10.99.0.2/24"], ["--behind", "10.99.0.0/24", "10.99.0.2/32"]),
        (&["--peer", &wrong, "--behind", "10.99.0.2"], ["--peer", "port", "203.0.113.5"]),
        (&["--peer", &nowhere, "--behind", "10.99.0.2"], ["--peer", "neither an address", "203.0.113.5"]),
        (
            &["--peer", &peer, "--behind", "10.99.0.1"],
            ["--behind 10.99.0.1", "this host would", "--address 10.99.0.2/24"],
        ),
        (&["--at", "0.0.0.0"], ["--at", "no host", "203.0.113.5"]),
        (
            &["--peer", &inside, "--behind", "10.99.0.2"],
            ["the daemon would refuse it", "in the tunnel", "help: "],
        ),
        (
            &["--peer", &peer, "--behind", "10.99.0.9", "--address", "10.99.0.9/24"],
            ["the daemon would refuse it", "own address", "help: "],
        ),
    ] {
        let (code, said, line) = init(args);
        assert!(code == Some(2) && parts.iter().all(|part| said.contains(part)), "{args:?}: {said}");
        assert!(!said.contains("-->"), "the file does not exist: {said}");
        assert_eq!(line, "");
    }
    let alone = ["--address", "10.99.0.7/32", "--peer", &peer, "--behind", "10.99.0.1"];
    assert_eq!(init(&alone).0, Some(0), "nobody needs an address of it");
}

#[test]
fn a_directory_is_no_configuration_and_a_name_may_be_where_this_host_is_reached() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["init", "up"] {
        let refused = polypath(dir.path(), &[command, "."]);
        assert!(
            refused.status.code() == Some(2)
                && said(&refused).contains("help: name a file in it, for example ./polypath.toml"),
            "{}",
            said(&refused)
        );
    }
    let init = ["init", "a.toml", "--identity", "x.pem"];
    let named = polypath(dir.path(), &[&init[..], &["--at", "vpn.example.org:7,192.0.2.1"]].concat());
    assert!(String::from_utf8(named.stdout).unwrap().contains("@vpn.example.org:7,192.0.2.1 --behind"));
    let again = polypath(dir.path(), &init);
    assert!(said(&again).contains("`polypath hit FILE` prints the tag"), "{}", said(&again));
}

#[test]
fn an_option_that_an_existing_configuration_does_not_have_is_refused_and_a_running_daemon_is_thought_of() {
    let (dir, _) = host();
    let add = |hit: &str, behind: &str, more: &[&str]| {
        polypath(dir.path(), &[&["init", "a/a.toml", "--peer", hit, "--behind", behind], more].concat())
    };
    for (more, line) in [
        (["--address", "10.99.0.7/24"], "addresses = [\"10.99.0.7/24\"]"),
        (["--assign", "10.98.0.0/24"], "assign = \"10.98.0.0/24\""),
        (["--only", "eth0"], "write include under [paths]"),
    ] {
        let refused = add(PEER, "10.99.0.2/32", &more);
        let parts = ["a/a.toml is there already", line, more[0]];
        assert!(
            refused.status.code() == Some(2) && parts.iter().all(|part| said(&refused).contains(part)),
            "{}",
            said(&refused)
        );
    }
    let added = add(PEER, "10.99.0.2/32", &["--address", "10.99.0.1/24"]);
    assert!(added.status.success(), "it has that address: {}", said(&added));
    assert!(
        said(&added).contains("polypath reload") && said(&added).contains("polypath up"),
        "{}",
        said(&added)
    );
}

#[test]
fn a_key_that_is_missing_is_named_with_the_configuration_and_the_command_that_makes_it() {
    let (dir, _) = host();
    fs::remove_file(dir.path().join("a/x.pem")).unwrap();
    let up = polypath(dir.path(), &["up", "a/a.toml"]);
    let parts = [
        "identity.key: there is no file a/x.pem",
        "--> a/a.toml:",
        "help: put the key back, or make another one: polypath keygen --out a/x.pem",
    ];
    assert!(
        up.status.code() == Some(2) && parts.iter().all(|part| said(&up).contains(part)),
        "{}",
        said(&up)
    );
}

#[test]
fn what_is_written_wrongly_ends_with_2_and_what_cannot_be_read_with_3() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, _) = host();
    let file = dir.path().join("a/a.toml");
    let text = fs::read_to_string(&file).unwrap();
    let up = |change: &dyn Fn(&str) -> String| {
        fs::write(&file, change(&text)).unwrap();
        polypath(dir.path(), &["up", "a/a.toml"])
    };
    let code = |output: &Output| output.status.code();
    assert_eq!(code(&up(&|text| text.replace("[lane]", "[lane"))), Some(2));
    assert_eq!(code(&up(&|text| text.replace("mtu = 1400", "mtu = 14"))), Some(2));
    assert_eq!(code(&up(&|text| text.replace("x.pem", "y.pem"))), Some(2));
    assert_eq!(
        code(&up(&|text| text.replace("# directory = \"/etc/polypath/", "directory = \"/nowhere/"))),
        Some(2)
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(code(&polypath(dir.path(), &["up", "a/a.toml"])), Some(2));
    let lines = polypath(dir.path(), &["log", "-n", "x"]);
    assert!(code(&lines) == Some(2) && said(&lines).contains("write for example 20"), "{}", said(&lines));
    let add = ["--peer", PEER, "--behind", "10.99.0.2/32"];
    assert_eq!(code(&polypath(dir.path(), &[&["init", "a/a.toml"], &add[..]].concat())), Some(2));
    for command in
        [&["up", "a/none.toml"][..], &["reload", "--socket", "none.sock"], &["down", "--socket", "none.sock"]]
    {
        let done = polypath(dir.path(), command);
        assert!(code(&done) == Some(3) && said(&done).contains("help: "), "{command:?}: {}", said(&done));
    }
}

#[test]
fn what_is_in_the_configuration_has_a_line_and_what_would_be_added_has_none() {
    let (dir, _) = host();
    let add = || said(&polypath(dir.path(), &["init", "a/a.toml", "--peer", PEER, "--behind", "10.99.0.1"]));
    let new = add();
    assert!(new.contains("own address") && !new.contains("-->"), "{new}");
    let file = dir.path().join("a/a.toml");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("mtu = 1400", "mtu = 100")).unwrap();
    let old = add();
    assert!(old.contains("tunnel.mtu") && old.contains("--> a/a.toml:"), "{old}");
}
