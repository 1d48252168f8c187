//! The ground on which `path/`, `cc/`, `sched/` and `loss/` meet without importing one another.

use polypath_wire::{Duration, Instant, PathId, Rate};
use serde::{Deserialize, Serialize};

use crate::path_map::OfPath;

/// Whether a path may carry new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathState {
    /// In use.
    #[default]
    Active,
    /// Found congested while others are not: only heartbeats until one comes back in time (Polishchuk and Gurtov, §III.B.4).
    Congested,
    /// Timed out while others work: only probes until it answers.
    Failed,
    /// The peer has not proved that it is there: acknowledgments only.
    Unproved,
    /// Removed: nothing is kept of it.
    Removed,
}

/// Why a segment of a connection with several paths took the one it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// No other path could take it.
    OnlyOpen,
    /// The scheduler thinks it the best of several that could.
    Best,
    /// The scheduler thinks another one better, which has no room or is held back by pacing.
    NextBest,
    /// It is its turn.
    Turn,
    /// Every path that can takes a copy.
    Copy,
    /// None could take it, but a loss must be repaired whatever the windows say (RFC 6582 §3.2 step 3).
    Urgent,
    /// Its tail is probed (RFC 8985 §7.3).
    TailProbe,
}

impl Why {
    /// Number of reasons.
    pub const COUNT: usize = Self::TailProbe as usize + 1;
}

/// What the scheduler and the controllers may know of a path. `None` is "not known yet", not zero.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathView {
    /// Which path.
    pub id: PathId,
    /// Whether it may carry data.
    pub state: PathState,
    /// Largest payload of one segment, bytes.
    pub mss: u32,
    /// Bytes that may be sent now: window minus what is in flight; negative after a reduction.
    pub room: i64,
    /// Bytes that must have room before a segment leaves where more wait; one segment if it is less.
    pub least: u64,
    /// The controller's window, bytes, as it was after the last event.
    pub window: u64,
    /// Bytes sent and neither delivered nor given up.
    pub in_flight: u64,
    /// Not before this instant, for pacing.
    pub earliest_send: Instant,
    /// When the bottleneck will have finished what we gave it, and others of the association, by our model of it.
    pub idle_at: Instant,
    /// Smoothed round trip time (RFC 6298).
    pub srtt: Option<Duration>,
    /// Its variation.
    pub rttvar: Option<Duration>,
    /// Smallest round trip time seen.
    pub min_rtt: Option<Duration>,
    /// One-way delay from us to the peer without our own queueing: configured, or half the smallest round trip, which other connections
    /// measured until this one has; and what others queue, as far as heartbeats and marks tell.
    pub one_way: Option<Duration>,
    /// The same delay by the peer's clock, where there are several paths and it was not configured. On a slow path whose acknowledgments
    /// come back by a quicker one `one_way` is too small.
    pub clocked: Option<Duration>,
    /// Rate of the path: configured, as delivered once there was more to send, or as packet trains show.
    pub rate: Option<Rate>,
    /// Bytes per segment that `rate` counts beyond the payload.
    pub overhead: u32,
    /// It is for what the others have no room for.
    pub spill: bool,
    /// The part of `one_way` and `clocked` that packets of late waited behind those of others, where that is measured.
    pub others: Option<Duration>,
}

impl OfPath for PathView {
    #[inline]
    fn path(&self) -> PathId {
        self.id
    }
}

impl PathView {
    /// A path of which nothing is known but the size of its segments.
    pub fn new(id: PathId, mss: u32) -> Self {
        Self {
            id,
            state: PathState::Active,
            mss,
            room: 0,
            least: 0,
            window: 0,
            in_flight: 0,
            earliest_send: Instant::ZERO,
            idle_at: Instant::ZERO,
            srtt: None,
            rttvar: None,
            min_rtt: None,
            one_way: None,
            clocked: None,
            rate: None,
            overhead: 0,
            spill: false,
            others: None,
        }
    }

    /// Sets the bytes in flight.
    #[inline]
    pub(crate) fn take_up(&mut self, in_flight: u64) {
        self.in_flight = in_flight;
        self.room = self.window as i64 - in_flight as i64;
    }
}

/// What a connection measured of a path, for the next one (RFC 9040).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KnownPath {
    /// Rate of delivery, payload.
    pub rate: Rate,
    /// Smallest round trip.
    pub rtt: Duration,
}

impl KnownPath {
    /// What was measured longer ago is not used, of a path as of bottlenecks.
    pub const LIFE: Duration = Duration::from_secs(600);

    /// What it means where a round trip takes `rtt` now: nothing if that is twice as long or half as long.
    #[must_use]
    pub fn at(self, rtt: Duration) -> Option<Self> {
        let is_like = rtt.times(2) >= self.rtt && rtt <= self.rtt.times(2);
        is_like.then_some(Self { rtt: self.rtt.min(rtt), ..self })
    }
}

/// A turn in the first flight of a connection on a path that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstFlight {
    /// What is known of the path.
    pub known: KnownPath,
    /// When it begins: others have their turns before.
    pub at: Instant,
    /// Bytes that leave in it. To the controller: the window that they need.
    pub bytes: u64,
    /// How fast they leave.
    pub rate: Rate,
}

/// A path on which others of the association have something under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beside {
    /// What it is known to deliver, payload.
    pub rate: Rate,
    /// When its bottleneck will have sent what all gave it, by that rate.
    pub busy_until: Instant,
}

impl Beside {
    /// `bytes` more leave.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.busy_until = self.busy_until.max(now) + self.rate.transmission_time(bytes);
    }
}

/// What was given to a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnderWay {
    /// Bytes that left.
    pub sent: u64,
    /// Bytes in flight: sent, and neither delivered nor taken for lost.
    pub in_flight: u64,
    /// Bytes that were delivered.
    pub delivered: u64,
}

/// How a controller spreads what leaves on a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Rate of the segments' payload.
    pub rate: Rate,
    /// Bytes that leave at once.
    pub quantum: u64,
    /// Most lateness of a timer that is made up for; without any, what left before the window was full still counts in its burst.
    pub credit: Duration,
    /// Bytes that leave together where more wait and acknowledgments of several paths come for less; 0 for whatever has room.
    pub together: u64,
    /// What follows need not wait once nothing is under way: the pace only spreads a window over a round trip.
    pub spreads_window: bool,
}

impl Pace {
    /// What the rate carries in this time leaves together, as from Linux (1/1024 s, `sk_pacing_shift`).
    pub(crate) const GRAIN: Duration = Duration::from_nanos(976_562);

    /// The whole segments of `mss` bytes that fit in `bytes`, two at least (`tcp_tso_autosize`). Bytes.
    pub(crate) fn whole(bytes: u64, mss: u64) -> u64 {
        (bytes / mss.max(1)).max(2) * mss
    }
}

/// What one acknowledgment says of one path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct AckSample {
    /// Bytes delivered by this acknowledgment and not before, cumulative or selective.
    pub newly_acked: u64,
    /// The same in segments.
    pub newly_acked_segments: u32,
    /// Round trip time of the latest segment, if it was not ambiguous (Karn).
    pub rtt: Option<Duration>,
    /// Change of the one-way delay to the peer against the smallest seen.
    pub one_way_queueing: Option<Duration>,
    /// Smoothed round trip time, and the smallest.
    pub srtt: Option<Duration>,
    /// See `srtt`.
    pub min_rtt: Option<Duration>,
    /// Delivery rate over the flight of the latest segment.
    pub delivery_rate: Option<Rate>,
    /// When the latest of the delivered segments left.
    pub sent_at: Option<Instant>,
    /// Rate of the bottleneck as packet trains tell it, for controllers that pace.
    pub train_rate: Option<Rate>,
    /// Bytes in flight on the path before this acknowledgment.
    pub prior_in_flight: u64,
    /// What R-M/TCP estimates of the route, if both ends know of routes.
    pub route: Option<RouteEstimate>,
    /// The sender had nothing to send when the segment left.
    pub app_limited: bool,
    /// The congestion window was full, so that it may grow (RFC 7661's question).
    pub window_limited: bool,
    /// The path, or any path if one window limits all, stays in a loss episode: no growth (RFC 6582, 6675).
    pub in_recovery: bool,
}

/// What R-M/TCP estimates of a route once a round trip (Rojviboonchai, Osuga and Aida, §3.1).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RouteEstimate {
    /// RTT_R,avg (equation 3).
    pub rtt: Duration,
    /// The smallest RTT_R,avg so far.
    pub min_rtt: Duration,
    /// bw_R (equation 4).
    pub bandwidth: Rate,
    /// The bandwidth was estimated just now.
    pub fresh: bool,
}

impl RouteEstimate {
    /// The same, not new any more.
    #[must_use]
    pub fn stale(self) -> Self {
        Self { fresh: false, ..self }
    }
}

/// Why something counts as lost. It travels with the verdict; nobody derives it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossCause {
    /// Enough duplicate acknowledgments (RFC 5681 §3.2).
    DupAck,
    /// A partial acknowledgment in recovery (RFC 6582 §3.2).
    PartialAck,
    /// Enough later packets of the same path were delivered (RFC 6675, per path).
    LaterDelivered,
    /// The last one sent went again as a probe and only so arrived (RFC 8985 §7.4).
    TailProbe,
    /// The retransmission timer (RFC 6298).
    Timeout,
    /// Larger than what the path turned out to carry (RFC 1191).
    TooBig,
    /// Nothing was delivered on the path while others delivered.
    Silence,
    /// The path was removed.
    PathRemoved,
}

/// Number of a loss episode: one congestion response each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Episode(pub u32);

/// The start of a loss episode, of which the controller hears once.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LossEvent {
    /// Why.
    pub cause: LossCause,
    /// Which episode.
    pub episode: Episode,
    /// Bytes first judged lost; 0 for a mark.
    pub bytes: u64,
    /// Bytes outstanding on the path before the loss was taken out (RFC 5681's FlightSize).
    pub flight_size: u64,
    /// When the oldest of the lost packets was sent.
    pub oldest_sent: Instant,
}

impl LossEvent {
    /// Whether a queue marked a packet, and nothing is lost.
    pub fn is_mark(&self) -> bool {
        self.bytes == 0
    }
}

/// A segment that was judged lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostSegment {
    /// Offset in the stream.
    pub offset: u64,
    /// Length in sequence space.
    pub bytes: u64,
    /// When it left.
    pub sent_at: Instant,
}

/// Something to send: new data, or data to be sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Parcel {
    /// Offset in the stream.
    pub offset: u64,
    /// Bytes; the path's mss caps it further.
    pub len: u32,
    /// Sent before.
    pub retransmission: bool,
    /// The path that it was on, if its timer ran out.
    pub timed_out: Option<PathId>,
    /// Bytes not sent yet, these among them, as far as their end is known: `u64::MAX` while the writer has more than was
    /// taken.
    pub waiting: u64,
    /// Bytes that the peer lets us have outstanding.
    pub window: u64,
}

/// A parameter that means nothing, by its key in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {reason}; {remedy}")]
pub struct ConfigError {
    /// Which key of the connection, with dots: `cc.alpha`.
    pub key: &'static str,
    /// What is wrong with it.
    pub reason: &'static str,
    /// What to write instead.
    pub remedy: &'static str,
}

impl ConfigError {
    /// `key` is wrong for `reason`.
    pub fn new(key: &'static str, reason: &'static str, remedy: &'static str) -> Self {
        Self { key, reason, remedy }
    }

    /// Fails with the first of `rules`, each a condition that makes an error, which is met.
    pub(crate) fn first(rules: &[(bool, Self)]) -> Result<(), Self> {
        rules.iter().find(|(wrong, _)| *wrong).map_or(Ok(()), |(_, error)| Err(*error))
    }
}
