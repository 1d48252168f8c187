//! What a peer may say that we let in, and what it may not: UPDATEs of its own making.

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

/// Two hosts with an association.
fn pair() -> [Host; 2] {
    let mut hosts = [0, 1].map(|n| {
        let identity = Identity::generate(KeyKind::P256, &mut Random::from_seed([n + 1; 32])).unwrap();
        let config = HipConfig { dh_groups: vec![DhGroup::P256, DhGroup::P384], ..HipConfig::default() };
        Host::new(identity, config, [n; 32], 1, Instant::ZERO)
    });
    let peer = hosts[1].hit();
    hosts[0].connect(at(0), peer, vec![route(0)]).unwrap();
    for n in [0, 1, 0, 1] {
        while let Some(sent) = hosts[n].poll_transmit() {
            hosts[1 - n].handle(at(0), route(1 - n as u8), &sent.payload);
        }
    }
    hosts
}

/// Host 0 says so in an UPDATE; the drops that it makes at host 1.
fn say(hosts: &mut [Host; 2], seq: u32, mut params: Vec<Param>) -> u64 {
    let (peer, before) = (hosts[1].hit(), hosts[1].dropped_total());
    params.push(Param::Seq(seq));
    let packet = hosts[0].with(at(1), peer, |a, ctx| a.update_packet(ctx, params).unwrap()).unwrap();
    hosts[1].handle(at(1), route(1), &[&udp::HIP_MARKER[..], &packet].concat());
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
