//! `polypath check`: what `up` would do with a configuration, and the same mistakes in the same words.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use serde_json::Value;

use super::host::{Host, hosts, introduce, lists, wait};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn check(host: &Host, more: &[&str]) -> Output {
    host.run(host.command(&[&["check", "polypath.toml"], more].concat()))
}

/// A router that does not run, and its server.
fn pair() -> Option<[Host; 2]> {
    let [router, server] = hosts()?;
    introduce(&router, &server, &[]);
    router.own_socket();
    Some([router, server])
}

#[test]
fn what_up_would_do_is_said_and_nothing_is_done() {
    let Some([router, _server]) = pair() else { return };
    router.edit(|text| {
        text.replace("# user = \"polypath\"", "user = \"nobody\"\nstate = \"state\"")
            .replace("include = []", "include = [\"eth0\", \"eht0\"]")
            .replace("quota = {}", "quota = { eth0 = \"5 GB\" }")
            .replace("kill_switch = false", "kill_switch = true")
            .replace("queues = 1", "queues = 4")
    });
    let files = || {
        let names = fs::read_dir(router.dir.path()).unwrap().map(|file| file.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    let before = files();
    let told = check(&router, &[]);
    let text = String::from_utf8(told.stdout.clone()).unwrap();
    for part in [
        "polypath.toml: no mistake found\n",
        "key in identity.pem",
        "polypath0, 10.99.0.2/24, MTU 1400, 4 queues, kill switch\n",
        "interfaces  eth0\n",
        "UDP port    10500\n",
        "becomes nobody\n",
        ": called at 192.0.2.2; behind it: 10.99.0.1/32\n",
    ] {
        assert!(told.status.success() && text.contains(part), "{part}: {text}");
    }
    let warning = "warning: [paths] include: no interface fits \"eht0\" now: did you mean \"eth0\"?\n";
    assert_eq!(said(&told), warning);
    let told = check(&router, &["--json"]);
    let json: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!((&json["user"], &json["port"]), (&"nobody".into(), &10500.into()), "{json}");
    assert_eq!(json["interfaces"][0]["used"], "used", "{json}");
    assert_eq!((json["warnings"].as_array().unwrap().len(), said(&told).as_str()), (1, ""));
    assert_eq!(files(), before);
    assert!(!lists(&router, "link", "polypath0") && !lists(&router, "rule", "unreachable"));
}

#[test]
fn what_up_refuses_is_refused_in_the_same_words_with_the_same_status() {
    let Some([router, _server]) = pair() else { return };
    let (config, key) = (router.dir.path().join("polypath.toml"), router.dir.path().join("identity.pem"));
    let (right, pem) = (fs::read_to_string(&config).unwrap(), fs::read(&key).unwrap());
    let tag = String::from_utf8(router.run(router.command(&["hit", "identity.pem"])).stdout).unwrap();
    let own = format!("[[peer]]\nhit = \"{}\"\nprefixes = [\"10.99.0.7/32\"]\n", tag.trim());
    let socket = format!("socket = {:?}", router.socket());
    let directory = "# directory = \"/etc/polypath/peers.d\"";
    fs::write(router.dir.path().join("file"), "").unwrap();
    let assign = right
        .replace("# assign = \"10.99.0.0/24\"", "assign = \"10.98.0.0/31\"")
        .replace("# state = \"/var/lib/polypath\"", "state = \"state\"")
        + "[[peer]]\nhit = \"2001:22:88e0:5362:e35e:1c8f:b38e:ef19\"\n\
           [[peer]]\nhit = \"2001:22:88e0:5362:e35e:1c8f:b38e:ef20\"\n\
           [[peer]]\nhit = \"2001:22:88e0:5362:e35e:1c8f:b38e:ef21\"\n";
    for (text, status, parts) in [
        (right.replace("mtu = ", "mut = "), 2, ["tunnel.mut: unknown key", "did you mean `mtu`?"]),
        (
            right.replace("identity.pem", "none.pem"),
            2,
            ["identity.key: there is no file none.pem", "needs as `hit`"],
        ),
        (right.clone() + &own, 2, ["this host's own tag", "help: `polypath hit"]),
        (
            right.replace(directory, "directory = \"none.d\""),
            2,
            ["peers.directory: cannot read", "help: mkdir"],
        ),
        (
            right.replace("# user = \"polypath\"", "user = \"none\""),
            2,
            ["daemon.user: there is no user", "adduser"],
        ),
        (
            right.replace("# group = \"polypath-admin\"", "group = \"none\""),
            2,
            ["control.group: there is no", "addgroup"],
        ),
        (
            right.replace(&socket, "socket = \"none/here\""),
            3,
            ["control.socket: ", "help: make its directory"],
        ),
        (right.replace(&socket, "socket = \"file\""), 3, ["is no socket", "help: name another path"]),
        (assign, 2, ["tunnel.assign: 10.98.0.0/31 has no address left", "help: name a larger network"]),
    ] {
        fs::write(&config, text).unwrap();
        let told = both(&router);
        assert!(told.status.code() == Some(status), "{told:?}");
        assert!(
            parts.iter().chain(&["--> polypath.toml:"]).all(|part| said(&told).contains(part)),
            "{}",
            said(&told)
        );
    }
    fs::write(&config, &right).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let told = both(&router);
    let parts = ["identity.key: ", "mode 0644", "chmod 600", "whose tag the peers need"];
    assert!(
        told.status.code() == Some(2) && parts.iter().all(|part| said(&told).contains(part)),
        "{}",
        said(&told)
    );
    assert_eq!(fs::read(&key).unwrap(), pem);
    fs::remove_file(&config).unwrap();
    assert_eq!(both(&router).status.code(), Some(3));
}

/// What `check` says, as `up` does.
fn both(host: &Host) -> Output {
    let (check, up) = (check(host, &[]), host.run(host.command(&["up", "polypath.toml"])));
    assert_eq!((check.status, said(&check)), (up.status, said(&up)));
    check
}

#[test]
fn a_daemon_that_runs_is_left_alone() {
    let Some([mut router, _server]) = pair() else { return };
    router.up();
    wait("an answer", || router.status(&[]).status.success());
    assert!(check(&router, &[]).status.success());
    router.edit(|text| text.replace("mtu = ", "mut = "));
    assert_eq!(check(&router, &[]).status.code(), Some(2));
    assert!(router.status(&[]).status.success());
}
