//! What leaves for a peer's prefixes when there is no tunnel.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Output;
use std::thread;
use std::time::{Duration, SystemTime};

use nix::sys::socket::{setsockopt, sockopt::BindToDevice};
use polypath_testing::installed;

use super::host::{Host, hosts, ip, lists, meet, shell, wait};

/// A name server of the Internet: behind the server, and behind the uplink's default route too.
const OUTSIDE: &str = "198.51.100.7";

/// Where a datagram to [`OUTSIDE`] came from, as the server's host sees it; the error if it did not leave.
pub fn asks(router: &Host, server: &Host) -> Result<String, ErrorKind> {
    asks_by(None, router, server)
}

/// The same from a socket that may be bound to an interface.
fn asks_by(interface: Option<&str>, router: &Host, server: &Host) -> Result<String, ErrorKind> {
    let at: SocketAddr = format!("{OUTSIDE}:53").parse().unwrap();
    let outside = server.ns.run(|| UdpSocket::bind(at).unwrap()).unwrap();
    outside.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let send = || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        interface.into_iter().for_each(|name| setsockopt(&socket, BindToDevice, &name.into()).unwrap());
        socket.send_to(b"hello", at)
    };
    router.ns.run(send).unwrap().map_err(|e| e.kind())?;
    let (_, from) = outside.recv_from(&mut [0; 9]).map_err(|e| e.kind())?;
    Ok(from.ip().to_string())
}

/// A router whose default route leads over the cable, and a server through which all its traffic goes. The server's own
/// address is behind that default route.
pub fn through_the_server(kill_switch: bool) -> Option<[Host; 2]> {
    let [router, server] = hosts()?;
    server.ns.run(|| shell("ip address add 203.0.113.5/32 dev eth0; ip link set lo up")).unwrap();
    server.ns.run(|| shell(&format!("ip address add {OUTSIDE}/32 dev lo"))).unwrap();
    router.ns.run(|| shell("ip link set lo up; ip route add default via 192.0.2.2")).unwrap();
    let there = server.init(&["--at", "203.0.113.5"]);
    // A route over an uplink with the same prefix length does not lead into the tunnel.
    router.ns.run(|| shell("ip route add 128.0.0.0/1 via 192.0.2.2 metric 4000")).unwrap();
    let back = router.obey(&format!("{there} --behind 0.0.0.0/0"));
    server.obey(&back);
    router.edit(|text| text.replace("kill_switch = false", &format!("kill_switch = {kill_switch}")));
    Some([router, server])
}

fn up(router: &mut Host, server: &Host) {
    router.up();
    meet(router, server);
}

fn end(host: &mut Host, signal: &str) {
    host.end(signal);
    wait("the end of the device", || {
        host.ns.run(|| !std::fs::exists("/proc/thread-self/net/dev_snmp6/polypath0").unwrap()).unwrap()
    });
}

pub fn rules(host: &Host) -> String {
    ip(host, &["rule"])
}

#[test]
fn nothing_leaves_beside_the_tunnel_when_the_daemon_is_killed_and_all_does_after_an_orderly_end() {
    let Some([mut router, mut server]) = through_the_server(true) else { return };
    let before = rules(&router);
    server.up();
    up(&mut router, &server);
    assert_eq!(asks(&router, &server).as_deref(), Ok("10.99.0.2"), "through the tunnel");
    for signal in ["-KILL", "-TERM"] {
        end(&mut router, signal);
        let refused = asks(&router, &server).unwrap_err();
        let is_told = matches!(refused, ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable);
        assert!(is_told, "after {signal}: {refused}");
        let said = router.status(&[]);
        assert!(String::from_utf8_lossy(&said.stderr).contains("--lift-kill-switch"), "{said:?}");
        // The daemon's own packets leave, though the server's address is among those that nothing else may reach.
        up(&mut router, &server);
        assert_eq!(asks(&router, &server).as_deref(), Ok("10.99.0.2"));
    }
    let down = router.ask(&["down"]);
    assert!(down.status.success(), "{down:?}");
    router.daemon.take().unwrap().wait().unwrap();
    assert_eq!(rules(&router), before);
    assert_eq!(asks(&router, &server).as_deref(), Ok("192.0.2.1"), "as if there were no tunnel");
    up(&mut router, &server);
    end(&mut router, "-KILL");
    let lifted = lift(&router);
    assert!(lifted.status.success(), "{lifted:?}");
    assert_eq!(rules(&router), before);
}

/// With the commands of docs/daemon.md.
#[test]
fn what_is_bound_to_an_uplink_leaves_there_until_a_firewall_stops_it() {
    let Some([mut router, mut server]) = through_the_server(true) else { return };
    if !installed(&["nft"]) {
        return;
    }
    server.up();
    up(&mut router, &server);
    let page = include_str!("../../../../../docs/daemon.md");
    let commands = page.lines().filter(|line| line.starts_with("nft ")).collect::<Vec<_>>().join("\n");
    for signal in [None, Some("-KILL")] {
        signal.into_iter().for_each(|signal| end(&mut router, signal));
        assert_eq!(asks_by(Some("eth0"), &router, &server).as_deref(), Ok("192.0.2.1"));
        router.ns.run(|| shell(&commands)).unwrap();
        assert_eq!(asks_by(Some("eth0"), &router, &server), Err(ErrorKind::PermissionDenied));
        router.ns.run(|| shell("ping -q -c 1 -I eth0 192.0.2.2 > /dev/null")).unwrap();
        if signal.is_some() {
            up(&mut router, &server); // its own packets pass
        }
        router.ns.run(|| shell("nft delete table ip polypath-bound")).unwrap();
    }
}

/// What programs know of name servers (resolv.conf(5), nsswitch.conf(5), gai.conf(5), hosts(5)): each file, and when it became what it is.
fn name_servers() -> [Option<(u64, SystemTime, Vec<u8>)>; 4] {
    ["resolv.conf", "nsswitch.conf", "gai.conf", "hosts"].map(|name| {
        let file = Path::new("/etc").join(name);
        let found = file.metadata().ok()?;
        Some((found.ino(), found.modified().unwrap(), std::fs::read(file).unwrap()))
    })
}

#[test]
fn without_a_kill_switch_all_leaves_as_if_there_were_no_tunnel_and_name_servers_stay_the_same() {
    let Some([mut router, mut server]) = through_the_server(false) else { return };
    let before = name_servers();
    server.up();
    up(&mut router, &server);
    assert_eq!(asks(&router, &server).as_deref(), Ok("10.99.0.2"));
    assert_eq!(name_servers(), before);
    assert!(router.ask(&["down"]).status.success());
    router.daemon.take().unwrap().wait().unwrap();
    assert_eq!(name_servers(), before);
    up(&mut router, &server);
    end(&mut router, "-KILL");
    assert_eq!(asks(&router, &server).as_deref(), Ok("192.0.2.1"));
}

#[test]
fn an_end_that_leaves_a_kill_switch_is_no_success() {
    let Some([router, _server]) = hosts() else { return };
    let daemon = UnixListener::bind(router.socket()).unwrap();
    let ends = thread::spawn(move || {
        let mut asking = daemon.accept().unwrap().0;
        BufReader::new(&asking).read_line(&mut String::new()).unwrap();
        asking.write_all(b"\"ending\"\n").unwrap();
    });
    router.ns.run(|| shell("ip rule add to 10.98.0.0/24 unreachable pref 10501 protocol 105")).unwrap();
    let down = router.ask(&["down"]);
    ends.join().unwrap();
    let said = String::from_utf8_lossy(&down.stderr).into_owned();
    let parts = ["a kill switch stands", "help: `polypath down --lift-kill-switch`"];
    assert!(down.status.code() == Some(1) && parts.iter().all(|part| said.contains(part)), "{said}");
    assert!(lift(&router).status.success() && !rules(&router).contains("10501"));
}

/// `down --lift-kill-switch`, asked at the router's own socket.
fn lift(router: &Host) -> Output {
    router.ask(&["down", "--lift-kill-switch"])
}

#[test]
fn a_daemon_lifts_what_its_configuration_no_longer_names_and_puts_back_what_others_remove() {
    let Some([mut router, _server]) = through_the_server(true) else { return };
    let before = rules(&router);
    router.up();
    wait("rules", || lists(&router, "rule", "to 128.0.0.0/1 unreachable"));
    end(&mut router, "-KILL");
    router.edit(|text| text.replace("0.0.0.0/0", "10.98.0.0/24"));
    router.up();
    wait("an end of the earlier ones", || !lists(&router, "rule", "128.0.0.0/1"));
    let standing = rules(&router);
    assert!(standing.contains("to 10.98.0.0/24 unreachable") && standing.contains("10499"), "{standing}");

    wait("an answer", || router.status(&[]).status.success());
    let lifted = lift(&router);
    assert!(!lifted.status.success(), "a daemon is running");
    assert!(String::from_utf8_lossy(&lifted.stderr).contains("`polypath down` ends it"), "{lifted:?}");
    router.ns.run(|| shell("ip rule del to 10.98.0.0/24 unreachable; ip rule del pref 10499")).unwrap();
    wait("what was removed", || rules(&router) == standing);

    end(&mut router, "-KILL");
    router.edit(|text| text.replace("kill_switch = true", "kill_switch = false"));
    router.up();
    wait("an end of all", || rules(&router) == before);
}
