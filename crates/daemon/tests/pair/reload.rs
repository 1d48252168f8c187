//! A running daemon gets another configuration, or other interfaces, while connections stand.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command as Tool;
use std::thread;
use std::time::Duration;

use polypath_daemon::control::{Answer, Command};
use polypath_daemon::{PathsChange, Use};

use super::common::{Host, Pair, ip, link, on, ready};
use super::tcp::{connected, transfer};

const MB: usize = 1 << 20;

fn pair() -> Option<Pair> {
    ready().then(|| Pair::start(&[link(80, 5), link(40, 10)], |_, text| text))
}

/// What ip(8) lists.
pub fn lists(host: &Host, what: &str) -> String {
    let mut list = Tool::new("ip");
    list.args(what.split(' ')).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    String::from_utf8(host.ns.run(|| list.output().unwrap()).unwrap().stdout).unwrap()
}

/// The names of the interfaces of a host, in the order of the links.
fn interfaces(host: &Host) -> Vec<String> {
    let mut all = host.status().interfaces;
    all.sort_by_key(|interface| interface.addresses.first().copied());
    all.into_iter().map(|interface| interface.name).collect()
}

/// Interfaces over which paths of a host are up.
fn paths_up(host: &Host) -> usize {
    host.status().peers[0].paths.iter().filter(|path| path.up).count()
}

/// What was not done, and what to do about it.
pub fn refusal(answer: Answer) -> String {
    match answer {
        Answer::Refused { why, help } => format!("{why}; {help}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_interface_whose_quota_is_used_up_is_for_backup_and_what_was_used_is_kept() {
    if !ready() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let state = format!("[daemon]\nstate = {:?}\n", dir.path());
    let mut pair = Pair::start(&[link(80, 5), link(40, 10)], |_, text| text + &state);
    let name = interfaces(&pair.hosts[0])[1].clone();
    let add = |text: &str| format!("{text}[paths]\nquota = {{ {name} = \"1 MB\" }}\n");
    assert_eq!(pair.hosts[0].reload(add), Answer::Done);
    let of =
        |pair: &Pair| pair.hosts[0].status().interfaces.into_iter().find(|one| one.name == name).unwrap();
    assert!(of(&pair).quota.is_some_and(|quota| quota.left > 0));
    // The counters are first looked at.
    pair.wait(|pair| {
        let (client, server) = connected(pair, 0, 80);
        transfer(client, server, 4 * MB);
        of(pair).used == Use::Backup
    });
    pair.wait(|pair| paths_up(&pair.hosts[0]) == 1);
    let (client, server) = connected(&pair, 0, 81);
    transfer(client, server, MB);
    let quota = of(&pair).quota.unwrap();
    assert!(quota.left == 0 && quota.used > quota.bytes, "{quota:?}");
    let file = dir.path().join("quota.json");
    pair.wait(|_| std::fs::read_to_string(&file).is_ok_and(|kept| kept.contains(&name)));
    // Whoever may carry more is used again.
    assert_eq!(pair.hosts[0].reload(|text| text.replace("1 MB", "1 GB")), Answer::Done);
    pair.wait(|pair| paths_up(&pair.hosts[0]) == 2);
}

#[test]
fn another_configuration_takes_effect_and_connections_stay() {
    let Some(mut pair) = pair() else { return };
    let (client, server) = connected(&pair, 0, 80);
    // The second host gets a network behind it. Ports are excluded, among them the port of the open connection.
    ip(&pair.hosts[1], &["address", "add", "10.98.0.1/32", "dev", "lo"]);
    let unreachable = pair.hosts[0].ns.run(|| TcpStream::connect("10.98.0.1:81")).unwrap();
    assert!(unreachable.is_err(), "nothing leads there yet");
    let change = |text: &str| {
        text.replace("prefixes = [", "prefixes = [\"10.98.0.0/24\", ") + "[lane]\nexclude_ports = [80, 82]\n"
    };
    assert_eq!(pair.hosts[0].reload(change), Answer::Done);
    let listener = pair.hosts[1].ns.run(|| TcpListener::bind("10.98.0.1:81").unwrap()).unwrap();
    let new = pair.hosts[0].ns.run(|| TcpStream::connect("10.98.0.1:81").unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    transfer(new, accepted, MB);
    let excluded = connected(&pair, 0, 82);
    transfer(excluded.0, excluded.1, MB);
    transfer(client, server, MB);
    assert_eq!(pair.hosts[0].status().lane.outgoing, 2, "all but the one to port 82");
    // The other way round: what is not there any more is not routed.
    let back = |text: &str| text.replace("\"10.98.0.0/24\", ", "").replace("exclude_ports = [80, 82]", "");
    assert_eq!(pair.hosts[0].reload(back), Answer::Done);
    let unreachable = pair.hosts[0].ns.run(|| TcpStream::connect("10.98.0.1:81")).unwrap();
    assert!(unreachable.is_err(), "nothing leads there any more");
}

#[test]
fn a_peer_that_is_no_longer_named_is_let_go_and_comes_back_when_it_is_named_again() {
    let Some(mut pair) = pair() else { return };
    let all = pair.hosts[1].status().peers[0].hit.to_string();
    let strangers = |text: &str| text.replace(&all, "2001:22:88e0:5362:e35e:1c8f:b38e:ef19");
    assert_eq!(pair.hosts[1].reload(strangers), Answer::Done);
    pair.wait(|pair| !pair.hosts[0].status().peers[0].associated);
    thread::sleep(Duration::from_millis(1500));
    assert!(!pair.hosts[0].status().peers[0].associated, "it calls, and is refused");
    let again = |text: &str| text.replace("2001:22:88e0:5362:e35e:1c8f:b38e:ef19", &all);
    assert_eq!(pair.hosts[1].reload(again), Answer::Done);
    pair.wait(|pair| pair.hosts.iter().all(|host| host.status().peers[0].associated));
    let (client, server) = connected(&pair, 0, 80);
    transfer(client, server, MB);
}

#[test]
fn a_peer_that_is_called_in_vain_is_called_at_its_new_addresses_at_once() {
    let Some(mut pair) = pair() else { return };
    let (here, nowhere) = ("10.77.0.2:", "10.77.0.99:");
    let all = pair.hosts[1].status().peers[0].hit.to_string();
    let nobody = "2001:22:88e0:5362:e35e:1c8f:b38e:ef19";
    let moved = |text: &str| text.replace(here, nowhere).replace(", \"10.77.1.2:", ", \"10.77.1.99:");
    assert_eq!(pair.hosts[0].reload(moved), Answer::Done);
    assert_eq!(pair.hosts[1].reload(|text| text.replace(&all, nobody)), Answer::Done);
    pair.wait(|pair| !pair.hosts[0].status().peers[0].associated);
    assert_eq!(pair.hosts[1].reload(|text| text.replace(nobody, &all)), Answer::Done);
    thread::sleep(Duration::from_secs(4));
    assert!(!pair.hosts[0].status().peers[0].associated, "nobody is there");
    assert_eq!(pair.hosts[0].reload(|text| text.replace(nowhere, here)), Answer::Done);
    thread::sleep(Duration::from_secs(1));
    let peer = &pair.hosts[0].status().peers[0];
    assert!(peer.associated, "called where it was for 15 s: {peer:?}");
}

#[test]
fn what_keeps_up_a_peer_ends_with_it_though_it_is_being_called() {
    let Some(mut pair) = pair() else { return };
    let calling = pair.hosts[0].tasks();
    let hit = pair.hosts[0].status().peers[0].hit.to_string();
    for _ in 0..3 {
        // Nobody at those addresses has that tag: the call lasts long.
        let nobody = |text: &str| text.replace(&hit, "2001:22:88e0:5362:e35e:1c8f:b38e:ef19");
        assert_eq!(pair.hosts[0].reload(nobody), Answer::Done);
        thread::sleep(Duration::from_millis(300));
        let again = |text: &str| text.replace("2001:22:88e0:5362:e35e:1c8f:b38e:ef19", &hit);
        assert_eq!(pair.hosts[0].reload(again), Answer::Done);
    }
    pair.wait(|pair| pair.hosts.iter().all(|host| host.status().peers[0].associated));
    pair.wait(|pair| pair.hosts[0].tasks() <= calling);
}

#[test]
fn what_cannot_change_is_named_and_nothing_changes() {
    let Some(mut pair) = pair() else { return };
    let (client, server) = connected(&pair, 0, 80);
    let other = |text: &str| {
        text.replace("[tunnel]", "[tunnel]\nmtu = 1300")
            .replace("prefixes = [", "prefixes = [\"10.98.0.0/24\", ")
    };
    let said = refusal(pair.hosts[0].reload(other));
    let parts = ["tunnel.mtu cannot change while the daemon runs", "nothing was changed", "polypath down"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    let said = refusal(pair.hosts[0].reload(|text| text.replace("prefixes", "prefixs")));
    assert!(said.contains("did you mean `prefixes`") && said.contains("nothing was changed"), "{said}");
    let routes =
        pair.hosts[0].ns.run(|| std::fs::read_to_string("/proc/thread-self/net/route").unwrap()).unwrap();
    assert!(!routes.contains("0000620A"), "a route to 10.98.0.0: {routes}");
    transfer(client, server, MB);
}

#[test]
fn a_route_that_is_refused_takes_back_those_before_it_and_their_rules() {
    if !ready() {
        return;
    }
    let guarded = |_, text: String| text.replace("[listen]", "kill_switch = true\n[listen]");
    let mut pair = Pair::start(&[link(80, 5)], guarded);
    let off = "/proc/sys/net/ipv6/conf/polypath0/disable_ipv6";
    pair.hosts[0].ns.run(|| std::fs::write(off, "1").unwrap()).unwrap();
    let standing = |pair: &Pair| ["rule", "route show table all"].map(|what| lists(&pair.hosts[0], what));
    let before = standing(&pair);
    assert!(before[0].contains("to 10.99.0.0/24 unreachable"), "{before:?}");
    let other = |text: &str| text.replace("prefixes = [", "prefixes = [\"10.98.0.0/24\", \"fd00:98::/64\", ");
    let said = refusal(pair.hosts[0].reload(other));
    assert!(said.contains("fd00:98::/64") && said.contains("nothing was changed"), "{said}");
    assert_eq!(standing(&pair), before);
}

#[test]
fn rules_of_a_family_that_is_no_longer_named_go_with_its_last_prefix() {
    if !ready() {
        return;
    }
    let both = on(0, |text| {
        text.replace("[listen]", "kill_switch = true\n[listen]")
            .replace("prefixes = [", "prefixes = [\"fd00:98::/64\", ")
    });
    let mut pair = Pair::start(&[link(80, 5)], both);
    let rules =
        |pair: &Pair| ["-4 rule", "-6 rule"].map(|what| lists(&pair.hosts[0], what).contains("10499:"));
    assert_eq!(rules(&pair), [true, true]);
    assert_eq!(pair.hosts[0].reload(|text| text.replace("\"fd00:98::/64\", ", "")), Answer::Done);
    assert_eq!(rules(&pair), [true, false]);
}

#[test]
fn an_interface_goes_and_comes_back_under_a_connection() {
    let Some(pair) = pair() else { return };
    let names = interfaces(&pair.hosts[0]);
    let (client, server) = connected(&pair, 0, 80);
    let ask = |change| pair.hosts[0].ask(Command::Paths(change));
    let sending = thread::spawn(move || transfer(client, server, 30 * MB));
    assert_eq!(ask(PathsChange::Remove(vec![names[0].clone()])), Answer::Done);
    pair.wait(|pair| paths_up(&pair.hosts[0]) == 1);
    assert!(refusal(ask(PathsChange::Remove(vec![names[1].clone()]))).contains("no other interface"));
    let excluded = pair.hosts[0].status().interfaces.into_iter().find(|one| one.name == names[0]);
    assert_eq!(excluded.unwrap().used, Use::Excluded);
    assert_eq!(ask(PathsChange::Add(vec![names[0].clone()])), Answer::Done);
    pair.wait(|pair| paths_up(&pair.hosts[0]) == 2);
    sending.join().unwrap();
    let said = refusal(ask(PathsChange::Add(vec!["eth77".into()])));
    assert!(said.contains("eth77") && said.contains(&names[0]), "{said}");
    assert!(refusal(ask(PathsChange::Add(vec!["polypath0".into()]))).contains("the tunnel itself"));
}

#[test]
fn what_is_not_preferred_carries_what_the_preferred_has_no_room_for() {
    let Some(pair) = pair() else { return };
    let names = interfaces(&pair.hosts[0]);
    let prefer = PathsChange::Prefer(vec![names[1].clone()]);
    assert_eq!(pair.hosts[0].ask(Command::Paths(prefer)), Answer::Done);
    let uses: Vec<Use> = pair.hosts[0].status().interfaces.iter().map(|one| one.used).collect();
    assert_eq!(uses, [Use::Spill, Use::Used], "the quicker link is the dear one");
    // The peer has heard of it.
    thread::sleep(Duration::from_secs(1));
    let carried =
        |way: usize| [0, 1].map(|path: usize| pair.bed.paths[path].link.stats().hops[way].bytes_left);
    let since = |before: [u64; 2], way| std::array::from_fn(|path| carried(way)[path] - before[path]);
    for way in [0, 1] {
        let ends = connected(&pair, 0, 80 + way as u16);
        let (mut from, mut to) = if way == 0 { ends } else { (ends.1, ends.0) };
        let before = carried(way);
        for _ in 0..50 {
            from.write_all(&[1; 20_000]).unwrap();
            to.read_exact(&mut [0; 20_000]).unwrap();
        }
        let [dear, cheap] = since(before, way);
        assert!(cheap > MB as u64 && dear < cheap / 20, "{cheap} and {dear} bytes of little, way {way}");
        let before = carried(way);
        transfer(from, to, 20 * MB);
        let [dear, cheap] = since(before, way);
        assert!(cheap.min(dear) > 5 * MB as u64, "{cheap} and {dear} bytes of much, way {way}");
    }
    // Its far end goes.
    let far = interfaces(&pair.hosts[1]);
    let (client, server) = connected(&pair, 0, 82);
    ip(&pair.hosts[1], &["link", "set", &far[1], "down"]);
    transfer(client, server, 5 * MB);
}

#[test]
fn a_limited_interface_carries_no_more_and_the_rest_goes_over_others() {
    let Some(pair) = pair() else { return };
    let names = interfaces(&pair.hosts[0]);
    let limit = PathsChange::Limit(names[0].clone(), Some("8M".parse().unwrap()));
    assert_eq!(pair.hosts[0].ask(Command::Paths(limit)), Answer::Done);
    let before = pair.bed.paths[0].link.stats().hops[0].bytes_left;
    let (began, shares) = (std::time::Instant::now(), 2);
    let all: Vec<_> = (0..shares).map(|n| connected(&pair, 0, 80 + n)).collect();
    let sending =
        all.into_iter().map(|(client, server)| thread::spawn(move || transfer(client, server, 8 * MB)));
    sending.collect::<Vec<_>>().into_iter().for_each(|one| one.join().unwrap());
    let most = began.elapsed().as_secs_f64() * 1e6 + 100e3;
    let carried = (pair.bed.paths[0].link.stats().hops[0].bytes_left - before) as f64;
    assert!(carried < most && carried > 100e3, "{carried} bytes, at most {most}");
}

#[test]
fn a_peer_that_is_called_at_this_hosts_own_address_is_told_as_such() {
    let Some(mut pair) = pair() else { return };
    let peer = "[[peer]]\nhit = \"2001:22:88e0:5362:e35e:1c8f:b38e:ef19\"\naddresses = [\"10.77.0.1\"]\nprefixes = [\"10.97.0.1/32\"]\n";
    assert_eq!(pair.hosts[0].reload(|text| format!("{text}{peer}")), Answer::Done);
    let told = "10.77.0.1 is this host's own address";
    pair.wait(|pair| {
        let peers = pair.hosts[0].status().peers;
        peers[1].why.as_ref().is_some_and(|why| why.starts_with(told))
    });
}
