//! The daemon's page in a real browser.

use std::process::Command as Tool;

use polypath_testing::{excuse, skip};
use serde_json::json;

use super::common::{Pair, ip, link, on, ready};
use super::metrics::SERVED;
use super::tcp::{connected, transfer};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

fn browser() -> Option<&'static str> {
    let is_there = |name: &&str| Tool::new(name).arg("--version").output().is_ok();
    let browser = BROWSERS.into_iter().find(is_there);
    if browser.is_none() {
        skip("a browser shows the page: `tools/deps browser` installs Chromium");
    }
    browser
}

/// What a browser with a window of `width` pixels makes of the page at `url`; `None` if it does not run here.
fn shown(browser: &str, width: u32, url: &str) -> Option<String> {
    let profile = tempfile::tempdir().unwrap();
    let output = Tool::new("timeout")
        .args(["60", browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={width},900"))
        .args(["--dump-dom", url])
        .output()
        .unwrap();
    if !output.status.success() {
        excuse(&format!("a browser shows the page: {browser} does not run here"));
        return None;
    }
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_window_of_1280_pixels_shows_every_column_whole() {
    let Some(browser) = browser() else { return };
    let path = |n: u8| {
        json!({ "local": format!("[2001:db8:1234:5678:9abc:def0:1234:56{n}8]:10500"), "remote": "[2001:db8:8765:4321:fedc:ba98:7654:3218]:10500",
            "up": true, "answers": true, "delay_ms": 612.5, "sent_packets": 1, "sent_bytes": 1, "received_bytes": 1, "marked_packets": 0,
            "load": { "window": 23_456_789, "in_flight": 23_456_789, "again": 0, "rtt_ms": 1234.5, "bottleneck": 12 } })
    };
    let tag = "2001:22:88e0:5362:e35e:1c8f:b38e:ef19";
    let status = json!({ "hit": tag, "device": "polypath-office", "lane": { "open": 1, "outgoing": 1, "incoming": 1, "by_packets": 0 },
        "interfaces": [{ "name": "enx001122334455", "addresses": ["2001:db8:1234:5678:9abc:def0:1234:5618"] }],
        "peers": [{ "name": tag, "hit": tag, "packets": { "waiting": 1_234_567 }, "paths": [path(1), path(2)] }] });
    let page = include_str!("../../src/metrics/page.html");
    let fetched = "await (await fetch(\"/status.json\")).json()";
    assert!(page.contains(fetched));
    let measure = "<script>setTimeout(() => document.body.dataset.right = Math.max(...[...document.querySelectorAll('th, td, canvas')]\
                   .map(one => one.getBoundingClientRect().right)), 1500)</script>";
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("page.html");
    std::fs::write(&file, page.replace(fetched, &status.to_string()) + measure).unwrap();
    let Some(shown) = shown(browser, 1280, &format!("file://{}", file.display())) else { return };
    let right = shown.split("data-right=\"").nth(1).and_then(|rest| rest.split('"').next()).expect(&shown);
    assert_eq!(shown.matches("<canvas").count(), 2, "{shown}");
    assert!(right.parse::<f64>().unwrap() <= 1280.0, "the last column ends at {right} px");
}

#[test]
fn a_browser_shows_each_path_and_what_it_carries() {
    let Some(browser) = browser() else { return };
    if !ready() {
        return;
    }
    let change = on(0, |text| text + "name = \"far\"\n" + SERVED);
    let pair = Pair::start(&[link(80, 5), link(40, 10)], change);
    let host = &pair.hosts[0];
    ip(host, &["link", "set", "lo", "up"]);
    let (client, server) = connected(&pair, 0, 80);
    transfer(client, server, 1 << 20);
    let Some(shown) = host.ns.run(|| shown(browser, 1280, "http://10.99.0.1:9510/")).unwrap() else { return };
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
