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
    let parts = ["peer[0].hit: this host's own tag", "a.toml:", "help: "];
    assert!(
        up.status.code() == Some(2) && parts.iter().all(|part| said(&up).contains(part)),
        "{}",
        said(&up)
    );
}
