//! What `polypath reload` says of what it cannot do, or of what may be a mistake.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use super::host::{Host, hosts, wait};

/// A router whose daemon becomes `user`, and what is at the other end of its cable.
fn router(user: Option<&str>) -> Option<[Host; 2]> {
    let [mut router, other] = hosts()?;
    router.init(&[]);
    router.edit(|text| text.replace("# state = \"/var/lib/polypath\"", "state = \"state\""));
    if let Some(user) = user {
        router.edit(|text| text.replace("# user = \"polypath\"", &format!("user = {user:?}")));
        for (file, mode) in [("", 0o755), ("polypath.toml", 0o644)] {
            fs::set_permissions(router.dir.path().join(file), Permissions::from_mode(mode)).unwrap();
        }
    }
    router.up();
    wait("an answer", || router.status(&[]).status.success());
    Some([router, other])
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn tag(host: &Host) -> String {
    String::from_utf8(host.run(host.command(&["hit", "identity.pem"])).stdout).unwrap().trim().to_owned()
}

/// The router has another key.
fn draw(router: &Host) {
    let keygen = router.run(router.command(&["keygen", "--force", "--out", "identity.pem"]));
    assert!(keygen.status.success(), "{}", said(&keygen));
}

#[test]
fn another_key_in_the_key_file_is_refused_with_both_tags() {
    let Some([router, _other]) = router(None) else { return };
    let (key, former) = (router.dir.path().join("identity.pem"), router.dir.path().join("former.pem"));
    let before = tag(&router);
    fs::copy(&key, &former).unwrap();
    draw(&router);
    let now = tag(&router);
    router.edit(|text| text.replace("backup = []", "backup = [\"nope0\"]"));
    let refused = router.ask(&["reload"]);
    let text = said(&refused);
    let parts = [
        "identity.key: ",
        "identity.pem has another key now",
        &now,
        &before,
        "--> polypath.toml:",
        "put the former key back",
        "polypath down",
    ];
    assert!(refused.status.code() == Some(2) && parts.iter().all(|part| text.contains(part)), "{text}");
    let log = String::from_utf8(router.ask(&["log"]).stdout).unwrap();
    assert!(!log.contains("nope0"), "nothing was changed: {log}");
    fs::remove_file(&key).unwrap();
    let done = router.ask(&["reload"]);
    assert!(done.status.success() && said(&done).contains("would not start again"), "{}", said(&done));
    fs::rename(&former, &key).unwrap();
    let done = router.ask(&["reload"]);
    assert!(done.status.success() && !said(&done).contains("key"), "{}", said(&done));
}

#[test]
fn a_key_file_that_the_daemons_user_may_not_read_is_doubted_only_if_it_has_changed() {
    let Some([router, _other]) = router(Some("nobody")) else { return };
    let done = router.ask(&["reload"]);
    assert!(done.status.success() && said(&done).is_empty(), "{}", said(&done));
    let before = tag(&router);
    draw(&router);
    let done = router.ask(&["reload"]);
    let (text, doubt) = (said(&done), "[identity] key: ");
    let parts = [doubt, "was changed after the start", &before, "polypath hit "];
    assert!(done.status.success() && parts.iter().all(|part| text.contains(part)), "{text}");
    let log = String::from_utf8(router.ask(&["log"]).stdout).unwrap();
    assert!(log.contains(doubt), "{log}");
}

#[test]
fn what_paths_names_in_vain_is_said_to_who_asks() {
    let Some([router, _other]) = router(None) else { return };
    router.edit(|text| text.replace("backup = []", "backup = [\"nope0\"]"));
    let done = router.ask(&["reload"]);
    let warning = "warning: [paths] backup: no interface fits \"nope0\" now";
    assert!(done.status.success() && said(&done).contains(warning), "{}", said(&done));
}

#[test]
fn a_first_quota_whose_use_cannot_be_stored_is_refused() {
    let Some([router, _other]) = router(Some("nobody")) else { return };
    router.edit(|text| text.replace("quota = {}", "quota = { eth0 = \"5 GB\" }"));
    let refused = router.ask(&["reload"]);
    let (text, state) = (said(&refused), router.dir.path().join("state"));
    let parts = ["daemon.state: state: Permission denied", "help: nothing was changed"];
    assert!(refused.status.code() == Some(2) && parts.iter().all(|part| text.contains(part)), "{text}");
    fs::create_dir(&state).unwrap();
    std::os::unix::fs::chown(&state, Some(65_534), None).unwrap();
    assert!(router.ask(&["reload"]).status.success());
}
