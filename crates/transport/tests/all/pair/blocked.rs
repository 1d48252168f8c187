//! A connection whose peer is short of memory and takes back what it offered (RFC 9293 §3.8.6).

use polypath_transport::{ConnectionConfig, Observation, RecordFilter};
use polypath_wire::PathId;

use crate::common::{Bed, CLIENT, Pair, SERVER, ms, prompt};

const MEGABYTES: u64 = 30_000_000;

/// Over 10 and 40 ms, both with data under way, when the reader stops.
fn blocked() -> Pair {
    let config =
        ConnectionConfig { fail_silent: true, send_buffer: 8 << 20, receive_buffer: 4 << 20, ..prompt() };
    let mut pair = Pair::open(config, &[10, 40]);
    pair.end(CLIENT).record(RecordFilter { events: true, ..RecordFilter::default() });
    pair.write(CLIENT, MEGABYTES);
    pair.run_for(ms(200));
    let in_flight = [0, 1].map(|path| pair.end(CLIENT).path_stats(PathId(path)).in_flight);
    assert!(in_flight.iter().all(|bytes| *bytes > 10_000), "{in_flight:?}");
    pair.reads[SERVER] = false;
    pair.end(SERVER).limit_memory(10_000);
    pair
}

/// How often the state of a path changed.
fn changes(pair: &mut Pair) -> usize {
    let mut changes = 0;
    while let Some(record) = pair.end(CLIENT).poll_record() {
        changes += usize::from(matches!(record.what, Observation::PathState { .. }));
    }
    changes
}

#[test]
fn what_lies_beyond_the_window_fails_no_path() {
    let mut pair = blocked();
    for _ in 0..60 {
        pair.run_for(ms(1000));
        // As heartbeats below the connection have it.
        let now = pair.now;
        for path in [0, 1].map(PathId) {
            pair.end(CLIENT).path_answered(now, path, ms(20));
        }
    }
    assert!(pair.end(CLIENT).stats().timeouts > 1, "what was dropped goes again");
    assert_eq!(changes(&mut pair), 0);
    pair.reads[SERVER] = true;
    pair.end(SERVER).limit_memory(u64::MAX);
    pair.run_until_received(SERVER, MEGABYTES);
}
