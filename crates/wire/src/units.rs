//! The numbers everything else is written in: integer nanoseconds, bytes and bits per second.
//!
//! Arithmetic saturates where a result can leave the range and is exact otherwise, so the same
//! inputs give the same outputs on every machine.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A point in time: nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Instant(pub u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Duration(pub u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than everything: "never" in timer tables.
    pub const MAX: Self = Self(u64::MAX);

    /// `secs` seconds after the start of the run.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self(Duration::from_secs_f64(secs).0)
    }

    /// Seconds since the start of the run.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// Time passed since `earlier`; zero if `earlier` lies in the future.
    pub fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }
    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }
    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }
    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Self(n.saturating_mul(NANOS_PER_SEC))
    }
    /// `secs` seconds, rounded to a nanosecond; negative and NaN become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * NANOS_PER_SEC as f64).round() as u64)
    }
    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Whole microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// Milliseconds with their fraction.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Seconds with their fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// `self * n`, saturating.
    pub const fn times(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
    /// `self / n`; the span itself if `n` is 0.
    pub const fn over(self, n: u64) -> Self {
        match self.0.checked_div(n) {
            Some(part) => Self(part),
            None => self,
        }
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}
impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(d.0))
    }
}
impl Add for Duration {
    type Output = Self;
    fn add(self, d: Self) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, d: Self) {
        *self = *self + d;
    }
}
impl Sub for Duration {
    type Output = Self;
    fn sub(self, d: Self) -> Self {
        Self(self.0.saturating_sub(d.0))
    }
}
impl From<std::time::Duration> for Duration {
    fn from(d: std::time::Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}
impl From<Duration> for std::time::Duration {
    fn from(d: Duration) -> Self {
        Self::from_nanos(d.0)
    }
}
impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9}s", self.as_secs_f64())
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", std::time::Duration::from(*self))
    }
}

/// A data rate in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Rate(pub u64);

impl Rate {
    /// `n` Mbit/s.
    pub const fn from_mbps(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }
    /// The rate that carries `bytes` in `time`; zero if `time` is zero.
    pub fn from_bytes_per(bytes: u64, time: Duration) -> Self {
        if time.0 == 0 {
            return Self(0);
        }
        match bytes.checked_mul(8 * NANOS_PER_SEC) {
            Some(bit_nanos) => Self(bit_nanos / time.0),
            None => {
                let bits = u128::from(bytes) * 8 * u128::from(NANOS_PER_SEC) / u128::from(time.0);
                Self(u64::try_from(bits).unwrap_or(u64::MAX))
            }
        }
    }
    /// Mbit/s with its fraction.
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Time to transmit `bytes`, rounded down to a nanosecond; `Duration::MAX` at rate zero.
    pub fn transmission_time(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        match bytes.checked_mul(8 * NANOS_PER_SEC) {
            Some(bit_nanos) => Duration(bit_nanos / self.0),
            None => {
                let t = u128::from(bytes) * 8 * u128::from(NANOS_PER_SEC) / u128::from(self.0);
                Duration(u64::try_from(t).unwrap_or(u64::MAX))
            }
        }
    }
    /// Bytes carried in `time`, rounded down.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let b = u128::from(self.0) * u128::from(time.0) / (8 * u128::from(NANOS_PER_SEC));
        u64::try_from(b).unwrap_or(u64::MAX)
    }
}

/// A TCP sequence number: modulo 2³², compared by signed distance (RFC 9293 §3.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Seq(pub u32);

impl Seq {
    /// `self + n` modulo 2³².
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }
    /// Signed distance `self - other`: positive if `self` is later.
    pub const fn distance(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
    /// `self < other` in sequence space.
    pub const fn before(self, other: Self) -> bool {
        self.distance(other) < 0
    }
}

/// Number of a path in the life of its connection: the first is 0, and each that joins has the next one whose place is free.
///
/// At most [`PLACES`](Self::PLACES) paths are there at a time, each in a place of its own. A path that joins when all
/// places have had a path takes one that is free again, as that place's next generation: its number is another one.
/// Numbers begin again after 65,536 paths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct PathId(pub u16);

impl PathId {
    /// The path a connection starts on.
    pub const FIRST: Self = Self(0);
    /// As many paths of a connection are there at a time, at most.
    pub const PLACES: usize = 64;

    /// Its place among the paths that are there. Options of segments name paths so.
    #[inline]
    pub const fn place(self) -> u8 {
        (self.0 as usize % Self::PLACES) as u8
    }
    /// Its place, for indexing a table.
    #[inline]
    pub const fn index(self) -> usize {
        self.place() as usize
    }
    /// How many paths had its place before.
    #[inline]
    pub const fn generation(self) -> u16 {
        self.0 / Self::PLACES as u16
    }
    /// The next number.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
    /// Whether it is before `other`, by no more than half of all numbers.
    #[inline]
    pub const fn is_before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0) > u16::MAX / 2
    }
}

/// A set of paths that are there at the same time, by their places.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
pub struct PathSet(u64);

impl PathSet {
    /// No path.
    pub const EMPTY: Self = Self(0);
    /// Adds `path`.
    #[inline]
    pub fn insert(&mut self, path: PathId) {
        self.0 |= 1 << path.place();
    }
    /// Removes `path`.
    #[inline]
    pub fn remove(&mut self, path: PathId) {
        self.0 &= !(1 << path.place());
    }
    /// Whether `path`, which is there, is in the set.
    #[inline]
    pub fn contains(self, path: PathId) -> bool {
        self.0 >> path.place() & 1 == 1
    }
    /// Number of paths.
    #[inline]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }
    /// Whether there is no path in it.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<PathId> for PathSet {
    fn from_iter<I: IntoIterator<Item = PathId>>(paths: I) -> Self {
        let mut set = Self::EMPTY;
        for p in paths {
            set.insert(p);
        }
        set
    }
}

/// The root of all chance in a run. Each component draws from its own child, so adding one
/// component moves no other's numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Seed(pub u64);

impl Seed {
    /// The seed of the component named `name`, e.g. `seed.child("hop/3")`.
    #[must_use]
    pub fn child(self, name: &str) -> Self {
        // FNV-1a over the name, started from the parent, finished by the SplitMix64 mixer.
        let mut h = self.0 ^ 0xcbf2_9ce4_8422_2325;
        for b in name.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        h = h.wrapping_add(0x9e37_79b9_7f4a_7c15);
        h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(h ^ (h >> 31))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmission_time_is_exact() {
        assert_eq!(Rate::from_mbps(8).transmission_time(1250), Duration::from_micros(1250));
        assert_eq!(Rate(0).transmission_time(1), Duration::MAX);
        assert_eq!(Rate(1).transmission_time(u64::MAX), Duration::MAX);
    }

    #[test]
    fn seq_wraps() {
        let a = Seq(u32::MAX);
        assert!(a.before(a.plus(1)));
        assert_eq!(a.plus(2).distance(a), 2);
    }

    #[test]
    fn children_of_a_seed_differ() {
        let s = Seed(1);
        assert_ne!(s.child("hop/1"), s.child("hop/2"));
        assert_ne!(s.child("hop/1"), Seed(2).child("hop/1"));
    }

    #[test]
    fn a_place_is_used_again_by_the_next_generation() {
        let (first, again) = (PathId(3), PathId(3 + PathId::PLACES as u16));
        assert_eq!((first.place(), again.place()), (3, 3));
        assert_eq!((first.generation(), again.generation()), (0, 1));
        assert!(first.is_before(again) && !again.is_before(first) && !first.is_before(first));
        assert!(PathId(u16::MAX).is_before(PathId(u16::MAX).next()));
    }

    #[test]
    fn path_set_holds_what_it_was_given() {
        let mut set: PathSet = [PathId(0), PathId(3), PathId(99)].into_iter().collect();
        assert_eq!((set.len(), set.contains(PathId(99)), set.contains(PathId(1))), (3, true, false));
        set.remove(PathId(3));
        assert_eq!((set.len(), set.contains(PathId(3))), (2, false));
    }
}
