//! Paths that come, go, fail and recover.

use polypath_transport::KnowledgeConfig;
use polypath_transport::cc::{
    BbrConfig, CcConfig, CubicConfig, FastConfig, MhipSimpleConfig, NewRenoConfig, RmTcpConfig, SlowStart,
    WVegasConfig,
};
use polypath_transport::facts::{PathState, Why};
use polypath_transport::sched::{DuplicateConfig, SchedulerConfig};
use polypath_transport::{
    CloseReason, ConnectionConfig, DupackConfig, LossConfig, Observation, PathConfig, RecordFilter, State,
    ThresholdConfig,
};
use polypath_wire::{Duration, Instant, PathId};

use crate::common::{Bed, CLIENT, Edit, Flying, Pair, SERVER, at, ms, prompt};

fn used(pair: &Pair, end: usize, path: u16) -> usize {
    pair.data(end).iter().filter(|(_, p, _)| *p == path).count()
}

#[test]
fn both_paths_carry_data() {
    let mut pair = Pair::open(prompt(), &[10, 15]);
    pair.write(CLIENT, 2_000_000);
    pair.run_until_received(SERVER, 2_000_000);
    assert!(used(&pair, CLIENT, 0) > 200 && used(&pair, CLIENT, 1) > 200);
    assert_eq!(pair.data(CLIENT).len(), 2_000_000usize.div_ceil(988), "nothing is sent twice");
}

/// Why each segment of a transfer took its path, if `asked`, and the number of segments.
fn reasons(scheduler: SchedulerConfig, delays: &[u64], asked: bool) -> (Vec<Why>, usize) {
    let mut pair = Pair::open(ConnectionConfig { scheduler, ..prompt() }, delays);
    pair.end(CLIENT).record(RecordFilter { packets: asked, ..RecordFilter::default() });
    pair.write(CLIENT, 300_000);
    pair.run_until_received(SERVER, 300_000);
    let (mut reasons, mut segments, mut picked) = (Vec::new(), 0, None);
    while let Some(record) = pair.end(CLIENT).poll_record() {
        match record.what {
            Observation::Picked { offset, why } => {
                picked = Some((record.path, offset));
                reasons.push(why);
            }
            Observation::Sent { offset, .. } => {
                assert!(picked.take().is_none_or(|p| p == (record.path, offset)), "each before its segment");
                segments += 1;
            }
            _ => {}
        }
    }
    (reasons, segments)
}

#[test]
fn who_asks_hears_why_a_segment_took_its_path() {
    let (min_rtt, sent) = reasons(SchedulerConfig::MinRtt, &[10, 15], true);
    assert_eq!(min_rtt.len(), sent);
    assert!([Why::Best, Why::NextBest].iter().all(|why| min_rtt.contains(why)), "{min_rtt:?}");
    let (turns, sent) = reasons(SchedulerConfig::RoundRobin, &[10, 15], true);
    assert!(turns.len() == sent && turns.iter().all(|why| matches!(why, Why::Turn | Why::OnlyOpen)));
    let (copies, sent) =
        reasons(SchedulerConfig::Duplicate(DuplicateConfig { lost_only: false }), &[10, 15], true);
    assert!(copies.len() == sent && copies.iter().all(|why| *why == Why::Copy), "{copies:?}");
    let (alone, sent) = reasons(SchedulerConfig::MinRtt, &[10], true);
    assert!(alone.is_empty() && sent > 0, "there is nothing to pick");
    assert_eq!(reasons(SchedulerConfig::MinRtt, &[10, 15], false), (vec![], 0), "nobody asked");
}

#[test]
fn a_path_that_is_added_carries_data() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.write(CLIENT, 2_000_000);
    pair.run_for(ms(50));
    let path = pair.add_path(10);
    pair.run_until_received(SERVER, 2_000_000);
    assert_eq!(path, PathId(1));
    assert!(used(&pair, CLIENT, 1) > 200);
}

#[test]
fn what_was_on_a_removed_path_goes_on_the_others() {
    let mut pair = Pair::open(prompt(), &[10, 15]);
    pair.write(CLIENT, 1_000_000);
    pair.run_for(ms(60));
    let now = pair.now;
    [CLIENT, SERVER].into_iter().for_each(|e| pair.end(e).remove_path(now, PathId(1)));
    pair.wire.retain(|f| f.path.0 == 0);
    pair.log.clear();
    pair.run_until_received(SERVER, 1_000_000);
    assert!(pair.log.iter().all(|f| f.path.0 == 0), "nothing more leaves on it");
    assert!(pair.now < at(2000), "and nobody waits for a timeout: {:?}", pair.now);
}

/// Whenever the link comes back it is another path: places are used again, 64 at a time.
#[test]
fn a_link_that_flaps_ten_thousand_times_keeps_getting_paths() {
    let scheduler = SchedulerConfig::RoundRobin;
    let mut pair = Pair::open(ConnectionConfig { scheduler, ..prompt() }, &[5]);
    let mut sent = 0;
    for n in 1..=10_000 {
        let path = pair.add_path(5);
        assert_eq!(path, PathId(n + (n - 1) / 63), "of 64 places one is taken");
        pair.log.clear();
        pair.write(CLIENT, 5000);
        sent += 5000;
        pair.run_until_received(SERVER, sent);
        assert!(used(&pair, CLIENT, path.0) > 0, "{path:?} carries nothing");
        pair.remove_path(path);
        assert_eq!(pair.end(CLIENT).path_state(path), Some(PathState::Removed));
    }
    assert_eq!(pair.end(CLIENT).paths().collect::<Vec<_>>(), [PathId(0)]);
}

#[test]
fn a_path_beyond_what_a_connection_can_have_is_refused() {
    let mut pair = Pair::open(prompt(), &[10; 64]);
    let (now, config) = (pair.now, PathConfig::default());
    assert_eq!(pair.end(CLIENT).add_path(now, config), None);
    pair.remove_path(PathId(7));
    assert_eq!(pair.end(CLIENT).add_path(now, config), Some(PathId(64 + 7)));
}

/// Nothing leaves while there is no path, and nothing is forgotten.
#[test]
fn a_connection_may_be_without_a_path_for_a_while() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.write(CLIENT, 100_000);
    pair.run_for(ms(15));
    pair.remove_path(PathId(0));
    pair.log.clear();
    pair.run_for(Duration::from_secs(20));
    assert!(pair.log.is_empty() && !pair.end(CLIENT).has_output());
    pair.add_path(20);
    pair.run_until_received(SERVER, 100_000);
}

/// A late segment of a removed path is answered on one that is left.
#[test]
fn late_segments_of_a_removed_path() {
    let mut pair = Pair::open(prompt(), &[10, 15]);
    pair.write(CLIENT, 100_000);
    pair.run_for(ms(5));
    let now = pair.now;
    pair.end(SERVER).remove_path(now, PathId(1));
    pair.log.clear();
    pair.run_until_received(SERVER, 100_000);
    assert!(pair.log.iter().all(|f| f.from == CLIENT || f.path.0 == 0));
}

/// One segment per event was used up by the path that goes: the rest must not wait for ever.
#[test]
fn a_burst_limit_does_not_survive_its_path() {
    let config = ConnectionConfig { max_burst: 1, ..prompt() };
    let mut pair = Pair::open(config, &[10, 15]);
    pair.write(CLIENT, 50_000);
    pair.run_for(ms(5));
    pair.wire.retain(|_| false);
    let now = pair.now;
    let path = pair.log.last().unwrap().path;
    [CLIENT, SERVER].into_iter().for_each(|e| pair.end(e).remove_path(now, path));
    pair.run_until_received(SERVER, 50_000);
}

#[test]
fn a_path_that_dies_fails_and_comes_back() {
    let config = ConnectionConfig { scheduler: SchedulerConfig::RoundRobin, ..prompt() };
    let mut pair = Pair::open(config, &[10, 15]);
    pair.script(|f| if f.path.0 == 1 { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 3_000_000);
    pair.run_while(|p| p.end(CLIENT).path_state(PathId(1)) != Some(PathState::Failed));
    assert!(pair.now <= at(4000), "two timeouts: {:?}", pair.now);
    pair.run_until_received(SERVER, 3_000_000);
    pair.script(|_| Edit::Pass);
    pair.run_while(|p| p.end(CLIENT).path_state(PathId(1)) != Some(PathState::Active));
    pair.log.clear();
    for _ in 0..20 {
        pair.write(CLIENT, 50_000);
        pair.run_for(ms(50));
    }
    assert!(used(&pair, CLIENT, 1) > 50, "{} segments on it again", used(&pair, CLIENT, 1));
}

#[test]
fn a_path_that_may_not_fail_goes_on_trying() {
    let config =
        ConnectionConfig { scheduler: SchedulerConfig::RoundRobin, path_fail_timeouts: 0, ..prompt() };
    let mut pair = Pair::open(config, &[10, 15]);
    pair.script(|f| if f.path.0 == 1 { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 3_000_000);
    pair.run_for(Duration::from_secs(8));
    assert_eq!(pair.end(CLIENT).path_state(PathId(1)), Some(PathState::Active));
}

/// While a path fails, the other goes on at its own pace.
#[test]
fn a_dying_path_does_not_hold_the_other_up() {
    let mut pair = Pair::open(prompt(), &[10, 10]);
    pair.write(CLIENT, 500_000);
    pair.run_for(ms(35));
    pair.script(|f| if f.path.0 == 1 { Edit::Lose } else { Edit::Pass });
    pair.wire.retain(|f| f.path.0 == 0);
    pair.run_until_received(SERVER, 500_000);
    assert!(pair.now < at(3000), "{:?}", pair.now);
}

#[test]
fn the_only_path_may_be_away_for_a_while() {
    let mut pair = Pair::open(prompt(), &[10]);
    pair.write(CLIENT, 100_000);
    pair.run_for(ms(25));
    pair.script(|_| Edit::Lose);
    pair.wire.retain(|_| false);
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.end(CLIENT).path_state(PathId(0)), Some(PathState::Active), "there is no other");
    pair.script(|_| Edit::Pass);
    pair.run_until_received(SERVER, 100_000);
}

/// The client's end gives up within five minutes, and then wants nothing more.
fn times_out(pair: &mut Pair) {
    pair.run_for(Duration::from_secs(300));
    assert_eq!((pair.states()[CLIENT], pair.lost(CLIENT)), (State::Closed, Some(CloseReason::TimedOut)));
    assert!(pair.end(CLIENT).poll_timeout().is_none());
}

#[test]
fn all_paths_dead_end_the_connection() {
    let config = ConnectionConfig { max_timeouts: 4, ..prompt() };
    let mut pair = Pair::open(config, &[10, 15]);
    pair.script(|_| Edit::Lose);
    pair.write(CLIENT, 100_000);
    times_out(&mut pair);
}

/// The path that worked is taken away, and those that failed stay dead: then the connection ends, too.
#[test]
fn failed_paths_that_are_left_alone_end_the_connection() {
    let config = ConnectionConfig { max_timeouts: 4, ..prompt() };
    let mut pair = Pair::open(config, &[10, 15]);
    pair.script(|f| if f.path.0 == 0 { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 1_000_000);
    pair.run_while(|p| p.end(CLIENT).path_state(PathId(0)) != Some(PathState::Failed));
    let now = pair.now;
    pair.end(CLIENT).remove_path(now, PathId(1));
    pair.write(CLIENT, 1_000_000);
    times_out(&mut pair);
}

/// Where a round trip takes no time, neither does the timeout; probes of a failed path do.
#[test]
fn probes_of_a_failed_path_take_their_time() {
    let scheduler = SchedulerConfig::RoundRobin;
    let config = ConnectionConfig { min_rto: Duration::ZERO, scheduler, ..prompt() };
    let mut pair = Pair::open(config, &[0, 0]);
    pair.write(CLIENT, 100_000);
    pair.run_until_received(SERVER, 100_000);
    pair.script(|f| if f.path.0 == 1 { Edit::Lose } else { Edit::Pass });
    pair.write(CLIENT, 100_000);
    pair.run_for(ms(100));
    assert_eq!(pair.end(CLIENT).path_state(PathId(1)), Some(PathState::Failed));
    let probes = pair.times(CLIENT, |f| f.path.0 == 1 && f.len() == 0).len();
    assert!((90..=101).contains(&probes), "{probes} in 100 ms");
}

/// The largest numbers that fit a configuration are limits that nothing reaches.
#[test]
fn limits_out_of_reach_limit_nothing() {
    const MOST: u32 = u32::MAX;
    let reno = NewRenoConfig {
        initial_window: MOST,
        initial_ssthresh: Some(MOST),
        abc_limit: MOST,
        slow_start: SlowStart::Hystart,
    };
    let fast = FastConfig {
        alpha: MOST,
        slow_start_exit: MOST,
        multiplicative_increase_below: Duration::MAX,
        rounds_per_update: MOST,
        initial_window: MOST,
        pacing: f64::MAX,
        ..FastConfig::default()
    };
    let simple = MhipSimpleConfig { initial_window: MOST, abc_limit: MOST, ..MhipSimpleConfig::default() };
    let rm_tcp =
        RmTcpConfig { queue: f64::MAX, num_burst: MOST, initial_window: MOST, ..RmTcpConfig::default() };
    let cubic = CubicConfig { initial_window: MOST, initial_ssthresh: Some(MOST), ..CubicConfig::default() };
    let controllers = [
        CcConfig::Newreno(reno),
        CcConfig::Cubic(cubic),
        CcConfig::Bbr(BbrConfig { initial_window: MOST }),
        CcConfig::Lia(reno),
        CcConfig::Olia(reno),
        CcConfig::Balia(reno),
        CcConfig::Wvegas(WVegasConfig { total_alpha: f64::MAX, initial_window: MOST }),
        CcConfig::MhipTwoLevel(reno),
        CcConfig::MhipSimple(simple),
        CcConfig::Fast(fast),
        CcConfig::FastOneWindow(fast),
        CcConfig::RmTcp(rm_tcp),
    ];
    let policies = [
        LossConfig::Rack(Default::default()),
        LossConfig::Sack(ThresholdConfig { threshold: MOST }),
        LossConfig::HeadDupacks(ThresholdConfig { threshold: MOST }),
        LossConfig::Dupack(DupackConfig { threshold: MOST, ..Default::default() }),
        LossConfig::Addr { allowance: Duration::MAX, inner: Box::new(LossConfig::Rack(Default::default())) },
    ];
    for (i, cc) in controllers.into_iter().enumerate() {
        for loss in policies.clone() {
            reach_no_limit(ConnectionConfig { multi_route: i % 2 == 1, cc: cc.clone(), loss, ..prompt() });
        }
    }
}

fn reach_no_limit(config: ConnectionConfig) {
    let knowledge = KnowledgeConfig {
        heartbeat: Duration::MAX,
        marks: true,
        close_late: Some(Duration::MAX),
        close_on_loss: true,
    };
    let config = ConnectionConfig {
        knowledge,
        divide_window: true,
        path_fail_timeouts: u32::MAX,
        max_timeouts: u32::MAX,
        max_burst: u32::MAX,
        send_buffer: u64::MAX,
        reorder_store: Some(u64::MAX),
        ..config
    };
    assert_eq!(config.check(None), Ok(()));
    let mut pair = Pair::open(config, &[10, 15]);
    pair.write(CLIENT, 100_000);
    pair.run_for(ms(100));
    pair.script(|_| Edit::Lose);
    pair.write(CLIENT, 100_000);
    pair.run_for(Duration::from_secs(60));
    pair.script(|_| Edit::Pass);
    pair.run_until_received(SERVER, 200_000);
}

/// A path is announced again and again, but not for ever, until the peer sends something on it.
#[test]
fn an_announcement_that_is_lost_is_repeated() {
    for heard in [false, true] {
        let mut pair = Pair::open(prompt(), &[10, 15]);
        pair.script(move |f| if !heard && f.path.0 == 1 { Edit::Lose } else { Edit::Pass });
        let now = pair.now;
        pair.end(CLIENT).announce(now, PathId(1));
        pair.run_for(ms(1000));
        pair.write(SERVER, 100_000); // over both paths
        pair.run_for(Duration::from_secs(200));
        let times = pair.times(CLIENT, |f| f.path.0 == 1);
        let expected = [1000, 3000, 7000, 15_000, 31_000, 63_000];
        match heard {
            true => assert_eq!(times.iter().filter(|t| **t > 2500).count(), 0, "{times:?}"),
            false => assert_eq!(times, expected),
        }
    }
}

/// Nothing is lost, so nothing goes twice, however much one path overtakes the other.
#[test]
fn two_unequal_paths_lose_nothing() {
    const LEN: u64 = 10_000_000;
    let scheduler = SchedulerConfig::RoundRobin;
    let mut pair = Pair::open(ConnectionConfig { scheduler, ..prompt() }, &[10, 35]);
    pair.write(CLIENT, LEN);
    pair.run_until_received(SERVER, LEN);
    for path in 0..2 {
        let stats = pair.end(CLIENT).path_stats(PathId(path));
        assert!(stats.bytes_delivered > 20_000, "{stats:?}");
        assert_eq!(stats.retransmissions, 0);
    }
}

/// Every 37th segment is lost, in both directions, with and without SACK, on one path and on two.
#[test]
fn loss_harms_no_byte() {
    for (sack, delays) in [(true, &[10][..]), (false, &[10]), (true, &[10, 35]), (false, &[10, 35])] {
        let mut pair = Pair::open(ConnectionConfig { sack, ..prompt() }, delays);
        let mut n = 0;
        pair.script(move |_| {
            n += 1;
            if n % 37 == 5 { Edit::Lose } else { Edit::Pass }
        });
        pair.write(CLIENT, 1_000_000);
        pair.close(CLIENT);
        pair.run_until_received(SERVER, 1_000_000);
        pair.close(SERVER);
        pair.run_while(|p| p.states() != [State::Closed; 2]);
    }
}

/// Of the segments that left on path 0 between 2 and 4 s, the share that left alone, over paths with these delays whose links
/// take 1 ms for each.
fn alone(cc: NewRenoConfig, delays: &[u64]) -> f64 {
    let config = ConnectionConfig { cc: CcConfig::Newreno(cc), ..ConnectionConfig::default() };
    let mut pair = Pair::open(config, delays);
    let mut busy = [Instant::ZERO; 2];
    pair.script(move |f| {
        let busy = &mut busy[f.path.index()];
        *busy = if f.is_data_of(CLIENT) { (*busy).max(f.sent) + ms(1) } else { *busy };
        if f.is_data_of(CLIENT) { Edit::Delay(busy.since(f.sent)) } else { Edit::Pass }
    });
    pair.write(CLIENT, 4_000_000);
    pair.run_until(at(4000));
    let ours = |f: &&Flying| f.is_data_of(CLIENT) && f.path == PathId(0) && f.sent > at(2000);
    let sent: Vec<Instant> = pair.log.iter().filter(ours).map(|f| f.sent).collect();
    let bursts = sent.chunk_by(|a, b| b.since(*a) < Duration::from_micros(100));
    bursts.filter(|burst| burst.len() == 1).count() as f64 / sent.len() as f64
}

/// The receiver acknowledges every second segment of an only path, and each of several.
#[test]
fn a_paced_path_sends_in_twos_whether_there_is_another_or_not() {
    let slow_start = SlowStart::Paced;
    let paced = NewRenoConfig { initial_ssthresh: Some(20), slow_start, ..NewRenoConfig::default() };
    let [one, two] = [&[30][..], &[30, 47]].map(|delays| alone(paced, delays));
    assert!(one < 0.2 && two < 0.2, "{one} {two}");
}
