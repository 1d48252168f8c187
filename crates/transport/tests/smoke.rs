//! Two connections and a wire between them, in virtual time.

use std::collections::BTreeMap;

use polypath_transport::{Connection, ConnectionConfig, PathConfig, Pattern, Payload, Ports, Segment, State};
use polypath_wire::{Duration, Instant, PathId, Seq};

struct Pair {
    now: Instant,
    ends: [Connection; 2],
    wire: BTreeMap<(Instant, u64), (usize, PathId, Segment)>,
    count: u64,
    delays: Vec<Duration>,
    lose: fn(u64) -> bool,
    got: [u64; 2],
}

impl Pair {
    fn new(config: ConnectionConfig, delays_ms: &[u64], lose: fn(u64) -> bool) -> Self {
        let paths = vec![PathConfig::default(); delays_ms.len()];
        let ports = Ports { local: 1, remote: 2 };
        let mut client =
            Connection::connect(Instant::ZERO, config.clone(), ports, Seq(u32::MAX - 5000), &paths);
        let syn = client.poll_transmit(Instant::ZERO).expect("a SYN");
        let server = Connection::accept(
            Instant::ZERO,
            config,
            Ports { local: 2, remote: 1 },
            Seq(77),
            &paths,
            syn.path,
            &syn.segment,
        );
        let delays = delays_ms.iter().map(|d| Duration::from_millis(*d)).collect();
        Self {
            now: Instant::ZERO,
            ends: [client, server],
            wire: BTreeMap::new(),
            count: 0,
            delays,
            lose,
            got: [0; 2],
        }
    }

    fn pump(&mut self) {
        for i in 0..2 {
            while let Some(chunk) = self.ends[i].read(u64::MAX) {
                let expected = Payload::from(Pattern { key: 9, offset: self.got[i], len: chunk.len() });
                assert!(chunk.same_bytes(&expected), "wrong bytes at {}", self.got[i]);
                self.got[i] += chunk.len();
            }
            while let Some(t) = self.ends[i].poll_transmit(self.now) {
                self.count += 1;
                if !(self.lose)(self.count) {
                    let at = self.now + self.delays[t.path.index()];
                    self.wire.insert((at, self.count), (1 - i, t.path, t.segment));
                }
            }
        }
    }

    /// Runs until nothing is due before `until`.
    fn run(&mut self, until: Instant) {
        loop {
            self.pump();
            let timeouts = self.ends.iter().filter_map(|e| e.poll_timeout());
            let next = timeouts.chain(self.wire.keys().next().map(|k| k.0)).min();
            let Some(next) = next.filter(|n| *n <= until) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.wire.first_entry()
                && entry.key().0 <= self.now
            {
                let (to, path, segment) = entry.remove();
                self.ends[to].handle(self.now, path, segment);
            }
            let now = self.now;
            self.ends.iter_mut().for_each(|e| e.handle_timeout(now));
        }
    }
}

fn transfer(config: ConnectionConfig, delays: &[u64], lose: fn(u64) -> bool, len: u64) -> Pair {
    let mut pair = Pair::new(config, delays, lose);
    pair.ends[0].write(Pattern { key: 9, offset: 0, len }.into());
    pair.ends[0].close();
    pair.run(Instant::from_secs_f64(60.0));
    assert_eq!(pair.got[1], len, "{:#?}", pair.ends[0]);
    pair.ends[1].close();
    pair.run(Instant::from_secs_f64(300.0));
    assert_eq!([pair.ends[0].state(), pair.ends[1].state()], [State::Closed; 2]);
    pair
}

#[test]
fn transfers_on_one_path() {
    let pair = transfer(ConnectionConfig::default(), &[10], |_| false, 3_000_000);
    assert_eq!(pair.ends[0].path_stats(PathId(0)).retransmissions, 0);
}

#[test]
fn transfers_on_two_paths() {
    let pair = transfer(ConnectionConfig::default(), &[10, 35], |_| false, 10_000_000);
    for p in 0..2 {
        assert!(pair.ends[0].path_stats(PathId(p)).bytes_delivered > 1_000_000);
        assert_eq!(pair.ends[0].path_stats(PathId(p)).retransmissions, 0);
    }
}

#[test]
fn survives_loss_with_and_without_sack() {
    for sack in [true, false] {
        for delays in [&[10][..], &[10, 35]] {
            let config = ConnectionConfig { sack, ..Default::default() };
            transfer(config, delays, |n| n % 37 == 5, 1_000_000);
        }
    }
}
