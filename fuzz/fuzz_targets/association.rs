//! Two hosts and a network that does what it likes: any sequence of requests, messages delivered,
//! doubled, lost, changed, cut, forged and late. No panic; no state, path or answer without end.
#![no_main]

use std::net::SocketAddr;
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use polypath_hip::dh::DhGroup;
use polypath_hip::{Event, HipConfig, Host, Identity, KeyKind, Random, Route};
use polypath_wire::{Duration, Instant};

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    Connect { host: bool },
    Close { host: bool },
    AddPath { host: bool, n: u8 },
    RemovePath { host: bool, which: u8 },
    MovePath { host: bool, which: u8, n: u8 },
    Rekey { host: bool, which: u8, new_dh: bool },
    Data { host: bool, which: u8, bytes: u16 },
    /// The message at that place of the queue arrives, and stays if it is to come again.
    Deliver { which: u8, again: bool },
    Lose { which: u8 },
    /// It arrives with a byte changed, cut short, or with something behind it.
    Change { which: u8, at: u16, xor: u8 },
    Cut { which: u8, len: u16 },
    Append { which: u8, tail: &'a [u8] },
    /// Some other bytes arrive, after a header that may pass.
    Forge { host: bool, packet_type: u8, params: &'a [u8] },
    Raw { host: bool, bytes: &'a [u8] },
    Wait { millis: u16 },
    Sleep { seconds: u16 },
    Announce { host: bool, n: u8, all: bool },
}

/// Messages in flight; more are lost.
const MOST_IN_FLIGHT: usize = 64;
const MOST_STEPS: usize = 200;

static PEMS: LazyLock<[String; 2]> = LazyLock::new(|| {
    [1, 2].map(|seed| {
        let identity = Identity::generate(KeyKind::P256, &mut Random::from_seed([seed; 32]));
        identity.and_then(|i| i.to_pem()).expect("a key").to_string()
    })
});

fn address(host: usize, n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, n % 4, host as u8 + 1], 10_500))
}

struct World {
    now: Instant,
    hosts: [Host; 2],
    /// To whom, on which of his routes, what.
    queue: Vec<(usize, Route, Vec<u8>)>,
}

impl World {
    fn new() -> Self {
        let config = HipConfig {
            dh_groups: vec![DhGroup::P256],
            max_paths: 4,
            max_difficulty: 8,
            ..HipConfig::default()
        };
        let host = |n: usize| {
            let identity = Identity::from_pem(&PEMS[n]).expect("we wrote it");
            Host::new(identity, config.clone(), [n as u8; 32], 1, Instant::ZERO)
        };
        Self { now: Instant::ZERO, hosts: [host(0), host(1)], queue: Vec::new() }
    }

    fn arrive(&mut self, to: usize, route: Route, bytes: &[u8]) {
        self.hosts[to].handle(self.now, route, bytes);
        assert!(self.drain() <= 16, "few answers to one message");
    }

    /// Takes what the hosts send; how much it was.
    fn drain(&mut self) -> usize {
        let mut count = 0;
        for from in 0..2 {
            while let Some(sent) = self.hosts[from].poll_transmit() {
                count += 1;
                if self.queue.len() < MOST_IN_FLIGHT {
                    let back = Route { local: sent.route.remote, remote: sent.route.local };
                    self.queue.push((1 - from, back, sent.payload));
                }
            }
            while let Some((_, event)) = self.hosts[from].poll_event() {
                if let Event::SaAdded(sa) = event {
                    assert!(sa.inbound > 255 && sa.keys.outgoing != sa.keys.incoming);
                }
            }
            assert!(self.hosts[from].associations().count() <= 2, "nothing is kept about strangers");
            assert!(self.hosts[from].associations().all(|a| a.paths().len() <= 4));
        }
        count
    }

    fn queued(&self, which: u8) -> Option<(usize, Route, Vec<u8>)> {
        let n = usize::from(which).checked_rem(self.queue.len())?;
        Some(self.queue[n].clone())
    }

    fn take(&mut self, which: u8) -> Option<(usize, Route, Vec<u8>)> {
        let n = usize::from(which).checked_rem(self.queue.len())?;
        Some(self.queue.remove(n))
    }

    fn spi(&self, host: usize, which: u8) -> u32 {
        let peer = self.hosts[1 - host].hit();
        let paths = self.hosts[host].association(peer).map(|a| a.paths()).unwrap_or_default();
        let n = usize::from(which).checked_rem(paths.len());
        n.map_or(u32::from(which), |n| paths[n].inbound)
    }

    fn wait(&mut self, span: Duration) {
        let end = self.now + span;
        for _ in 0..1000 {
            let due = self.hosts.iter().filter_map(Host::poll_timeout).min().filter(|at| *at <= end);
            let Some(due) = due else { break };
            self.now = self.now.max(due);
            self.hosts.iter_mut().for_each(|h| h.handle_timeout(self.now));
            self.drain();
        }
        self.now = end;
    }

    fn step(&mut self, step: &Step<'_>) {
        let (now, hits) = (self.now, [self.hosts[0].hit(), self.hosts[1].hit()]);
        let route = |host: usize, n: u8| Route { local: address(host, n), remote: address(1 - host, n) };
        match *step {
            Step::Connect { host } => {
                let h = usize::from(host);
                self.hosts[h].connect(now, hits[1 - h], vec![route(h, 0)]).expect("a good peer");
            }
            Step::Close { host } => self.hosts[usize::from(host)].close(now, hits[usize::from(!host)]),
            Step::AddPath { host, n } => {
                let h = usize::from(host);
                self.hosts[h].add_path(now, hits[1 - h], route(h, n));
            }
            Step::RemovePath { host, which } => {
                let h = usize::from(host);
                let spi = self.spi(h, which);
                self.hosts[h].remove_path(now, hits[1 - h], spi);
            }
            Step::MovePath { host, which, n } => {
                let h = usize::from(host);
                let spi = self.spi(h, which);
                self.hosts[h].move_path(now, hits[1 - h], spi, route(h, n));
            }
            Step::Rekey { host, which, new_dh } => {
                let h = usize::from(host);
                let spi = self.spi(h, which);
                self.hosts[h].rekey(now, hits[1 - h], spi, new_dh);
            }
            Step::Data { host, which, bytes } => {
                let h = usize::from(host);
                let spi = self.spi(h, which);
                self.hosts[h].on_data(now, hits[1 - h], spi, bytes.into());
                self.hosts[h].may_send(now, hits[1 - h], spi, bytes.into());
            }
            Step::Deliver { which, again } => {
                let message = if again { self.queued(which) } else { self.take(which) };
                if let Some((to, route, bytes)) = message {
                    self.arrive(to, route, &bytes);
                }
            }
            Step::Lose { which } => drop(self.take(which)),
            Step::Change { which, at, xor } => {
                if let Some((to, route, mut bytes)) = self.queued(which) {
                    let at = usize::from(at) % bytes.len();
                    bytes[at] ^= xor;
                    self.arrive(to, route, &bytes);
                }
            }
            Step::Cut { which, len } => {
                if let Some((to, route, bytes)) = self.queued(which) {
                    let len = usize::from(len) % bytes.len();
                    self.arrive(to, route, &bytes[..len]);
                }
            }
            Step::Append { which, tail } => {
                if let Some((to, route, bytes)) = self.queued(which) {
                    self.arrive(to, route, &[&bytes, tail].concat());
                }
            }
            Step::Forge { host, packet_type, params } => {
                let h = usize::from(host);
                let params = &params[..params.len().min(1024) / 8 * 8];
                let header = [59, (4 + params.len() / 8) as u8, packet_type & 0x7f, 0x21, 0, 0, 0, 0];
                let bytes = [&[0; 4], &header[..], &hits[1 - h].0, &hits[h].0, params].concat();
                self.arrive(h, route(h, 0), &bytes);
            }
            Step::Raw { host, bytes } => self.arrive(usize::from(host), route(usize::from(host), 0), bytes),
            Step::Wait { millis } => self.wait(Duration::from_millis(millis.into())),
            Step::Announce { host, n, all } => {
                let h = usize::from(host);
                self.hosts[h].set_addresses((0..n % 4).map(|n| address(h, n).ip()).collect());
                self.hosts[h].announce(now, hits[1 - h], all);
            }
            Step::Sleep { seconds } => self.wait(Duration::from_secs(seconds.into())),
        }
        self.drain();
    }
}

fuzz_target!(|steps: Vec<Step<'_>>| {
    let mut world = World::new();
    for step in steps.iter().take(MOST_STEPS) {
        world.step(step);
    }
});
