//! The draft's state machine, event by event, on a path whose answers the test makes up.

use super::*;

const MSS: u64 = 1000;
const RTT: Duration = Duration::from_millis(40);

/// A path of 80 Mbit/s and 40 ms, 400 kB: what leaves at an instant is answered a round trip later, no faster than the
/// bottleneck.
struct Path {
    bbr: Bbr,
    now: Instant,
    /// What is in flight: when it left, and what had been delivered then, and when.
    flight: std::collections::VecDeque<(Instant, f64, Instant, u64)>,
    delivered: f64,
    delivered_at: Instant,
    /// When the bottleneck will be free.
    free_at: Instant,
    rate: Rate,
    offset: u64,
    /// Of this number of segments one is lost; and how many left.
    loses: Option<u64>,
    sent: u64,
    lost: std::collections::VecDeque<LostSegment>,
    next_send: Instant,
}

impl Path {
    fn new() -> Self {
        let now = Instant(1_000_000_000);
        Self {
            bbr: Bbr::new(BbrConfig::default(), now, MSS as u32, 1),
            now,
            flight: Default::default(),
            delivered: 0.0,
            delivered_at: now,
            free_at: now,
            rate: Rate::from_mbps(80),
            offset: 0,
            loses: None,
            sent: 0,
            lost: Default::default(),
            next_send: now,
        }
    }

    fn in_flight(&self) -> u64 {
        (self.flight.len() + self.lost.len()) as u64 * MSS
    }

    /// Sends a segment if window and pacing allow.
    fn send(&mut self) -> bool {
        let paced = self.bbr.pace().map(|pace| pace.rate.transmission_time(MSS));
        if self.in_flight() + MSS > self.bbr.window() || self.next_send > self.now {
            return false;
        }
        self.next_send =
            self.next_send.max(self.now - Duration::from_millis(1)) + paced.unwrap_or(Duration::ZERO);
        self.bbr.on_sent(self.now, MSS);
        self.sent += 1;
        let offset = self.offset;
        self.offset += 2 * MSS;
        if self.loses.is_some_and(|every| self.sent.is_multiple_of(every)) {
            self.lost.push_back(LostSegment { offset, bytes: MSS, sent_at: self.now });
            return true;
        }
        self.free_at = self.free_at.max(self.now) + self.rate.transmission_time(MSS);
        self.flight.push_back((self.now, self.delivered, self.delivered_at, (self.free_at + RTT).0));
        true
    }

    /// Time passes until the next answer or the next segment.
    fn step(&mut self) {
        while self.send() {}
        let answer = self.flight.front().map(|f| Instant(f.3));
        let send = (self.in_flight() + MSS <= self.bbr.window()).then_some(self.next_send);
        let Some(next) = answer.into_iter().chain(send).min() else { return };
        self.now = self.now.max(next);
        if answer.is_some_and(|at| at <= self.now) {
            self.answer();
        }
    }

    fn answer(&mut self) {
        let Some((sent_at, delivered, delivered_at, _)) = self.flight.pop_front() else { return };
        let prior_in_flight = self.in_flight() + MSS;
        self.delivered += MSS as f64;
        let bytes = (self.delivered - delivered) as u64;
        let rtt = Some(self.now.since(sent_at));
        let sample = AckSample {
            newly_acked: MSS,
            newly_acked_segments: 1,
            rtt,
            srtt: rtt,
            delivery_rate: Some(Rate::from_bytes_per(bytes, self.now.since(delivered_at))),
            sent_at: Some(sent_at),
            prior_in_flight,
            window_limited: prior_in_flight + MSS > self.bbr.window(),
            in_recovery: !self.lost.is_empty(),
            ..AckSample::default()
        };
        self.delivered_at = self.now;
        self.bbr.on_ack(self.now, &sample);
        while self.lost.front().is_some_and(|lost| lost.sent_at < sent_at) {
            let lost = self.lost.pop_front().expect("there is one");
            self.bbr.on_lost(self.now, &lost);
        }
    }

    /// Until `done`, at most a minute; whether it came.
    fn until(&mut self, done: impl Fn(&Bbr) -> bool) -> bool {
        let end = self.now + Duration::from_secs_f64(60.0);
        while self.now < end && !done(&self.bbr) {
            self.step();
        }
        done(&self.bbr)
    }

    fn run(&mut self, seconds: f64) {
        let end = self.now + Duration::from_secs_f64(seconds);
        while self.now < end {
            self.step();
        }
    }
}

fn in_state(state: State) -> impl Fn(&Bbr) -> bool {
    move |bbr| bbr.state == state
}

/// "Exiting STARTUP on Bandwidth Plateau" and "Exiting DRAIN Based on Inflight".
#[test]
fn startup_ends_where_the_bandwidth_stays_and_drain_where_the_queue_is_gone() {
    let mut path = Path::new();
    assert!(path.until(in_state(State::Drain)));
    assert!(path.bbr.pipe.reached && path.now.since(Instant(1_000_000_000)) < RTT.times(20));
    let bw = path.bbr.long.max_bw() / 1e7;
    assert!((0.98..1.02).contains(&bw), "{bw} of 80 Mbit/s");
    assert!(path.until(|bbr| bbr.state != State::Drain));
    let (inflight, full) = (path.bbr.inflight, path.bbr.inflight_at(path.bbr.bw, 1.0));
    assert!(inflight <= full && path.bbr.is_in_probe_bw(), "{inflight} {full}");
}

/// "Exiting DRAIN Based on Time": the bandwidth falls as it begins.
#[test]
fn drain_ends_after_three_rounds_anyway() {
    let mut path = Path::new();
    assert!(path.until(in_state(State::Drain)));
    let began = path.bbr.round.count;
    path.rate = Rate::from_mbps(20);
    assert!(path.until(|bbr| bbr.state != State::Drain));
    assert_eq!(path.bbr.round.count, began + DRAIN_ROUNDS + 1);
}

/// "Exiting STARTUP on Loss": one of 20 segments, more than 2 %.
#[test]
fn startup_ends_where_too_much_is_lost() {
    let mut path = Path::new();
    path.loses = Some(20);
    assert!(path.until(|bbr| bbr.state != State::Startup));
    assert!(path.bbr.long.inflight.is_finite(), "it knows how much is too much");
    assert!(path.bbr.long.max_bw() < 0.9e7, "before the bandwidth stayed");
}

/// The cycle, and "Exiting PROBE_UP on Bandwidth Plateau": no more than a fifth above what the path holds.
#[test]
fn bandwidth_is_probed_in_a_cycle_that_finds_what_becomes_free() {
    let mut path = Path::new();
    for state in [State::Down, State::Cruise, State::Refill, State::Up, State::Down, State::Cruise] {
        assert!(path.until(in_state(state)), "{state:?}");
    }
    path.rate = Rate::from_mbps(160);
    path.run(12.0);
    let bw = path.bbr.long.max_bw() / 2e7;
    assert!((0.95..1.05).contains(&bw), "{bw} of 160 Mbit/s");
}

/// The wait between two probes: 2 to 3 s by the clock, at most 63 rounds; another seed throws otherwise.
#[test]
fn probes_wait_two_to_three_seconds_or_63_rounds() {
    let mut path = Path::new();
    assert!(path.until(in_state(State::Cruise)));
    let (began, rounds) = (path.now, path.bbr.round.count);
    assert!(path.until(in_state(State::Refill)));
    let (waited, rounds) = (path.now.since(began).as_secs_f64(), path.bbr.round.count - rounds);
    assert!((1.8..3.1).contains(&waited) && rounds <= 64, "{waited} s, {rounds} rounds");
    let waits = |seed| {
        let mut probe = ProbeBw::new(Instant::ZERO, seed);
        [(); 3].map(|()| {
            probe.pick_wait();
            probe.wait
        })
    };
    assert_eq!(waits(1), waits(1));
    assert_ne!(waits(1), waits(2));
}

/// "Entering and Exiting PROBE_RTT": others fill the queue for longer than five seconds.
#[test]
fn the_smallest_round_trip_is_looked_for_when_it_is_old() {
    let mut path = Path::new();
    assert!(path.until(in_state(State::Cruise)));
    path.rate = Rate::from_mbps(60); // a queue of our own stands
    assert!(path.until(in_state(State::ProbeRtt)));
    let (began, before) = (path.now, path.bbr.window());
    assert!(path.until(in_state(State::Cruise)));
    let stayed = path.now.since(began).as_secs_f64();
    assert!((0.2..0.6).contains(&stayed), "{stayed} s");
    assert!(path.bbr.window() as f64 > 0.7 * before as f64, "{} of {before}", path.bbr.window());
    let min = path.bbr.rtt.min.map_or(0.0, Duration::as_millis_f64);
    assert!((40.0..41.0).contains(&min), "{min} ms");
}

/// One per cent is below LossThresh; in CRUISE each round costs what it did not deliver, until the next probe: 0.99⁶² is
/// 0.54, on average 0.75 (§5.3.3.5).
#[test]
fn a_loss_of_one_per_cent_costs_no_more_than_the_draft_says() {
    let mut path = Path::new();
    path.loses = Some(100);
    path.run(5.0);
    let before = path.delivered;
    path.run(20.0);
    let share = (path.delivered - before) / 20.0 / 1e7;
    assert!(share > 0.8, "{share} of 80 Mbit/s");
}

#[test]
fn a_probe_that_loses_too_much_bounds_what_is_in_flight() {
    let mut path = Path::new();
    assert!(path.until(in_state(State::Up)));
    path.loses = Some(10);
    assert!(path.until(in_state(State::Down)));
    assert!(path.bbr.probe.too_high && path.bbr.long.inflight < 600_000.0, "{}", path.bbr.long.inflight);
    path.loses = None;
    assert!(path.until(in_state(State::Cruise)));
    assert!(path.bbr.window() as f64 <= path.bbr.inflight_with_headroom() + 1.0, "15 % are left to others");
}

#[test]
fn an_undone_loss_resumes_what_it_ended() {
    let mut path = Path::new();
    assert!(path.until(in_state(State::Up)));
    let cwnd = path.bbr.cwnd;
    path.loses = Some(10);
    assert!(path.until(in_state(State::Down)));
    let cause = LossCause::LaterDelivered;
    let event = LossEvent { cause, episode: Episode(1), bytes: MSS, flight_size: 0, oldest_sent: path.now };
    path.bbr.on_loss(path.now, &event);
    path.bbr.on_undo(path.now, Episode(2));
    assert_eq!(path.bbr.state, State::Down, "another episode");
    path.bbr.on_undo(path.now, Episode(1));
    assert_eq!(path.bbr.state, State::Refill);
    assert!(path.bbr.long.inflight.is_infinite() && path.bbr.cwnd >= cwnd * 0.9);
}

#[test]
fn a_timeout_leaves_one_segment_until_one_sent_after_it_is_delivered() {
    let mut path = Path::new();
    path.run(1.0);
    let before = path.bbr.cwnd;
    for (at, _, _, _) in std::mem::take(&mut path.flight) {
        path.bbr.on_lost(path.now, &LostSegment { offset: 0, bytes: MSS, sent_at: at });
    }
    let cause = LossCause::Timeout;
    let event = LossEvent { cause, episode: Episode(1), bytes: MSS, flight_size: 0, oldest_sent: path.now };
    path.bbr.on_loss(path.now, &event);
    assert_eq!(path.bbr.window(), MSS);
    path.now += Duration::from_millis(1);
    (0..50).for_each(|_| path.step());
    assert!(path.bbr.cwnd > 0.5 * before, "{} {before}", path.bbr.cwnd);
}
