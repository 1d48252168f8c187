//! R-M/TCP between two daemons: the multi-route option at both ends, at one, or at none.

use std::thread;

use super::common::{Pair, link, ready};
use super::tcp::{connected, transfer};

const MB: usize = 1 << 20;

/// Two daemons over two links; those of `hosts` have R-M/TCP.
fn pair(hosts: &[usize]) -> Pair {
    let change = |side: usize, text: String| match hosts.contains(&side) {
        true => text.replace("[tunnel]\n", "[tunnel]\ntransport = \"rm_tcp\"\n"),
        false => text,
    };
    Pair::start(&[link(80, 5), link(40, 10)], change)
}

/// Sends `len` bytes each way at once on a connection that host `from` opens, and for each host, on how many paths connections have
/// agreed on the option meanwhile.
fn exchange(pair: &Pair, from: usize, len: usize) -> [usize; 2] {
    let (client, server) = connected(pair, from, 80);
    let both = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let there = thread::spawn(move || transfer(client, server, len));
    let back = thread::spawn(move || transfer(both.1, both.0, len));
    let agreed = |side: usize| {
        let paths = &pair.hosts[side].status().peers[0].paths;
        paths.iter().filter(|path| path.load.multi_route > 0).count()
    };
    let mut most = [0; 2];
    while !there.is_finished() || !back.is_finished() {
        (0..2).for_each(|side| most[side] = most[side].max(agreed(side)));
        thread::sleep(std::time::Duration::from_millis(100));
    }
    there.join().unwrap();
    back.join().unwrap();
    most
}

/// What each link carried each way.
fn carried(pair: &Pair) -> Vec<[u64; 2]> {
    pair.bed.paths.iter().map(|path| path.link.stats().hops.each_ref().map(|hop| hop.bytes_left)).collect()
}

#[test]
fn with_rm_tcp_at_both_ends_the_option_is_agreed_and_both_links_carry_the_stream_each_way() {
    if !ready() {
        return;
    }
    let pair = pair(&[0, 1]);
    for from in [0, 1] {
        assert_eq!(exchange(&pair, from, 20 * MB), [2, 2], "opened by {from}");
    }
    for (link, ways) in carried(&pair).iter().enumerate() {
        assert!(ways.iter().all(|bytes| *bytes > 4 * MB as u64), "link {link}: {ways:?}");
    }
}

#[test]
fn without_rm_tcp_at_either_end_the_option_is_in_no_connection() {
    if !ready() {
        return;
    }
    assert_eq!(exchange(&pair(&[]), 0, 5 * MB), [0, 0]);
}

#[test]
fn with_rm_tcp_at_one_end_only_connections_are_plain_and_arrive_whole() {
    if !ready() {
        return;
    }
    for end in [0, 1] {
        let pair = pair(&[end]);
        assert_eq!(exchange(&pair, end, 5 * MB), [0, 0], "opened by {end}, which has it");
        let lesser = carried(&pair).iter().map(|ways| ways.iter().sum::<u64>()).min();
        assert!(lesser < Some(MB as u64), "it stays on the path that it began on: {lesser:?}");
        assert_eq!(exchange(&pair, 1 - end, 5 * MB), [0, 0], "accepted by {end}, which has it");
    }
}
