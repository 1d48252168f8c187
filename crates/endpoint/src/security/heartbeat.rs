//! Heartbeats: ICMPv6 echoes between HITs, each in the SA of the path that it measures. Any host that
//! carries HIT traffic in BEET mode answers them (RFC 4443 §4.2). A path that is slow gets fewer of them.

use polypath_wire::icmp::{HEADER_LEN, IcmpFamily, IcmpHeader};
use polypath_wire::{Duration, Instant};

use super::UNANSWERED;

/// Bytes of a heartbeat: the ICMPv6 header and the instant it left, ns of the sender's clock.
pub(super) const LEN: usize = HEADER_LEN + 8;
/// Longest echo request that is answered, bytes: what the largest usual links carry.
const MAX_ECHO: usize = 9000;
/// Longest time between two heartbeats of a slow path: NAT bindings live longer (RFC 5770 §4.10).
const LONGEST: Duration = Duration::from_secs(15);

/// A path is not lost before it was silent for this many round trips.
const PATIENCE: u64 = 4;

/// What an ICMPv6 message from the peer asks for or says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heard {
    /// An echo request: it is answered with the same bytes.
    Request {
        /// Identifier.
        id: u16,
        /// Sequence number.
        seq: u16,
    },
    /// The answer to our heartbeat.
    Reply {
        /// When that left.
        sent: Instant,
        /// Bytes of either: more than a heartbeat has if it was a probe.
        len: usize,
    },
    /// Nothing for us.
    Other,
}

/// Writes heartbeat number `seq` of path `id` to `out`, with zeros behind it.
pub(super) fn request(id: u16, seq: u16, now: Instant, family: IcmpFamily, out: &mut [u8]) {
    out[HEADER_LEN..LEN].copy_from_slice(&now.0.to_be_bytes());
    out[LEN..].fill(0);
    emit(IcmpHeader::EchoRequest { id, seq }, family, out);
}

/// Makes `message`, an echo request, its own answer.
pub(super) fn reply(id: u16, seq: u16, family: IcmpFamily, message: &mut [u8]) {
    emit(IcmpHeader::EchoReply { id, seq }, family, message);
}

fn emit(header: IcmpHeader, family: IcmpFamily, message: &mut [u8]) {
    header.emit(message, family).expect("the message has room for its header");
}

/// Reads an ICMPv6 message that came on path `id`.
pub(super) fn read(message: &[u8], path: u16, family: IcmpFamily) -> Heard {
    match IcmpHeader::parse(message, family) {
        Ok((IcmpHeader::EchoRequest { id, seq }, _)) if message.len() <= MAX_ECHO => {
            Heard::Request { id, seq }
        }
        Ok((IcmpHeader::EchoReply { id, .. }, at)) if id == path => {
            let sent = message.get(at..).and_then(|body| body.first_chunk());
            let reply = |sent| Heard::Reply { sent: Instant(u64::from_be_bytes(sent)), len: message.len() };
            sent.copied().map_or(Heard::Other, reply)
        }
        _ => Heard::Other,
    }
}

/// The heartbeats of one path.
#[derive(Debug)]
pub(super) struct Heart {
    /// When the next one leaves.
    pub next: Instant,
    /// When anything came from the peer.
    pub heard: Instant,
    seq: u16,
    /// Those that left since anything came, and since one of them came back.
    silent: u32,
    unanswered: u32,
    /// When the last one left, and whether it came back.
    sent: Instant,
    answered: bool,
    /// Time between two, and the least of it.
    interval: Duration,
    every: Duration,
    /// The round trip of the last one that was answered; before that, of the exchange that made the path.
    round_trip: Duration,
    /// The smoothed round trip of what connections send.
    of_data: Duration,
}

impl Heart {
    /// Of a new path with that round trip, as far as it is known.
    pub fn new(now: Instant, round_trip: Duration) -> Self {
        let none = Duration::ZERO;
        Self {
            next: now,
            heard: now,
            seq: 0,
            silent: 0,
            unanswered: 0,
            sent: now,
            answered: true,
            interval: none,
            every: none,
            round_trip,
            of_data: none,
        }
    }

    /// Something authentic came.
    pub fn hear(&mut self, now: Instant) {
        self.heard = now;
        self.silent = 0;
    }

    /// One leaves now: its number. The next one follows after `every`, or what the last answer took if that is longer. In a
    /// `hurry`, it follows after that, or two round trips, unless an answer comes. Where no answer came, but other packets
    /// did, the path is slow or lost one, and gets half as many; likewise without a hurry once `missed` brought nothing.
    pub fn beat(&mut self, now: Instant, every: Duration, missed: u32, hurry: Option<Duration>) -> u16 {
        let (slow, lost) = (self.silent == 0, self.silent >= missed);
        if !self.answered && (slow || lost && hurry.is_none()) {
            let known = hurry.is_some() && self.round_trip > Duration::ZERO;
            let most = if known { self.round_trip.times(4) } else { LONGEST };
            self.interval = self.interval.times(2).min(most);
        }
        self.interval = self.interval.max(every);
        self.every = every;
        let hurry = hurry.filter(|_| self.answered || !slow);
        let wait = hurry.map_or(self.interval, |least| least.max(self.round_trip.times(2)));
        (self.sent, self.answered) = (now, false);
        self.next = now + wait;
        self.seq = self.seq.wrapping_add(1);
        self.silent = self.silent.saturating_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        self.seq
    }

    /// The one that left at `sent` came back: the next one is due at the usual time.
    pub fn on_answer(&mut self, now: Instant, sent: Instant) {
        self.answered |= sent >= self.sent;
        self.unanswered = 0;
        self.round_trip = now.since(sent);
        self.interval = self.round_trip.min(LONGEST);
        if self.answered && self.next > now {
            self.next = self.sent + self.interval.max(self.every);
        }
    }

    /// A connection measured the round trip of its data, with the queue that it makes.
    pub fn see_data(&mut self, round_trip: Duration) {
        self.of_data = round_trip;
    }

    /// What a packet and its answer take now.
    pub fn round_trip(&self) -> Duration {
        self.round_trip.max(self.of_data)
    }

    /// Whether nothing came for `least`, and for [`PATIENCE`] round trips.
    pub fn is_lost(&self, now: Instant, least: Duration) -> bool {
        now.since(self.heard) >= least.max(self.round_trip().times(PATIENCE))
    }

    /// When the next one leaves if somebody asks: not within `every` of the last one.
    pub fn soonest(&self, now: Instant, every: Duration) -> Instant {
        self.next.min(now.max(self.sent + every))
    }

    /// Heartbeats since anything came.
    pub fn silent(&self) -> u32 {
        self.silent
    }

    /// Whether packets pass in both directions. Where the peer's come and ours do not reach it, no heartbeat comes back; the last
    /// one that left may still be on its way.
    pub fn answers(&self) -> bool {
        self.silent < UNANSWERED && self.unanswered <= UNANSWERED
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    const FAMILY: IcmpFamily = IcmpFamily::V6 { src: Ipv6Addr::LOCALHOST, dst: Ipv6Addr::UNSPECIFIED };

    #[test]
    fn a_heartbeat_comes_back_with_its_instant() {
        let mut message = [0; LEN];
        request(7, 3, Instant(99), FAMILY, &mut message);
        let Heard::Request { id, seq } = read(&message, 0, FAMILY) else { panic!("a request") };
        assert_eq!((id, seq), (7, 3));
        reply(id, seq, FAMILY, &mut message);
        assert_eq!(read(&message, 7, FAMILY), Heard::Reply { sent: Instant(99), len: LEN });
        assert_eq!(read(&message, 8, FAMILY), Heard::Other, "of another path");
        message[LEN - 1] ^= 1;
        assert_eq!(read(&message, 7, FAMILY), Heard::Other, "damaged");
        assert_eq!(read(&[], 7, FAMILY), Heard::Other);
    }

    /// Beats until `end`, s, on a path where answers take `rtt`, and data comes every second or none does.
    fn beats(heart: &mut Heart, end: u64, data: bool, rtt: Option<Duration>) -> u32 {
        let (second, mut number, mut answers) = (Duration::from_secs(1), 0, Vec::new());
        let ticks = (0..end * 10).map(|n| Instant::ZERO + Duration::from_millis(100).times(n));
        for now in ticks {
            if data && now.since(Instant::ZERO).0 % second.0 == 0 {
                heart.hear(now);
            }
            for sent in answers.extract_if(.., |sent| rtt.is_some_and(|rtt| *sent + rtt <= now)) {
                heart.hear(now);
                heart.on_answer(now, sent);
            }
            if heart.next <= now {
                heart.beat(now, second, 4, None);
                answers.push(now);
                number += 1;
            }
        }
        number
    }

    #[test]
    fn a_slow_path_gets_fewer_heartbeats() {
        let of = |end, data, rtt: Option<u64>| {
            beats(&mut Heart::new(Instant::ZERO, Duration::ZERO), end, data, rtt.map(Duration::from_millis))
        };
        assert_eq!((of(60, true, Some(200)), of(60, false, Some(900))), (60, 60), "the usual path");
        assert_eq!(of(4, false, None), 4, "a silent path is noticed as soon as ever");
        assert!(of(150, false, None) <= 4 + 4 + 10, "and then asked less often");
        assert!(of(150, true, Some(8_000)) <= 4 + 150 / 8, "no two under way for long");
        assert!(of(150, true, Some(60_000)) <= 4 + 10);
    }

    #[test]
    fn a_path_is_lost_only_after_its_own_round_trips() {
        let (second, at) = (Duration::from_secs(1), |n| Instant::ZERO + Duration::from_secs(n));
        let mut heart = Heart::new(Instant::ZERO, Duration::ZERO);
        assert!(heart.is_lost(at(4), second.times(4)));
        heart.see_data(second.times(3));
        assert!(!heart.is_lost(at(11), second.times(4)), "a queue of 3 s");
        assert!(heart.is_lost(at(12), second.times(4)));
        let heart = Heart::new(Instant::ZERO, second.times(2));
        assert!(!heart.is_lost(at(7), second.times(4)), "the exchange has shown it");
    }

    #[test]
    fn while_data_flows_a_lost_path_is_asked_again_and_again() {
        let (mut heart, second, ms) =
            (Heart::new(Instant::ZERO, Duration::ZERO), Duration::from_secs(1), Duration::from_millis);
        let hurry = Some(ms(300));
        heart.beat(Instant::ZERO, second, 4, hurry);
        heart.hear(Instant::ZERO + ms(40));
        heart.on_answer(Instant::ZERO + ms(40), Instant::ZERO);
        assert_eq!(heart.next, Instant::ZERO + second, "it answers");
        for n in 0..100 {
            let now = heart.next;
            heart.beat(now, second, 4, hurry);
            assert_eq!((heart.silent(), heart.next), (n + 1, now + ms(300)));
        }
        heart.on_answer(heart.next, heart.sent);
        heart.beat(heart.next, second, 4, hurry);
        assert_eq!(heart.next, heart.sent + ms(600), "its answers take 300 ms");
    }

    #[test]
    fn a_path_on_which_the_peer_is_heard_and_does_not_hear_us_does_not_answer() {
        let (mut heart, second) = (Heart::new(Instant::ZERO, Duration::ZERO), Duration::from_secs(1));
        let heard = |heart: &mut Heart, end| {
            beats(heart, end, true, None);
            heart.answers()
        };
        assert!(heard(&mut heart, 6) && !heard(&mut heart, 8), "after 0, 1, 3 and 7 s");
        heart.on_answer(Instant::ZERO + second.times(9), heart.sent);
        assert!(heart.answers());
        let mut slow = Heart::new(Instant::ZERO, Duration::ZERO);
        beats(&mut slow, 100, true, Some(second.times(5)));
        assert!(slow.answers(), "answers take 5 s");
    }

    #[test]
    fn a_path_that_is_back_gets_its_heartbeats_at_once() {
        let (mut heart, second) = (Heart::new(Instant::ZERO, Duration::ZERO), Duration::from_secs(1));
        let mut now = Instant::ZERO;
        while now < Instant::ZERO + second.times(100) {
            now = heart.next;
            heart.beat(now, second, 4, None);
        }
        heart.on_answer(now + Duration::from_millis(20), now);
        assert_eq!(heart.next, now + second);
    }
}
