//! Two days of two hosts in virtual time: addresses change, links fall silent, either host is restarted, and on the other day keys are
//! renewed in each transfer too. A stream and packets go on where they can, a stream is reset and not stuck where they cannot, and
//! nothing grows.
//!
//! `POLYPATH_SOAK_HOURS=24 cargo test -p polypath-endpoint --test all soak` plays whole days; without it an hour of each.
//! `POLYPATH_SOAK_SEED` has other incidents happen; `make soak` plays a day of each of ten.

use polypath_endpoint::*;
use polypath_hip::HipConfig;
use polypath_transport::{CcConfig, ConnectionConfig, Pattern, State};
use polypath_wire::{Duration, Seed};

use super::bed::*;
use super::packets::{carry, packet, send, take};

const SECS: fn(u64) -> Duration = Duration::from_secs;
const ROUND: Duration = Duration::from_secs(300);
const ROUNDS_PER_HOUR: u64 = 12;
/// What the stream carries in a round, bytes.
const LEN: u64 = 1 << 20;
const PACKETS: u64 = 50;
/// How long after an incident no packet is lost any more.
const SETTLED: Duration = Duration::from_secs(30);

/// What happens in the middle of a transfer.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Incident {
    /// The client has another address on a link.
    Address(usize),
    /// Its NAT gives it another one.
    Nat(usize),
    /// Its NATs do on all links.
    Nats,
    /// One link is silent; its duration, s.
    Silence(usize, u64),
    /// All links are silent; for how long, s, and how many packets of each side are lost afterwards.
    Dark(u64, u32),
    /// A host's process ends, and another one begins, by a clock that may have been set.
    Restart(usize),
}

fn incident(chance: u64) -> Incident {
    let (link, some) = ((chance >> 8) as usize % 2, chance >> 16);
    match chance % 8 {
        0 | 1 => Incident::Address(link),
        2 if link == 0 => Incident::Nats,
        2 | 3 => Incident::Nat(link),
        4 | 5 => Incident::Silence(link, 1 + some % 40),
        6 => Incident::Dark(1 + some % 20, (some >> 8) as u32 % 3),
        _ => Incident::Restart(link),
    }
}

/// New keys in each transfer, or never.
fn config(rekeys: bool) -> SecurityConfig {
    let after = SecurityConfig::default().rekey_after;
    let mut config = SecurityConfig { rekey_after: if rekeys { 500 } else { after }, ..today() };
    config.hip.retransmit = HipConfig::default().retransmit;
    config
}

struct Day {
    bed: Bed,
    rekeys: bool,
    round: u64,
    /// What the client wrote into the stream.
    written: u64,
}

impl Day {
    fn begin(rekeys: bool) -> Self {
        let mut bed = Bed::new([config(rekeys), config(rekeys)], [v4, v4]);
        bed.keeps = false;
        (0..2).for_each(|side| carry(&mut bed, side));
        bed.associate();
        bed.run(SECS(2));
        let mut day = Self { bed, rekeys, round: 0, written: 0 };
        day.open();
        day
    }

    /// A new stream.
    fn open(&mut self) {
        let (bed, cc) = (&mut self.bed, CcConfig::default().of_today());
        let config = ConnectionConfig { cc, fail_silent: true, ..Default::default() };
        let peer = bed.hit(SERVER);
        bed.client = Some(bed.endpoints[CLIENT].connect_peer(bed.now, config, peer, PORT).unwrap());
        (bed.received, self.written) = (0, 0);
    }

    fn write(&mut self) {
        let handle = self.bed.client.unwrap();
        let stream = self.bed.endpoints[CLIENT].connection_mut(handle).unwrap();
        stream.write(Pattern { key: KEY, offset: self.written, len: LEN }.into());
        self.written += LEN;
    }

    /// A transfer with an incident in it, then packets, then silence.
    fn round(&mut self) -> Incident {
        let incident = incident(seed().child(&format!("round/{}", self.round)).0);
        let end = self.bed.now + ROUND;
        self.write();
        self.bed.run(Duration::from_millis(300));
        self.happen(incident);
        self.round += 1;
        let whole = self.written;
        self.bed.run_until_done(self.bed.now + SECS(200), |bed| bed.received == whole);
        assert_eq!(self.bed.received, whole, "{}: {incident:?}: {:?}", self.round, self.bed.events);
        self.packets(incident);
        self.bed.run(end.since(self.bed.now));
        self.bed.events = Default::default();
        incident
    }

    fn packets(&mut self, incident: Incident) {
        self.bed.run(SETTLED);
        take(&mut self.bed, 1);
        for number in 0..PACKETS {
            send(&mut self.bed, packet(1, number, 500)).unwrap();
            self.bed.run(Duration::from_millis(10));
        }
        self.bed.run(SECS(1));
        let got = take(&mut self.bed, 1).len() as u64;
        assert!(got >= PACKETS - 2, "{}: {incident:?}: {got} of {PACKETS}", self.round);
    }

    fn happen(&mut self, incident: Incident) {
        let (bed, n) = (&mut self.bed, self.round as u8 % 100);
        match incident {
            Incident::Address(link) => {
                bed.local(CLIENT, link, false);
                bed.links[link].nat = None;
                bed.links[link].ends[CLIENT] = ([10, 0, link as u8, 100 + n], 10_500).into();
                bed.local(CLIENT, link, true);
            }
            Incident::Nat(link) => self.rebind(link),
            Incident::Nats => (0..2).for_each(|link| self.rebind(link)),
            Incident::Silence(link, secs) => {
                bed.links[link].up = false;
                bed.run(SECS(secs));
                bed.links[link].up = true;
            }
            Incident::Dark(secs, lost) => {
                bed.links.iter_mut().for_each(|link| link.up = false);
                bed.run(SECS(secs));
                bed.links.iter_mut().for_each(|link| link.up = true);
                bed.lost = [lost; 2];
            }
            Incident::Restart(side) => self.restart(side),
        }
    }

    fn rebind(&mut self, link: usize) {
        let port = 4000 + self.round as u16 % 100;
        self.bed.links[link].nat = Some(([192, 0, 2, link as u8 + 1], port).into());
    }

    /// The stream cannot be kept: the other side hears of it soon, and a new one works.
    fn restart(&mut self, side: usize) {
        let (bed, n) = (&mut self.bed, self.round as u8);
        let other = [bed.client, bed.server][1 - side].unwrap();
        let (identity, clock) = (identity(side as u8 + 1), seed().child(&format!("clock/{n}")).0 >> 32);
        bed.endpoints[side] =
            Endpoint::secure(EndpointConfig::default(), config(self.rekeys), identity, [n; 32], clock);
        (0..2).for_each(|link| bed.local(side, link, true));
        carry(bed, side);
        match side {
            SERVER => bed.endpoints[side].listen(PORT, ListenConfig::default()).unwrap(),
            _ => bed.associate(),
        }
        bed.server = None;
        let is_over = |bed: &Bed| {
            bed.endpoints[1 - side].connection(other).is_none_or(|stream| stream.state() == State::Closed)
        };
        bed.run_until_done(bed.now + SECS(10), |bed| is_over(bed));
        assert!(
            is_over(bed),
            "{}: side {side} began anew, the other one is stuck: {:?}",
            self.round,
            bed.events
        );
        bed.endpoints[1 - side].release(other);
        bed.run(SECS(1));
        self.open();
        self.write();
    }

    /// What both hosts hold, as long as it is when written down.
    fn weigh(&self) -> [usize; 2] {
        [CLIENT, SERVER].map(|side| format!("{:?}", self.bed.endpoints[side]).len())
    }

    /// One association with two paths, one stream, one flow of packets with nothing in it.
    fn check(&self, incident: Incident) {
        for side in [CLIENT, SERVER] {
            let end = &self.bed.endpoints[side];
            let counts = (end.associations().count(), self.bed.paths_up()[side], end.secure_paths().count());
            assert_eq!(counts, (1, 2, 2), "{}: {incident:?}: side {side}", self.round);
            assert_eq!(end.connections().count(), 1, "{}: {incident:?}: side {side}", self.round);
            let lanes: Vec<_> = end.lane_reports().map(|lane| (lane.paths.len(), lane.waiting)).collect();
            assert_eq!(lanes, [(2, 0)], "{}: {incident:?}: side {side}", self.round);
        }
    }
}

/// Hours to play.
fn hours() -> u64 {
    std::env::var("POLYPATH_SOAK_HOURS").map_or(1, |hours| hours.parse().unwrap())
}

fn seed() -> Seed {
    Seed(std::env::var("POLYPATH_SOAK_SEED").map_or(1, |seed| seed.parse().unwrap()))
}

/// A day, or less: nothing grows in its second half. How often streams were lost, and new keys on the paths that there are.
fn play(rekeys: bool) -> (u64, u32) {
    let (mut day, rounds) = (Day::begin(rekeys), hours() * ROUNDS_PER_HOUR);
    let (mut first, mut restarts) = ([0; 2], 0);
    for round in 1..=rounds {
        let incident = day.round();
        day.check(incident);
        restarts += u64::from(matches!(incident, Incident::Restart(_)));
        let weight = day.weigh();
        if round <= rounds / 2 {
            first = [0, 1].map(|side| weight[side].max(first[side]));
        }
        let grew = (0..2).any(|side| weight[side] > first[side] * 21 / 20);
        assert!(!grew, "{round}: {incident:?}: {weight:?}, in the first half {first:?}");
    }
    let rekeyed = day.bed.endpoints[CLIENT].secure_paths().map(|path| path.rekeyed).sum();
    println!("{rounds} rounds: {restarts} restarts, {rekeyed} new keys, {first:?} to {:?}", day.weigh());
    (restarts, rekeyed)
}

#[test]
fn a_day_of_addresses_that_change_loses_no_session_that_could_be_kept_and_nothing_grows() {
    assert!(play(false).0 > 0);
}

#[test]
fn a_day_of_new_keys_loses_no_session_that_could_be_kept_and_nothing_grows() {
    let (restarts, rekeyed) = play(true);
    assert!(restarts > 0 && rekeyed > 0);
}
