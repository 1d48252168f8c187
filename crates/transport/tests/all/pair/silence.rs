//! Paths that fall silent while others deliver.

use polypath_transport::cc::{CcConfig, NewRenoConfig};
use polypath_transport::facts::PathState;
use polypath_transport::{ConnectionConfig, Observation, RecordFilter, TimeoutTakes};
use polypath_wire::PathId;

use crate::common::{Bed, CLIENT, Edit, Flying, Pair, SERVER, at, ms, prompt};

const FAST: PathId = PathId(0);

/// About 12 Mbit/s over 10 ms and 3 Mbit/s over 40 ms, with more to send than either carries soon.
fn flowing() -> Pair {
    let cc = CcConfig::Newreno(NewRenoConfig { initial_ssthresh: Some(30), ..NewRenoConfig::default() });
    let config = ConnectionConfig { cc, fail_silent: true, send_buffer: 64 << 20, ..prompt() };
    let mut pair = Pair::open(config, &[10, 40]);
    pair.end(CLIENT).record(RecordFilter { events: true, ..RecordFilter::default() });
    pair.write(CLIENT, 60 << 20);
    pair.run_for(ms(1000));
    pair
}

/// From now on nothing that `lost` names arrives.
fn cut(pair: &mut Pair, lost: impl Fn(&Flying) -> bool + Clone + 'static) {
    let goes = lost.clone();
    pair.wire.retain(|f| !goes(f));
    pair.script(move |f| if lost(f) { Edit::Lose } else { Edit::Pass });
}

/// The longest time, ms, in which the server received nothing in order, of the next `span`.
fn longest_pause(pair: &mut Pair, span: u64) -> u64 {
    let (mut longest, mut pause, mut before) = (0, 0, pair.received[SERVER]);
    for _ in 0..span {
        pair.run_for(ms(1));
        pause = if pair.received[SERVER] > before { 0 } else { pause + 1 };
        before = pair.received[SERVER];
        longest = longest.max(pause);
    }
    longest
}

/// What became of the states of paths.
fn states(pair: &mut Pair) -> Vec<(PathId, PathState)> {
    let mut states = Vec::new();
    while let Some(record) = pair.end(CLIENT).poll_record() {
        if let (Some(path), Observation::PathState { state }) = (record.path, record.what) {
            states.push((path, state));
        }
    }
    states
}

#[test]
fn a_path_that_falls_silent_holds_the_stream_up_for_little_more_than_it_takes_to_notice() {
    for forward_only in [false, true] {
        let mut pair = flowing();
        cut(&mut pair, move |f| f.path == FAST && (f.from == CLIENT || !forward_only));
        // 100 ms of silence, until the next acknowledgments on the other path, 80 ms apart, and one way there.
        let pause = longest_pause(&mut pair, 2000);
        assert!(pause < 280, "{pause} ms");
        assert_eq!(states(&mut pair), [(FAST, PathState::Failed)], "once and for all");
        assert_eq!(pair.end(CLIENT).stats().timeouts, 0);
        let late = pair.times(CLIENT, |f| f.path == FAST && f.len() > 0);
        assert!(late.iter().all(|t| *t < 2200), "nothing more goes there");
    }
}

#[test]
fn a_path_that_is_back_is_used_again_at_once_and_not_from_one_segment_on() {
    let mut pair = flowing();
    cut(&mut pair, |f| f.path == FAST);
    pair.run_for(ms(5000));
    let probes = pair.times(CLIENT, |f| f.path == FAST && f.sent > at(3000));
    assert!((3..=20).contains(&probes.len()), "{} probes in 4 s", probes.len());
    pair.script(|_| Edit::Pass);
    let back = pair.now;
    pair.run_while(|p| p.end(CLIENT).path_state(FAST) != Some(PathState::Active));
    assert!(pair.now.since(back) < ms(300), "{:?}", pair.now.since(back));
    let (began, before) = (pair.now, pair.end(CLIENT).path_stats(FAST).bytes_delivered);
    pair.run_until(began + ms(200));
    let carried = pair.end(CLIENT).path_stats(FAST).bytes_delivered - before;
    // Ten segments, twenty, thirty …: 240 of them in ten round trips; one, two, four … would be 100 fewer.
    assert!(carried > 180_000, "{carried}");
    assert_eq!(states(&mut pair), [(FAST, PathState::Failed), (FAST, PathState::Active)]);
}

/// The peer, or both links, pause: nobody knows of any path that it is lost.
#[test]
fn when_all_are_silent_no_path_is_to_blame() {
    for pause in [100, 190, 600] {
        let mut pair = flowing();
        cut(&mut pair, |_| true);
        pair.run_for(ms(pause));
        assert_eq!(states(&mut pair), [], "{pause}");
        pair.script(|_| Edit::Pass);
        pair.run_for(ms(3000));
        let paths = [0, 1].map(|path| pair.end(CLIENT).path_state(PathId(path)));
        assert_eq!(paths, [Some(PathState::Active); 2], "{pause}");
    }
    // A peer that does nothing for a while has all that came answered one after the other.
    let mut pair = flowing();
    let until = pair.now + ms(180);
    pair.script(move |f| match f.from {
        SERVER if f.sent < until => Edit::Delay(until.since(f.sent)),
        _ => Edit::Pass,
    });
    pair.run_for(ms(3000));
    assert_eq!(states(&mut pair), []);
}

#[test]
fn neither_loss_nor_jitter_looks_like_silence() {
    let mut pair = flowing();
    let mut n = 0u64;
    pair.script(move |f| {
        n += 1;
        let dice = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 1000;
        match dice {
            0..30 => Edit::Lose,
            _ if f.path == FAST => Edit::Delay(ms(dice % 40)),
            _ => Edit::Pass,
        }
    });
    pair.run_for(ms(60_000));
    assert_eq!(states(&mut pair), []);
    assert!(pair.end(CLIENT).path_stats(FAST).bytes_delivered > 1_000_000);
}

/// The tail of a stream is on the lost path, and the other one has nothing to deliver.
#[test]
fn a_tail_on_a_lost_path_goes_again_on_the_other_when_its_timer_expires() {
    let config = ConnectionConfig { fail_silent: true, ..prompt() };
    let mut pair = Pair::open(config, &[10, 40]);
    pair.write(CLIENT, 50_000);
    pair.run_until_received(SERVER, 50_000);
    pair.run_for(ms(500));
    cut(&mut pair, |f| f.path == FAST);
    let cut_at = pair.now;
    pair.write(CLIENT, 5_000);
    pair.run_until_received(SERVER, 55_000);
    assert!(pair.now.since(cut_at) < ms(300), "{:?}", pair.now.since(cut_at));
    assert_eq!(pair.end(CLIENT).path_state(FAST), Some(PathState::Failed));
}

/// Old acknowledgments that come late tell of nothing that left since.
#[test]
fn what_was_delivered_before_does_not_revive_a_path() {
    let mut pair = flowing();
    // What the server sends on the lost path arrives half a second later, and nothing arrives there.
    let since = pair.now;
    pair.script(move |f| match (f.path == FAST, f.from) {
        (true, CLIENT) => Edit::Lose,
        (true, _) if f.sent < since + ms(20) => Edit::Delay(ms(500)),
        _ => Edit::Pass,
    });
    pair.run_for(ms(2000));
    assert_eq!(states(&mut pair), [(FAST, PathState::Failed)]);
}

/// A timeout that takes one segment fails the path with more in flight, which no timer of a failed path waits for.
#[test]
fn all_that_a_failed_path_carried_goes_again() {
    let timeout_takes = TimeoutTakes::Segment;
    let config = ConnectionConfig { timeout_takes, path_fail_timeouts: 2, ..prompt() };
    let mut pair = Pair::open(config, &[10, 10]);
    pair.write(CLIENT, 500_000);
    pair.run_for(ms(35));
    pair.script(|f| if f.path.0 == 1 { Edit::Lose } else { Edit::Pass });
    pair.wire.retain(|f| f.path.0 == 0);
    pair.run_while(|p| p.end(CLIENT).path_state(PathId(1)) != Some(PathState::Failed));
    pair.script(|_| Edit::Pass);
    pair.run_until_received(SERVER, 500_000);
}
