//! Load and limits, in memory of fixed size: how hard puzzles must be, who gets another answer, how much is computed
//! for whom, and which puzzles and solutions were used.

use std::collections::BTreeSet;
use std::hash::Hasher;
use std::net::IpAddr;

use polypath_wire::{Duration, Instant};
use siphasher::sip::SipHasher13;

use crate::config::HipConfig;

const WINDOW: Duration = Duration::from_secs(1);

/// Counts I1 packets and failed I2 packets per second and says how hard puzzles must be (RFC 7401 §4.1.1).
pub(crate) struct Load {
    since: Instant,
    count: u32,
    difficulty: u8,
}

impl Load {
    pub fn new(config: &HipConfig) -> Self {
        Self { since: Instant::ZERO, count: 0, difficulty: config.calm_difficulty }
    }

    /// One more; the difficulty of puzzles from now on. It rises at once and falls by one bit a second.
    pub fn count(&mut self, now: Instant, config: &HipConfig) -> u8 {
        let passed = now.since(self.since);
        if passed >= WINDOW {
            let seconds = u8::try_from(passed.as_nanos() / WINDOW.as_nanos()).unwrap_or(u8::MAX);
            let wanted = wanted(self.count, config);
            self.difficulty = wanted.max(self.difficulty.saturating_sub(seconds)).max(config.calm_difficulty);
            (self.since, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(1);
        // Within a second only steps of four bits, so that few R1s must be signed anew.
        let step = wanted(self.count, config) / 4 * 4;
        self.difficulty = self.difficulty.max(step);
        self.difficulty
    }
}

/// Eight bits at the calm rate, and one more for every doubling: the work asked for in all grows
/// with the square of the rate.
fn wanted(rate: u32, config: &HipConfig) -> u8 {
    let times = rate / config.calm_i1_rate.max(1);
    let bits = if times == 0 { config.calm_difficulty } else { 8 + times.ilog2() as u8 };
    bits.max(config.calm_difficulty).min(config.max_difficulty)
}

const BUCKETS: usize = 4096;

/// A limit per second and address, in buckets that addresses share (RFC 7401 §6.7).
pub(crate) struct RateLimit {
    key: [u8; 16],
    since: Instant,
    counts: Box<[u32]>,
}

impl RateLimit {
    pub fn new(key: [u8; 16]) -> Self {
        Self { key, since: Instant::ZERO, counts: vec![0; BUCKETS].into() }
    }

    /// Whether one more goes to `address`. Peers that we know and strangers at one address have a bucket each.
    pub fn allow(&mut self, now: Instant, address: IpAddr, known: bool, limit: u32) -> bool {
        if now.since(self.since) >= WINDOW {
            self.since = now;
            self.counts.fill(0);
        }
        let bucket = (self.digest(address) as usize).wrapping_add(usize::from(known)) % BUCKETS;
        let count = &mut self.counts[bucket];
        *count = count.saturating_add(1);
        *count <= limit
    }

    /// Two bytes that tell most addresses apart, and that nobody else can compute.
    pub fn mark(&self, address: IpAddr) -> [u8; 2] {
        let [.., a, b] = self.digest(address).to_le_bytes();
        [a, b]
    }

    fn digest(&self, address: IpAddr) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.key);
        match address {
            IpAddr::V4(a) => hasher.write(&a.octets()),
            // A whole /64 belongs to one host.
            IpAddr::V6(a) => hasher.write(&a.octets()[..8]),
        }
        hasher.finish()
    }
}

/// Limits a rate: `size` at once, and then `per_second`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    size: u32,
    per_second: u32,
    /// When it will be full if nothing is taken until then.
    full_at: Instant,
}

impl Bucket {
    /// A full one, of `size` and more than 0 `per_second`.
    pub const fn new(size: u32, per_second: u32) -> Self {
        Self { size, per_second, full_at: Instant::ZERO }
    }

    /// Takes one, if more than `kept` are left.
    pub fn take(&mut self, now: Instant, kept: u32) -> bool {
        let one = Duration::from_nanos(1_000_000_000 / u64::from(self.per_second.max(1)));
        let taken = self.full_at.since(now);
        let room = u64::from(self.size.saturating_sub(kept));
        if taken + one > one.times(room) {
            return false;
        }
        self.full_at = self.full_at.max(now) + one;
        true
    }
}

/// How often an answer to each puzzle of one generation was bad. Puzzles share counters by their random part, which
/// nobody can choose.
#[derive(Default)]
pub(crate) struct Failures(Vec<u8>);

/// Bad answers after which a puzzle is void: more than one, as a forger may have seen the puzzle too.
const MOST_FAILURES: u8 = 4;

impl Failures {
    /// Whether an answer to the puzzle with this I is worth looking at.
    pub fn allow(&self, random: &[u8]) -> bool {
        index(random).is_some_and(|n| self.0.get(n).is_none_or(|count| *count < MOST_FAILURES))
    }

    /// An answer to it was bad.
    pub fn count(&mut self, random: &[u8]) {
        self.0.resize(1 << 16, 0);
        if let Some(n) = index(random) {
            self.0[n] = self.0[n].saturating_add(1);
        }
    }
}

fn index(random: &[u8]) -> Option<usize> {
    random.first_chunk().map(|bytes| u16::from_be_bytes(*bytes).into())
}

/// Solutions accepted in the current and the previous generation of puzzles.
#[derive(Default)]
pub(crate) struct Used {
    current: BTreeSet<[u8; 32]>,
    previous: BTreeSet<[u8; 32]>,
}

impl Used {
    pub fn contains(&self, solution: &[u8; 32]) -> bool {
        self.current.contains(solution) || self.previous.contains(solution)
    }
    pub fn insert(&mut self, solution: [u8; 32]) {
        self.current.insert(solution);
    }
    pub fn rotate(&mut self) {
        self.previous = std::mem::take(&mut self.current);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puzzles_harden_under_load_and_ease_after_it() {
        let config = HipConfig::default();
        let mut load = Load::new(&config);
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(5_000 + ms);
        assert_eq!(load.count(at(0), &config), 0);
        let last = (0..10_000).map(|_| load.count(at(500), &config)).last();
        assert_eq!(last, Some(12), "8 + log2(100), down to a step of four");
        assert_eq!(load.count(at(1_000), &config), 14, "8 + log2(100)");
        assert_eq!(load.count(at(4_000), &config), 11);
        assert_eq!(load.count(at(60_000), &config), 0);
    }

    #[test]
    fn the_limit_is_per_address_and_second() {
        let mut limit = RateLimit::new([0; 16]);
        let (a, b) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let now = Instant::ZERO + Duration::from_secs(9);
        assert_eq!((0..50).filter(|_| limit.allow(now, a, false, 20)).count(), 20);
        assert!(limit.allow(now, b, false, 20));
        assert!(limit.allow(now, a, true, 20), "a peer that we know, behind the address of a flood");
        assert!(limit.allow(now + WINDOW, a, false, 20));
    }

    #[test]
    fn a_bucket_gives_what_it_holds_and_then_its_rate() {
        let mut bucket = Bucket::new(10, 5);
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        assert_eq!((0..50).filter(|_| bucket.take(at(9_000), 4)).count(), 6, "four are kept");
        assert_eq!((0..50).filter(|_| bucket.take(at(9_000), 0)).count(), 4);
        assert_eq!((0..50).filter(|_| bucket.take(at(10_000), 0)).count(), 5, "five a second");
        assert_eq!((0..50).filter(|_| bucket.take(at(60_000), 0)).count(), 10, "never more than it holds");
    }

    #[test]
    fn a_puzzle_is_good_for_few_bad_answers() {
        let mut failures = Failures::default();
        let allowed = |failures: &mut Failures, random: &[u8]| {
            let allowed = failures.allow(random);
            failures.count(random);
            allowed
        };
        assert_eq!((0..1_000).filter(|_| allowed(&mut failures, &[1, 2, 3])).count(), 4);
        assert!(allowed(&mut failures, &[2, 1, 3]), "another one is another one");
        assert!(!allowed(&mut failures, &[1]), "too short to be one");
    }
}
