//! A peer with good keys that breaks the rules: it leads our data to nobody who did not ask for it, and fills nothing.

use std::net::SocketAddr;

use polypath_wire::Checksum;
use polypath_wire::hip::Packet;

use super::*;

/// Where packets to and from somebody else go; the peer sees none of them.
fn elsewhere(n: u8) -> Route {
    Route { local: route(1).local, remote: ([203, 0, 113, n], 10_500).into() }
}

/// What host 1 sends now, and where.
fn sent(host: &mut Host) -> Vec<(SocketAddr, Packet)> {
    let of = |t: Transmit| {
        let view = PacketView::new(&t.payload[udp::HIP_MARKER.len()..]).unwrap();
        (t.route.remote, Packet::parse(&view).unwrap())
    };
    std::iter::from_fn(|| host.poll_transmit()).map(of).collect()
}

fn places(host: &mut Host) -> Vec<SocketAddr> {
    sent(host).into_iter().map(|(to, _)| to).collect()
}

fn nonces(packet: &Packet) -> impl Iterator<Item = Vec<u8>> {
    packet.params.iter().filter_map(|p| match p {
        Param::EchoRequestSigned(nonce) => Some(nonce.clone()),
        _ => None,
    })
}

fn number(packet: &Packet) -> u32 {
    packet.params.iter().find_map(|p| if let Param::Seq(id) = p { Some(*id) } else { None }).unwrap()
}

/// Gives `packet`, an UPDATE that asks for something, what it asks for.
fn returned(packet: &Packet) -> Vec<Param> {
    let ack = Param::Ack(vec![number(packet)]);
    nonces(packet).map(Param::EchoResponseSigned).chain([ack]).collect()
}

/// Two hosts that have heard of one another.
fn friends() -> [Host; 2] {
    let mut hosts = pair();
    let (peer, spi) = (hosts[0].hit(), first_path(&hosts).inbound);
    hosts[1].on_data(at(0), peer, spi, 1);
    hosts
}

fn first_path(hosts: &[Host; 2]) -> crate::association::Path {
    hosts[1].association(hosts[0].hit()).unwrap().paths()[0].clone()
}

#[test]
fn a_number_that_leaps_leaves_no_answer_behind() {
    let mut hosts = friends();
    assert_eq!(say(&mut hosts, 0, vec![]), 0);
    assert_eq!(say(&mut hosts, 0, vec![]), 0, "answered again");
    assert_eq!(say(&mut hosts, (1 << 31) + 1, vec![]), 1, "half of all numbers away");
    assert_eq!(say(&mut hosts, i32::MAX as u32, vec![]), 0);
    assert_eq!(say(&mut hosts, 0, vec![]), 1, "its answer is forgotten");
}

#[test]
fn keys_beyond_the_key_material_cost_no_spi() {
    let mut hosts = friends();
    let spi = first_path(&hosts).outbound;
    for n in 0..20 {
        assert_eq!(say(&mut hosts, 0, vec![info(60_000, 0, 4000 + n)]), 1);
        assert_eq!(say(&mut hosts, 0, vec![info(60_000, spi, 4000 + n)]), 1);
    }
    assert_eq!(hosts[1].spis.len(), 1);
    // Nor if we asked.
    let peer = hosts[0].hit();
    hosts[1].add_path(at(1), peer, Route { local: ([10, 0, 1, 2], 10_500).into(), ..route(1) });
    assert_eq!(hosts[1].spis.len(), 2);
    let request = sent(&mut hosts[1]).pop().unwrap().1;
    let answer = [returned(&request), vec![info(60_000, 0, 5000)]].concat();
    assert_eq!(say(&mut hosts, 0, answer), 1);
    assert_eq!(hosts[1].spis.len(), 1);
}

#[test]
fn who_has_an_answer_sent_here_too_proves_no_other_place() {
    let (victim, home) = (elsewhere(1), route(1));
    let mut hosts = friends();
    let spi = first_path(&hosts).outbound;
    let request = update(&mut hosts, vec![info(0, spi, spi), Param::Seq(0)]);
    hosts[1].handle(at(1), victim, &request);
    assert_eq!(places(&mut hosts[1]), [victim.remote]);
    hosts[1].handle(at(1), home, &request);
    let (to, answer) = sent(&mut hosts[1]).pop().unwrap();
    assert_eq!(to, home.remote, "its answer may have been lost on the way");
    let proof = update(&mut hosts, returned(&answer));
    hosts[1].handle(at(1), victim, &proof);
    assert_eq!(first_path(&hosts).route, home, "the nonce came here");
    let check = sent(&mut hosts[1]);
    assert_eq!(
        check.iter().map(|c| c.0).collect::<Vec<_>>(),
        [victim.remote],
        "another one goes there alone"
    );
    // A host whose address changed under way is there.
    let proof = update(&mut hosts, returned(&check[0].1));
    hosts[1].handle(at(1), victim, &proof);
    assert_eq!(first_path(&hosts).route, victim);
}

#[test]
fn who_guesses_the_number_of_a_request_has_not_got_it() {
    let victim = elsewhere(1);
    let mut hosts = friends();
    let friend = hosts[0].hit();
    hosts[1].add_path(at(1), friend, victim);
    let request = sent(&mut hosts[1]).pop().unwrap().1;
    let guess =
        |params: Vec<Param>| [params, vec![Param::Ack(vec![number(&request)]), Param::Seq(0)]].concat();
    let answer = update(&mut hosts, guess(vec![info(0, 0, 5000)]));
    hosts[1].handle(at(1), victim, &answer);
    assert_eq!(hosts[1].association(friend).unwrap().paths().len(), 1);
    // Who has got it is where it went.
    let answer = [returned(&request), vec![info(0, 0, 5000), Param::Seq(0)]].concat();
    let answer = update(&mut hosts, answer);
    hosts[1].handle(at(1), elsewhere(2), &answer);
    let paths = hosts[1].association(friend).unwrap().paths().to_vec();
    assert_eq!(paths.iter().map(|p| p.route).collect::<Vec<_>>(), [route(1), victim]);

    let mut hosts = friends();
    let spi = first_path(&hosts).inbound;
    hosts[1].move_path(at(1), friend, spi, victim);
    let answer = update(&mut hosts, guess(vec![info(0, 5000, 5000)]));
    hosts[1].handle(at(1), victim, &answer);
    assert_eq!(first_path(&hosts).route, route(1));
}

/// Where host 1 sends something again, if its peer does not answer.
fn repeated(host: &mut Host) -> BTreeSet<SocketAddr> {
    let mut asked = BTreeSet::new();
    while let Some(due) = host.poll_timeout().filter(|due| *due < at(200)) {
        host.handle_timeout(due);
        asked.extend(places(host));
    }
    asked
}

#[test]
fn a_peer_that_names_many_places_is_asked_at_one() {
    let mut hosts = friends();
    let spi = first_path(&hosts).outbound;
    for n in 0..40 {
        let request = update(&mut hosts, vec![info(0, spi, spi), Param::Seq(n)]);
        hosts[1].handle(at(1), elsewhere(n as u8), &request);
    }
    assert_eq!(places(&mut hosts[1]).len(), 40);
    let last = BTreeSet::from([elsewhere(39).remote]);
    assert_eq!(repeated(&mut hosts[1]), last, "again only where it says it is now");
}

#[test]
fn nobody_is_asked_again_about_a_path_that_is_gone() {
    let mut hosts = friends();
    for n in 0..20 {
        let request = update(&mut hosts, vec![info(0, 0, 4000 + n), Param::Seq(2 * n)]);
        hosts[1].handle(at(1), elsewhere(n as u8), &request);
        assert_eq!(say(&mut hosts, 2 * n + 1, vec![info(0, 4000 + n, 0)]), 0);
    }
    assert_eq!(places(&mut hosts[1]).len(), 40);
    assert_eq!(repeated(&mut hosts[1]), BTreeSet::new());
}

/// The hosts, and the I2 of host 0.
fn half_way() -> ([Host; 2], Vec<u8>) {
    let mut hosts = [0, 1].map(|n| host(n + 1, n, 100));
    let server = hosts[1].hit();
    hosts[0].connect(at(0), server, vec![route(0)]).unwrap();
    let i1 = hosts[0].poll_transmit().unwrap().payload;
    hosts[1].handle(at(0), route(1), &i1);
    let r1 = hosts[1].poll_transmit().unwrap().payload;
    hosts[0].handle(at(0), route(0), &r1);
    let i2 = hosts[0].poll_transmit().unwrap().payload;
    (hosts, i2)
}

#[test]
fn an_r2_does_not_say_where_the_peer_is() {
    let (mut hosts, i2) = half_way();
    hosts[1].handle(at(0), route(1), &i2);
    let r2 = hosts[1].poll_transmit().unwrap().payload;
    hosts[0].handle(at(0), Route { remote: elsewhere(1).remote, ..route(0) }, &r2);
    let association = hosts[0].association(hosts[1].hit()).unwrap();
    assert_eq!(association.state(), State::Established);
    assert_eq!(association.paths()[0].route, route(0));
}

#[test]
fn an_i2_from_elsewhere_than_the_r1_went_takes_a_proof() {
    let victim = elsewhere(1);
    let (mut hosts, i2) = half_way();
    let friend = hosts[0].hit();
    hosts[1].handle(at(0), victim, &i2);
    let path = first_path(&hosts);
    assert_eq!((path.route, path.reachable), (victim, false));
    assert!(!hosts[1].may_send(at(0), friend, path.inbound, 1));
    let sent = sent(&mut hosts[1]);
    let kinds: Vec<_> = sent.iter().map(|(to, p)| (*to, p.packet_type)).collect();
    assert_eq!(kinds, [(victim.remote, PacketType::R2), (victim.remote, PacketType::Update)]);
    hosts[0].handle(
        at(0),
        route(0),
        &[&udp::HIP_MARKER[..], &sent[0].1.emit(Checksum::Unused).unwrap()].concat(),
    );
    let proof = update(&mut hosts, returned(&sent[1].1));
    hosts[1].handle(at(1), victim, &proof);
    assert!(first_path(&hosts).reachable);
}

/// A peer that says anything, from anywhere, and hears what comes to its own addresses.
struct Liar {
    random: Random,
    now: Instant,
    next: u32,
    heard: Vec<Packet>,
    said: Vec<Vec<u8>>,
    spis: Vec<u32>,
}

const OWN: u8 = 3;

impl Liar {
    fn below(&mut self, n: usize) -> usize {
        self.random.u32() as usize % n
    }
    fn one_of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[self.below(all.len())].clone())
    }
    /// One of its own routes, or of somebody else's.
    fn any_route(&mut self) -> Route {
        match self.below(6) {
            0 => elsewhere(1),
            1 => elsewhere(2),
            n => Route { remote: ([10, 0, n as u8 % OWN, 1], 10_500).into(), ..route(1) },
        }
    }
    fn is_own(remote: SocketAddr) -> bool {
        matches!(remote.ip(), IpAddr::V4(ip) if ip.octets()[0] == 10)
    }

    fn params(&mut self, hosts: &[Host; 2]) -> Vec<Param> {
        let theirs: Vec<u32> =
            hosts[1].associations().flat_map(|a| a.paths()).flat_map(|p| [p.outbound, p.inbound]).collect();
        self.spis.extend(theirs);
        self.spis.truncate(64);
        let spis = [&[0, 1, 255, 4000 + self.next, u32::MAX], &self.spis[..]].concat();
        let mut params = Vec::new();
        if self.below(4) > 0 {
            let [old, new] = [0, 1].map(|_| self.one_of(&spis).unwrap());
            let new = if self.below(3) == 0 { old } else { new };
            let index = [0, 72, 144, 8000, 12_000, u16::MAX][self.below(6)];
            params.push(info(index, old, new));
        }
        if self.below(8) == 0 {
            let key = DhKey::generate(DhGroup::P256, &mut self.random);
            let group = DhGroup::P256 as u8;
            params.push(Param::DiffieHellman(DiffieHellman { group, public: key.public().to_vec() }));
        }
        if self.below(4) == 0 {
            let listed = (0..self.below(40)).map(|_| {
                let address = self.any_route().remote.ip();
                let lifetime = [1, 30, u32::MAX][self.below(3)];
                Locator {
                    traffic: TrafficType::Both,
                    preferred: false,
                    lifetime,
                    address: LocatorAddress::Ip(address),
                }
            });
            params.push(Param::LocatorSet(listed.collect()));
        }
        let heard = self.heard.clone();
        match self.below(4) {
            0 => params.push(Param::Ack((0..self.below(30)).map(|_| self.random.u32() % 300).collect())),
            1 => params.extend(self.one_of(&heard).iter().flat_map(nonces).map(Param::EchoResponseSigned)),
            _ => params.extend(self.one_of(&heard).iter().flat_map(returned)),
        }
        if self.below(5) > 0 {
            let leap = [0, 0, 0, 0, 1, 40, u32::MAX, (1 << 31) - 1][self.below(8)];
            let id = self.next.wrapping_add(leap);
            self.next = if leap == u32::MAX { self.next } else { id.wrapping_add(1) };
            params.push(Param::Seq(id));
        }
        params
    }

    fn step(&mut self, hosts: &mut [Host; 2]) {
        let (peer, way) = (hosts[0].hit(), self.any_route());
        let now = self.now + Duration::from_millis([0, 1, 60, 300, 2000][self.below(5)]);
        self.now = now;
        let paths = hosts[1].association(peer).map(|a| a.paths().to_vec()).unwrap_or_default();
        let inbound = self.one_of(&paths).map_or(1, |p| p.inbound);
        match self.below(12) {
            0 => hosts[1].add_path(now, peer, way),
            1 => hosts[1].move_path(now, peer, inbound, way),
            2 => {
                let new_dh = self.below(2) == 0;
                hosts[1].rekey(now, peer, inbound, new_dh);
            }
            3 => hosts[1].remove_path(now, peer, inbound),
            4 => {
                hosts[1].on_data(now, peer, inbound, 1000);
                hosts[1].on_source(now, peer, inbound, way);
            }
            5 => {
                if let Some(packet) = self.one_of(&self.said.clone()) {
                    hosts[1].handle(now, way, &packet);
                }
            }
            _ => {
                let params = self.params(hosts);
                let packet = update(hosts, params);
                hosts[1].handle(now, way, &packet);
                self.said.truncate(50);
                self.said.insert(0, packet);
            }
        }
        while hosts[1].poll_timeout().is_some_and(|due| due <= now) {
            hosts[1].handle_timeout(now);
        }
        for (to, packet) in sent(&mut hosts[1]) {
            let asks = packet.params.iter().any(|p| matches!(p, Param::Seq(_)));
            if Self::is_own(to) && asks {
                self.heard.insert(0, packet);
            }
        }
        self.heard.truncate(8);
        while hosts[1].poll_event().is_some() {}
    }
}

#[test]
fn whatever_a_peer_says_data_goes_only_to_where_it_hears_us() {
    let (mut steps, mut led) = (0, 0);
    for seed in 0..40 {
        let mut hosts = friends();
        let peer = hosts[0].hit();
        let random = Random::from_seed([seed; 32]);
        let mut liar =
            Liar { random, now: at(1), next: 0, heard: Vec::new(), said: Vec::new(), spis: Vec::new() };
        for n in 0..500 {
            liar.step(&mut hosts);
            let Some(association) = hosts[1].association(peer) else { break };
            let paths = association.paths().iter().filter(|p| p.reachable);
            let to: Vec<_> = paths.map(|p| p.route.remote).collect();
            assert!(to.iter().all(|to| Liar::is_own(*to)), "seed {seed}, step {n}: {to:?}");
            assert!(hosts[1].spis.len() < 100, "seed {seed}, step {n}: {} SPIs", hosts[1].spis.len());
            (steps, led) = (steps + 1, led + to.iter().filter(|to| **to != route(1).remote).count());
        }
    }
    assert!(steps > 2_000 && led > 500, "{led} paths to other places in {steps} steps");
}
