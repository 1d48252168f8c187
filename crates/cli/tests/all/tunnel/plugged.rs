//! Cables that are plugged in again faster than a daemon looks, or while it cannot look.

use std::process::Command;
use std::thread;
use std::time::Duration;

use polypath_testing::installed;
use serde_json::Value;

use super::host::{Host, hosts, introduce, plug, reaches, shell, up_both, wait};

fn signal(host: &Host, signal: &str) {
    let pid = host.daemon.as_ref().unwrap().id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
}

fn paths_that_work(host: &Host) -> usize {
    let said: Value = serde_json::from_slice(&host.status(&["--json"]).stdout).unwrap_or_default();
    let paths = said["peers"][0]["paths"].as_array().cloned().unwrap_or_default();
    paths.iter().filter(|path| path["up"] == true && path["answers"] == true).count()
}

#[test]
fn another_device_with_the_name_and_the_address_of_the_one_before_carries_a_path() {
    let Some([mut router, mut server]) = hosts() else { return };
    plug([&router, &server], "eth1", "192.0.3");
    introduce(&router, &server, &["--at", "192.0.2.2", "--at", "192.0.3.2"]);
    server.up();
    router.up();
    let both = || paths_that_work(&router) == 2 && paths_that_work(&server) == 2;
    wait("both paths", both);
    signal(&router, "-STOP");
    router.ns.run(|| shell("ip link del eth1")).unwrap();
    plug([&router, &server], "eth1", "192.0.3");
    signal(&router, "-CONT");
    router.ns.run(|| shell("ip link set eth0 down")).unwrap();
    wait("the end of a path", || paths_that_work(&router) == 1);
    reaches(&router, &server);
    router.ns.run(|| shell("ip link set eth0 up")).unwrap();
    wait("both paths again", both);
}

/// Limits the descriptors of a host's daemon.
fn limit(host: &Host, descriptors: u32) {
    let pid = host.daemon.as_ref().unwrap().id();
    let limit = format!("prlimit --pid {pid} --nofile={descriptors}:");
    shell(&limit);
}

#[test]
fn a_daemon_without_descriptors_goes_on_and_uses_another_cable_once_it_has_some() {
    let Some([mut router, mut server]) = hosts() else { return };
    if !installed(&["prlimit"]) {
        return;
    }
    introduce(&router, &server, &["--at", "192.0.2.2", "--at", "192.0.3.2"]);
    up_both(&mut router, &mut server);
    limit(&router, 3);
    plug([&router, &server], "eth1", "192.0.3");
    thread::sleep(Duration::from_secs(5)); // it looks every 2 s
    limit(&router, 1024);
    wait("both paths", || paths_that_work(&router) == 2);
    reaches(&router, &server);
}
