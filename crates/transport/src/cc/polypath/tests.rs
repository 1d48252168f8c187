use super::path::KEPT;
use polypath_wire::{Duration, Rate};

use super::*;
use crate::bottleneck::DetectionConfig;
use crate::bottleneck::detector::Detector;
use crate::facts::{KnownPath, LossCause};

const A: PathId = PathId(0);
const B: PathId = PathId(1);
const MS: fn(u64) -> Duration = Duration::from_millis;

fn at(ms: u64) -> Instant {
    Instant::ZERO + MS(ms)
}

/// Two paths that are held to share, or not.
fn two(bottlenecks: DetectionConfig) -> Polypath {
    let base = BaseLaw::Newreno;
    let mut c = Polypath::new(PolypathConfig { base, bottlenecks, ..PolypathConfig::default() });
    [A, B].iter().for_each(|path| c.on_path_added(at(0), *path, 1000));
    c
}

/// With these segments in flight.
fn views(in_flight: [u64; 2]) -> [PathView; 2] {
    [A, B].map(|path| PathView { in_flight: 1000 * in_flight[path.index()], ..PathView::new(path, 1000) })
}

fn acked(rtt: u64) -> AckSample {
    let rtt = Some(MS(rtt));
    let sample = AckSample { newly_acked: 1000, newly_acked_segments: 1, ..AckSample::default() };
    AckSample { rtt, srtt: rtt, min_rtt: rtt, prior_in_flight: 5000, window_limited: true, ..sample }
}

fn lost(cause: LossCause, episode: u32, sent: Instant, flight: u64) -> LossEvent {
    LossEvent { cause, episode: Episode(episode), bytes: 1000, flight_size: 1000 * flight, oldest_sent: sent }
}

fn segments(c: &Polypath) -> [u64; 2] {
    [A, B].map(|path| c.window(path) / 1000)
}

#[test]
fn paths_that_share_have_one_initial_window_and_others_one_each() {
    assert_eq!(segments(&two(DetectionConfig::Separate)), [10, 10]);
    let [a, b] = segments(&two(DetectionConfig::Shared));
    assert!(a + b <= 10 && a + b >= 9, "{a} {b}");
}

#[test]
fn paths_that_leave_by_one_link_share_from_the_start() {
    let mut c = two(DetectionConfig::Concordance);
    assert_eq!(c.bottleneck(B), Some(B));
    [A, B].iter().for_each(|path| c.on_link(at(0), *path, 7));
    assert_eq!((c.bottleneck(A), c.bottleneck(B)), (Some(A), Some(A)));
    assert!(segments(&c).iter().sum::<u64>() <= 10);
    assert!(c.poll_verdict().is_some() && c.poll_verdict().is_none());
    c.on_link(at(0), B, 8);
    assert_eq!(c.bottleneck(B), Some(B));
    let mut apart = two(DetectionConfig::Separate);
    [A, B].iter().for_each(|path| apart.on_link(at(0), *path, 7));
    assert_eq!(
        segments(&apart),
        [10, 10],
        "each has its own, whatever the link: nothing would part them again"
    );
}

#[test]
fn a_loss_reduces_what_paths_share_once() {
    let mut c = two(DetectionConfig::Shared);
    let (all, idle) = (views([10, 10]), views([0, 0]));
    (0..10).for_each(|n| c.on_ack(at(50 + n), [A, B][n as usize % 2], &acked(50), &idle));
    let before: u64 = segments(&c).iter().sum();
    c.on_loss(at(100), A, &lost(LossCause::LaterDelivered, 1, at(40), 10), &all);
    let halved: u64 = segments(&c).iter().sum();
    assert!(halved <= before / 2 + 1 && halved >= before / 2 - 1, "{before} {halved}");
    c.on_loss(at(101), B, &lost(LossCause::LaterDelivered, 2, at(45), 10), &all);
    assert_eq!(segments(&c).iter().sum::<u64>(), halved, "it left before the first reduction");
    c.on_loss(at(200), B, &lost(LossCause::LaterDelivered, 3, at(150), 5), &all);
    assert!(segments(&c).iter().sum::<u64>() < halved);
}

#[test]
fn a_loss_on_one_path_is_none_of_a_path_that_does_not_share_with_it() {
    let mut c = two(DetectionConfig::Separate);
    c.on_loss(at(100), A, &lost(LossCause::LaterDelivered, 1, at(40), 10), &views([10, 10]));
    assert_eq!(segments(&c), [5, 10]);
}

#[test]
fn a_timeout_of_one_path_while_another_delivers_is_a_loss_like_any_other() {
    let mut c = two(DetectionConfig::Shared);
    let (all, idle) = (views([5, 5]), views([0, 0]));
    (0..10).for_each(|n| c.on_ack(at(50 + n), B, &acked(50), &idle));
    let before: u64 = segments(&c).iter().sum();
    c.on_loss(at(100), A, &lost(LossCause::Timeout, 1, at(60), 5), &all);
    let after: u64 = segments(&c).iter().sum();
    assert!(after >= 4 && after < before, "{before} {after}");
    c.on_loss(at(1000), A, &lost(LossCause::Timeout, 2, at(800), 2), &all);
    assert!(segments(&c).iter().sum::<u64>() <= 2, "nothing delivers");
}

#[test]
fn a_quicker_path_has_most_of_what_is_shared_and_a_failed_one_none() {
    let mut c = two(DetectionConfig::Shared);
    let mut all = views([0, 0]);
    (0..20).for_each(|n| {
        c.on_ack(at(50 + n), A, &acked(50), &all);
        c.on_ack(at(50 + n), B, &acked(100), &all);
    });
    let [a, b] = segments(&c);
    assert!(a >= 3 * b && a <= 6 * b, "{a} {b}");
    all[0].state = PathState::Failed;
    c.on_ack(at(80), B, &acked(100), &all);
    let [a, b] = segments(&c);
    assert!(a == 1 && b > 10, "{a} {b}");
}

#[test]
fn what_one_path_still_has_in_flight_is_not_sent_on_another() {
    let mut c = two(DetectionConfig::Shared);
    (0..20).for_each(|n| c.on_ack(at(50 + n), [A, B][n as usize % 2], &acked(50), &views([0, 0])));
    let all: u64 = segments(&c).iter().sum();
    let most = all - 2;
    c.on_ack(at(80), B, &acked(50), &views([most, 1]));
    let [a, b] = segments(&c);
    assert!(a > b && b <= 4, "{a} {b} of {all}: the path that gives up its share has not yet");
}

/// A packet that left a round trip of 50 ms and a wait ago is acknowledged each 10 ms, on A alone.
fn waited(c: &mut Polypath, began: u64, waits: &[u64], rate: Rate) -> u64 {
    for (n, wait) in (1..).zip(waits) {
        let (min_rtt, prior_in_flight) = (Some(MS(50)), c.window(A));
        let sample = AckSample { min_rtt, delivery_rate: Some(rate), prior_in_flight, ..acked(50 + wait) };
        c.on_ack(at(began + 10 * n), A, &sample, &views([5, 0]));
    }
    began + 10 * waits.len() as u64
}

#[test]
fn a_loss_that_chance_or_a_queue_made_leaves_what_the_path_holds() {
    let mut c = two(DetectionConfig::Separate);
    let lose = |c: &mut Polypath, now: u64, episode| {
        let flight = c.window(A) / 1000;
        c.on_loss(
            at(now),
            A,
            &lost(LossCause::LaterDelivered, episode, at(now - 50), flight),
            &views([flight, 0]),
        );
        c.window(A)
    };
    let mut now = 1000;
    for episode in 0..6 {
        now = waited(&mut c, now, &[0; 20], Rate::from_mbps(1));
        lose(&mut c, now, episode);
    }
    let before = c.window(A);
    assert_eq!(lose(&mut c, now + 1, 7), before, "no queue");
    let delivers = Rate::from_bytes_per(before * 9 / 10, MS(50));
    now = waited(&mut c, now, &[30; 20], delivers);
    let before = c.window(A);
    let left = lose(&mut c, now, 8);
    assert!(
        left < before && left as f64 >= KEPT * delivers.bytes_in(MS(50)) as f64 - 1.0,
        "{left} of {before}"
    );
}

/// A queue of others stands on A, and the window was just reduced for it; what it was before.
fn reduced_for_the_queue() -> (Polypath, u64, u64) {
    let (base, bottlenecks) = (BaseLaw::Newreno, DetectionConfig::Separate);
    let config = PolypathConfig { base, bottlenecks, queue_target: MS(10), ..PolypathConfig::default() };
    let mut c = Polypath::new(config);
    [A, B].iter().for_each(|path| c.on_path_added(at(0), *path, 1000));
    c.on_loss(at(1), A, &lost(LossCause::LaterDelivered, 1, at(0), 40), &views([40, 0]));
    let mut now = 10;
    loop {
        let before = c.window(A);
        now = waited(&mut c, now, &[30], Rate::from_mbps(2));
        if c.window(A) < before {
            return (c, now, before);
        }
        assert!(now < 2000, "it gives nothing up");
    }
}

#[test]
fn what_was_given_up_for_a_queue_of_others_comes_back_whatever_segments_hold_and_whatever_paths_join() {
    let ends = |change: fn(&mut Polypath)| {
        let (mut c, now, before) = reduced_for_the_queue();
        change(&mut c);
        waited(&mut c, now, &[30; 40], Rate::from_mbps(2));
        (c.window(A), before)
    };
    let changes: [fn(&mut Polypath); 3] =
        [|_| {}, |c| c.on_mss(A, 900), |c| c.on_path_added(at(2000), PathId(2), 1000)];
    for change in changes {
        let (after, before) = ends(change);
        assert!(after >= before, "{after} {before}");
    }
}

#[test]
fn while_a_reduction_for_the_queue_is_tried_nothing_grows() {
    let (mut c, now, _) = reduced_for_the_queue();
    let reduced = c.window(A);
    let now = waited(&mut c, now, &[30; 7], Rate::from_mbps(2));
    assert_eq!(c.window(A), reduced, "a round trip of 80 ms");
    waited(&mut c, now, &[5; 40], Rate::from_mbps(2));
    assert!(c.window(A) > reduced, "the queue was its own");
}

#[test]
fn a_window_that_is_not_used_tells_nothing_of_the_queue() {
    let (mut c, now, before) = reduced_for_the_queue();
    let unused = AckSample { min_rtt: Some(MS(50)), prior_in_flight: 1000, ..acked(80) };
    c.on_ack(at(now + 10), A, &unused, &views([1, 0]));
    assert!(c.window(A) >= before, "the trial has ended");
}

/// The first window on A, after acknowledgments of packets that waited so long, ms, and whose trains had this rate, Mbit/s.
fn first_window(c: &mut Polypath, wait: u64, trains: u64) {
    let (rtt, train_rate) = (Some(MS(50)), Some(Rate::from_mbps(trains)));
    let sample = AckSample { min_rtt: rtt, train_rate, prior_in_flight: 1000, ..acked(50 + wait) };
    (0..4).for_each(|n| c.on_ack(at(60 + n), A, &sample, &views([1, 0])));
}

/// Whether the window stays what it is after the loss on A of what left at `sent`, ms.
fn goes_on(c: &mut Polypath, cause: LossCause, episode: u32, sent: u64) -> bool {
    let before = c.window(A);
    c.on_loss(at(sent + 60), A, &lost(cause, episode, at(sent), 10), &views([10, 0]));
    c.window(A) == before
}

/// Eight packets are lost on A: more than a tenth of those of late.
fn lose_many(c: &mut Polypath) {
    let segment = |n: u64| LostSegment { offset: 1000 * n, bytes: 1000, sent_at: at(10) };
    (0..8).for_each(|n| c.on_lost(at(65), A, &segment(n)));
}

#[test]
fn a_loss_in_slow_start_below_what_the_path_holds_does_not_end_it() {
    let later = LossCause::LaterDelivered;
    let after = |wait, trains, cause| {
        let mut c = two(DetectionConfig::Separate);
        first_window(&mut c, wait, trains);
        goes_on(&mut c, cause, 1, 10)
    };
    assert!(after(0, 40, later), "of 250 kB");
    assert!(!after(0, 1, later), "more than 6 kB");
    assert!(after(3, 40, later), "less than half of what shows a queue");
    assert!(!after(4, 40, later), "a queue fills");
    assert!(!after(10, 40, later), "a queue stands");
    assert!(!after(0, 40, LossCause::Timeout));
    let config = PolypathConfig { bottlenecks: DetectionConfig::Separate, ..PolypathConfig::default() };
    let mut c = Polypath::new(PolypathConfig { random_loss: false, ..config });
    c.on_path_added(at(0), A, 1000);
    first_window(&mut c, 0, 40);
    assert!(!goes_on(&mut c, later, 1, 10), "no loss is excused");
}

#[test]
fn slow_start_goes_on_after_few_losses_only() {
    let later = LossCause::LaterDelivered;
    let mut c = two(DetectionConfig::Separate);
    for (n, wait) in (0..).zip([0, 0, 1, 1, 2, 2]) {
        let train_rate = Some(Rate::from_mbps(40));
        let sample =
            AckSample { min_rtt: Some(MS(50)), train_rate, prior_in_flight: 1000, ..acked(50 + wait) };
        c.on_ack(at(100 + 20 * n), A, &sample, &views([1, 0]));
    }
    let excused = (1..=20).take_while(|episode| goes_on(&mut c, later, *episode, 160)).count();
    assert_eq!(excused, 8, "each after the longest wait");
    let mut c = two(DetectionConfig::Separate);
    first_window(&mut c, 0, 40);
    lose_many(&mut c);
    assert!(!goes_on(&mut c, later, 1, 10), "more than a tenth is lost");
}

#[test]
fn an_excused_loss_lets_the_window_grow_until_more_than_a_tenth_is_lost() {
    let mut c = two(DetectionConfig::Separate);
    first_window(&mut c, 0, 40);
    assert!(goes_on(&mut c, LossCause::LaterDelivered, 1, 10));
    let recovers = |c: &mut Polypath| {
        let before = c.window(A);
        let sample = AckSample { in_recovery: true, prior_in_flight: 10_000, ..acked(50) };
        c.on_ack(at(80), A, &sample, &views([10, 0]));
        c.window(A) > before
    };
    assert!(recovers(&mut c));
    lose_many(&mut c);
    assert!(!recovers(&mut c));
}

#[test]
fn what_is_lost_where_the_window_began_with_what_was_known_counts() {
    let mut c = two(DetectionConfig::Separate);
    let (rate, at) = (Rate::from_mbps(40), Instant::ZERO);
    c.on_first_flight(A, &FirstFlight { known: KnownPath { rate, rtt: MS(50) }, at, bytes: 125_000, rate });
    first_window(&mut c, 0, 40);
    assert!(!goes_on(&mut c, LossCause::LaterDelivered, 1, 10));
}

/// Of a packet that waited in a queue, so that chance alone excuses nothing.
fn queued() -> AckSample {
    AckSample { min_rtt: Some(MS(20)), ..acked(50) }
}

/// Each path delivers `packets` in 100 ms.
fn deliver(c: &mut Polypath, now: u64, packets: u64) {
    for n in 0..2 * packets {
        c.on_ack(at(now + 50 * n / packets), [A, B][n as usize % 2], &queued(), &views([0, 0]));
    }
}

/// Both paths deliver 50 packets, `path` loses some, and later packets of `delivers` arrive. The windows before and after.
fn lose(
    c: &mut Polypath,
    now: u64,
    (path, packets): (PathId, u64),
    event: (LossCause, u32),
    delivers: &[PathId],
) -> [[u64; 2]; 2] {
    let (all, idle) = (views([10, 10]), views([0, 0]));
    deliver(c, now, 50);
    let (now, sent_at) = (at(now + 1000), at(now + 940));
    (0..packets).for_each(|n| c.on_lost(now, path, &LostSegment { offset: 1000 * n, bytes: 1000, sent_at }));
    delivers.iter().for_each(|path| c.on_ack(now, *path, &queued(), &idle));
    let before = segments(c);
    c.on_loss(now, path, &lost(event.0, event.1, sent_at, 10), &all);
    [before, segments(c)]
}

/// A has nine of ten losses. The windows before and after one more of A.
fn mostly_of_a(c: &mut Polypath, cause: LossCause, delivers: &[PathId]) -> [[u64; 2]; 2] {
    for episode in 1..=42 {
        let path = if episode % 10 == 0 { B } else { A };
        lose(c, 1000 * u64::from(episode), (path, 1), (LossCause::LaterDelivered, episode), &[A, B]);
    }
    lose(c, 43_000, (A, 1), (cause, 43), delivers)
}

#[test]
fn what_one_path_loses_beyond_its_sibling_reduces_nothing_that_they_share() {
    let shared = || two(DetectionConfig::Shared);
    let [before, after] = mostly_of_a(&mut shared(), LossCause::LaterDelivered, &[A, B]);
    assert_eq!(before, after);
    assert!(after[0] <= LEAST && after[1] > 2 * LEAST, "{after:?}: B carries what A had");
    let falls = |mut c: Polypath, cause, delivers: &[PathId]| {
        let [[a, b], after] = mostly_of_a(&mut c, cause, delivers);
        assert!(after.iter().sum::<u64>() < a + b, "{a} {b} {after:?}");
    };
    falls(shared(), LossCause::Timeout, &[B]);
    falls(shared(), LossCause::LaterDelivered, &[]);
    let every =
        PolypathConfig { random_loss: false, bottlenecks: DetectionConfig::Shared, ..Default::default() };
    let mut c = Polypath::new(every);
    [A, B].iter().for_each(|path| c.on_path_added(at(0), *path, 1000));
    falls(c, LossCause::LaterDelivered, &[A, B]);
}

#[test]
fn what_a_path_lost_with_a_window_of_its_own_counts_once_it_shares_one() {
    let mut c = two(DetectionConfig::Concordance);
    for episode in 1..=42 {
        let path = if episode % 10 == 0 { B } else { A };
        lose(&mut c, 1000 * u64::from(episode), (path, 1), (LossCause::LaterDelivered, episode), &[A, B]);
    }
    [A, B].iter().for_each(|path| c.on_link(at(43_000), *path, 7));
    let [before, after] = lose(&mut c, 44_000, (A, 1), (LossCause::LaterDelivered, 43), &[A, B]);
    assert_eq!(before.iter().sum::<u64>(), after.iter().sum::<u64>(), "{before:?} {after:?}");
    let [before, after] = lose(&mut c, 46_000, (B, 1), (LossCause::LaterDelivered, 44), &[A, B]);
    assert!(
        after.iter().sum::<u64>() < before.iter().sum(),
        "{before:?} {after:?}: B's are the bottleneck's"
    );
}

#[test]
fn what_a_path_loses_at_the_end_of_slow_start_tells_nothing_of_it() {
    let mut c = two(DetectionConfig::Shared);
    for (n, loss) in (1..).zip([(A, 6), (B, 1), (A, 1)]) {
        let now = 1000 * u64::from(n);
        deliver(&mut c, now - 500, 5000);
        lose(&mut c, now, loss, (LossCause::LaterDelivered, n), &[A, B]);
    }
    assert!(!c.paths.iter().any(|p| p.losses.has_own()), "since then each lost one packet");
}

#[test]
fn a_quick_path_that_gives_up_its_share_keeps_no_more_than_that_part_of_it() {
    let mut shares = Shares::default();
    let verdict = two(DetectionConfig::Shared).detection.judge.verdict().clone();
    let carries = |path: PathId| Some(if path == A { (MS(10), 0.01) } else { (MS(100), 1.0) });
    shares.divide(&verdict, |_| false, carries);
    let [a, b] = [A, B].map(|path| shares.of(path).unwrap());
    assert!(a <= 0.01 && (a + b - 1.0).abs() < 1e-9, "{a} {b}");
    shares.divide(&verdict, |_| false, |_| Some((MS(10), 0.01)));
    assert!(shares.of(A).unwrap() > 0.3, "if both do, nobody gives up anything");
}

/// Counts delivered packets.
#[derive(Debug, Default)]
struct Counts(std::sync::Arc<std::sync::atomic::AtomicU32>);

impl Detector for Counts {
    fn on_delay(&mut self, _: PathId, _: Instant, _: Duration, _: Duration) {}
    fn on_delivered(&mut self, _: PathId, packets: u32) {
        self.0.fetch_add(packets, std::sync::atomic::Ordering::Relaxed);
    }
    fn forget(&mut self, _: PathId) {}
    fn likeness(&mut self, _: Instant, _: Instant, _: (PathId, PathId)) -> Option<f64> {
        None
    }
}

/// As those that were sent more than once.
#[test]
fn packets_without_a_round_trip_count_as_delivered_too() {
    let (mut c, counts) = (two(DetectionConfig::Statistics), Counts::default());
    let seen = counts.0.clone();
    c.detection.detector = Some(Box::new(counts));
    c.on_ack(at(1), A, &AckSample { rtt: None, ..acked(20) }, &views([5, 5]));
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 1);
}
