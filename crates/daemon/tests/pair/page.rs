//! The daemon's page in a real browser.

use std::process::Command as Tool;

use polypath_testing::{excuse, skip};

use super::common::{Pair, ip, link, on, ready};
use super::metrics::SERVED;
use super::tcp::{connected, transfer};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

#[test]
fn a_browser_shows_each_path_and_what_it_carries() {
    let is_there = |name: &&str| Tool::new(name).arg("--version").output().is_ok();
    let Some(browser) = BROWSERS.into_iter().find(is_there) else {
        return skip("a browser shows the page: `tools/deps browser` installs Chromium");
    };
    if !ready() {
        return;
    }
    let change = on(0, |text| text + "name = \"far\"\n" + SERVED);
    let pair = Pair::start(&[link(80, 5), link(40, 10)], change);
    let host = &pair.hosts[0];
    ip(host, &["link", "set", "lo", "up"]);
    let (client, server) = connected(&pair, 0, 80);
    transfer(client, server, 1 << 20);
    let profile = tempfile::tempdir().unwrap();
    let user_data = format!("--user-data-dir={}", profile.path().display());
    let args = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", &user_data];
    let output = host
        .ns
        .run(|| {
            Tool::new("timeout")
                .args(["60", browser])
                .args(args)
                .args(["--dump-dom", "http://10.99.0.1:9510/"])
                .output()
        })
        .unwrap()
        .unwrap();
    if !output.status.success() {
        return excuse(&format!("a browser shows the page: {browser} does not run here"));
    }
    let shown = String::from_utf8_lossy(&output.stdout);
    let hit = host.status().hit.to_string();
    assert!(shown.contains(&hit), "status was fetched: {shown}");
    let rows: Vec<&str> = shown.split("<tr>").filter(|row| row.contains("<canvas")).collect();
    assert_eq!(rows.len(), 2, "a row for each path: {shown}");
    let status = host.status();
    for (row, at) in rows.iter().zip(status.paths().map(|(_, path)| path.local.ip())) {
        let cells: Vec<&str> = row.split("<td").skip(1).map(text_of).collect();
        let interface = status.interfaces.iter().find(|one| one.addresses.contains(&at)).unwrap();
        assert_eq!((cells[0], cells[1], cells[3]), ("far", interface.name.as_str(), "up"), "{row}");
        assert!(cells[2].starts_with(&at.to_string()), "{row}");
        let is_number = |text: &str| text.trim_end_matches(" %").parse::<f64>().is_ok();
        let (rtt, again, marked, window, in_flight, queue) = (7, 8, 9, 10, 11, 12);
        for column in [rtt, again, marked, window, in_flight, queue] {
            assert!(is_number(cells[column]), "column {column}: {row}");
        }
        assert!(cells[again].ends_with(" %") && !row.contains("NaN") && !row.contains("undefined"), "{row}");
    }
    assert!(shown.contains("1 from here"), "the connection counts: {shown}");
}

/// The text of a cell, of which `html` is what follows `<td`.
fn text_of(html: &str) -> &str {
    let inside = html.split_once('>').map_or("", |(_, inside)| inside);
    inside.split_once('<').map_or(inside, |(text, _)| text)
}
