//! A server with several clients, each in a file of its own.

use std::net::UdpSocket;

use polypath_node::netns::may_create;
use polypath_testing::{installed, skip};
use serde_json::Value;

use super::host::{Host, has_cables, plug, reaches_as, shell, wait};

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
    assert_eq!(server.obey(&back), "", "nothing more to do");
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
    let socket = server.socket();
    let reload = server.run(server.command(&["reload", "--socket", socket.to_str().unwrap()]));
    assert!(reload.status.success(), "{reload:?}");
    wait("a third one", || associated(&server) == 3);
    assert_eq!(std::fs::read_dir(server.dir.path().join("peers.d")).unwrap().count(), 3);
    for (n, client) in clients.iter().enumerate() {
        reaches_as(&format!("10.99.0.{}", n + 2), client, &server);
    }
    takes_no_address_of_another(&server, &clients[1]);
    gets_no_second_file(&server, &clients[1]);
}

/// What a client sends with the address of another one is dropped and counted.
fn takes_no_address_of_another(server: &Host, client: &Host) {
    let say = || {
        shell("ip address add 10.99.0.4/32 dev polypath0");
        let socket = UdpSocket::bind("10.99.0.4:7").unwrap();
        socket.send_to(b"who am I", "10.99.0.1:9").unwrap();
    };
    client.ns.run(say).unwrap();
    wait("a packet that is counted", || status(server)["packets"]["forbidden"].as_u64() >= Some(1));
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
