//! No packet is larger than what a link carries, from the beginning or since a moment ago.

use polypath_wire::Duration;

use super::bed::*;
use super::{LEN, finish};

#[test]
fn no_packet_exceeds_the_mtu_and_full_ones_reach_it() {
    let mut bed = Bed::new([quick(), quick()], [v4, v6]);
    bed.associate();
    bed.run(Duration::from_secs(1));
    bed.send(LEN);
    finish(&mut bed, 60);
    let longest = bed.seen.iter().map(Vec::len).max().unwrap();
    assert!((1465..=1472).contains(&longest), "{longest} bytes of UDP payload; IPv4 leaves 1472");
    assert!(bed.links.iter().all(|l| l.bytes > 0), "IPv6 carries too");
}

#[test]
fn a_link_that_is_narrower_than_ours_carries_what_it_can() {
    for (carries, said) in [(1400, true), (1400, false), (1280, false)] {
        let mut bed = Bed::quick();
        bed.links.iter_mut().for_each(|l| l.mtu = Some((carries, said)));
        bed.associate();
        bed.run(Duration::from_millis(500));
        bed.send(LEN);
        finish(&mut bed, 60);
        bed.run(Duration::from_secs(30));
        let longest = bed.seen.iter().map(Vec::len).max().unwrap() as u32 + 28;
        assert!((carries - 20..=carries).contains(&longest), "{longest} of {carries}, {said}");
        let told: Vec<_> = bed.endpoints[CLIENT].secure_paths().map(|p| p.mtu).collect();
        assert!(
            told.iter().all(|mtu| (carries - 20..=carries).contains(mtu)),
            "{told:?} of {carries}, {said}"
        );
        for link in &bed.links {
            assert!(
                (1..=30).contains(&link.too_big),
                "probes only, three of each size: {}, {carries}, {said}",
                link.too_big
            );
        }
        let handle = bed.client.unwrap();
        let stats = bed.endpoints[CLIENT].connection(handle).unwrap().stats();
        assert_eq!(stats.timeouts, 0, "{carries}, {said}: no data was too big");
    }
}

#[test]
fn a_link_that_becomes_narrower_without_a_word_is_noticed() {
    for said in [true, false] {
        let mut bed = Bed::established();
        bed.send(LEN * 2);
        let soon = bed.now + Duration::from_secs(30);
        bed.run_until_done(soon, |bed| bed.received > LEN / 4);
        bed.links.iter_mut().for_each(|l| l.mtu = Some((1300, said)));
        let cut = bed.now;
        bed.run_until_done(cut + Duration::from_secs(60), |bed| bed.finished);
        assert_eq!(bed.received, LEN * 2, "{said}");
        assert!(bed.links.iter().all(|l| l.too_big > 0));
        // 7 MiB over 16 Mbit/s take 4 s; the next probe 5 s, three unanswered ones another 4 s, and slow start.
        let most = if said { 6 } else { 20 };
        assert!(bed.now.since(cut) < Duration::from_secs(most), "{said}: {:?}", bed.now.since(cut));
    }
}
