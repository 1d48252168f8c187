//! A server with several clients, each in a file of its own.

use std::io;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;

use polypath_testbed::netns::may_create;
use polypath_testing::{installed, skip};
use serde_json::Value;

use super::host::{Host, has_cables, lists, plug, reaches_as, shell, wait};

const NETS: [&str; 3] = ["192.0.2", "198.51.100", "203.0.113"];

/// A server that has a directory of peers, and clients with a cable each.
fn star() -> Option<(Host, Vec<Host>)> {
    if !may_create() {
        skip("network namespaces need root");
        return None;
    }
    if !installed(&["ip", "env"]) {
        return None;
    }
    let server = Host::new("server");
    let clients: Vec<Host> = NETS.iter().map(|net| Host::new(net)).collect();
    for (n, (client, net)) in clients.iter().zip(NETS).enumerate() {
        plug([client, &server], &format!("eth{n}"), net);
    }
    wait("cables", || has_cables(&server, 3) && clients.iter().all(|client| has_cables(client, 1)));
    server.init(&[]);
    server.edit(|text| text.replace("# directory = \"/etc/polypath/peers.d\"", "directory = \"peers.d\""));
    Some((server, clients))
}

/// The client and the server know one another: the server by what the client prints.
fn introduce(server: &Host, client: &Host, n: usize, hit: &str) {
    let (address, there) = (format!("10.99.0.{}/24", n + 2), format!("{hit}@{}.2", NETS[n]));
    let back = client.init(&["--address", &address, "--peer", &there, "--behind", "10.99.0.1/32"]);
    let networks = [" --behind 10.97.1.0/24", " --behind 10.97.0.0/16", ""];
    assert_eq!(server.obey(&(back + networks[n])), "", "nothing more to do");
}

/// What the server says of itself.
fn status(server: &Host) -> Value {
    serde_json::from_slice(&server.status(&["--json"]).stdout).unwrap_or_default()
}

fn associated(server: &Host) -> usize {
    let status = status(server);
    let peers = status["peers"].as_array().cloned().unwrap_or_default();
    peers.iter().filter(|peer| peer["associated"] == true).count()
}

#[test]
fn each_client_has_a_file_and_its_own_addresses_and_one_more_comes_while_the_server_runs() {
    let Some((mut server, mut clients)) = star() else { return };
    let hit = server.run(server.command(&["hit", "identity.pem"]));
    let hit = String::from_utf8(hit.stdout).unwrap();
    introduce(&server, &clients[0], 0, hit.trim());
    introduce(&server, &clients[1], 1, hit.trim());
    server.up();
    clients.iter_mut().take(2).for_each(Host::up);
    wait("two clients", || associated(&server) == 2);
    introduce(&server, &clients[2], 2, hit.trim());
    clients[2].up();
    let reload = server.ask(&["reload"]);
    assert!(reload.status.success(), "{reload:?}");
    wait("a third one", || associated(&server) == 3);
    assert_eq!(std::fs::read_dir(server.dir.path().join("peers.d")).unwrap().count(), 3);
    for (n, client) in clients.iter().enumerate() {
        reaches_as(&format!("10.99.0.{}", n + 2), client, &server);
    }
    for (address, owner) in [("10.99.0.4", &clients[2]), ("10.97.1.1", &clients[0])] {
        takes_no_address_of_another(&server, &clients[1], owner, address);
    }
    gets_no_second_file(&server, &clients[1]);
}

#[test]
fn a_client_that_is_named_by_its_tag_alone_has_the_address_that_the_server_gives_it() {
    let Some((mut server, mut clients)) = star() else { return };
    std::fs::remove_file(server.dir.path().join("polypath.toml")).unwrap();
    let there = server.init(&["--assign", "10.99.0.0/24"]);
    let state = server.dir.path().join("state").display().to_string();
    server.edit(|text| {
        text.replace("# state = \"/var/lib/polypath\"", &format!("state = {state:?}"))
            .replace("# directory = \"/etc/polypath/peers.d\"", "directory = \"peers.d\"")
    });
    for client in &clients {
        let back = client.obey(&there);
        assert!(!back.contains("--behind"), "it does not know its address: {back}");
        assert_eq!(server.obey(&back), "", "nothing more to do");
    }
    server.up();
    clients.iter_mut().for_each(Host::up);
    let has = |client: &Host, n: usize| lists(client, "address", &format!("10.99.0.{n}/32"));
    let given = |client: &Host| (2..5).find(|n| has(client, *n));
    wait("an address of each", || clients.iter().all(|client| given(client).is_some()));
    for client in &clients {
        reaches_as(&format!("10.99.0.{}", given(client).unwrap()), client, &server);
    }
}

/// What a client sends with the address of another one, which a shorter prefix of its own may contain, is dropped and counted.
fn takes_no_address_of_another(server: &Host, client: &Host, owner: &Host, address: &str) {
    let forbidden = || ["packets", "lane"].map(|lane| status(server)[lane]["forbidden"].as_u64());
    let (before, at) = (forbidden().map(Option::unwrap), "10.99.0.1:9");
    let heard = server.ns.run(|| UdpSocket::bind(at).unwrap()).unwrap();
    heard.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let _listens = server.ns.run(|| TcpListener::bind(at).unwrap()).unwrap();
    let say = |what: &[u8]| {
        shell(&format!("ip address replace {address}/32 dev polypath0"));
        UdpSocket::bind((address, 7)).unwrap().send_to(what, at).unwrap();
    };
    let connect = || {
        shell(&format!("ip route replace 10.99.0.1/32 dev polypath0 src {address}"));
        TcpStream::connect(at).unwrap_err().kind()
    };
    client.ns.run(|| say(b"client")).unwrap();
    assert_eq!(client.ns.run(connect).unwrap(), io::ErrorKind::HostUnreachable);
    wait("one of each that is counted", || forbidden() == before.map(|count| Some(count + 1)));
    owner.ns.run(|| say(b"owner")).unwrap();
    let mut said = [0; 16];
    let (len, from) = heard.recv_from(&mut said).unwrap();
    assert_eq!((&said[..len], from.ip().to_string().as_str()), (&b"owner"[..], address));
    client.ns.run(|| shell("ip route del 10.99.0.1/32 dev polypath0")).unwrap();
}

fn gets_no_second_file(server: &Host, client: &Host) {
    let hit = client.run(client.command(&["hit", "identity.pem"]));
    let hit = String::from_utf8(hit.stdout).unwrap();
    let again = ["init", "polypath.toml", "--identity", "identity.pem", "--peer", hit.trim()];
    let again = [&again[..], &["--behind", "10.99.0.9/32"]].concat();
    let refused = server.run(server.command(&again));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("is there already"), "{said}");
}

#[test]
fn init_makes_a_directory_that_the_daemon_takes_whatever_the_umask_is() {
    for umask in ["002", "022", "077"] {
        let dir = tempfile::tempdir().unwrap();
        let run = |line: &str| {
            let line = format!("umask {umask}; exec \"$0\" {line}");
            let mut sh = Command::new("sh");
            sh.args(["-c", &line, env!("CARGO_BIN_EXE_polypath")]).current_dir(dir.path()).output().unwrap()
        };
        let init = "init new/polypath.toml --identity identity.pem";
        assert!(run(init).status.success());
        let file = dir.path().join("new/polypath.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let listed = text.replace("# directory = \"/etc/polypath/peers.d\"", "directory = \"peers.d\"");
        assert_ne!(text, listed);
        std::fs::write(&file, listed).unwrap();
        for n in 1..=2 {
            let done = run(&format!("{init} --peer 2001:22::{n} --behind 10.99.0.{}/32", n + 1));
            assert!(done.status.success(), "umask {umask}: {}", String::from_utf8_lossy(&done.stderr));
        }
    }
}
