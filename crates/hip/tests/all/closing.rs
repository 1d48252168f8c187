//! Associations that end, and begin anew.

use polypath_hip::*;
use polypath_wire::Duration;

use crate::hosts::*;

const LONG: Duration = Duration::from_secs(100);

#[test]
fn close_from_either_end_and_from_both() {
    for closers in [vec![0], vec![1], vec![0, 1]] {
        let mut pair = Pair::quick().established();
        for host in closers.clone() {
            let (now, peer) = (pair.now, pair.hit(1 - host));
            pair.hosts[host].close(now, peer);
        }
        pair.run(Duration::from_secs(3));
        for host in 0..2 {
            assert!(pair.sas(host).is_empty());
            let expected = [State::Unassociated, State::Closed];
            assert!(expected.contains(&pair.state(host)), "{closers:?}: {:?}", pair.states());
        }
        pair.run(Duration::from_secs(2_000));
        assert_eq!(pair.states(), [State::Unassociated; 2], "{closers:?}");
    }
}

#[test]
fn close_survives_loss_and_gives_up_at_last() {
    let mut lost = 3;
    let mut pair = Pair::quick().established();
    pair.set_network(move |s| {
        lost -= i32::from(lost > 0);
        if lost > 0 { vec![] } else { s.intact() }
    });
    let (now, peer) = (pair.now, pair.hit(1));
    pair.hosts[0].close(now, peer);
    pair.run(LONG);
    assert_eq!(pair.states(), [State::Unassociated, State::Closed]);

    let mut pair = Pair::quick().established();
    pair.set_network(|_| vec![]);
    let (now, peer) = (pair.now, pair.hit(1));
    pair.hosts[0].close(now, peer);
    pair.run(Duration::from_secs(900));
    assert_eq!(pair.state(0), State::Closing);
    pair.run(Duration::from_secs(300));
    assert_eq!(pair.state(0), State::Unassociated);
}

#[test]
fn idle_associations_close() {
    let mut pair = Pair::quick().established();
    pair.run(Duration::from_secs(800));
    assert_eq!(pair.states(), [State::Established; 2]);
    let (now, peer, spi) = (pair.now, pair.hit(0), pair.sas(1)[0].inbound);
    pair.hosts[1].on_data(now, peer, spi, 100);
    let (peer, spi) = (pair.hit(1), pair.sas(0)[0].inbound);
    pair.hosts[0].on_data(now, peer, spi, 100);
    pair.run(Duration::from_secs(800));
    assert_eq!(pair.states(), [State::Established; 2], "data keeps it");
    pair.run(Duration::from_secs(200));
    assert!(pair.sas(0).is_empty() && pair.sas(1).is_empty());
}

#[test]
fn a_peer_that_forgot_begins_anew() {
    let mut pair = Pair::quick().established();
    let fresh = Pair::quick();
    let [forgetful, _] = fresh.hosts;
    pair.hosts[0] = forgetful;
    pair.events[0].clear();
    // Another seed would be better for its secrets; here the same one only makes the test harder.
    pair.run(Duration::from_secs(120));
    pair.connect(0);
    pair.run(LONG);
    assert_eq!(pair.states(), [State::Established; 2]);
    pair.assert_sas_match();
    assert_eq!(pair.sas(1).len(), 1, "the new association replaced the old one");
}
