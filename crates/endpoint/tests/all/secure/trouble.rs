//! Links that fall silent, move or lose packets at the worst moment: while keys are renewed, or just after darkness.

use polypath_endpoint::*;
use polypath_transport::{CcConfig, ConnectionConfig, State};
use polypath_wire::Duration;

use super::bed::*;

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;
const LEN: u64 = 16 << 20;

/// New keys every few seconds.
fn renewing() -> SecurityConfig {
    SecurityConfig { rekey_after: 2000, ..today() }
}

/// `LEN` bytes on their way on two paths, and none of the keys just renewed.
fn flowing(config: fn() -> SecurityConfig) -> Bed {
    let mut bed = Bed::established_as(config);
    let cc = CcConfig::default().of_today();
    bed.send_with(LEN, ConnectionConfig { cc, fail_silent: true, ..Default::default() });
    bed.run(MS(1000));
    bed
}

/// HIP packets of type UPDATE that left.
fn updates(bed: &Bed) -> usize {
    bed.seen.iter().filter(|p| p.starts_with(&[0; 4]) && p[4 + 2] & 0x7f == 16).count()
}

/// Runs until the request for new keys of a path left, and `more` after it.
fn until_keys_are_renewed(bed: &mut Bed, more: Duration) {
    bed.run(MS(2000));
    let before = updates(bed);
    bed.run_until_done(bed.now + SECS(20), |bed| updates(bed) > before);
    assert!(updates(bed) > before && bed.received < LEN, "no keys were renewed");
    bed.run(more);
}

fn finish(bed: &mut Bed, context: &str) {
    bed.run_until_done(bed.now + SECS(200), |bed| bed.finished);
    assert!(bed.finished && bed.received == LEN, "{context}: {} {:?}", bed.received, bed.events);
    bed.run(SECS(30));
    assert_eq!(bed.paths_up(), [2, 2], "{context}");
    let downs = |e: &&PeerEvent| **e == PeerEvent::Down;
    assert_eq!(bed.events.iter().flatten().filter(downs).count(), 0, "{context}");
}

#[test]
fn a_link_that_is_silent_for_long_while_keys_are_renewed_costs_no_association() {
    for (links, secs, step) in [(&[0][..], 20, 0), (&[1], 20, 15), (&[0, 1], 20, 0), (&[0, 1], 40, 25)] {
        let mut bed = flowing(renewing);
        until_keys_are_renewed(&mut bed, MS(step));
        links.iter().for_each(|link| bed.links[*link].up = false);
        bed.run(SECS(secs));
        links.iter().for_each(|link| bed.links[*link].up = true);
        finish(&mut bed, &format!("{links:?} {secs} {step}"));
    }
}

#[test]
fn an_address_that_changes_while_keys_are_renewed_has_its_path() {
    for (side, link, step) in
        [(CLIENT, 0, 0), (CLIENT, 1, 10), (SERVER, 0, 0), (SERVER, 1, 25), (CLIENT, 0, 45)]
    {
        let mut bed = flowing(renewing);
        until_keys_are_renewed(&mut bed, MS(step));
        bed.local(side, link, false);
        bed.links[link].ends[side] = ([10, 0, link as u8, 100], 10_500).into();
        bed.local(side, link, true);
        finish(&mut bed, &format!("{side} {link} {step}"));
        let at = bed.links[link].ends;
        for side in [CLIENT, SERVER] {
            let on =
                |p: &PathReport| p.up && p.locators.local == at[side] && p.locators.remote == at[1 - side];
            assert!(bed.endpoints[side].secure_paths().any(|p| on(&p)), "{side} {link} {step}");
            assert_eq!(
                bed.endpoints[side].secure_paths().count(),
                2,
                "{side} {link} {step}: nothing is left over"
            );
        }
    }
}

/// The NAT of each of `links` gives the client other ports, which are used once.
fn rebind(bed: &mut Bed, links: &[usize], n: u64) {
    links.iter().for_each(|&link| {
        let port = 4000 + n as u16 * 2 + link as u16;
        bed.links[link].nat = Some(([192, 0, 2, link as u8 + 1], port).into());
    });
}

/// The server has its paths at the ports that the NATs give now, data flows there, and nothing leaves for others.
fn check_ports(bed: &mut Bed, context: &str) {
    let mut now: Vec<_> = bed.links.iter().map(|link| link.nat.unwrap_or(link.ends[CLIENT])).collect();
    let mut known: Vec<_> = bed.endpoints[SERVER].secure_paths().map(|p| p.locators.remote).collect();
    now.sort();
    known.sort();
    assert_eq!(known, now, "{context}");
    let before = [0, 1].map(|link| bed.links[link].bytes);
    (bed.received, bed.finished, bed.astray) = (0, false, [0; 2]);
    bed.send_with(LEN, ConnectionConfig { cc: CcConfig::default().of_today(), ..Default::default() });
    bed.run_until_done(bed.now + SECS(60), |bed| bed.finished);
    assert!(bed.finished && bed.received == LEN, "{context}: {}", bed.received);
    for link in [0, 1] {
        let carried = bed.links[link].bytes - before[link];
        assert!(carried > LEN / 4, "{context}: {carried} bytes on link {link}");
    }
    assert_eq!(bed.astray, [0; 2], "{context}");
}

#[test]
fn nats_that_forget_while_keys_are_renewed_again_and_again_cost_no_association() {
    for (links, apart, often) in [
        (&[0][..], 900, 12),
        (&[0, 1], 6000, 12),
        (&[0, 1], 900, 12),
        (&[0, 1], 1900, 24),
        (&[0, 1], 500, 12),
    ] {
        let mut bed = flowing(|| SecurityConfig { rekey_after: 300, ..today() });
        bed.keeps = false;
        for n in 0..often {
            rebind(&mut bed, links, n);
            bed.run(MS(apart + 137 * (n % 7)));
        }
        let context = format!("{links:?} {apart}");
        finish(&mut bed, &context);
        check_ports(&mut bed, &context);
    }
}

#[test]
fn heartbeats_that_are_lost_after_darkness_do_not_look_like_a_restart() {
    for (secs, lost, idle) in
        [(5, 1, true), (5, 2, true), (5, 1, false), (5, 2, false), (12, 2, true), (12, 3, false)]
    {
        let mut bed = flowing(today);
        if idle {
            bed.run_until_done(bed.now + SECS(60), |bed| bed.received == LEN);
            bed.run(SECS(5));
        }
        let paths = |bed: &Bed| bed.endpoints[CLIENT].secure_paths().map(|p| p.inner).collect::<Vec<_>>();
        let before = paths(&bed);
        bed.links.iter_mut().for_each(|link| link.up = false);
        bed.run(SECS(secs));
        bed.links.iter_mut().for_each(|link| link.up = true);
        bed.lost = [lost; 2];
        finish(&mut bed, &format!("{secs} {lost} {idle}"));
        assert_eq!(paths(&bed), before, "{secs} {lost} {idle}");
    }
}

#[test]
fn a_host_with_too_many_connections_refuses_its_peers_at_once() {
    let mut bed = Bed::established();
    let peer = bed.hit(SERVER);
    let state = |bed: &mut Bed| {
        let opened = bed.endpoints[CLIENT].connect_peer(bed.now, ConnectionConfig::default(), peer, PORT);
        bed.run(MS(200));
        bed.endpoints[CLIENT].connection(opened.unwrap()).unwrap().state()
    };
    bed.endpoints[SERVER].limit_connections(1);
    assert_eq!([0; 2].map(|_| state(&mut bed)), [State::Established, State::Closed]);
    bed.endpoints[SERVER].limit_connections(2);
    assert_eq!(state(&mut bed), State::Established, "there is room for more");
}

#[test]
fn a_link_that_comes_while_a_peer_is_called_in_vain_is_used_at_once() {
    let mut bed = Bed::quick();
    bed.local(CLIENT, 1, false);
    bed.links[0].up = false;
    bed.associate();
    bed.run(MS(800));
    assert_eq!(bed.paths_up(), [0, 0]);
    bed.local(CLIENT, 1, true);
    bed.run(MS(200));
    assert_eq!(bed.paths_up(), [1, 1], "the next try of the call would be at 1500 ms: {:?}", bed.events);
}
