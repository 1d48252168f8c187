//! The short way of an acknowledgment beside the long one.

use proptest::prelude::*;

use polypath_wire::Duration;

use super::*;
use crate::cc::Env;
use crate::conn::config::ConnectionConfig;
use crate::conn::sender::engine;
use crate::engine::config::PathConfig;
use crate::loss::LossConfig;
use crate::payload::Pattern;

const MSS: u64 = 1000;

fn sender(config: &ConnectionConfig) -> (Sender, Engine) {
    let (mut sender, mut engine) = (Sender::new(config), engine(config, &Env::default()));
    engine.agree(config.loss.build(config.sack), false);
    sender.agree(config.sack, false);
    engine.add_path(Instant::ZERO, PathId::FIRST, &PathConfig::default(), MSS as u32);
    sender.stream.write(&Pattern { key: 0, offset: 0, len: u64::MAX / 2 }.into());
    (sender.window.edge, sender.window.largest) = (u64::MAX / 2, 1 << 20);
    (sender, engine)
}

/// All of it that may differ later: what it would do, and what it tells.
fn state(sender: &Sender, engine: &Engine) -> String {
    let Sender { map, exceptions, losses, .. } = sender;
    let flight = &engine.lanes()[PathId::FIRST].flight;
    let map = (map.una(), map.nxt(), map.dupacks(), map.next_lost());
    let lane = (flight.flight_size(1), flight.next_number(), flight.vouched(), flight.highest_delivered());
    let flight = flight.iter().collect::<Vec<_>>();
    format!("{} {exceptions:?} {losses:?} {lane:?} {flight:?} {map:?}", engine.summary())
}

proptest! {
    /// The short way is a shorter way to the same place.
    #[test]
    fn an_expected_ack_does_what_any_ack_does(
        rack in any::<bool>(), stamps in any::<bool>(),
        steps in prop::collection::vec((0u64..8, 0u64..2500, 0u64..30), 1..200),
    ) {
        let loss = if rack { LossConfig::Rack(Default::default()) } else { LossConfig::Dupack(Default::default()) };
        let config = ConnectionConfig { loss, sack: rack, ..ConnectionConfig::default() };
        let [mut short, mut long] = [sender(&config), sender(&config)];
        let (mut now, mut expected) = (Instant::ZERO, 0);
        for (what, bytes, ms) in steps {
            now += Duration::from_millis(ms);
            let una = short.0.map.una();
            let una = if what < 6 { (una + bytes).min(short.0.map.nxt()) } else { una };
            let blocks = [(una + MSS, una + 2 * MSS)];
            let blocks = if rack && what == 6 && blocks[0].1 <= short.0.map.nxt() { &blocks[..] } else { &[] };
            let (echo, reverse) = (stamps.then_some(now), stamps.then_some(ms as i64));
            let path = PathId::FIRST;
            let ack = Ack { path, route: path, una, blocks, bare: true, pure: what > 3, echo, reverse };
            expected += u32::from(short.0.is_expected(&ack, &short.1));
            let results = [short.0.on_ack(now, &ack, &mut short.1), long.0.on_any_ack(now, &ack, &mut long.1)];
            prop_assert_eq!(results[0], results[1]);
            if what == 7 && bytes > 2000 {
                for (sender, engine) in [&mut short, &mut long] {
                    sender.on_rto(now, path, engine);
                }
            }
            while let Some(sent) = short.0.next(now, &mut short.1) {
                prop_assert_eq!(Some(sent), long.0.next(now, &mut long.1));
            }
            prop_assert_eq!(None, long.0.next(now, &mut long.1));
            prop_assert_eq!(state(&short.0, &short.1), state(&long.0, &long.1));
        }
        prop_assume!(expected > 0);
    }
}
