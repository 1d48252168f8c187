use polypath_wire::{Duration, Rate};

use super::*;
use crate::facts::KnownPath;

fn ack(segments: u64) -> AckSample {
    AckSample { newly_acked: 1000 * segments, window_limited: true, ..Default::default() }
}

fn loss(cause: LossCause, flight_size: u64) -> LossEvent {
    LossEvent { cause, episode: Episode(1), bytes: 1000, flight_size, oldest_sent: Instant::ZERO }
}

/// Reno's growth.
fn ack_at(r: &mut Window, now: Instant, sample: &AckSample) {
    if let Some(acked) = r.on_ack(now, sample) {
        r.grow((r.mss * acked) as f64 / r.cwnd);
    }
}

fn ack_with(r: &mut Window, sample: &AckSample) {
    ack_at(r, Instant::ZERO, sample);
}

/// Reno's reduction.
fn lose(r: &mut Window, loss: &LossEvent) {
    r.reduce(loss, loss.flight_size as f64 / 2.0);
}

/// A round of ten segments with this round trip.
fn hystart_round(r: &mut Window, rtt_ms: u64, window_limited: bool) {
    let rtt = Some(Duration::from_millis(rtt_ms));
    let sample = AckSample { rtt, prior_in_flight: 10_000, window_limited, ..ack(1) };
    (0..10).for_each(|_| ack_with(r, &sample));
}

fn paced(window: u32) -> Window {
    let config = WindowConfig { slow_start: SlowStart::Paced, ..Default::default() };
    Window::new(WindowConfig { initial_window: window, ..config }, 1000)
}

/// An acknowledgment on a path of 80 Mbit/s, 40 ms: 400 kB.
fn of_path(rtt_ms: u64, in_flight: u64) -> AckSample {
    let rtt = Some(Duration::from_millis(rtt_ms));
    let (delivery_rate, train_rate) = (Some(Rate::from_mbps(80)), Some(Rate::from_mbps(80)));
    let (srtt, min_rtt) = (rtt, Some(Duration::from_millis(40)));
    let sample = AckSample { rtt, srtt, min_rtt, delivery_rate, train_rate, ..ack(1) };
    AckSample { prior_in_flight: in_flight, ..sample }
}

#[test]
fn what_slow_start_lost_leaves_what_the_path_holds_and_what_is_lost_later_half() {
    let mut r = paced(600);
    (0..610).for_each(|_| ack_at(&mut r, Instant(9), &of_path(50, 600_000)));
    assert_eq!((r.bytes() / 1000, r.phase()), (450, Phase::CongestionAvoidance));
    lose(&mut r, &loss(LossCause::LaterDelivered, 450_000));
    assert_eq!(r.bytes(), 400_000, "it left before slow start did");
    lose(&mut r, &loss(LossCause::LaterDelivered, 400_000));
    assert_eq!(r.bytes(), 200_000);
}

#[test]
fn paced_is_what_leaves_at_twice_the_window_then_as_fast_as_the_bottleneck_then_at_the_window_and_a_quarter()
{
    let mut r = paced(100);
    assert_eq!(r.pace(), None, "nothing is known");
    ack_with(&mut r, &AckSample { train_rate: None, ..of_path(40, 0) });
    let rate = |r: &Window| r.pace().map(|p| p.rate);
    assert_eq!(rate(&r), Some(Rate::from_mbps(40)), "100 kB in 40 ms are 20 Mbit/s");
    ack_with(&mut r, &of_path(40, 0));
    assert_eq!(rate(&r), Some(Rate::from_mbps(60)), "three quarters of what trains tell");
    r.cwnd = 300_000.0;
    assert_eq!(rate(&r), Some(Rate::from_mbps(80)));
    r.ssthresh = 0.0;
    assert_eq!(rate(&r), Some(Rate::from_mbps(75)));
    assert_eq!(
        r.pace().map(|p| (p.quantum, p.credit.0)),
        Some((9_000, 5_000_000)),
        "1/1024 s in whole segments"
    );
}

/// One segment was left by a timeout, and less than a segment is what the path has shown to hold.
#[test]
fn a_paced_slow_start_leaves_two_segments_at_least() {
    let mut r = paced(1);
    let slow = Some(Rate(8000));
    let sample =
        AckSample { delivery_rate: slow, train_rate: None, window_limited: false, ..of_path(60, 400) };
    let mut acks = 0;
    while r.phase() == Phase::SlowStart {
        acks += 1;
        assert!(acks < 20, "{}", r.bytes());
        ack_with(&mut r, &sample);
    }
    assert_eq!((r.bytes(), r.phase()), (2000, Phase::CongestionAvoidance));
}

/// 80 Mbit/s and 40 ms hold 400 kB.
fn first_flight(mbps: u64, bytes: u64) -> FirstFlight {
    let known = KnownPath { rate: Rate::from_mbps(80), rtt: Duration::from_millis(40) };
    FirstFlight { known, at: Instant::ZERO, bytes, rate: Rate::from_mbps(mbps) }
}

#[test]
fn a_first_flight_is_the_window_and_its_rate_until_trains_confirm_what_is_known() {
    let first = first_flight(40, 200_000);
    let mut r = paced(10);
    r.on_first_flight(&first);
    assert_eq!(r.bytes(), 200_000);
    assert_eq!(r.pace().map(|p| p.rate), Some(Rate::from_mbps(40)));
    lose(&mut r, &loss(LossCause::LaterDelivered, 200_000));
    assert_eq!(r.bytes(), 100_000, "it was too much");
    assert!(!r.starts(), "slow start is over");
    for (mbps, kilobytes) in [(80, 400), (8, 208)] {
        let mut r = paced(10);
        r.on_first_flight(&first);
        let told = |sample: AckSample| AckSample { train_rate: Some(Rate::from_mbps(mbps)), ..sample };
        (0..70).for_each(|_| ack_with(&mut r, &told(of_path(40, 200_000))));
        assert_eq!(r.bytes() / 1000, kilobytes, "trains show {mbps} Mbit/s");
    }
    assert!(paced(10).starts() && !Window::new(WindowConfig::default(), 1000).starts());
}

#[test]
fn a_first_flight_of_less_than_the_window_leaves_at_its_rate_or_what_trains_told() {
    let mut r = paced(10);
    r.on_first_flight(&first_flight(8, 5000));
    let sends = |r: &Window| (r.bytes(), r.pace().map(|p| p.rate));
    assert_eq!(
        sends(&r),
        (10_000, Some(Rate::from_mbps(6))),
        "three quarters of it: twice the window is less"
    );
    r.on_first_flight(&first_flight(40, 100_000));
    assert_eq!(sends(&r), (100_000, Some(Rate::from_mbps(20))), "no less than a window in a round trip");
}

#[test]
fn a_stretched_acknowledgment_counts_for_all_it_acknowledges_if_what_follows_is_paced() {
    let mut r = paced(20);
    ack_with(&mut r, &AckSample { prior_in_flight: 20_000, ..ack(16) });
    assert_eq!(r.bytes(), 36_000);
}

fn with_hystart() -> Window {
    Window::new(WindowConfig { slow_start: SlowStart::Hystart, ..Default::default() }, 1000)
}

#[test]
fn hystart_counts_rounds_that_do_not_fill_the_window() {
    let mut r = with_hystart();
    hystart_round(&mut r, 40, true);
    hystart_round(&mut r, 50, false);
    assert_eq!(r.bytes(), 20_000);
    hystart_round(&mut r, 50, true); // a quarter of slow start's growth
    assert_eq!(r.bytes(), 22_500);
    (0..4).for_each(|_| hystart_round(&mut r, 50, false));
    assert_eq!(r.snapshot().ssthresh, Some(22_500));
}

#[test]
fn undo_resumes_hystart_too() {
    let mut r = with_hystart();
    hystart_round(&mut r, 40, true);
    lose(&mut r, &loss(LossCause::LaterDelivered, 20_000));
    r.undo(Episode(1));
    assert_eq!((r.bytes(), r.snapshot().ssthresh), (20_000, None));
    (0..6).for_each(|_| hystart_round(&mut r, 50, true));
    assert!(r.snapshot().ssthresh.is_some(), "it ends slow start as if nothing had happened");
}

/// A loss with so much in flight, of which the last acknowledgment says whether the sender had more to send.
fn lose_behind(r: &mut Window, in_flight: u64, app_limited: bool) {
    let sample =
        AckSample { app_limited, window_limited: false, delivery_rate: None, ..of_path(40, in_flight) };
    ack_with(r, &sample);
    lose(r, &loss(LossCause::LaterDelivered, in_flight));
}

#[test]
fn a_loss_of_a_window_that_was_unused_leaves_the_threshold() {
    for (in_flight, app_limited, threshold) in
        [(3000, true, 400_000), (3000, false, 2000), (300_000, true, 150_000)]
    {
        let mut r = paced(400);
        r.ssthresh = 400_000.0;
        lose_behind(&mut r, in_flight, app_limited);
        assert_eq!((r.bytes(), r.ssthresh as u64), ((in_flight / 2).max(2000), threshold), "{in_flight}");
    }
    let mut r = paced(10);
    lose_behind(&mut r, 1000, true);
    assert_eq!((r.bytes(), r.ssthresh), (2000, f64::INFINITY), "slow start begins anew");
}

#[test]
fn marks_leave_one_segment_and_losses_two() {
    let mark = |flight_size| LossEvent { bytes: 0, ..loss(LossCause::LaterDelivered, flight_size) };
    let mut r = Window::new(WindowConfig { initial_window: 4, ..Default::default() }, 1000);
    for bytes in [2000, 1000, 1000] {
        let flight = r.bytes();
        lose(&mut r, &mark(flight));
        assert_eq!((r.bytes(), r.ssthresh), (bytes, 2000.0));
    }
    lose(&mut r, &loss(LossCause::LaterDelivered, 1000));
    assert_eq!(r.bytes(), 2000);
}

#[test]
fn what_is_undone_late_leaves_a_window_that_is_larger_by_now() {
    let mut r = Window::new(WindowConfig::default(), 1000);
    lose(&mut r, &loss(LossCause::LaterDelivered, 10_000));
    r.grow(6000.0);
    assert!(!r.undo(Episode(1)));
    assert_eq!((r.bytes(), r.phase()), (11_000, Phase::CongestionAvoidance));
}
