//! Links that are cut without a word, and peers that were restarted.

use polypath_endpoint::*;
use polypath_transport::{CcConfig, ConnectionConfig, State as TcpState};
use polypath_wire::{Duration, Ecn, Instant};

use super::bed::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn silent() -> ConnectionConfig {
    ConnectionConfig { cc: CcConfig::default().of_today(), fail_silent: true, ..Default::default() }
}

/// An association with both paths up and `len` bytes on their way for two seconds.
fn flowing(len: u64) -> Bed {
    flowing_as(today, len)
}

fn flowing_as(config: fn() -> SecurityConfig, len: u64) -> Bed {
    let mut bed = Bed::established_as(config);
    bed.send_with(len, silent());
    bed.run(MS(2000));
    assert!(bed.received > 0 && !bed.finished);
    bed
}

/// How long until `done`.
fn until(bed: &mut Bed, most: u64, done: impl Fn(&Bed) -> bool) -> Duration {
    let began = bed.now;
    bed.run_until_done(began + MS(most), |bed| done(bed));
    bed.now.since(began)
}

/// The client's paths as connections know them.
fn paths(bed: &Bed) -> Vec<Locators> {
    bed.endpoints[CLIENT].secure_paths().map(|p| p.inner).collect()
}

/// The server's process ends, and another one with its identity begins.
pub fn restart(bed: &mut Bed) {
    restart_at(bed, 2);
}

/// As `restart`, with a clock that starts at `secs` seconds; the first process started at 1 s.
fn restart_at(bed: &mut Bed, secs: u64) {
    let config = EndpointConfig::default();
    bed.endpoints[SERVER] = Endpoint::secure(config, today(), identity(SERVER as u8 + 1), [77; 32], secs);
    bed.endpoints[SERVER].listen(PORT, ListenConfig::default()).unwrap();
    (bed.server, bed.received, bed.finished) = (None, 0, false);
    (0..2).for_each(|link| bed.local(SERVER, link, true));
}

#[test]
fn a_peer_that_was_restarted_is_met_again_within_two_seconds_and_a_half() {
    // Its clock may have been set back.
    for (phase, clock) in [0, 300, 600, 900].into_iter().flat_map(|phase| [(phase, 2), (phase, 0)]) {
        let mut bed = flowing(64 << 20);
        bed.run(MS(phase));
        let handle = bed.client.unwrap();
        restart_at(&mut bed, clock);
        let over = |bed: &Bed| bed.endpoints[CLIENT].connection(handle).unwrap().state() == TcpState::Closed;
        let took = until(&mut bed, 10_000, over);
        assert!(took < MS(2500), "{phase}, {clock}: {took:?}");
        assert!(!bed.events[CLIENT].contains(&PeerEvent::Down), "there is another association at once");
        bed.run(MS(300));
        bed.send(1 << 20);
        let took = until(&mut bed, 10_000, |bed| bed.finished);
        assert!(bed.finished && bed.received == 1 << 20, "{took:?}");
        bed.run(MS(3000));
        assert_eq!(bed.paths_up(), [2, 2]);
    }
}

/// As `send` does: the moment its connection is over, it associates and opens the next one, while paths are asked for.
#[test]
fn after_a_restart_each_path_comes_once_though_the_peer_is_sought_again_meanwhile() {
    for phase in (0..1000).step_by(100) {
        let mut bed = flowing(64 << 20);
        bed.run(MS(phase));
        let handle = bed.client.unwrap();
        bed.wire.links[0].delay = bed.wire.links[1].delay;
        restart(&mut bed);
        bed.events = [Vec::new(), Vec::new()];
        let over = |bed: &Bed| bed.endpoints[CLIENT].connection(handle).unwrap().state() == TcpState::Closed;
        until(&mut bed, 10_000, over);
        bed.associate();
        bed.send_with(1 << 20, silent());
        until(&mut bed, 10_000, |bed| bed.finished);
        bed.run(MS(3000));
        let count =
            |side: usize, kind: fn(&PeerEvent) -> bool| bed.events[side].iter().filter(|e| kind(e)).count();
        let came = |e: &PeerEvent| matches!(e, PeerEvent::PathUp(_));
        let gone = |e: &PeerEvent| matches!(e, PeerEvent::PathDown(_));
        assert_eq!((count(SERVER, came), count(SERVER, gone)), (2, 0), "{phase}: {:?}", bed.events[SERVER]);
        assert_eq!((count(CLIENT, came), count(CLIENT, gone)), (2, 2), "{phase}: {:?}", bed.events[CLIENT]);
    }
}

#[test]
fn a_path_that_ceases_to_pass_packets_is_told_once_and_so_is_its_return_if_only_one_direction_fails_too() {
    let told = |bed: &Bed, side: usize| {
        let count = |kind: fn(&PeerEvent) -> bool| bed.events[side].iter().filter(|e| kind(e)).count();
        [
            count(|e| matches!(e, PeerEvent::PathSilent(_))),
            count(|e| matches!(e, PeerEvent::PathAnswers(_))),
            count(|e| matches!(e, PeerEvent::PathDown(_))),
        ]
    };
    let answering = |bed: &Bed| {
        let of = |side: usize| bed.endpoints[side].secure_paths().filter(|p| p.up && p.answers).count();
        [CLIENT, SERVER].map(of)
    };
    let mut bed = Bed::established_as(today);
    bed.run(MS(3000));
    assert_eq!(answering(&bed), [2, 2]);
    bed.links[1].up = false;
    bed.run(MS(4000));
    assert_eq!(([CLIENT, SERVER].map(|side| told(&bed, side)), answering(&bed)), ([[1, 0, 0]; 2], [1, 1]));
    bed.links[1].up = true;
    bed.run(MS(10_000));
    assert_eq!(([CLIENT, SERVER].map(|side| told(&bed, side)), answering(&bed)), ([[1, 1, 0]; 2], [2, 2]));
    // What the client sends gets lost, and the server's heartbeats arrive all the same.
    bed.lost[CLIENT] = u32::MAX;
    bed.run(MS(10_000));
    assert_eq!(([CLIENT, SERVER].map(|side| told(&bed, side)), answering(&bed)), ([[3, 1, 0]; 2], [0, 0]));
    bed.lost[CLIENT] = 0;
    bed.run(MS(20_000));
    assert_eq!(([CLIENT, SERVER].map(|side| told(&bed, side)), answering(&bed)), ([[3, 3, 0]; 2], [2, 2]));
}

#[test]
fn a_peer_that_was_restarted_elsewhere_is_met_where_it_is_sought() {
    let mut bed = Bed::established_as(today);
    let peer = bed.hit(SERVER);
    for (n, link) in bed.links.iter_mut().enumerate() {
        link.ends[SERVER].set_ip([10, 0, n as u8, 9].into());
    }
    restart(&mut bed);
    bed.run(MS(3000));
    assert!(!bed.endpoints[CLIENT].is_silent(bed.now, peer, MS(4000)), "so far it may be the link");
    bed.run(MS(3000));
    assert!(bed.endpoints[CLIENT].is_silent(bed.now, peer, MS(4000)));
    for _ in 0..2 {
        bed.associate();
        bed.run(MS(5000));
    }
    assert!(!bed.endpoints[CLIENT].is_silent(bed.now, peer, MS(4000)));
    assert_eq!(bed.paths_up(), [2, 2]);
    bed.send(1 << 20);
    until(&mut bed, 10_000, |bed| bed.finished);
    assert!(bed.finished && bed.received == 1 << 20);
}

#[test]
fn a_silent_peer_that_is_sought_where_it_was_keeps_its_association_and_is_asked_within_a_second() {
    let mut bed = Bed::established_as(today);
    let (peer, before) = (bed.hit(SERVER), paths(&bed));
    bed.links.iter_mut().for_each(|l| l.up = false);
    for _ in 0..8 {
        bed.run(MS(5000));
        bed.associate();
    }
    bed.links.iter_mut().for_each(|l| l.up = true);
    assert!(bed.endpoints[CLIENT].is_silent(bed.now, peer, MS(4000)));
    let now = bed.now;
    bed.endpoints[CLIENT].ask(now, peer);
    bed.run(MS(1200));
    assert!(!bed.endpoints[CLIENT].is_silent(bed.now, peer, MS(4000)));
    assert_eq!(paths(&bed), before);
}

/// Nobody can tell silence of all links from a restart: but who answers on an SA has lost nothing.
#[test]
fn a_peer_that_was_only_away_keeps_its_association() {
    for away in [2000, 3100, 5250, 6000, 9750, 10_500, 20_000] {
        let mut bed = flowing(8 << 20);
        let before = paths(&bed);
        bed.links.iter_mut().for_each(|l| l.up = false);
        bed.run(MS(away));
        bed.links.iter_mut().for_each(|l| l.up = true);
        let took = until(&mut bed, 60_000, |bed| bed.finished);
        assert!(bed.finished && bed.received == 8 << 20, "{away}: {took:?}");
        assert_eq!(paths(&bed), before);
    }
}

#[test]
fn a_path_that_was_away_carries_again_within_a_second() {
    let configs: [fn() -> SecurityConfig; 2] = [quick, today];
    for (config, away) in configs.into_iter().flat_map(|c| [2000, 4500, 9000, 31_000].map(|away| (c, away))) {
        let mut bed = flowing_as(config, 128 << 20);
        let before = paths(&bed);
        bed.links[0].up = false;
        bed.run(MS(away));
        assert_eq!(bed.paths_up(), [2, 2], "it may come back");
        let carried = bed.links[0].bytes;
        bed.links[0].up = true;
        bed.run(MS(1000));
        // At 8 Mbit/s it could carry 1 MB; half of it means that it was in use after half the time.
        let carried = bed.links[0].bytes - carried;
        assert!(carried > 500_000, "{away}: {carried}");
        bed.run(MS(5000));
        assert_eq!(paths(&bed), before, "the same paths, whatever their keys");
        assert_eq!(bed.paths_up(), [2, 2]);
    }
}

/// What begins while a path is lost begins on another one.
#[test]
fn a_path_that_dies_without_a_word_holds_no_new_connection_up() {
    for link in [0, 1] {
        let mut bed = flowing(8 << 20);
        bed.links[link].up = false;
        until(&mut bed, 30_000, |bed| bed.finished);
        bed.run(MS(12_000));
        (bed.received, bed.finished) = (0, false);
        bed.send_with(100_000, silent());
        let took = until(&mut bed, 10_000, |bed| bed.received == 100_000);
        assert!(took < MS(700), "{took:?}");
        // And what goes on when the path is back uses it.
        bed.run(MS(1000));
        (bed.received, bed.finished) = (0, false);
        bed.send_with(4 << 20, silent());
        bed.run(MS(500));
        let before = bed.links[link].bytes;
        bed.links[link].up = true;
        until(&mut bed, 30_000, |bed| bed.finished);
        assert!(bed.links[link].bytes > before + (1 << 19), "it is used again");
    }
}

/// An old answer of the peer does not make us begin anew: only our own silence does, and only its R2 ends what is.
#[test]
fn what_was_recorded_of_an_exchange_ends_nothing() {
    let mut bed = flowing(8 << 20);
    let exchange: Vec<Vec<u8>> = bed.seen.iter().filter(|p| p.starts_with(&[0; 4])).cloned().collect();
    let before = paths(&bed);
    bed.links.iter_mut().for_each(|l| l.up = false);
    let stop: Instant = bed.now + MS(6000);
    while bed.now < stop {
        bed.run(MS(100));
        for packet in &exchange {
            let locators = Locators { local: bed.links[0].ends[CLIENT], remote: bed.links[0].ends[SERVER] };
            bed.give(CLIENT, Input::Datagram { locators, ecn: Ecn::None, bytes: packet[..].into() });
        }
    }
    bed.links.iter_mut().for_each(|l| l.up = true);
    until(&mut bed, 60_000, |bed| bed.finished);
    assert!(bed.finished && bed.received == 8 << 20);
    assert_eq!(paths(&bed), before);
}

/// Of a HIP packet that travelled: whether it is an R1.
fn is_r1(packet: &[u8]) -> bool {
    packet.starts_with(&[0; 4]) && packet[4 + 2] & 0x7f == 2
}

/// An attempt to begin anew is given up after half a minute.
fn patient() -> SecurityConfig {
    let mut config = today();
    config.hip.retransmit = polypath_hip::HipConfig::default().retransmit;
    config
}

#[test]
fn forged_answers_in_the_dark_do_not_make_lost_heartbeats_look_like_a_restart() {
    for forged in ["a signature", "an address", "a port", "a receiver"] {
        let mut bed = flowing_as(patient, 4 << 20);
        until(&mut bed, 60_000, |bed| bed.finished);
        bed.run(MS(5000));
        let mut r1 = bed.seen.iter().find(|p| is_r1(p)).unwrap().clone();
        let mut locators = Locators { local: bed.links[0].ends[CLIENT], remote: bed.links[0].ends[SERVER] };
        let last = r1.len() - 9;
        match forged {
            "a signature" => r1[last] ^= 1,
            "an address" => locators.remote.set_ip([10, 9, 9, 9].into()),
            "a port" => locators.remote.set_port(99),
            _ => r1[4 + 39] ^= 1,
        }
        let before = paths(&bed);
        bed.links.iter_mut().for_each(|l| l.up = false);
        let stop: Instant = bed.now + MS(12_000);
        while bed.now < stop {
            bed.run(MS(50));
            bed.give(CLIENT, Input::Datagram { locators, ecn: Ecn::None, bytes: r1[..].into() });
        }
        bed.links.iter_mut().for_each(|l| l.up = true);
        bed.lost = [3; 2];
        bed.run(MS(30_000));
        assert_eq!(bed.paths_up(), [2, 2], "{forged}");
        assert_eq!(paths(&bed), before, "{forged}");
    }
}
