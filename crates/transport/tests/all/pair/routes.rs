//! The multi-route option, and segments that leave on several routes (Rojviboonchai, Osuga and Aida, §2).

use polypath_transport::cc::CcConfig;
use polypath_transport::sched::{DuplicateConfig, SchedulerConfig};
use polypath_transport::{ConnectionConfig, PathConfig};
use polypath_transport::{LossConfig, ThresholdConfig};
use polypath_wire::tcp::{MultiRoute, TcpFlags};
use polypath_wire::{Duration, PathId, Rate};

use crate::common::{Bed, CLIENT, Edit, Pair, SERVER, at, ms, prompt};

fn routed() -> ConnectionConfig {
    ConnectionConfig { multi_route: true, ..prompt() }
}

fn duplicating() -> ConnectionConfig {
    ConnectionConfig {
        scheduler: SchedulerConfig::Duplicate(DuplicateConfig { lost_only: false }),
        ..routed()
    }
}

/// Copies of each byte of data that left on `path`.
fn sent_on(pair: &Pair, path: u16) -> u64 {
    let copies = pair.log.iter().filter(|f| f.is_data_of(CLIENT) && f.path == PathId(path));
    copies.map(crate::common::Flying::len).sum()
}

#[test]
fn every_segment_names_its_route_and_answers_name_the_route_they_answer() {
    let mut pair = Pair::connecting(routed(), routed(), &[10, 15]);
    pair.run_until(at(500));
    pair.write(CLIENT, 500_000);
    pair.run_until_received(SERVER, 500_000);
    let option = |f: &crate::common::Flying| f.segment.header.options.multi_route;
    assert!(pair.log.iter().all(|f| option(f).is_some_and(|m| m.route == f.path.place())));
    let (mut answers, mut others) = (0, 0);
    for flying in pair.log.iter().filter(|f| f.from == SERVER && !f.has(TcpFlags::SYN)) {
        match option(flying) {
            Some(MultiRoute { route, reply: Some(reply) }) if route == reply => answers += 1,
            _ => others += 1,
        }
    }
    assert!(answers >= 500 && others <= 2, "{answers} {others}");
}

/// Both ends number the routes as they come to know them, so their numbers may differ.
#[test]
fn an_answer_names_the_route_as_the_peer_does() {
    let mut pair = Pair::open(routed(), &[10, 15]);
    pair.script(|f| if f.is_data_of(CLIENT) { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 500);
    pair.run_for(ms(1));
    let mut segment = pair.log.iter().find(|f| f.is_data_of(CLIENT)).expect("it was sent").segment.clone();
    segment.header.options.multi_route = Some(MultiRoute { route: 7, reply: None });
    pair.inject(SERVER, 1, segment);
    let answer = pair.log.last().filter(|f| f.from == SERVER).expect("it is acknowledged at once");
    let expected = MultiRoute { route: 1, reply: Some(7) };
    assert_eq!(answer.segment.header.options.multi_route, Some(expected));
}

/// A segment that is not of the stream does not change what we call a route.
#[test]
fn a_forged_segment_renames_no_route() {
    let mut pair = Pair::open(routed(), &[10]);
    let mut forged = pair.forge(SERVER);
    forged.header.seq = forged.header.seq.plus(1 << 30);
    forged.header.options.multi_route = Some(MultiRoute { route: 7, reply: None });
    pair.inject(SERVER, 0, forged);
    let answer = pair.log.last().filter(|f| f.from == SERVER).expect("it is challenged");
    let expected = MultiRoute { route: 0, reply: Some(0) };
    assert_eq!(answer.segment.header.options.multi_route, Some(expected));
}

#[test]
fn a_peer_without_routes_gets_plain_tcp_on_one_path() {
    for (client, server) in [(routed(), prompt()), (prompt(), routed())] {
        let wants = client.multi_route;
        let mut pair = Pair::connecting(client, server, &[10, 15]);
        pair.run_until(at(500));
        pair.write(CLIENT, 500_000);
        pair.run_until_received(SERVER, 500_000);
        let later = pair.log.iter().filter(|f| !f.has(TcpFlags::SYN));
        assert_eq!(later.filter(|f| f.segment.header.options.multi_route.is_some()).count(), 0);
        if wants {
            assert!(pair.log.iter().all(|f| f.path == PathId(0)), "nothing leaves on the other path");
        }
        assert!(pair.log.iter().any(|f| f.len() == 988), "timestamps are all that segments carry");
    }
}

#[test]
fn duplication_sends_everything_on_every_route() {
    let mut pair = Pair::open(duplicating(), &[10, 15]);
    pair.write(CLIENT, 1_000_000);
    pair.run_until_received(SERVER, 1_000_000);
    let [first, second] = [0, 1].map(|path| sent_on(&pair, path));
    assert!(first >= 990_000 && second >= 990_000, "{first} {second}");
    pair.run_for(ms(200));
    let stats = [0, 1].map(|p| pair.end(CLIENT).path_stats(PathId(p)));
    assert!(stats.iter().all(|s| s.in_flight == 0 && s.retransmissions == 0), "{stats:?}");
    // What arrives on a route is acknowledged for that route: no timeout, no loss, and its own round-trip times.
    assert_eq!(pair.end(CLIENT).stats().timeouts, 0);
    // Equation (3): 10 ms there and 12.5 back on average, 15 there; the first sample knows one way back.
    let [fast, slow] = stats.map(|s| s.srtt.expect("both were measured"));
    assert!(fast >= ms(22) && fast < ms(23) && slow >= ms(27) && slow < ms(28), "{fast:?} {slow:?}");
}

/// An acknowledgment of two segments would leave one copy without an answer, and that is a loss.
#[test]
fn with_routes_every_segment_is_acknowledged_at_once() {
    let mut pair = Pair::open(ConnectionConfig { delayed_ack: ms(40), ..duplicating() }, &[10, 15]);
    pair.write(CLIENT, 1_000_000);
    pair.run_until_received(SERVER, 1_000_000);
    pair.run_for(ms(50));
    let stats = [0, 1].map(|p| pair.end(CLIENT).path_stats(PathId(p)));
    assert!(stats.iter().all(|s| s.in_flight == 0 && s.ssthresh.is_none()), "{stats:?}");
    let answers = pair.log.iter().filter(|f| f.from == SERVER).count();
    assert_eq!(answers, pair.data(CLIENT).len());
}

#[test]
fn any_route_may_die_without_a_pause_in_duplication() {
    for dead in [0, 1] {
        let mut pair = Pair::open(duplicating(), &[10, 10]);
        pair.write(CLIENT, 8_000_000);
        pair.run_for(ms(150));
        pair.script(move |f| if f.path == PathId(dead) { Edit::Lose } else { Edit::Pass });
        let mut longest = ms(0);
        let (mut before, mut since) = (pair.received[SERVER], pair.now);
        while pair.received[SERVER] < 8_000_000 {
            pair.run_for(ms(1));
            if pair.received[SERVER] > before {
                longest = longest.max(pair.now.since(since));
                (before, since) = (pair.received[SERVER], pair.now);
            }
            assert!(pair.now < at(60_000), "it goes on");
        }
        assert!(longest <= ms(45), "no longer than two round trips of 20 ms: {longest:?}");
    }
}

#[test]
fn the_modes_may_change_during_a_connection() {
    let mut pair = Pair::open(routed(), &[10, 15]);
    for (scheduler, copies) in [
        (SchedulerConfig::RoundRobin, 1),
        (SchedulerConfig::Duplicate(DuplicateConfig { lost_only: false }), 2),
        (SchedulerConfig::EarliestArrival, 1),
        (SchedulerConfig::Duplicate(DuplicateConfig { lost_only: false }), 2),
    ] {
        pair.end(CLIENT).set_scheduler(scheduler.clone());
        pair.log.clear();
        let goal = pair.received[SERVER] + 500_000;
        pair.write(CLIENT, 500_000);
        pair.run_until_received(SERVER, goal);
        pair.run_for(ms(100));
        let sent = sent_on(&pair, 0) + sent_on(&pair, 1);
        assert_eq!(sent, copies * 500_000, "{scheduler:?}");
    }
}

/// Rojviboonchai, Osuga and Aida, §2.1: a fast retransmission takes all routes, what a timer gave up the other good ones.
#[test]
fn what_a_timer_gave_up_is_distributed() {
    let (scheduler, loss) = (
        SchedulerConfig::Duplicate(DuplicateConfig { lost_only: true }),
        LossConfig::Sack(ThresholdConfig { threshold: 3 }),
    );
    let mut pair = Pair::open(ConnectionConfig { scheduler, loss, ..routed() }, &[10, 10]);
    pair.script(|f| if f.path == PathId(1) { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 200_000);
    pair.run_until_received(SERVER, 200_000);
    let data = pair.data(CLIENT);
    let on = |path: u16| data.iter().filter(|d| d.1 == path).map(|d| d.2).collect::<Vec<_>>();
    let (alive, mut dead) = (on(0), on(1));
    assert!(dead.len() >= 10, "new data took both routes: {dead:?}");
    assert!(
        dead.iter().all(|offset| alive.iter().filter(|o| *o == offset).count() == 1),
        "once on the other"
    );
    let tried = dead.len();
    dead.sort_unstable();
    dead.dedup();
    assert_eq!(dead.len(), tried, "and never again on the dead one");
}

#[test]
fn a_lost_copy_is_a_loss_on_its_route_and_sends_nothing_again() {
    let mut pair = Pair::open(duplicating(), &[10, 10]);
    let mut seen = 0;
    pair.script(move |f| {
        seen += u32::from(f.is_data_of(CLIENT) && f.path == PathId(1));
        if seen == 100 && f.is_data_of(CLIENT) && f.path == PathId(1) { Edit::Lose } else { Edit::Pass }
    });
    pair.write(CLIENT, 1_000_000);
    pair.run_until_received(SERVER, 1_000_000);
    pair.run_for(ms(500));
    let stats = [0, 1].map(|p| pair.end(CLIENT).path_stats(PathId(p)));
    assert_eq!(stats.clone().map(|s| (s.retransmissions, s.in_flight)), [(0, 0), (0, 0)]);
    assert!(stats[1].ssthresh.is_some() && stats[0].ssthresh.is_none(), "route 1 alone is reduced");
    assert_eq!(pair.end(CLIENT).stats().timeouts, 0);
}

#[test]
fn r_m_tcp_estimates_every_route_whichever_way_acknowledgments_take() {
    for ack_return in [Default::default(), polypath_transport::AckReturn::RoundRobin] {
        let cc = CcConfig::RmTcp(Default::default());
        let scheduler = SchedulerConfig::RoundRobin;
        let mut pair = Pair::open(ConnectionConfig { ack_return, cc, scheduler, ..routed() }, &[10, 15]);
        pair.write(CLIENT, 3_000_000);
        pair.run_until_received(SERVER, 3_000_000);
        let rates = [0, 1].map(|p| pair.end(CLIENT).path_stats(PathId(p)).rate);
        assert!(rates.iter().all(|r| r.is_some_and(|r| r > Rate::from_mbps(1))), "{rates:?}");
        assert_eq!(pair.data(CLIENT).len(), 3_000_000usize.div_ceil(980), "nothing is sent twice");
    }
}

/// A path stands still until the other goes on alone; then the other dies. What it carried alone follows on the
/// first once that is open again, not after a timeout, which is not due before a minute; in pieces where its segments are shorter.
#[test]
fn a_path_that_was_full_gets_the_copies_that_it_missed() {
    for mss in [1000, 600] {
        let config = ConnectionConfig { min_rto: Duration::from_secs(60), ..duplicating() };
        let mut pair = Pair::open(config, &[10]);
        pair.add_path_with(15, PathConfig { mss, ..PathConfig::default() });
        pair.write(CLIENT, 20_000_000);
        pair.run_for(ms(60));
        let [stalls, dies, moves] = [ms(0), ms(100), ms(150)].map(|after| pair.now + after);
        pair.script(move |f| match f.path {
            PathId(0) if f.sent >= dies => Edit::Lose,
            PathId(1) if f.sent >= stalls && f.sent < moves => Edit::Delay(moves.since(f.sent)),
            _ => Edit::Pass,
        });
        pair.run_until(dies);
        let [first, second] = [0, 1].map(|path| sent_on(&pair, path));
        assert!(first > second + 20_000, "the first went on alone: {first} and {second} bytes");
        pair.run_until_received(SERVER, 20_000_000);
        assert!(pair.now < dies + Duration::from_secs(10), "{:?}", pair.now);
        assert_eq!(pair.end(CLIENT).stats().timeouts, 0);
        let on_second = pair.log.iter().filter(|f| f.is_data_of(CLIENT) && f.path == PathId(1));
        assert!(on_second.map(crate::common::Flying::len).all(|len| len <= u64::from(mss)), "they fit");
    }
}
