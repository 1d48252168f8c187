//! What a daemon tells over HTTP.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use polypath_daemon::Status;

use super::common::{Host, Pair, ip, link, on, ready};
use super::tcp::{connected, transfer};

/// The first host's address in the tunnel: loopback is down in a namespace of a test.
const AT: &str = "10.99.0.1:9510";
/// The same in its configuration.
pub const SERVED: &str = "[metrics]\nlisten = \"10.99.0.1:9510\"\nallow_remote = true\n";

/// The head and the body of the answer to `request`.
fn ask(host: &Host, request: &str) -> (String, String) {
    let mut stream = host.ns.run(|| TcpStream::connect(AT).unwrap()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn prometheus_and_browsers_are_told_what_the_paths_carried() {
    if !ready() {
        return;
    }
    let change = on(0, |text| text + "name = \"far\"\n" + SERVED);
    let pair = Pair::start(&[link(80, 5), link(40, 10)], change);
    let (client, server) = connected(&pair, 0, 80);
    transfer(client, server, 10 << 20);
    let host = &pair.hosts[1];
    let (head, body) = ask(host, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9510\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("version=0.0.4"), "{head}");
    let value = |name: &str| {
        let of = |line: &str| Some(line.strip_prefix(name)?.rsplit_once(' ')?.1.parse::<f64>().unwrap());
        body.lines().filter_map(of).sum::<f64>()
    };
    assert_eq!(value("polypath_peer_sent_bytes_total{peer=\"far\"}"), f64::from(10 << 20));
    assert_eq!((value("polypath_path_up{"), value("polypath_connections_total{way=\"out\"}")), (2.0, 1.0));
    for (name, least) in [("delay", 0.015), ("rtt", 0.030)] {
        let told = value(&format!("polypath_path_{name}_seconds{{"));
        assert!(told >= least, "{name} of both paths, idle too: {told}");
    }
    let sent = value("polypath_path_sent_bytes_total{");
    assert!(sent > 10.5e6 && sent < 12.5e6, "with headers: {sent}");
    let (head, body) = ask(host, "GET /status.json HTTP/1.1\r\nHost: localhost:9510\r\n\r\n");
    assert!(head.contains("application/json"), "{head}");
    let told = serde_json::from_str::<Status>(&body).unwrap();
    assert!(told.peers[0].sent > 10 << 20, "the first answer went there too: {told:?}");
    let (_, page) = ask(host, "GET / HTTP/1.1\r\nHost: [::1]:9510\r\n\r\n");
    assert!(page.contains("/status.json") && !page.contains("http://") && !page.contains("https://"));
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"),
        ("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "405"),
        ("GET /etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
    ] {
        assert!(ask(host, request).0.starts_with(&format!("HTTP/1.1 {status}")), "{request}");
    }
}

#[test]
fn an_address_that_holds_its_places_keeps_nobody_else_from_asking() {
    if !ready() {
        return;
    }
    let change = on(0, |text| text + SERVED);
    let pair = Pair::start(&[link(80, 5)], change);
    let open = |side: usize| pair.hosts[side].ns.run(|| TcpStream::connect(AT).unwrap()).unwrap();
    ip(&pair.hosts[0], &["link", "set", "lo", "up"]);
    let held: Vec<_> = (0..8).map(|_| open(1)).collect();
    let mut ninth = open(1);
    // Their places are free again after 5 s.
    ninth.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let read = ninth.read(&mut [0]);
    let is_reset = |e: &io::Error| e.kind() == io::ErrorKind::ConnectionReset;
    assert!(matches!(read, Ok(0)) || read.as_ref().is_err_and(is_reset), "it is closed at once: {read:?}");
    let mut own = open(0);
    own.write_all(b"GET /metrics HTTP/1.1\r\nHost: 10.99.0.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    own.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let mut first = &held[0];
    first.set_nonblocking(true).unwrap();
    let waits = first.read(&mut [0]).unwrap_err();
    assert_eq!(waits.kind(), io::ErrorKind::WouldBlock, "all eight hold their places still");
    drop(held);
}
