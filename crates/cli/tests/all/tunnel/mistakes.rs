//! Mistakes that only the system shows, and what is said of them.

use std::fs::Permissions;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use polypath_testing::installed;

use super::host::{Host, hosts, introduce, lists, reaches, shell, up_both, wait};

#[test]
fn what_a_start_cannot_have_is_told_with_the_remedy() {
    let Some([router, _server]) = hosts() else { return };
    router.init(&[]);
    router.own_socket();
    let config = router.dir.path().join("polypath.toml");
    let right = std::fs::read_to_string(&config).unwrap();
    let metrics = "listen = \"192.0.2.77:9510\"\nallow_remote = true";
    for (from, to, parts) in [
        (
            "name = \"polypath0\"",
            "name = \"eth0\"",
            ["tunnel.name: ", "help: another interface or program has that name"],
        ),
        (
            "# listen = \"127.0.0.1:9510\"",
            metrics,
            ["metrics.listen: 192.0.2.77:9510", "help: name an address of this host"],
        ),
    ] {
        std::fs::write(&config, right.replace(from, to)).unwrap();
        let up = router.run(router.command(&["up", "polypath.toml"]));
        let said = String::from_utf8_lossy(&up.stderr).into_owned();
        let is_said = parts.iter().chain(&["--> polypath.toml:"]).all(|part| said.contains(part));
        assert!(up.status.code() == Some(3) && is_said, "{said}");
    }
    let long = router.run(router.command(&["status", "--socket", &"x".repeat(200)]));
    let said = String::from_utf8_lossy(&long.stderr).into_owned();
    assert!(long.status.code() == Some(3) && said.contains("107 bytes at most"), "{said}");
    let file = router.run(router.command(&["status", "--socket", "polypath.toml"]));
    let said = String::from_utf8_lossy(&file.stderr).into_owned();
    let parts = ["polypath.toml is there, and is no socket", "help: --socket names the daemon's"];
    assert!(file.status.code() == Some(3) && parts.iter().all(|part| said.contains(part)), "{said}");
}

#[test]
fn queues_that_cannot_be_had_are_told_with_their_line() {
    let Some([router, _server]) = hosts() else { return };
    router.init(&[]);
    router.own_socket();
    router.edit(|text| text.replace("queues = 1", "queues = 16"));
    let few = ["sh", "-c", "ulimit -n 20 && exec \"$@\"", "sh"];
    let up = router.run(router.command_under(&few, &["up", "polypath.toml"]));
    let said = String::from_utf8_lossy(&up.stderr).into_owned();
    let parts = ["tunnel.queues: ", "cannot have 16 queues", "--> polypath.toml:", "help: write fewer"];
    assert!(up.status.code() == Some(3) && parts.iter().all(|part| said.contains(part)), "{said}");
    assert!(!lists(&router, "link", "polypath0"));
}

#[test]
fn a_start_without_the_privilege_or_devices_says_so_and_claims_a_kill_switch_only_if_there_is_one() {
    let Some([router, server]) = hosts() else { return };
    if !installed(&["setpriv", "unshare", "mount"]) {
        return;
    }
    let there = server.init(&[]);
    router.obey(&there);
    router.own_socket();
    let lacking = ["setpriv", "--bounding-set=-net_admin"];
    let hidden = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /dev/net && exec \"$@\"", "sh"];
    for (under, kill_switch, stays) in [
        (&lacking[..], false, false),
        (&lacking, true, false),
        (&hidden, false, false),
        (&hidden, true, true),
    ] {
        let set = |to: bool| format!("kill_switch = {to}");
        router.edit(|text| text.replace(&set(!kill_switch), &set(kill_switch)));
        let up = router.run(router.command_under(under, &["up", "polypath.toml"]));
        let said = String::from_utf8_lossy(&up.stderr).into_owned();
        let help = "help: it needs root (CAP_NET_ADMIN)";
        assert!(up.status.code() == Some(3) && said.contains(help), "{under:?} {kill_switch}: {said}");
        let stands = lists(&router, "rule", "unreachable");
        assert_eq!((said.contains("kill switch stays"), stands), (stays, stays), "{under:?}: {said}");
    }
}

#[test]
fn a_directory_of_state_that_cannot_be_used_is_named_with_its_line() {
    let Some([router, _server]) = hosts() else { return };
    router.init(&["--assign", "10.99.0.0/24"]);
    let config = router.dir.path().join("polypath.toml");
    let right = std::fs::read_to_string(&config).unwrap();
    for (name, mode) in [("open", 0o777), ("ours", 0o755)] {
        let dir = router.dir.path().join(name);
        std::fs::create_dir(&dir).unwrap();
        std::fs::set_permissions(dir, Permissions::from_mode(mode)).unwrap();
    }
    for (state, user, status, parts) in [
        ("polypath.toml", "", 2, ["polypath.toml is no directory", "help: name a directory"]),
        ("/proc/none", "", 3, ["/proc/none: ", "help: name a directory"]),
        ("open", "", 2, ["open can be changed by others (mode 0777)", "help: chmod o-w open"]),
        (
            "ours",
            "user = \"nobody\"",
            2,
            ["ours belongs to another user than nobody", "or: chown nobody ours"],
        ),
    ] {
        let line = format!("{user}\nstate = {state:?}");
        std::fs::write(&config, right.replace("# state = \"/var/lib/polypath\"", &line)).unwrap();
        let up = router.run(router.command(&["up", "polypath.toml"]));
        let said = String::from_utf8_lossy(&up.stderr).into_owned();
        let place = ["daemon.state: ", "--> polypath.toml:", &format!("| state = {state:?}")];
        let is_said = parts.iter().chain(&place).all(|part| said.contains(part));
        assert!(up.status.code() == Some(status) && is_said, "{said}");
    }
}

#[test]
fn a_daemon_over_whose_interfaces_nothing_goes_says_so() {
    let Some([mut router, _server]) = hosts() else { return };
    router.init(&[]);
    router.edit(|text| text.replacen("exclude = []", "exclude = [\"eth*\"]", 1));
    router.up();
    wait("an answer", || router.status(&[]).status.success());
    let ask = |what: &str| {
        let done = router.ask(&[what]);
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    let warning = "no interface carries paths: [paths] leaves out all";
    wait("a warning", || ask("log").contains(warning));
    ask("reload");
    wait("another one", || ask("log").matches(warning).count() == 2);
    router.edit(|text| text.replacen("exclude = [\"eth*\"]", "exclude = []", 1));
    ask("reload");
    assert_eq!(ask("log").matches(warning).count(), 2);
    let paths = ask("paths");
    assert!(paths.contains("eth0       no path yet  192.0.2.1"), "{paths}");
    assert!(paths.contains("no path over eth0 yet: there is no peer"), "{paths}");
}

#[test]
fn a_mistyped_interface_does_not_take_the_daemon_off_its_links() {
    let Some([mut router, mut server]) = hosts() else { return };
    let there = server.init(&[]);
    server.obey(&router.obey(&there));
    [&mut server, &mut router].into_iter().for_each(Host::up);
    let paths = || String::from_utf8(router.ask(&["paths"]).stdout).unwrap();
    wait("a path", || paths().contains("eth0       used"));
    for (key, value) in [("include", "eth7"), ("exclude", "eth*")] {
        let (right, wrong) = (format!("{key} = []"), format!("{key} = [{value:?}]"));
        router.edit(|text| text.replacen(&right, &wrong, 1));
        let refused = router.ask(&["reload"]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        let parts = [
            &format!("paths.{key}: "),
            "off all interfaces that carry them now: eth0",
            "help: nothing was changed",
        ];
        assert!(refused.status.code() == Some(2) && parts.iter().all(|part| said.contains(*part)), "{said}");
        assert!(paths().contains("eth0       used"), "{}", paths());
        router.edit(|text| text.replacen(&wrong, &right, 1));
    }
}

#[test]
fn a_daemon_without_an_address_to_call_from_says_so() {
    let Some([mut router, server]) = hosts() else { return };
    let there = server.init(&[]);
    router.obey(&there);
    router.ns.run(|| shell("ip address flush dev eth0")).unwrap();
    router.up();
    let status = || String::from_utf8(router.status(&[]).stdout).unwrap();
    wait("the reason", || status().contains("no interface that may carry paths has a usable address"));
    let paths = router.ask(&["paths"]);
    let paths = String::from_utf8(paths.stdout).unwrap();
    assert!(paths.starts_with("no interface has a usable address"), "{paths}");
}

#[test]
fn the_tunnel_of_one_daemon_carries_no_paths_of_another_unless_it_is_named() {
    let Some([mut router, _server]) = hosts() else { return };
    router.init(&[]);
    router.ns.run(|| shell("ip link add polypath8 type veth peer name far")).unwrap();
    router
        .ns
        .run(|| {
            shell("ip address add 10.97.0.1/24 dev polypath8; ip link set polypath8 up; ip link set far up")
        })
        .unwrap();
    router.up();
    wait("an answer", || router.status(&[]).status.success());
    let ask = |args: &[&str]| {
        let done = router.ask(args);
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    assert!(ask(&["paths"]).contains("polypath8  excluded     10.97.0.1"), "{}", ask(&["paths"]));
    ask(&["paths", "add", "polypath8"]);
    assert!(ask(&["paths"]).contains("polypath8  no path yet  10.97.0.1"));
}

#[test]
fn a_tunnel_that_another_program_renames_is_still_the_tunnel() {
    let Some([mut router, mut server]) = hosts() else { return };
    introduce(&router, &server, &[]);
    up_both(&mut router, &mut server);
    let rename = "ip link set polypath0 down; ip link set polypath0 name wan7; ip link set wan7 up";
    router.ns.run(|| shell(rename)).unwrap();
    wait("its routes", || lists(&router, "route", "dev wan7"));
    std::thread::sleep(Duration::from_secs(5)); // it looks for uplinks every 2 s
    let paths: serde_json::Value = serde_json::from_slice(&router.ask(&["paths", "--json"]).stdout).unwrap();
    let names: Vec<_> =
        paths["interfaces"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!((names, paths["paths"].as_array().unwrap().len()), (vec!["eth0".into()], 1), "{paths}");
    let refused = String::from_utf8(router.ask(&["paths", "add", "wan7"]).stderr).unwrap();
    assert!(refused.contains("wan7 is the tunnel itself"), "{refused}");
    reaches(&router, &server);
    assert!(String::from_utf8(router.status(&[]).stdout).unwrap().contains(" on wan7\n"));
}

#[test]
fn a_route_that_leads_elsewhere_already_is_named_at_the_start() {
    let Some([mut router, server]) = hosts() else { return };
    let there = server.init(&[]);
    router.obey(&format!("{there} --behind 10.98.0.0/24"));
    router.own_socket();
    router.ns.run(|| shell("ip route add 10.98.0.0/24 via 192.0.2.2")).unwrap();
    let up = router.run(router.command(&["up", "polypath.toml"]));
    let said = String::from_utf8_lossy(&up.stderr).into_owned();
    let parts = [
        "peer[0].prefixes[1]: there is another route to 10.98.0.0/24",
        "--> polypath.toml:",
        "help: `ip route del 10.98.0.0/24 via 192.0.2.2 dev eth0` removes it",
    ];
    assert!(up.status.code() == Some(3) && parts.iter().all(|part| said.contains(part)), "{said}");
    assert!(lists(&router, "route", "10.98.0.0/24 via 192.0.2.2") && !lists(&router, "link", "polypath0"));
    router.ns.run(|| shell("ip route del 10.98.0.0/24")).unwrap();
    router.up();
    wait("a route", || lists(&router, "route", "10.98.0.0/24 dev polypath0"));
}

#[test]
fn clients_that_are_not_behind_their_peer_do_not_fill_the_log() {
    let Some([mut router, mut server]) = hosts() else { return };
    introduce(&router, &server, &[]);
    up_both(&mut router, &mut server);
    let another = "ip address del 10.99.0.2/24 dev polypath0; ip address add 10.99.0.77/24 dev polypath0";
    router.ns.run(|| shell(another)).unwrap();
    for _ in 0..3 {
        router.ns.run(|| TcpStream::connect("10.99.0.1:9").unwrap_err()).unwrap();
    }
    let status: serde_json::Value = serde_json::from_slice(&server.status(&["--json"]).stdout).unwrap();
    assert_eq!(status["lane"]["forbidden"], 3, "{status}");
    let log = String::from_utf8(server.ask(&["log"]).stdout).unwrap();
    let named =
        log.lines().filter(|line| line.contains("is not behind this peer") && line.contains("10.99.0.77"));
    assert_eq!(named.count(), 1, "{log}");
}
