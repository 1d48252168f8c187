//! `polypath keygen`, `pubkey` and `hit` as a user meets them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process;

use assert_cmd::Command;
use polypath_testbed::netns::may_create;
use polypath_testing::{installed, skip};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// The program in an empty home directory.
fn polypath(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polypath"));
    command
        .current_dir(home)
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("SUDO_UID")
        .args(args);
    command
}

fn home() -> TempDir {
    tempdir().expect("a temporary directory")
}

fn output(home: &TempDir, args: &[&str]) -> String {
    let output = polypath(home.path(), args).assert().success().get_output().clone();
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Standard error of a run that ends with `code`, in which the directory is called HOME.
fn error_of(home: &TempDir, args: &[&str], code: i32) -> String {
    let output = polypath(home.path(), args).assert().code(code).get_output().clone();
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    text.replace(home.path().to_str().expect("UTF-8"), "HOME")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn the_default_identity_is_private_and_has_a_name() {
    let home = home();
    let said = output(&home, &["keygen"]);
    let file = home.path().join(".config/polypath/identity.pem");
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().expect("a directory")), 0o700);
    let hit = output(&home, &["hit"]);
    assert!(hit.starts_with("2001:22:"), "suite 2 below 2001:20::/28: {hit}");
    assert!(said.contains(hit.trim()) && said.contains("ecdsa-p384"), "{said}");
    let public = output(&home, &["pubkey"]);
    assert!(public.starts_with("-----BEGIN PUBLIC KEY-----\n"));
    assert_eq!(fs::read_dir(file.parent().expect("a directory")).expect("readable").count(), 1);
}

#[test]
fn asking_for_the_name_of_this_host_makes_its_identity() {
    let home = home();
    let made = polypath(home.path(), &["hit"]).assert().success().get_output().clone();
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(said.contains("made an identity for this host"), "{said}");
    assert_eq!(mode(&home.path().join(".config/polypath/identity.pem")), 0o600);
    let hit = String::from_utf8(made.stdout).expect("UTF-8");
    assert_eq!(output(&home, &["hit"]), hit);
    assert!(output(&home, &["pubkey"]).starts_with("-----BEGIN PUBLIC KEY-----"));
}

#[test]
fn where_a_daemon_has_a_key_of_its_own_asking_for_the_name_says_so() {
    if !may_create() || !installed(&["unshare", "mount"]) {
        return skip("a file system of its own needs root");
    }
    let home = home();
    let ask =
        "mount -t tmpfs none /etc && mkdir /etc/polypath && touch /etc/polypath/identity.pem && exec \"$@\"";
    let mut asked = process::Command::new("unshare");
    asked.args(["--mount", "sh", "-c", ask, "sh", env!("CARGO_BIN_EXE_polypath"), "hit"]);
    let asked = asked.env("HOME", home.path()).env_remove("XDG_CONFIG_HOME").output().unwrap();
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(asked.status.success() && said.contains("polypath hit /etc/polypath/identity.pem"), "{said}");
}

#[test]
fn the_configuration_directory_may_be_elsewhere() {
    let home = home();
    let config = home.path().join("elsewhere");
    polypath(home.path(), &["keygen"]).env("XDG_CONFIG_HOME", &config).assert().success();
    assert_eq!(mode(&config.join("polypath/identity.pem")), 0o600);
}

#[test]
fn every_algorithm_makes_a_key_with_one_name() {
    let home = home();
    for (algorithm, kind) in [("ecdsa-p256", "ecdsa-p256"), ("ecdsa-p384", "ecdsa-p384"), ("rsa-2048", "rsa")]
    {
        let said = output(&home, &["keygen", "--algorithm", algorithm, "--out", algorithm, "--json"]);
        let made: Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!((&made["algorithm"], &made["file"]), (&kind.into(), &algorithm.into()));
        let public: Value =
            serde_json::from_str(&output(&home, &["pubkey", algorithm, "--json"])).expect("JSON");
        let file = home.path().join("public.pem");
        fs::write(&file, public["public_key"].as_str().expect("PEM")).expect("written");
        let hit: Value =
            serde_json::from_str(&output(&home, &["hit", "public.pem", "--json"])).expect("JSON");
        assert_eq!((&made["hit"], &made["hit"]), (&public["hit"], &hit["hit"]));
        assert_eq!(hit["algorithm"], kind);
    }
}

#[test]
fn a_key_is_not_replaced_by_accident() {
    let home = home();
    output(&home, &["keygen", "--out", "key.pem"]);
    let hit = output(&home, &["hit", "key.pem"]);
    insta::assert_snapshot!("key_exists", error_of(&home, &["keygen", "--out", "key.pem"], 2));
    assert_eq!(output(&home, &["hit", "key.pem"]), hit);
    output(&home, &["keygen", "--out", "key.pem", "--force"]);
    assert_ne!(output(&home, &["hit", "key.pem"]), hit);
    assert_eq!(mode(&home.path().join("key.pem")), 0o600);
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let home = home();
    output(&home, &["keygen", "--out", "key.pem"]);
    let file = home.path().join("key.pem");
    for mode in [0o644, 0o640, 0o602, 0o666] {
        fs::set_permissions(&file, Permissions::from_mode(mode)).expect("allowed");
        let text = error_of(&home, &["hit", "key.pem"], 2);
        assert!(text.contains(&format!("{mode:04o}")) && text.contains("chmod 600 key.pem"), "{text}");
    }
    insta::assert_snapshot!("key_open_to_others", error_of(&home, &["pubkey", "key.pem"], 2));
    fs::set_permissions(&file, Permissions::from_mode(0o400)).expect("allowed");
    output(&home, &["hit", "key.pem"]);
}

#[test]
fn a_key_that_another_user_owns_is_refused() {
    let home = home();
    output(&home, &["keygen", "--out", "key.pem"]);
    if std::os::unix::fs::chown(home.path().join("key.pem"), Some(65_534), None).is_err() {
        return polypath_testing::skip("only root gives files away");
    }
    let text = error_of(&home, &["hit", "key.pem"], 2);
    assert!(text.contains("belongs to another user") && text.contains("help: chown root key.pem"), "{text}");
    polypath(home.path(), &["hit", "key.pem"]).env("SUDO_UID", "65534").assert().success();
}

#[test]
fn files_that_are_no_keys_are_told_so() {
    let home = home();
    insta::assert_snapshot!("no_identity", error_of(&home, &["hit", "missing.pem"], 3));
    let write = |name: &str, text: &str| {
        fs::write(home.path().join(name), text).expect("written");
        fs::set_permissions(home.path().join(name), Permissions::from_mode(0o600)).expect("allowed");
    };
    write("text", "not a key\n");
    write("broken", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n");
    write("locked", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    for name in ["text", "broken", "locked"] {
        insta::assert_snapshot!(format!("key_{name}"), error_of(&home, &["hit", name], 2));
    }
    insta::assert_snapshot!("key_directory", error_of(&home, &["hit", "."], 2));
    insta::assert_snapshot!("key_endless", error_of(&home, &["hit", "/dev/zero"], 2));
}

/// Our files are those of other tools, and theirs ours.
#[test]
fn openssl_reads_what_we_write_and_we_what_it_writes() {
    let home = home();
    let openssl = |args: &[&str]| {
        let done = process::Command::new("openssl").args(args).current_dir(home.path()).output();
        done.ok().filter(|o| o.status.success()).map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
    };
    if !polypath_testing::installed(&["openssl"]) {
        return;
    }
    for algorithm in ["ecdsa-p256", "ecdsa-p384", "rsa-2048"] {
        output(&home, &["keygen", "--algorithm", algorithm, "--out", algorithm]);
        let theirs = openssl(&["pkey", "-in", algorithm, "-pubout"]).expect("openssl reads our key");
        assert_eq!(output(&home, &["pubkey", algorithm]), theirs);
    }
    for (n, args) in [
        &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"][..],
        &["ecparam", "-name", "prime256v1", "-genkey", "-noout"][..],
        &["genrsa", "-traditional", "2048"][..],
    ]
    .into_iter()
    .enumerate()
    {
        let file = format!("theirs{n}.pem");
        fs::write(home.path().join(&file), openssl(args).expect("openssl makes a key")).expect("written");
        fs::set_permissions(home.path().join(&file), Permissions::from_mode(0o600)).expect("allowed");
        let theirs = openssl(&["pkey", "-in", &file, "-pubout"]).expect("openssl reads its own key");
        assert_eq!(output(&home, &["pubkey", &file]), theirs);
    }
}
