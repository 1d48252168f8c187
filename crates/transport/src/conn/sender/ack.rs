//! What an acknowledgment means for the sending half:
//! map of the stream → estimates and controller (`sample.rs`) → loss policy → timers.

use polypath_wire::{Instant, PathId, PathSet};

use super::Sender;
use crate::conn::timers::Timer;
use crate::engine::Engine;
use crate::engine::answers::{Answer, Learnt};
use crate::engine::facts::Judged;
use crate::path::flight::Flight;

/// An acknowledgment in terms of the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack<'a> {
    /// The path it came on.
    pub path: PathId,
    /// The path of what it acknowledges, as far as it says so; otherwise the same.
    pub route: PathId,
    /// Everything below arrived.
    pub una: u64,
    /// SACK blocks.
    pub blocks: &'a [(u64, u64)],
    /// It carries no data.
    pub bare: bool,
    /// It looks like a duplicate: no data, no change of the window (RFC 5681 §2).
    pub pure: bool,
    /// Whether TSecr proves that it answers the last transmission of a segment sent then.
    pub echo: Option<Instant>,
    /// Arrival minus TSval, nanoseconds up to the peer's clock offset.
    pub reverse: Option<i64>,
}

impl Ack<'_> {
    /// How it came.
    #[inline]
    pub(super) fn answer(&self) -> Answer {
        Answer { via: self.path, reverse: self.reverse }
    }

    /// Whether its first block is of something that had arrived before (RFC 2883 §4).
    pub(super) fn reports_duplicate(&self) -> bool {
        match self.blocks {
            [first, ..] if first.1 <= self.una => true,
            [first, second, ..] => second.0 <= first.0 && first.1 <= second.1,
            _ => false,
        }
    }
}

/// What an acknowledgment changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Acked {
    /// The cumulative acknowledgment moved.
    pub advanced: bool,
    /// SACK blocks that cannot be true.
    pub bad_blocks: u32,
    /// Bytes newly delivered on all paths.
    pub delivered: u64,
    /// New loss episodes.
    pub episodes: u32,
    /// Episodes undone.
    pub undone: u32,
    /// Paths that failed, as they are silent while others deliver.
    pub failed: PathSet,
}

impl Acked {
    /// What a judgement changed, and nothing else.
    fn of(judged: Judged) -> Self {
        Self { episodes: judged.episodes, undone: judged.undone, ..Self::default() }
    }
}

impl Sender {
    /// Takes an acknowledgment; `ack.una` is not beyond what was sent.
    pub(crate) fn on_ack(&mut self, now: Instant, ack: &Ack<'_>, engine: &mut Engine) -> Acked {
        let acked = match self.is_expected(ack, engine) {
            true => self.on_expected_ack(now, ack, engine),
            false => self.on_any_ack(now, ack, engine),
        };
        self.hear_own(now, ack, engine);
        acked
    }

    /// Whether it acknowledges what was sent first, on the only path, while nothing is missing: most do.
    fn is_expected(&self, ack: &Ack<'_>, engine: &Engine) -> bool {
        let plain = !self.has_copies_under_way() && engine.observers_are_idle();
        let orderly = self.map.is_orderly() && engine.is_calm();
        ack.una > self.map.una() && ack.blocks.is_empty() && orderly && plain
    }

    /// What [`on_any_ack`](Self::on_any_ack) comes to then.
    fn on_expected_ack(&mut self, now: Instant, ack: &Ack<'_>, engine: &mut Engine) -> Acked {
        let path = engine.lanes().id_at(0);
        self.map.ack_in_order(ack.una, path, engine);
        let fresh = engine.lanes()[path].flight.fresh();
        let delivered = fresh.bytes;
        let rtt = fresh.newest.map(|(_, newest)| now.since(newest.sent_at));
        let timed = rtt.filter(|_| engine.is_timed(path, ack.echo.is_some()));
        let learnt = Learnt { rtt, timed, ..Learnt::default() };
        engine.learn(now, path, &ack.answer(), learnt, &self.map);
        engine.goes_on();
        self.stream.release(ack.una);
        let judged = engine.judge(now, &self.map);
        self.follow(engine);
        engine.restart_rto(now, path);
        self.offer(engine);
        engine.refresh(now, path);
        Acked { advanced: true, delivered, ..Acked::of(judged) }
    }

    #[inline(never)]
    fn on_any_ack(&mut self, now: Instant, ack: &Ack<'_>, engine: &mut Engine) -> Acked {
        let mut result = Acked::default();
        self.locate(now, ack, engine, &mut result);
        self.doubt_timeout(now, ack, engine, &mut result);
        let duplicate = !result.advanced && self.is_duplicate(ack);
        if duplicate {
            self.map.count_dupack();
        }
        result.delivered = self.map.stranded();
        for i in 0..engine.lanes().len() {
            result.delivered += self.sample(now, engine.lanes().id_at(i), ack, engine);
        }
        self.copies.under_way.tell(ack.route, ack.una);
        if result.delivered > 0 {
            engine.goes_on();
        }
        if result.advanced {
            self.stream.release(ack.una);
        }
        self.judge(now, engine, &mut result);
        if result.delivered > 0 {
            result.failed = engine.listen_for_silence(now, &self.map);
            self.exceptions.urgent += result.failed.len() as u32;
            self.follow(engine);
        }
        self.restart_rtos(now, engine);
        if duplicate && !self.sack {
            self.make_room(ack.path, engine);
        }
        if result.advanced && !engine.recovers_anywhere() {
            engine.clear_credit();
        }
        engine.refresh_all(now);
        result
    }

    /// Which transmissions `ack` delivered, and for which paths it is evidence.
    fn locate(&mut self, now: Instant, ack: &Ack<'_>, engine: &mut Engine, result: &mut Acked) {
        self.map.begin_ack(engine);
        result.advanced = self.map.ack_up_to(ack.una, engine);
        self.offer(engine);
        if self.sack {
            result.bad_blocks = ack.blocks.iter().map(|b| u32::from(!self.map.sack(b.0, b.1, engine))).sum();
        }
        if ack.reports_duplicate() {
            let is_reinjected = self.on_duplicate(now, ack, engine) && engine.reinjects();
            let flight = engine.flight_mut(ack.route).filter(|_| !is_reinjected);
            flight.into_iter().for_each(Flight::note_duplicate);
        }
        self.map.vouch(ack.route, ack.una, ack.blocks, engine);
    }

    /// Lets the engine judge what is lost, and takes what it says.
    pub(crate) fn judge(&mut self, now: Instant, engine: &mut Engine, result: &mut Acked) {
        let judged = engine.judge(now, &self.map);
        self.follow(engine);
        result.episodes += judged.episodes;
        result.undone += judged.undone;
    }

    fn is_duplicate(&self, ack: &Ack<'_>) -> bool {
        let pure = ack.pure || (ack.bare && !ack.blocks.is_empty());
        pure && ack.una == self.map.una() && !self.map.is_idle()
    }

    /// Without SACK a duplicate says that some segment left the network. That makes room for another
    /// in recovery (RFC 5681 §3.2 step 4) and otherwise as often as the policy says (RFC 3042: twice): after a
    /// timeout most duplicates answer what we sent again without need.
    fn make_room(&mut self, path: PathId, engine: &mut Engine) {
        if self.map.dupacks() <= engine.limited_transmit() || engine.recovers_anywhere() {
            engine.add_credit(path);
        }
    }

    fn restart_rtos(&mut self, now: Instant, engine: &mut Engine) {
        engine.restart_rtos(now);
        if self.map.has_sacked()
            && let Some(path) = self.reneged(engine)
            && !engine.timers.is_set(Timer::Rto(path))
        {
            engine.timers.set(Timer::Rto(path), now + engine.rto(path));
        }
    }
}

#[cfg(test)]
mod tests;
