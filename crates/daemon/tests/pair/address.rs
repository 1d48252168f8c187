//! A server says which address a client has.

use polypath_daemon::control::Answer;

use super::common::{Pair, link, ready};
use super::reload::lists;
use super::tcp::{connected, transfer};

const MB: usize = 1 << 20;

/// The first host has the address that the second one gives it out of a network, and keeps in a file.
fn pair(state: &str) -> Pair {
    let change = |side: usize, text: String| match side {
        0 => {
            let hit = text.split('"').find(|part| part.starts_with("2001:")).unwrap();
            text.replace("addresses = [\"10.99.0.1/24\"]", &format!("addresses_from = \"{hit}\""))
                .replace("prefixes = [\"10.99.0.2/32\"]", "prefixes = [\"10.99.0.0/28\"]")
        }
        _ => {
            let assigned = text.replace("[listen]", "assign = \"10.99.0.0/24\"\n[listen]");
            assigned.replace("prefixes = [\"10.99.0.1/32\"]\n", "") + state
        }
    };
    Pair::start(&[link(80, 5)], change)
}

/// Waits until the first host has that address, and of the two no other one.
fn wait_for(pair: &Pair, address: &str) {
    pair.wait(|pair| {
        let all = lists(&pair.hosts[0], "-4 address show dev polypath0");
        all.matches("inet ").count() == 1 && all.contains(&format!("{address}/32"))
    });
}

#[test]
fn a_client_has_the_address_that_the_server_says_and_another_one_when_it_says_so() {
    if !ready() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut pair = pair(&format!("[daemon]\nstate = {:?}\n", dir.path()));
    wait_for(&pair, "10.99.0.1");
    let kept = std::fs::read_to_string(dir.path().join("leases.json")).unwrap();
    assert!(kept.contains("\"10.99.0.1\""), "{kept}");
    let (client, server) = connected(&pair, 0, 80);
    transfer(client, server, MB);

    let own = |text: &str| text.replace("addresses = []", "addresses = []\nprefixes = [\"10.99.0.9/32\"]");
    assert_eq!(pair.hosts[1].reload(own), Answer::Done);
    wait_for(&pair, "10.99.0.9");
    let (client, server) = connected(&pair, 0, 81);
    transfer(client, server, MB);
    assert_eq!(pair.hosts[1].reload(|text| text.replace("prefixes = [\"10.99.0.9/32\"]", "")), Answer::Done);
    wait_for(&pair, "10.99.0.1");

    // Outside of what is behind the server here.
    let own = |text: &str| text.replace("addresses = []", "addresses = []\nprefixes = [\"10.99.0.77/32\"]");
    assert_eq!(pair.hosts[1].reload(own), Answer::Done);
    pair.wait(|pair| !pair.hosts[1].status().peers[0].paths.is_empty());
    std::thread::sleep(std::time::Duration::from_secs(3));
    wait_for(&pair, "10.99.0.1");
}
