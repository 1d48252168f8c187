//! What the daemon reports over HTTP: metrics for Prometheus, its status as JSON, and a page that shows it.

mod places;
mod prometheus;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::view::View;
use places::Places;

/// The page; it needs nothing else but `/status.json`.
const PAGE: &str = include_str!("metrics/page.html");
/// How long a request and its answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest request, bytes.
const LONGEST: usize = 8192;
/// For each answer: no browser takes it for something else, and no page of others may hold it.
const HEADERS: &str = "Connection: close\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'\r\n";

/// Answers requests until the daemon ends.
pub(crate) async fn serve(listener: TcpListener, view: View) {
    let places = Places::default();
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            sleep(PATIENCE).await;
            continue;
        };
        // Whoever asks too much at a time gets nothing.
        let Some(place) = places.take(from.ip()) else { continue };
        let shown = view.clone();
        view.lane.spawn(async move {
            // Whoever asks and goes away gets nothing.
            let _ = timeout(PATIENCE, answer(stream, &shown)).await;
            drop(place);
        });
    }
}

async fn answer(mut stream: TcpStream, view: &View) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > LONGEST || stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let (status, kind, body) = reply(&String::from_utf8_lossy(&request), view);
    let len = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n{HEADERS}\r\n");
    stream.write_all((head + &body).as_bytes()).await?;
    stream.shutdown().await
}

/// Status line, type and body.
fn reply(request: &str, view: &View) -> (&'static str, &'static str, String) {
    const TEXT: &str = "text/plain; charset=utf-8";
    let mut words = request.split_whitespace();
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = target.split('?').next().unwrap_or("");
    match path {
        _ if method != "GET" => ("405 Method Not Allowed", TEXT, "only GET\n".into()),
        _ if !is_direct(request) => ("403 Forbidden", TEXT, "ask by address, not by name\n".into()),
        "/metrics" => {
            ("200 OK", "text/plain; version=0.0.4; charset=utf-8", prometheus::text(&view.status()))
        }
        "/status.json" => {
            let json = serde_json::to_string(&view.status()).unwrap_or_default();
            ("200 OK", "application/json", json)
        }
        "/" => ("200 OK", "text/html; charset=utf-8", PAGE.into()),
        _ => ("404 Not Found", TEXT, "there are /, /metrics and /status.json\n".into()),
    }
}

/// Whether the host that was asked for is an address or this machine's own name: a page of others whose name leads here
/// must not read what this host's users may.
fn is_direct(request: &str) -> bool {
    let headers = request.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut hosts =
        headers.filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, host)| host.trim());
    hosts.next().is_none_or(|host| {
        let bare = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let is_address =
            host.parse::<SocketAddr>().is_ok() || bare.parse::<IpAddr>().is_ok() || host.starts_with('[');
        is_address || bare == "localhost"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_by_a_name_of_others_is_refused() {
        let asks = |host: &str| is_direct(&format!("GET / HTTP/1.1\r\nAccept: */*\r\nhost: {host}\r\n\r\n"));
        for own in ["127.0.0.1:9510", "127.0.0.1", "localhost:9510", "[::1]:9510", "10.0.0.1"] {
            assert!(asks(own), "{own}");
        }
        for other in ["example.org", "example.org:9510", "127.0.0.1.example.org"] {
            assert!(!asks(other), "{other}");
        }
        assert!(is_direct("GET / HTTP/1.0\r\n\r\n"));
    }
}
