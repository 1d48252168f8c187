//! Paths on which an answer takes longer than the usual wait.
#![allow(clippy::unwrap_used)]

use crate::hosts::{DELAY, Pair, address, route};
use polypath_hip::{Route, State};
use polypath_wire::Duration;
use polypath_wire::hip::PacketType;

const S: fn(u64) -> Duration = Duration::from_secs;

/// Two hosts 3 s apart, with an association.
fn far() -> Pair {
    let mut pair = Pair::quick().with_network(|sent| vec![(S(3), sent.payload.clone())]);
    pair.connect(0);
    pair.run(S(15));
    carry(&mut pair);
    assert_eq!(pair.states(), [State::Established; 2]);
    pair
}

/// Data comes to host 1 on its newest SA.
fn carry(pair: &mut Pair) {
    let (now, peer, inbound) = (pair.now, pair.hit(0), pair.sas(1).last().unwrap().inbound);
    pair.hosts[1].on_data(now, peer, inbound, 100);
}

fn rekey(pair: &mut Pair) {
    let (now, peer) = (pair.now, pair.hit(1));
    let inbound = pair.association(0).unwrap().paths()[0].inbound;
    pair.hosts[0].rekey(now, peer, inbound, false);
}

#[test]
fn nothing_is_sent_twice_once_it_is_known_how_long_answers_take() {
    let mut pair = far();
    assert_eq!(pair.count(PacketType::I1), 3, "at 0, 1 and 3 s");
    assert_eq!((pair.count(PacketType::I2), pair.count(PacketType::R2)), (1, 1));
    rekey(&mut pair);
    pair.run(S(40));
    assert_eq!(pair.count(PacketType::Update), 3, "request, answer, proof");
}

#[test]
fn old_keys_stay_for_what_was_sealed_with_them() {
    let mut pair = far();
    rekey(&mut pair);
    pair.run(S(10));
    carry(&mut pair);
    pair.run(S(11));
    assert_eq!(pair.sas(1).len(), 2, "two round trips are not over");
    pair.run(S(2));
    assert_eq!(pair.sas(1).len(), 1);
}

#[test]
fn a_peer_that_has_not_answered_is_asked_at_other_addresses_and_from_others_at_once() {
    let [from_elsewhere, elsewhere] = [Route { local: address(0, 1), ..route(0, 0) }, route(0, 1)];
    for other in [elsewhere, from_elsewhere] {
        let dead = route(0, 0);
        let mut pair = Pair::quick().with_network(move |sent| match sent.route == dead {
            true => Vec::new(),
            false => sent.intact(),
        });
        pair.connect(0);
        pair.run(Duration::from_secs(4));
        assert_eq!(pair.state(0), State::I1Sent);
        let (now, peer) = (pair.now, pair.hit(1));
        pair.hosts[0].connect(now, peer, vec![dead, other]).unwrap();
        pair.run(DELAY.times(5));
        assert!(pair.is_up(), "{other:?}: {:?}", pair.states());
        let (asked, again) = (pair.sent.len(), vec![dead, other]);
        pair.hosts[0].connect(pair.now, peer, again).unwrap();
        pair.run(DELAY);
        assert_eq!(pair.sent.len(), asked, "one that answers stays");
    }
}
