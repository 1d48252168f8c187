//! What an acknowledgment of the stream tells the engine of each path.

use polypath_wire::{Duration, Instant, PathId};

use super::Sender;
use super::ack::Ack;
use crate::engine::Engine;
use crate::engine::answers::Learnt;
use crate::path::flight::Delivery;
use crate::path::transmission::History;

impl Sender {
    /// Tells the engine what was delivered on `path`; returns the bytes.
    pub(super) fn sample(&mut self, now: Instant, path: PathId, ack: &Ack<'_>, engine: &mut Engine) -> u64 {
        let fresh = engine.lanes()[path].flight.fresh();
        let bytes = fresh.bytes;
        if bytes == 0 {
            return 0;
        }
        if self.has_copies_under_way() && self.copy_came_first(now, path, ack, engine) {
            return bytes;
        }
        let fresh = engine.lanes()[path].flight.fresh();
        let newest = fresh.newest.map(|(_, newest)| newest);
        let rtt = newest.filter(|n| !n.is_ambiguous()).and_then(|n| match n.copied {
            true => self.round_trip(now, path, n.sent_at, ack, engine),
            false => Some(now.since(n.sent_at)),
        });
        let proven = proven_round_trip(now, path, ack, fresh);
        let timed = rtt.filter(|_| engine.is_timed(path, ack.echo.is_some()));
        let (route_rtt, route) = match engine.observers_estimate_routes() {
            true => engine.route_estimate(now, path, &ack.answer(), rtt),
            false => (None, None),
        };
        let timed = timed.map(|rtt| route_rtt.unwrap_or(rtt));
        engine.learn(now, path, &ack.answer(), Learnt { rtt, timed, proven, route }, &self.map);
        engine.after_delivery(now, path);
        bytes
    }
}

/// Round trip of a segment that was sent again, if its timestamp tells which transmission is answered
/// (Karn, RFC 6298 §3). That is good enough for the timeout and to end its backoff; a smallest round
/// trip it is not, for the echo may be of another segment sent again that arrived before (RFC 7323 §4.3). An echo of another path may be
/// of a copy there.
fn proven_round_trip(now: Instant, path: PathId, ack: &Ack<'_>, fresh: &Delivery) -> Option<Duration> {
    let (_, newest) = fresh.newest.filter(|(_, n)| n.cargo.history == History::AgainLater)?;
    let elsewhere = ack.route != path && (newest.copied || newest.reinjected);
    ack.echo.is_some_and(|echo| !elsewhere && echo >= newest.sent_at).then(|| now.since(newest.sent_at))
}
