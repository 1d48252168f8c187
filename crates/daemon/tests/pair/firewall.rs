//! The commands of docs/operations.md, run on a server whose firewall drops everything.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use polypath_node::Clock;
use polypath_testbed::emulated_link::EmulatedLink;
use polypath_testbed::netns::Netns;
use polypath_testbed::tun_end;
use polypath_testing::installed;
use polypath_wire::Seed;

use super::common::{Pair, link, on, ready, sh};

/// A host on the Internet, which knows nothing of the tunnel's addresses.
const OUTSIDE: [&str; 2] = ["198.51.100.1", "198.51.100.2"];

/// The command lines of the page's section `title`.
fn commands(title: &str) -> Vec<String> {
    let page = include_str!("../../../../docs/operations.md");
    let section = page.split("\n## ").find(|section| section.starts_with(title)).unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

/// What a server at `at` in `there` reads from a client in `from`; none: no connection in 2 s.
fn spoken(from: &Netns, there: &Netns, at: SocketAddr) -> Option<(String, IpAddr)> {
    let listener = there.run(|| TcpListener::bind(at)).unwrap().unwrap();
    let client = from.run(|| TcpStream::connect_timeout(&at, Duration::from_secs(2))).unwrap();
    let mut client = client.ok()?;
    client.write_all(b"hello").unwrap();
    drop(client);
    let (mut server, peer) = listener.accept().unwrap();
    server.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut said = String::new();
    server.read_to_string(&mut said).unwrap();
    Some((said, peer.ip()))
}

#[test]
fn the_firewall_lines_of_the_docs_let_through_what_they_say_and_nothing_else() {
    if !ready() || !installed(&["nft", "sysctl"]) {
        return;
    }
    let everything = on(0, |text| {
        text.replace("prefixes = [\"10.99.0.2/32\"]", "prefixes = [\"10.99.0.2/32\", \"198.51.100.0/24\"]")
    });
    let pair = Pair::start(&[link(80, 5), link(40, 10)], everything);
    let [client, server] = [0, 1].map(|side| &pair.hosts[side].ns);
    let outside = Netns::create("outside").unwrap();
    let ends = [(server, OUTSIDE[0]), (&outside, OUTSIDE[1])]
        .map(|(ns, address)| tun_end(ns, "eth0", address.parse().unwrap(), 1500).unwrap());
    let _link = EmulatedLink::start("outside", ends, link(100, 1), Seed(1), Clock::start()).unwrap();
    // Each on a port of its own: SYNs of one that was given up still come.
    let mut ports = 80..;
    let mut at = |address: &str| SocketAddr::new(address.parse().unwrap(), ports.next().unwrap());
    let mut both = || {
        let own = spoken(client, server, at("10.99.0.2"));
        (own, spoken(client, &outside, at(OUTSIDE[1])))
    };
    for line in [
        "nft add table inet filter",
        "nft add chain inet filter input { type filter hook input priority filter; policy drop; }",
        "nft add chain inet filter forward { type filter hook forward priority filter; policy drop; }",
    ] {
        sh(server, line);
    }
    let commands = commands("Firewall and forwarding");
    assert_eq!(commands.len(), 8, "{commands:#?}");
    assert_eq!(both(), (None, None), "the firewall drops the paths");
    let mut run = commands.iter().map(|line| sh(server, &line.replace("10500", "10501")));
    run.next();
    pair.wait(|pair| pair.hosts[0].status().peers[0].paths.iter().all(|path| path.works()));
    assert_eq!(both(), (None, None), "the paths are through, the tunnel's packets are not");
    run.next();
    let hello = |from: &str| Some(("hello".to_owned(), from.parse::<IpAddr>().unwrap()));
    assert_eq!(both(), (hello("10.99.0.1"), None));
    run.for_each(drop);
    assert_eq!(both(), (hello("10.99.0.1"), hello(OUTSIDE[0])), "masqueraded");
}
