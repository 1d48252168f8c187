//! Every state of RFC 7401 §4.4 against every message: of the peer's former association, which must
//! move nothing that the state tables do not move, and of the association itself.
#![allow(clippy::unwrap_used, reason = "test helpers")]

#[path = "common/pair.rs"]
mod pair;

use pair::*;
use polypath_hip::*;
use polypath_wire::hip::PacketType;
use polypath_wire::{Duration, Instant};

const STATES: [State; 8] = [
    State::Unassociated,
    State::I1Sent,
    State::I2Sent,
    State::R2Sent,
    State::Established,
    State::Closing,
    State::Closed,
    State::EFailed,
];
const TYPES: [PacketType; 8] = [
    PacketType::I1,
    PacketType::R1,
    PacketType::I2,
    PacketType::R2,
    PacketType::Update,
    PacketType::Notify,
    PacketType::Close,
    PacketType::CloseAck,
];

/// A pair of which host 0 is in `state`. Its identities are always the same.
fn in_state(state: State) -> Pair {
    use PacketType::{I1, I2};
    let lose = |which: Option<PacketType>| {
        Pair::quick().with_network(move |s| {
            if which.is_none_or(|w| s.packet_type() == w) { vec![] } else { s.intact() }
        })
    };
    let mut pair = match state {
        State::I1Sent | State::EFailed => lose(Some(I1)),
        State::I2Sent => lose(Some(I2)),
        _ => Pair::quick(),
    };
    match state {
        State::Unassociated => {}
        State::R2Sent => {
            pair.connect(1);
            pair.run(Duration::from_millis(50));
        }
        State::I1Sent | State::I2Sent => {
            pair.connect(0);
            pair.run(Duration::from_millis(50));
        }
        State::EFailed => {
            pair.connect(0);
            pair.run(Duration::from_secs(32));
        }
        State::Established | State::Closing | State::Closed => pair = pair.established(),
    }
    let (now, peers) = (pair.now, [pair.hit(1), pair.hit(0)]);
    match state {
        State::Closing => {
            pair.set_network(|_| vec![]);
            pair.hosts[0].close(now, peers[0]);
        }
        State::Closed => pair.hosts[1].close(now, peers[1]),
        _ => {}
    }
    pair.run(Duration::from_millis(50));
    pair.set_network(|_| vec![]);
    assert_eq!(pair.state(0), state);
    pair
}

/// All messages of associations that the same two identities had, from host 1 to host 0.
fn former_messages() -> Vec<Sent> {
    let mut all = Vec::new();
    for initiator in 0..2 {
        let mut pair = Pair::quick();
        for host in 0..2 {
            let seed = [50 + host as u8; 32];
            pair.hosts[host] =
                Host::new(identity(KeyKind::P256, host as u8 + 1), quick(), seed, 90, Instant::ZERO);
        }
        pair.connect(initiator);
        pair.run(Duration::from_secs(40));
        let (now, peers) = (pair.now, [pair.hit(1), pair.hit(0)]);
        pair.hosts[1].add_path(now, peers[1], route(1, 1));
        pair.run(Duration::from_secs(1));
        // A request that we answer with NOTIFY: an unknown critical parameter.
        let (now, from) = (pair.now, 1 - initiator);
        pair.hosts[from].close(now, peers[from]);
        pair.run(Duration::from_secs(1));
        all.extend(pair.sent.into_iter().filter(|s| s.from == 1));
    }
    all
}

/// What RFC 7401 §4.4.4 says of a message with good signature that does not belong to the
/// association: the state after it, and whether it is answered. R1 and I1 belong to none.
fn expected(state: State, message: PacketType, we_are_greater: bool) -> (State, Option<PacketType>) {
    use PacketType::{I1, I2, R1};
    match (state, message) {
        // Table 3: both began at once, and the greater HIT must be the Responder.
        (State::I1Sent, I1) if !we_are_greater => (state, None),
        (_, I1) => (state, Some(R1)),
        // Tables 7 and 8 answer R1 in CLOSING and CLOSED too; with us whoever asked then is in I1-SENT.
        (State::I1Sent, R1) => (State::I2Sent, Some(I2)),
        _ => (state, None),
    }
}

#[test]
fn messages_of_a_former_association_move_only_what_the_tables_move() {
    let former = former_messages();
    for which in TYPES.iter().filter(|w| **w != PacketType::Notify) {
        let samples: Vec<_> = former.iter().filter(|s| s.packet_type() == *which).collect();
        assert!(!samples.is_empty(), "{which:?}");
        for state in STATES {
            for sample in &samples {
                let mut pair = in_state(state);
                let (sas, sent) = (pair.sas(0), pair.sent.len());
                pair.deliver(sample);
                pair.run(Duration::ZERO);
                let answer = pair.sent.get(sent).map(Sent::packet_type);
                let greater = pair.hit(0) > pair.hit(1);
                assert_eq!((pair.state(0), answer), expected(state, *which, greater), "{state:?} {which:?}");
                assert_eq!(pair.sas(0), sas, "{state:?} {which:?}");
                assert!(pair.sent.len() <= sent + 1, "one answer at most");
            }
        }
    }
}

/// Genuine messages cut short at every length, and with bytes behind their end, in every state in
/// which they would do something.
#[test]
fn a_truncated_message_moves_nothing_in_any_state() {
    let mut pair = Pair::quick().established();
    let (now, peer) = (pair.now, pair.hit(1));
    pair.hosts[0].add_path(now, peer, route(0, 1));
    pair.run(Duration::from_secs(1));
    let now = pair.now;
    pair.hosts[0].close(now, peer);
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.states(), [State::Unassociated, State::Closed]);
    let types: Vec<_> = pair.sent.iter().map(Sent::packet_type).collect();
    for which in TYPES.into_iter().filter(|w| *w != PacketType::Notify) {
        assert!(types.contains(&which), "{which:?}");
    }
    // The same association again, in which the message at hand comes to its receiver in pieces only.
    for (index, which) in types.into_iter().enumerate() {
        let mut count = 0;
        let mut again = Pair::quick().with_network(move |sent| {
            count += 1;
            if count - 1 != index {
                return sent.intact();
            }
            let cut = |len: usize| (Duration::ZERO, sent.payload[..len].to_vec());
            let longer = (Duration::ZERO, [&sent.payload[..], &[0; 8]].concat());
            (0..sent.payload.len()).map(cut).chain([longer]).collect()
        });
        again.connect(0);
        again.run(Duration::from_secs(40));
        assert_eq!(again.states(), [State::Established; 2], "{which:?} lost");
        let now = again.now;
        again.hosts[0].add_path(now, peer, route(0, 1));
        again.run(Duration::from_secs(10));
        assert_eq!(again.sas(0).len(), 2, "{which:?} lost");
        let now = again.now;
        again.hosts[0].close(now, peer);
        again.run(Duration::from_secs(10));
        assert_eq!(again.states(), [State::Unassociated, State::Closed], "{which:?} lost");
        let bad: u64 = again.hosts.iter().map(|h| h.dropped(DropReason::Malformed)).sum();
        let len = pair.sent[index].payload.len() as u64;
        assert!(bad + 4 >= len, "{which:?}: {bad} of {len} pieces were counted");
    }
}

#[test]
fn close_while_our_i2_waits_for_its_answer() {
    let mut pair =
        Pair::quick().with_network(|s| if s.packet_type() == PacketType::R2 { vec![] } else { s.intact() });
    pair.connect(0);
    pair.run(Duration::from_millis(50));
    assert_eq!(pair.states(), [State::I2Sent, State::R2Sent]);
    let (now, peer) = (pair.now, pair.hit(0));
    pair.hosts[1].close(now, peer);
    pair.run(Duration::from_millis(50));
    assert_eq!(pair.states(), [State::Closed, State::Unassociated]);
}

#[test]
fn data_while_closing_begins_anew() {
    for state in [State::Closing, State::Closed, State::EFailed] {
        let mut pair = in_state(state);
        pair.set_network(Sent::intact);
        pair.connect(0);
        assert_eq!(pair.state(0), State::I1Sent, "{state:?}");
        pair.run(Duration::from_millis(50));
        assert_eq!(pair.state(0), State::Established, "{state:?}");
        pair.run(Duration::from_secs(60));
        pair.assert_sas_match();
    }
}

#[test]
fn the_peer_may_begin_anew_in_any_state() {
    for state in STATES {
        let mut pair = in_state(state);
        assert!(pair.hit(0) < pair.hit(1), "so that our I2 has precedence in I2-SENT (table 4)");
        // The peer lost its memory.
        pair.hosts[1] = Host::new(identity(KeyKind::P256, 2), quick(), [88; 32], 100, Instant::ZERO);
        pair.events[1].clear();
        pair.set_network(Sent::intact);
        pair.connect(1);
        pair.run(Duration::from_secs(100));
        assert_eq!(pair.states(), [State::Established; 2], "{state:?}");
        pair.assert_sas_match();
        assert_eq!(pair.sas(0).len(), 1, "{state:?}");
    }
}

/// No key appears in what a program could log.
#[test]
fn no_key_is_in_debug_output() {
    let pair = Pair::quick().established();
    let shown = format!("{:?} {:#?} {:?} {:#?}", pair.hosts, pair.events, pair.association(0), pair.sas(0));
    let shown: String = shown.chars().filter(|c| !c.is_whitespace()).collect();
    for sa in pair.sas(0) {
        for key in [&sa.keys.outgoing, &sa.keys.incoming] {
            let decimal: Vec<_> = key.encryption[..4].iter().map(u8::to_string).collect();
            let hex: String = key.encryption[..4].iter().map(|b| format!("{b:02x}")).collect();
            assert!(!shown.contains(&decimal.join(",")) && !shown.contains(&hex));
        }
        assert!(shown.contains("EspKeys(..)"));
    }
}

/// A compile-time promise: what holds keys zeroes them.
#[test]
fn keys_are_zeroed_on_drop() {
    fn zeroed<T: zeroize::ZeroizeOnDrop>() {}
    zeroed::<keymat::HipKeys>();
    zeroed::<keymat::EspKeys>();
    zeroed::<dh::SharedSecret>();
}
