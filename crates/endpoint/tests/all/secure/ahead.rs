//! Nothing waits for an answer that it does not need: data behind the SYN, and on a path behind the request for it.

use polypath_endpoint::{ListenConfig, PeerEvent, SecurityConfig};
use polypath_transport::{CcConfig, ConnectionConfig};
use polypath_wire::{Duration, Instant};

use super::bed::*;
use super::{LEN, finish};

fn early() -> ConnectionConfig {
    ConnectionConfig { early_data: true, ..ConnectionConfig::default() }
}

/// A connection opened as soon as the association is there, and when that was.
fn begun(configs: [SecurityConfig; 2]) -> (Bed, Instant) {
    let mut bed = Bed::new(configs, [v4, v4]);
    bed.associate();
    bed.run_until_done(Instant::ZERO + Duration::from_secs(1), |bed| {
        bed.events[CLIENT].contains(&PeerEvent::Up)
    });
    bed.send_with(LEN, early());
    let now = bed.now;
    (bed, now)
}

/// When the first data was read, and when the second link had brought more than a probe.
fn first(mut bed: Bed, began: Instant) -> [u64; 2] {
    let end = began + Duration::from_secs(10);
    bed.run_until_done(end, |bed| bed.received > 0);
    let read = bed.now;
    bed.run_until_done(end, |bed| bed.links[1].bytes > 3000);
    let second = bed.now;
    finish(&mut bed, 60);
    let stats = bed.endpoints[SERVER].security_stats().unwrap();
    assert_eq!((stats.refused, stats.unknown_spi, stats.other, stats.unsent), (0, 0, 0, 0), "{stats:?}");
    [read, second].map(|at| at.since(began).as_millis_f64().round() as u64)
}

/// One way is 10 ms on the first link, 20 on the second; a probe and a segment take 3 ms of each at 8 Mbit/s.
#[test]
fn data_is_there_after_one_way_of_each_path() {
    let (bed, began) = begun([today(), today()]);
    let [read, second] = first(bed, began);
    assert!(read <= 14 && second <= 24, "{read} ms, {second} ms");
}

#[test]
fn with_a_peer_that_does_not_know_of_it_everything_takes_its_round_trips() {
    for configs in [[today(), quick()], [quick(), today()]] {
        let (bed, began) = begun(configs);
        let [read, second] = first(bed, began);
        assert!(read >= 30 && second >= 60, "{read} ms, {second} ms");
    }
}

#[test]
fn a_second_path_that_died_after_its_r1_holds_up_nothing_for_long() {
    let (mut bed, began) = begun([today(), today()]);
    bed.links[1].up = false;
    let end = began + Duration::from_secs(20);
    bed.run_until_done(end, |bed| bed.finished);
    assert_eq!(bed.received, LEN);
    let took = bed.now.since(began);
    let alone = {
        let (mut bed, began) = begun([quick(), quick()]);
        bed.links[1].up = false;
        bed.run_until_done(end, |bed| bed.finished);
        bed.now.since(began)
    };
    assert!(took < alone + Duration::from_millis(500), "{took:?}, without a second path {alone:?}");
}

/// The end that answered requests no path. It learns of the second one from what arrives there, and sends on it once the peer has proved its
/// address. Only the first half of the transfer is timed, as the last segments may wait for a time-out.
#[test]
fn the_end_that_answered_fills_its_second_path_as_soon_as_the_peer_is_proved() {
    let took = |config: fn() -> SecurityConfig| {
        let mut bed = Bed::new([config(), config()], [v4, v4]);
        let connection =
            ConnectionConfig { cc: CcConfig::default().of_today(), fail_silent: true, ..early() };
        let listen = ListenConfig { connection: connection.clone(), ..ListenConfig::default() };
        bed.endpoints[SERVER].listen(PORT + 1, listen).unwrap();
        bed.offered = LEN;
        bed.associate();
        bed.run_until_done(Instant::ZERO + Duration::from_secs(1), |bed| {
            bed.events[CLIENT].contains(&PeerEvent::Up)
        });
        let (began, peer) = (bed.now, bed.hit(SERVER));
        bed.client = bed.endpoints[CLIENT].connect_peer(began, connection, peer, PORT + 1).ok();
        let end = began + Duration::from_secs(30);
        bed.run_until_done(end, |bed| bed.fetched >= LEN / 2);
        let half = bed.now.since(began);
        bed.run_until_done(end, |bed| bed.fetched == LEN);
        let stats = bed.endpoints[SERVER].security_stats().unwrap();
        assert_eq!((bed.fetched, stats.unsent), (LEN, 0), "{stats:?}");
        half
    };
    let (ahead, waiting) = (took(today), took(quick));
    assert!(ahead < waiting, "{ahead:?}, where paths wait for answers {waiting:?}");
}
