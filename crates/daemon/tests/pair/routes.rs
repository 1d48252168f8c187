//! Routes into the tunnel, and the routes of others.

use polypath_daemon::control::Answer;

use super::common::{Host, Pair, ip, link, on, ready};
use super::reload::{lists, refusal};

/// A pair whose first host has a kill switch and routes a network behind the second.
fn pair() -> Option<Pair> {
    let guarded = on(0, |text| {
        text.replace("[listen]", "kill_switch = true\n[listen]")
            .replace("prefixes = [", "prefixes = [\"10.98.0.0/24\", \"fd00:98::/64\", ")
    });
    ready().then(|| Pair::start(&[link(80, 5)], guarded))
}

/// Its routes into the tunnel, whoever made them.
fn routes(host: &Host) -> Vec<String> {
    let all = ["-4", "-6"].map(|family| lists(host, &format!("{family} route show table all")));
    let of_tunnel = all.iter().flat_map(|all| all.lines()).filter(|line| line.contains("polypath0"));
    let mut all: Vec<_> =
        of_tunnel.map(|line| line.replace("proto kernel scope link", "proto 105")).collect();
    all.sort();
    all
}

#[test]
fn routes_that_somebody_deletes_come_back() {
    let Some(pair) = pair() else { return };
    let host = &pair.hosts[0];
    let before = routes(host);
    for words in [
        &["route", "del", "10.98.0.0/24"][..],
        &["-6", "route", "del", "fd00:98::/64"],
        &["route", "del", "10.99.0.0/24"],
        &["route", "flush", "table", "10500"],
        &["route", "flush", "dev", "polypath0"],
    ] {
        ip(host, words);
        pair.wait(|pair| routes(&pair.hosts[0]) == before);
    }
}

#[test]
fn a_route_of_somebody_else_is_named_and_stays_and_a_worse_one_may_be_there() {
    let Some(mut pair) = pair() else { return };
    let host = &mut pair.hosts[0];
    let device = lists(host, "route get 10.77.0.2")
        .split("dev ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned();
    let uplink = lists(host, &format!("route show dev {device} proto kernel"));
    let uplink = uplink.split_whitespace().next().unwrap().to_owned();
    let said =
        refusal(host.reload(|text| text.replace("prefixes = [", &format!("prefixes = [\"{uplink}\", "))));
    let parts =
        ["polypath.toml:", "peer[0].prefixes[0]: there is", "this host is in that network: leave it out"];
    assert!(parts.iter().all(|part| said.contains(part)) && !said.contains("ip route del"), "{said}");
    for (to, other) in [("10.97.0.0/24", "10.97.0.0/24 via 10.77.0.2"), ("fd00:97::/64", "fd00:97::/64")] {
        let other = format!("{other} dev {device}");
        let words = |verb| [&["route", verb][..], &other.split(' ').collect::<Vec<_>>()].concat();
        let before = routes(host);
        ip(host, &words("add"));
        let add = |text: &str| text.replace("prefixes = [", &format!("prefixes = [\"{to}\", "));
        let said = refusal(host.reload(add));
        let parts = [
            "polypath.toml:",
            "peer[0].prefixes[0]: there is",
            "nothing was changed",
            &format!("`ip route del {other}`"),
        ];
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        let family = if to.contains(':') { "-6 route" } else { "route" };
        assert!(lists(host, family).contains(&other) && routes(host) == before);
        ip(host, &words("del"));
        ip(host, &[&words("add")[..], &["metric", "4000"]].concat());
        assert_eq!(host.reload(add), Answer::Done);
        assert!(lists(host, family).contains(&format!("{to} dev polypath0")));
    }
}
