//! An endpoint given its logged inputs again does what it did, byte for byte and record for record.

#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use polypath_endpoint::frame::encode_datagram;
use polypath_endpoint::{Endpoint, EndpointConfig, Event, ListenConfig, Locators, Outlet, pump};
use polypath_transport::{RecordFilter, Segment};
use polypath_wire::{Duration, Instant, Seed};

use crate::common::{CLIENT, Log, PORT, Pair, SERVER};

/// Everything an endpoint sends, in bytes.
#[derive(Default)]
struct Sent(Vec<(Instant, Locators, Bytes)>);

impl Outlet for Sent {
    fn send(&mut self, now: Instant, locators: &Locators, segment: &mut Box<Segment>) {
        let mut bytes = [0; 2000];
        let len = encode_datagram(segment, &mut bytes).unwrap();
        self.0.push((now, *locators, Bytes::copy_from_slice(&bytes[..len])));
    }
}

fn config() -> EndpointConfig {
    let record = RecordFilter { packets: true, state: true, events: true };
    EndpointConfig { record, ..EndpointConfig::default() }
}

/// The server of a lossy transfer over two paths, and its log. `fate` seeds which segments are lost.
fn run(fate: u64) -> (Pair, Log) {
    let mut pair = Pair::new([EndpointConfig::default(), config()]);
    let listen = ListenConfig { accept_paths: true, ..ListenConfig::default() };
    pair.endpoints[SERVER].listen(PORT, listen).unwrap();
    pair.log = Some(Log::new());
    let mut drawn = 0;
    pair.lose(move |_| {
        drawn += 1;
        Seed(fate).child(&format!("loss/{drawn}")).0.is_multiple_of(20)
    });
    let client = pair.connect(2);
    pair.run(Duration::from_secs(5));
    pair.write(CLIENT, client, 2_000_000);
    pair.close(CLIENT, client);
    pair.run(Duration::from_secs(60));
    let log = pair.log.take().unwrap();
    (pair, log)
}

fn records(endpoint: &mut Endpoint) -> Vec<String> {
    std::iter::from_fn(|| endpoint.poll_record()).map(|record| format!("{record:?}")).collect()
}

#[test]
fn the_log_replays_to_the_same_bytes_and_records() {
    for fate in 0..5 {
        let (mut pair, log) = run(fate);
        let mut again = Endpoint::new(config(), Seed(2));
        let listen = ListenConfig { accept_paths: true, ..ListenConfig::default() };
        again.listen(PORT, listen).unwrap();
        let (mut sent, mut events) = (Sent::default(), Vec::<(_, Event)>::new());
        for entry in log {
            match entry {
                (at, Some(input)) => again.handle(at, input),
                (at, None) => {
                    let _ = pump(&mut again, at, &mut sent);
                    events.extend(std::iter::from_fn(|| again.poll_event()));
                }
            }
        }
        let server = |entry: &&(Instant, usize, Locators, Bytes)| entry.1 == SERVER;
        let before: Vec<_> =
            pair.sent.iter().filter(server).map(|(at, _, l, b)| (*at, *l, b.clone())).collect();
        assert!(before.len() > 500, "fate {fate}: {} segments sent", before.len());
        assert_eq!(sent.0, before, "fate {fate}");
        assert_eq!(events, pair.events[SERVER], "fate {fate}");
        let (now, then) = (records(&mut again), records(&mut pair.endpoints[SERVER]));
        assert!(then.len() > 500);
        assert_eq!(now, then, "fate {fate}");
    }
}
