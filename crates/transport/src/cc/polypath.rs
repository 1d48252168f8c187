//! One congestion context per bottleneck: what paths share, their windows share (docs/controller.md).
//!
//! | part | file |
//! |---|---|
//! | what is known of each path | `polypath/path.rs` |
//! | which paths share a bottleneck | `crate::bottleneck` |
//! | the window of a bottleneck, a loss reduces it once | `polypath/context.rs` |
//! | how the paths divide it, and shift load for trials | `polypath/shares.rs` |
//! | a target for the queue that stands | `polypath/standing.rs` |
//! | losses that no queue explains | `polypath/random_loss.rs`, `polypath/waits.rs` |
//! | losses that the other paths of a bottleneck do not have | `polypath/blame.rs` |
//!
//! Every context runs the base law, CUBIC or NewReno, paced. A context of one path gives the law what the path gives, and
//! so is the law, packet for packet, as long as no loss is excused.

mod base;
mod blame;
mod config;
mod context;
mod path;
mod random_loss;
mod shares;
mod standing;
mod waits;

use polypath_wire::{Instant, PathId, Rate};

use super::controller::{Controller, Snapshot};
use crate::bottleneck::{Detection, Verdict};
use crate::facts::{AckSample, Episode, FirstFlight, LossEvent, LostSegment, Pace, PathState, PathView};
use crate::path_map::PathMap;
use base::Base;
use blame::Losses;
pub use config::{BaseLaw, PolypathConfig};
use context::Context;
use path::{Path, queueing};
use random_loss::Origin;
use shares::Shares;

/// Share of what is acknowledged by which a window makes up for random losses.
const MADE_UP: f64 = 1.0 / 8.0;
/// A path that loses more than others of its bottleneck has at least this many segments: later ones tell which are lost.
const LEAST: u64 = 4;

/// The controller.
#[derive(Debug)]
pub(crate) struct Polypath {
    config: PolypathConfig,
    detection: Detection,
    paths: PathMap<Path>,
    /// One per bottleneck.
    contexts: Vec<Context>,
    shares: Shares,
    /// The verdict changed since somebody asked.
    news: bool,
}

impl Polypath {
    /// Without paths.
    pub(crate) fn new(config: PolypathConfig) -> Self {
        Self {
            config,
            detection: config.bottlenecks.build(),
            paths: PathMap::default(),
            contexts: Vec::new(),
            shares: Shares::default(),
            news: false,
        }
    }

    fn context(&self, path: PathId) -> Option<&Context> {
        self.contexts.iter().find(|context| context.has(path))
    }

    fn context_mut(&mut self, path: PathId) -> Option<&mut Context> {
        self.contexts.iter_mut().find(|context| context.has(path))
    }

    /// The paths that share the context of `path`, itself among them.
    fn sharing(&self, path: PathId) -> impl Iterator<Item = &Path> {
        let context = self.context(path);
        self.paths.iter().filter(move |p| context.is_some_and(|context| context.has(p.id)))
    }

    /// Takes what an acknowledgment says about its path.
    fn learn(&mut self, now: Instant, path: PathId, sample: &AckSample, views: &[PathView]) {
        for p in self.paths.iter_mut() {
            let view = views.iter().find(|v| v.id == p.id);
            let active = view.is_none_or(|v| v.state == PathState::Active);
            if active && !p.active {
                p.losses = Losses::new(now);
            }
            p.active = active;
            p.in_flight = view.map_or(0, |v| v.in_flight);
        }
        if let Some(detector) = self.detection.detector.as_mut().filter(|_| views.len() > 1) {
            detector.on_delivered(path, sample.newly_acked_segments);
        }
        let Some(p) = self.paths.get_mut(path) else { return };
        (p.srtt, p.rate, p.delivered) = (sample.srtt, sample.delivery_rate.or(p.rate), now);
        p.excused &= sample.in_recovery && p.random.is_moderate();
        p.random.on_delivered(sample);
        p.losses.on_delivered(now, sample.newly_acked_segments);
        let Some((rtt, queueing, least)) = queueing(sample) else { return };
        p.random.on_delay(now - rtt, queueing, least);
        let mss = p.mss;
        let context = self.context_mut(path);
        context.into_iter().for_each(|c| c.on_delay(now, (now - rtt, queueing), sample, mss));
    }

    /// Where losses are random, or the queue that the window was reduced for is gone, it grows by an eighth in a round trip up to what the path
    /// holds, as long as no queue shows.
    fn make_up(&mut self, path: PathId, sample: &AckSample) {
        let is_free = self.config.random_loss && self.paths.get(path).is_some_and(|p| p.random.is_free());
        let is_short = self.context(path).is_some_and(Context::is_short);
        if !is_free && !is_short {
            return;
        }
        let rate = sample.train_rate.max(sample.delivery_rate);
        let pipe = rate.zip(sample.min_rtt).map_or(0, |(rate, rtt)| rate.bytes_in(rtt));
        let window = self.window(path);
        let holds_more = is_free && window < 2 * pipe || is_short;
        if holds_more && 2 * sample.prior_in_flight >= window {
            self.context_mut(path).into_iter().for_each(|c| c.make_up(sample.newly_acked as f64 * MADE_UP));
        }
    }

    /// Looks for bottlenecks that paths share, and shifts load between those on trial.
    fn look(&mut self, now: Instant) {
        let slowest = self.paths.iter().filter(|p| p.active).filter_map(|p| p.srtt).max();
        let half = self.shares.advance(now, slowest.unwrap_or_default());
        let Detection { detector, judge } = &mut self.detection;
        if detector.as_mut().is_some_and(|detector| judge.judge(now, half, &mut **detector)) {
            self.regroup(now);
        }
        self.divide();
    }

    /// How the paths of each context divide its window.
    fn divide(&mut self) {
        let judge = &self.detection.judge;
        let carries = |id: PathId| {
            let path = self.paths.get(id)?;
            path.active.then(|| (path.srtt.unwrap_or_default(), path.losses.weight()))
        };
        self.shares.divide(judge.verdict(), |path| judge.is_on_trial(path), carries);
    }

    /// The verdict changed: contexts join, and what joined before parts.
    fn regroup(&mut self, now: Instant) {
        let before = std::mem::take(&mut self.contexts);
        for context in before.iter().filter(|context| !context.counts()) {
            let members = self.paths.iter_mut().filter(|path| context.has(path.id));
            members.for_each(|path| path.losses = Losses::new(now));
        }
        let window = |id: PathId| {
            let all = before.iter().find(|context| context.has(id)).map_or(0, |c| c.law().window());
            (all as f64 * self.shares.of(id).unwrap_or(1.0)) as u64
        };
        let verdict = self.detection.judge.verdict();
        let mut contexts = Vec::new();
        for first in verdict.bottlenecks() {
            let members: Vec<PathId> = verdict.sharing(first).collect();
            let mss = members.iter().filter_map(|p| self.paths.get(*p)).map(|p| p.mss).min().unwrap_or(1);
            let mut context = Context::joined(&before, &members, window)
                .unwrap_or_else(|| Context::new(&self.config, Base::new(&self.config, now, mss), members));
            context.set_mss(mss);
            contexts.push(context);
        }
        (self.contexts, self.news) = (contexts, true);
        self.divide();
    }

    /// What the context of `path` has in flight on its other paths, bytes.
    fn elsewhere(&self, path: PathId, views: &[PathView]) -> u64 {
        let Some(context) = self.context(path) else { return 0 };
        views.iter().filter(|v| v.id != path && context.has(v.id)).map(|v| v.in_flight).sum()
    }

    /// A sample of `path` as one of all paths of its context. What one path gives up, another sends later: so a window with most of it in flight
    /// counts as full while data waits.
    fn of_all(&self, path: PathId, sample: &AckSample, views: &[PathView]) -> AckSample {
        let prior_in_flight = sample.prior_in_flight + self.elsewhere(path, views);
        let fills = self.context(path).is_some_and(|context| context.is_filled_by(prior_in_flight));
        AckSample {
            prior_in_flight,
            window_limited: sample.window_limited || fills && !sample.app_limited,
            delivery_rate: sample.delivery_rate.and(self.rate(path)),
            ..*sample
        }
    }

    /// Sum of the delivery rates of the paths of a context.
    fn rate(&self, path: PathId) -> Option<Rate> {
        self.sharing(path).filter_map(|p| p.rate).reduce(|a, b| Rate(a.0 + b.0))
    }

    /// Whether a path that shares with `path` works, although its own timer ran out.
    fn works_elsewhere(&self, now: Instant, path: PathId) -> bool {
        self.sharing(path).any(|p| p.id != path && p.works(now))
    }

    /// Charges the bottleneck of `path` with a loss, as far as its paths can be compared: whether it answers for it.
    fn charge(&mut self, now: Instant, path: PathId, loss: &LossEvent) -> bool {
        let Some(context) = self.contexts.iter_mut().find(|context| context.has(path)) else { return true };
        if context.is_alone() || context.was_reduced_for(loss) {
            return true;
        }
        let begins = context.begin_counting();
        let members = self.paths.iter_mut().filter(|p| context.has(p.id));
        if begins {
            members.for_each(|p| p.losses = Losses::new(now)); // the end of slow start says nothing about a path
            return true;
        }
        let carry = members.filter(|p| p.id == path || p.works(now));
        blame::compare(&mut carry.map(|p| &mut p.losses).collect::<Vec<_>>());
        self.paths.get_mut(path).is_none_or(|p| p.losses.charge())
    }

    /// A path with a window of its own lost something: that counts once it shares one.
    fn count_alone(&mut self, now: Instant, path: PathId) {
        let Some(context) = self.context_mut(path).filter(|context| context.is_alone()) else { return };
        let begins = context.begin_counting();
        let Some(p) = self.paths.get_mut(path) else { return };
        match begins {
            true => p.losses = Losses::new(now),
            false => p.losses.decay(),
        }
    }

    /// What leaves together: nothing while losses are random on any path, for which a window makes up less so.
    fn together(&self, pace: &Pace) -> u64 {
        let is_random = self.config.random_loss && self.paths.iter().any(|p| p.random.is_random());
        if is_random { 0 } else { pace.together }
    }

    /// The law of a context counts in the smallest segments of its paths.
    fn count(&mut self, path: PathId) {
        let least = self.sharing(path).map(|p| p.mss).min();
        if let Some((context, mss)) = self.context_mut(path).zip(least) {
            context.set_mss(mss);
        }
    }
}

impl Controller for Polypath {
    fn on_path_added(&mut self, now: Instant, path: PathId, mss: u32) {
        self.paths.insert(Path::new(now, path, mss));
        self.detection.judge.add(now, path, self.config.link());
        self.regroup(now);
    }

    fn compares_paths(&self) -> bool {
        self.detection.detector.is_some()
    }

    fn rest(&mut self, now: Instant) {
        self.detection.detector.iter_mut().for_each(|detector| detector.rest(now));
    }

    fn on_own_ack(&mut self, now: Instant, path: PathId, sample: &AckSample) {
        let detector = self.detection.detector.as_mut();
        if let Some((detector, (rtt, queueing, least))) = detector.zip(queueing(sample)) {
            detector.on_delay(path, now - rtt, queueing, least);
        }
    }

    fn on_link(&mut self, now: Instant, path: PathId, link: u32) {
        if self.detection.detector.is_some() && self.detection.judge.set_link(now, path, link) {
            self.regroup(now);
        }
    }

    fn on_bottleneck(&mut self, now: Instant, path: PathId, bottleneck: u32) {
        let Detection { detector, judge } = &mut self.detection;
        if detector.is_some() && judge.set_bottleneck(now, path, bottleneck) {
            self.regroup(now);
        }
    }

    fn on_path_removed(&mut self, now: Instant, path: PathId) {
        self.detection.judge.remove(path);
        self.detection.detector.iter_mut().for_each(|detector| detector.forget(path));
        self.paths.remove(path);
        self.regroup(now);
    }

    fn on_mss(&mut self, path: PathId, mss: u32) {
        self.paths.get_mut(path).into_iter().for_each(|p| p.mss = mss);
        self.count(path);
    }

    fn goes_by_trains(&self) -> bool {
        true // the base law is paced
    }

    fn limit_window(&mut self, path: PathId, bytes: u64) {
        let context = self.context_mut(path).filter(|context| context.is_alone());
        context.into_iter().for_each(|context| context.law_mut().limit_window(bytes));
    }

    fn starts(&self, path: PathId) -> bool {
        self.context(path).is_some_and(|context| context.is_alone() && context.law().starts())
    }

    fn on_first_flight(&mut self, path: PathId, first: &FirstFlight) {
        self.paths.get_mut(path).into_iter().for_each(|p| p.random.on_known());
        self.context_mut(path).into_iter().for_each(|context| context.law_mut().on_first_flight(first));
    }

    fn on_ack(&mut self, now: Instant, path: PathId, sample: &AckSample, views: &[PathView]) {
        self.learn(now, path, sample, views);
        let excused = self.paths.get(path).is_some_and(|p| p.excused);
        let sample = AckSample { in_recovery: sample.in_recovery && !excused, ..*sample };
        if let Some(context) = self.context_mut(path).filter(|context| context.is_alone()) {
            context.on_ack(now, &sample);
        } else {
            let all = self.of_all(path, &sample, views);
            self.context_mut(path).into_iter().for_each(|context| context.on_ack(now, &all));
        }
        self.make_up(path, &sample);
        if views.len() > 1 {
            self.look(now);
        }
    }

    fn on_lost(&mut self, _: Instant, path: PathId, segment: &LostSegment) {
        self.detection.detector.iter_mut().for_each(|d| d.on_loss(path, segment.sent_at));
        let Some(p) = self.paths.get_mut(path) else { return };
        p.random.on_lost();
        p.losses.on_lost(segment.sent_at);
    }

    fn on_loss(&mut self, now: Instant, path: PathId, loss: &LossEvent, views: &[PathView]) {
        let (elsewhere, works) = (self.elsewhere(path, views), self.works_elsewhere(now, path));
        let guards = self.config.random_loss;
        let (window, starts) = (self.window(path), self.context(path).is_some_and(Context::starts));
        self.paths.get_mut(path).into_iter().for_each(|p| p.losses.on_loss(now, loss.cause));
        self.count_alone(now, path);
        let Some(p) = self.paths.get_mut(path) else { return };
        let origin = if guards { p.random.judge(loss) } else { Origin::Queue };
        let (compares, srtt) = (guards && works && p.random.may_excuse(loss), p.srtt.unwrap_or_default());
        let by_chance = origin == Origin::Chance || guards && starts && p.random.is_early(loss, window);
        let excused = by_chance || compares && !self.charge(now, path, loss);
        self.paths.get_mut(path).into_iter().for_each(|p| p.excused = excused);
        if excused {
            return;
        }
        let kept = self.paths.get(path).map_or(0, |p| p.kept(window));
        let Some(context) = self.context_mut(path) else { return };
        context.on_loss(now, loss, elsewhere, works, srtt);
        if origin == Origin::Either && context.is_alone() {
            context.keep(kept);
        }
    }

    /// A queue made it, so nothing excuses it.
    fn on_mark(&mut self, now: Instant, path: PathId, mark: &LossEvent, views: &[PathView]) {
        let (elsewhere, works) = (self.elsewhere(path, views), self.works_elsewhere(now, path));
        let Some(p) = self.paths.get_mut(path) else { return };
        p.excused = false;
        let srtt = p.srtt.unwrap_or_default();
        self.context_mut(path).into_iter().for_each(|c| c.on_loss(now, mark, elsewhere, works, srtt));
    }

    fn on_undo(&mut self, now: Instant, path: PathId, episode: Episode) {
        self.context_mut(path).into_iter().for_each(|context| context.law_mut().on_undo(now, episode));
    }

    fn window(&self, path: PathId) -> u64 {
        let Some((p, context)) = self.paths.get(path).zip(self.context(path)) else { return 0 };
        let window = context.law().window();
        let Some(share) = self.shares.of(path) else { return window };
        if context.is_alone() {
            // On trial. Of a small window the share that is shifted is less than a segment.
            return ((window as f64 * share) as u64).next_multiple_of(p.mss.max(1).into());
        }
        // What another path gives up is free once it has been delivered. Shares are no whole segments: one more fills them.
        let others: u64 =
            self.sharing(path).filter(|other| other.id != path).map(|other| other.in_flight).sum();
        let (free, mss) = (window.saturating_sub(others), u64::from(p.mss));
        let more = if others > 0 { mss } else { 0 };
        let least = match p.active && p.losses.has_own() {
            true => (LEAST * mss).min(window / (2 * self.sharing(path).count() as u64)),
            false => 0,
        };
        ((window as f64 * share) as u64 + more).max(least).min(free).max(mss)
    }

    fn pace(&self, path: PathId) -> Option<Pace> {
        let context = self.context(path)?;
        match context.is_alone() {
            true => context.law().pace().map(|pace| Pace { together: self.together(&pace), ..pace }),
            false => {
                let in_flight = self.sharing(path).map(|p| p.in_flight).sum();
                context.pace(
                    self.window(path),
                    in_flight,
                    self.paths.get(path)?.srtt?,
                    self.paths.get(path)?.mss,
                )
            }
        }
    }

    fn snapshot(&self, path: PathId) -> Snapshot {
        let Some(context) = self.context(path) else { return Snapshot::default() };
        Snapshot { window: self.window(path), ..context.law().snapshot() }
    }

    fn bottleneck(&self, path: PathId) -> Option<PathId> {
        self.detection.judge.verdict().bottleneck(path)
    }

    fn pairs(&self) -> Vec<([PathId; 2], bool, Instant)> {
        let Detection { detector, judge } = &self.detection;
        detector.as_ref().map_or(Vec::new(), |_| judge.found())
    }

    fn poll_verdict(&mut self) -> Option<Verdict> {
        std::mem::take(&mut self.news).then(|| self.detection.judge.verdict().clone())
    }
}

#[cfg(test)]
mod tests;
