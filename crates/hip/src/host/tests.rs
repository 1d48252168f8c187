//! What a peer may say that we let in, and what it may not: UPDATEs of its own making.

mod hostile;

use polypath_wire::Duration;
use polypath_wire::hip::{DiffieHellman, EspInfo, Locator, LocatorAddress, TrafficType};

use super::*;
use crate::dh::{DhGroup, DhKey};
use crate::identity::KeyKind;

fn at(secs: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(secs)
}

fn route(from: u8) -> Route {
    let end = |host: u8| ([10, 0, 0, host + 1], 10_500).into();
    Route { local: end(from), remote: end(1 - from) }
}

fn host(identity: u8, seed: u8, max_associations: usize) -> Host {
    let identity = Identity::generate(KeyKind::P256, &mut Random::from_seed([identity; 32])).unwrap();
    let dh_groups = vec![DhGroup::P256, DhGroup::P384];
    let config = HipConfig { dh_groups, max_associations, ..HipConfig::default() };
    Host::new(identity, config, [seed; 32], 1, Instant::ZERO)
}

/// Two hosts with an association.
fn pair() -> [Host; 2] {
    let mut hosts = [0, 1].map(|n| host(n + 1, n, 100));
    let peer = hosts[1].hit();
    hosts[0].connect(at(0), peer, vec![route(0)]).unwrap();
    for n in [0, 1, 0, 1] {
        while let Some(sent) = hosts[n].poll_transmit() {
            hosts[1 - n].handle(at(0), route(1 - n as u8), &sent.payload);
        }
    }
    hosts
}

/// An UPDATE of host 0.
fn update(hosts: &mut [Host; 2], params: Vec<Param>) -> Vec<u8> {
    let peer = hosts[1].hit();
    let packet = hosts[0].with(at(1), peer, |a, ctx| a.update_packet(ctx, params).unwrap()).unwrap();
    [&udp::HIP_MARKER[..], &packet].concat()
}

/// Host 0 says so in an UPDATE; the drops that it makes at host 1.
fn say(hosts: &mut [Host; 2], seq: u32, mut params: Vec<Param>) -> u64 {
    let before = hosts[1].dropped_total();
    params.push(Param::Seq(seq));
    let packet = update(hosts, params);
    hosts[1].handle(at(1), route(1), &packet);
    hosts[1].dropped_total() - before
}

fn info(keymat_index: u16, old_spi: u32, new_spi: u32) -> Param {
    Param::EspInfo(EspInfo { keymat_index, old_spi, new_spi })
}

#[test]
fn reserved_spis_and_keys_of_another_group_or_place_are_refused() {
    let mut hosts = pair();
    let (peer, friend) = (hosts[1].hit(), hosts[0].hit());
    let spi = hosts[0].association(peer).unwrap().paths()[0].inbound;
    let dh = |group: DhGroup| {
        let key = DhKey::generate(group, &mut Random::from_seed([5; 32]));
        Param::DiffieHellman(DiffieHellman { group: group as u8, public: key.public().to_vec() })
    };
    assert_eq!(say(&mut hosts, 0, vec![info(0, 0, 1)]), 1, "an SPI that is reserved");
    assert_eq!(say(&mut hosts, 0, vec![info(0, spi, 255)]), 1, "also of new keys");
    assert_eq!(say(&mut hosts, 0, vec![info(0, spi, 4000), dh(DhGroup::P384)]), 1, "another group");
    assert_eq!(say(&mut hosts, 0, vec![info(8, spi, 4000), dh(DhGroup::P256)]), 1, "not from the beginning");
    assert_eq!(
        say(&mut hosts, 0, vec![info(0, 0, 4000), dh(DhGroup::P256)]),
        1,
        "not for new keys of a path"
    );
    assert_eq!(hosts[1].dropped(DropReason::Proposal), 5);
    assert_eq!(say(&mut hosts, 0, vec![info(0, spi, 4000), dh(DhGroup::P256)]), 0);
    assert_eq!(hosts[1].association(friend).unwrap().paths()[0].outbound, 4000);
}

#[test]
fn a_locator_that_is_too_old_or_unlisted_gets_no_data() {
    let here: IpAddr = route(0).local.ip();
    let list = |address: LocatorAddress, lifetime: u32| {
        Param::LocatorSet(vec![Locator { traffic: TrafficType::Both, preferred: true, lifetime, address }])
    };
    let spi = |hosts: &[Host; 2]| hosts[0].association(hosts[1].hit()).unwrap().paths()[0].inbound;
    let gets_data = |hosts: &mut [Host; 2], secs: u64| {
        let peer = hosts[0].hit();
        hosts[1].handle_timeout(at(secs));
        let path = hosts[1].association(peer).unwrap().paths()[0].inbound;
        hosts[1].on_data(at(secs), peer, path, 10_000);
        hosts[1].may_send(at(secs), peer, path, 1000)
    };
    let mut old = pair();
    assert_eq!(say(&mut old, 0, vec![list(LocatorAddress::Ip(here), 10)]), 0);
    assert!(gets_data(&mut old, 9));
    assert!(!gets_data(&mut old, 12), "its lifetime is over, and no credit helps");

    let mut unlisted = pair();
    let elsewhere = LocatorAddress::Ip([10, 0, 9, 9].into());
    assert_eq!(say(&mut unlisted, 0, vec![list(elsewhere, u32::MAX)]), 0);
    assert!(!gets_data(&mut unlisted, 2));
    let said =
        std::iter::from_fn(|| unlisted[1].poll_event()).any(|e| matches!(e.1, Event::Withdrawn { .. }));
    assert!(said);

    let mut behind_nat = pair();
    let private = LocatorAddress::Esp { spi: spi(&behind_nat), address: [192, 168, 0, 2].into() };
    assert_eq!(say(&mut behind_nat, 0, vec![list(private, u32::MAX)]), 0);
    assert!(gets_data(&mut behind_nat, 2), "the SPI names the path");
}

#[test]
fn of_all_addresses_that_a_peer_lists_sixteen_count() {
    let mut hosts = pair();
    let listed = |n: u8| Locator {
        traffic: TrafficType::Both,
        preferred: false,
        lifetime: u32::MAX,
        address: LocatorAddress::Ip([10, 0, 0, n].into()),
    };
    assert_eq!(say(&mut hosts, 0, vec![Param::LocatorSet((1..=40).map(listed).collect())]), 0);
    let heard = std::iter::from_fn(|| hosts[1].poll_event()).find_map(|(_, event)| match event {
        Event::Locators(addresses) => Some(addresses.len()),
        _ => None,
    });
    assert_eq!(heard, Some(16));
}

/// `client`, at `port`, begins an association with `server`, at port 10500 of another address; the server's name for it.
fn meet(client: &mut Host, port: u16, server: &mut Host, now: Instant) -> Option<Hit> {
    let there = Route { local: ([10, 0, 0, 1], port).into(), remote: route(0).remote };
    let back = Route { local: there.remote, remote: there.local };
    client.connect(now, server.hit(), vec![there]).unwrap();
    for _ in 0..2 {
        while let Some(sent) = client.poll_transmit() {
            server.handle(now, back, &sent.payload);
        }
        while let Some(sent) = server.poll_transmit() {
            client.handle(now, there, &sent.payload);
        }
    }
    server.peers.iter().find(|(_, a)| a.is_at(back)).map(|(name, _)| *name)
}

/// Looks at associations for a timer and a change of path of one, while each of the `others` waits for an answer to its I1.
fn looks(others: u16) -> [usize; 2] {
    let mut host = host(1, 1, 100);
    let name = |n: u16| {
        let [a, b] = n.to_be_bytes();
        Hit([0x20, 0x01, 0, 0x22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b])
    };
    host.connect(at(0), name(0), vec![route(0)]).unwrap();
    (1..=others).for_each(|n| host.connect(at(1), name(n), vec![route(0)]).unwrap());
    let due = host.poll_timeout().unwrap();
    assert_eq!(host.due(due), BTreeSet::from([name(0)]));
    let count = |host: &mut Host, act: &dyn Fn(&mut Host)| {
        let before = host.peers.looks.get();
        act(host);
        host.peers.looks.get() - before
    };
    let timer = count(&mut host, &|host| host.handle_timeout(due));
    assert!(host.poll_timeout().unwrap() > due);
    [timer, count(&mut host, &|host| host.rekey(due, name(0), 1, true))]
}

#[test]
fn a_timer_of_one_association_looks_at_no_other() {
    assert_eq!((looks(0), looks(999)), ([1, 1], [1, 1]));
}

/// User data comes on the first path of that association.
fn carry(host: &mut Host, now: Instant, name: Hit) {
    let inbound = host.association(name).unwrap().paths()[0].inbound;
    host.on_data(now, name, inbound, 1000);
}

#[test]
fn at_the_limit_the_one_of_several_goes_that_is_missed_least() {
    for used in [0, 1] {
        let mut server = host(2, 0, 2);
        let names = [0, 1].map(|n| {
            let now = at(n.into());
            meet(&mut host(1, 10 + n, 100), 4000 + u16::from(n), &mut server, now).unwrap()
        });
        assert_eq!(names.map(|name| name.is_orchid()), [true, false]);
        carry(&mut server, at(2), names[used]);
        let stranger = meet(&mut host(3, 3, 100), 5000, &mut server, at(3)).unwrap();
        let left: BTreeSet<Hit> = server.names().collect();
        assert_eq!(left, BTreeSet::from([names[used], stranger]));
    }
}

#[test]
fn who_begins_anew_where_it_was_replaces_its_own_also_when_the_first_is_gone() {
    let mut server = host(2, 0, 2);
    let [first, second] = [0, 1].map(|n| {
        let now = at(n.into());
        meet(&mut host(1, 10 + n, 100), 4000 + u16::from(n), &mut server, now).unwrap()
    });
    carry(&mut server, at(2), second);
    let stranger = meet(&mut host(3, 3, 100), 5000, &mut server, at(3)).unwrap();
    assert!(server.association(first).is_none());
    assert_eq!(meet(&mut host(1, 12, 100), 4001, &mut server, at(4)), Some(second));
    assert_eq!(server.names().collect::<BTreeSet<_>>(), BTreeSet::from([second, stranger]));
}

#[test]
fn who_replaces_an_association_of_its_own_takes_nobody_elses_place() {
    let mut server = host(2, 0, 2);
    let mut friend = host(1, 1, 100);
    let (out, back) = (route(1), Route { local: route(1).remote, remote: route(1).local });
    server.connect(at(0), friend.hit(), vec![out]).unwrap();
    for _ in 0..2 {
        while let Some(sent) = server.poll_transmit() {
            friend.handle(at(0), back, &sent.payload);
        }
        while let Some(sent) = friend.poll_transmit() {
            server.handle(at(0), out, &sent.payload);
        }
    }
    let stranger = meet(&mut host(3, 3, 100), 5000, &mut server, at(1)).unwrap();
    assert_eq!(meet(&mut host(1, 4, 100), 6000, &mut server, at(100)), Some(friend.hit()));
    assert!(server.association(stranger).is_some(), "there was room already");
}
