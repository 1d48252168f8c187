//! A path that carries less than the connection was told, and a router that says so (RFC 1191).

use polypath_transport::{Connection, ConnectionConfig, PathConfig, Pattern, Ports, Segment};
use polypath_wire::{Duration, Instant, PathId, Seq};

const PATH: PathId = PathId::FIRST;
const DELAY: Duration = Duration::from_millis(10);
/// Payload of a full segment with timestamps before and after the router's message.
const TOLD: u64 = 1448;
const CARRIED: u64 = 1348;

/// What is under way to an end.
enum Arrival {
    Segment(Segment),
    TooBig,
}

#[test]
fn what_was_too_big_goes_again_at_once_in_smaller_pieces() {
    const LEN: u64 = 300_000;
    let (config, paths) = (ConnectionConfig::default(), [PathConfig::default()]);
    let ports = |local, remote| Ports { local, remote };
    let mut a = Connection::connect(Instant::ZERO, config.clone(), ports(1, 2), Seq(1), &paths);
    let syn = a.poll_transmit(Instant::ZERO).expect("a SYN").segment;
    let mut b = Connection::accept(Instant::ZERO, config, ports(2, 1), Seq(9), &paths, PATH, &syn);
    a.write(Pattern { key: 1, offset: 0, len: LEN }.into());
    a.close();

    let (mut now, mut dropped, mut received) = (Instant::ZERO, 0, 0);
    // Both directions have the same delay, so what is sent first arrives first.
    let mut wire: std::collections::VecDeque<(Instant, bool, Arrival)> = Default::default();
    while received < LEN {
        while let Some(t) = a.poll_transmit(now) {
            assert!(t.segment.payload.len() <= TOLD);
            if t.segment.payload.len() > CARRIED {
                dropped += 1;
                wire.push_back((now + DELAY, false, Arrival::TooBig));
            } else {
                wire.push_back((now + DELAY, true, Arrival::Segment(t.segment)));
            }
        }
        while let Some(t) = b.poll_transmit(now) {
            wire.push_back((now + DELAY, false, Arrival::Segment(t.segment)));
        }
        let due = wire.front().map(|w| w.0).into_iter().chain(a.poll_timeout()).chain(b.poll_timeout());
        now = now.max(due.min().expect("something is always due"));
        while wire.front().is_some_and(|w| w.0 <= now) {
            match wire.pop_front().expect("it has a front") {
                (_, true, Arrival::Segment(segment)) => b.handle(now, PATH, segment),
                (_, false, Arrival::Segment(segment)) => a.handle(now, PATH, segment),
                (_, _, Arrival::TooBig) => a.path_mss(now, PATH, 1360),
            }
        }
        a.handle_timeout(now);
        b.handle_timeout(now);
        while let Some(chunk) = b.read(u64::MAX) {
            received += chunk.len();
        }
    }
    assert_eq!(dropped, 10, "the initial window, and nothing after it");
    assert_eq!(a.stats().timeouts, 0);
    assert_eq!(a.stats().fast_recoveries, 0, "it is no congestion");
    // 300 kB in slow start from 10 segments, acknowledged in pairs, and two round trips before it.
    assert!(now < Instant::from_secs_f64(0.3), "{now:?}");
}
