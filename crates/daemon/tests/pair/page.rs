//! The daemon's page in a real browser.

use std::process::Command as Tool;

use polypath_testing::excuse;

use super::common::{Pair, ip, link, ready};
use super::tcp::{connected, transfer};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

#[test]
fn a_browser_shows_each_path_and_what_it_carries() {
    let is_there = |name: &&str| Tool::new(name).arg("--version").output().is_ok();
    let Some(browser) = BROWSERS.into_iter().find(is_there) else {
        return excuse("a browser shows the page: `tools/deps browser` installs Chromium");
    };
    if !ready() {
        return;
    }
    let change = |side: usize, text: String| match side {
        0 => text + "name = \"far\"\n[metrics]\nlisten = \"10.99.0.1:9510\"\nallow_remote = true\n",
        _ => text,
    };
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
    for (row, interface) in rows.iter().zip(host.status().paths().map(|(_, path)| path.local.ip())) {
        assert!(row.contains("<td>far</td>") && row.contains(">up</td>"), "{row}");
        assert!(
            row.contains(&interface.to_string()) && !row.contains("NaN") && !row.contains("undefined"),
            "{row}"
        );
    }
    assert!(shown.contains("1 sent out"), "the connection counts: {shown}");
}
