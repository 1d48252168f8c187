//! Laws that couple the windows of a connection's paths: together they take about what one TCP takes (RFC 6356 §2).
//!
//! Slow start, its pacing and what undoes a loss are each path's own ([`Window`]); a [`Coupling`] says by how much a window
//! grows in congestion avoidance and what a loss leaves of it, given all paths.
//!
//! Deviations, of all laws: windows count as they are and not as far as they are used (RFC 6356 §3 would take the
//! smaller of window and flight size); paths that are not active or whose round trip is not known do not count; a loss leaves two
//! segments at least, as RFC 5681 has it, where the authors of BALIA leave one.

pub(crate) mod balia;
pub(crate) mod lia;
pub(crate) mod olia;

use polypath_wire::{Duration, Instant, PathId};

use super::controller::{Controller, Snapshot};
use super::law::{Env, Law};
use super::window::{Window, WindowConfig};
use crate::about::About;
use crate::facts::{AckSample, ConfigError, Episode, FirstFlight, LossEvent, Pace, PathState, PathView};
use crate::path_map::{OfPath, PathMap};

/// One path of a coupled connection.
#[derive(Debug)]
pub(crate) struct Flow {
    path: PathId,
    window: Window,
    /// Smoothed round trip time.
    rtt: Option<Duration>,
    active: bool,
    /// Bytes delivered since the last loss, and between the last two.
    since_loss: u64,
    between_losses: u64,
}

impl OfPath for Flow {
    #[inline]
    fn path(&self) -> PathId {
        self.path
    }
}

/// How windows are coupled.
pub(crate) trait Coupling: std::fmt::Debug + Default + Send + 'static {
    /// Name and help.
    const ABOUT: About;

    /// Segments by which the window of `flow` grows for each segment acknowledged.
    fn increase(&self, flow: &Flow, flows: &Flows) -> f64;

    /// What a loss leaves of what was in flight: half, as TCP.
    fn decrease(&self, _flow: &Flow, _flows: &Flows) -> f64 {
        0.5
    }
}

/// The paths of a connection.
#[derive(Debug, Default)]
pub(crate) struct Flows(PathMap<Flow>);

/// The windows of a connection, coupled.
#[derive(Debug)]
pub(crate) struct Coupled<L> {
    law: L,
    config: WindowConfig,
    flows: Flows,
}

impl Flow {
    fn new(path: PathId, config: WindowConfig, mss: u32) -> Self {
        let window = Window::new(config, mss);
        Self { path, window, rtt: None, active: true, since_loss: 0, between_losses: 0 }
    }

    /// cwnd, segments.
    pub(crate) fn segments(&self) -> f64 {
        self.window.cwnd() / self.window.mss() as f64
    }

    /// Round trip time, seconds; above 0 where a law asks for it.
    pub(crate) fn rtt(&self) -> f64 {
        self.rtt.unwrap_or(Duration::ZERO).as_secs_f64()
    }

    /// Segments a second.
    pub(crate) fn rate(&self) -> f64 {
        self.segments() / self.rtt()
    }

    /// An estimate of the segments between two losses.
    pub(crate) fn loss_interval(&self) -> f64 {
        self.since_loss.max(self.between_losses) as f64 / self.window.mss() as f64
    }

    fn counts(&self) -> bool {
        self.active && self.rtt() > 0.0
    }
}

impl Flows {
    /// The paths that count.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flow> + Clone {
        self.0.iter().filter(|flow| flow.counts())
    }

    /// Sum of their rates, segments a second.
    pub(crate) fn rate(&self) -> f64 {
        self.iter().map(Flow::rate).sum()
    }

    fn of(&self, path: PathId) -> Option<&Flow> {
        self.0.get(path)
    }

    fn of_mut(&mut self, path: PathId) -> Option<&mut Flow> {
        self.0.get_mut(path)
    }

    fn look(&mut self, paths: &[PathView]) {
        for view in paths {
            if let Some(flow) = self.of_mut(view.id) {
                flow.active = view.state == PathState::Active;
            }
        }
    }
}

impl<L: Coupling> Coupled<L> {
    /// `law` over paths whose windows begin as `config` says.
    pub(crate) fn new(law: L, config: WindowConfig) -> Self {
        Self { law, config, flows: Flows::default() }
    }
}

impl<L: Coupling> Law for Coupled<L> {
    type Config = WindowConfig;
    const ABOUT: About = L::ABOUT;

    fn coupled_by(_: &WindowConfig) -> Option<(&'static str, &'static str)> {
        Some(("algorithm", Self::ABOUT.name))
    }

    fn check(config: &WindowConfig) -> Result<(), ConfigError> {
        config.check()
    }

    fn of_today(config: WindowConfig) -> WindowConfig {
        config.paced()
    }

    fn build(config: WindowConfig, _: &Env) -> Box<dyn Controller> {
        Box::new(Self::new(L::default(), config))
    }
}

impl<L: Coupling> Controller for Coupled<L> {
    fn on_path_added(&mut self, _: Instant, path: PathId, mss: u32) {
        self.flows.0.insert(Flow::new(path, self.config, mss));
    }

    fn on_path_removed(&mut self, _: Instant, path: PathId) {
        self.flows.0.remove(path);
    }

    fn on_mss(&mut self, path: PathId, mss: u32) {
        self.flows.of_mut(path).into_iter().for_each(|flow| flow.window.set_mss(mss));
    }

    fn window_only(&self) -> bool {
        self.config.is_window_only()
    }

    fn limit_window(&mut self, path: PathId, bytes: u64) {
        self.flows.of_mut(path).into_iter().for_each(|flow| flow.window.limit(bytes));
    }

    fn starts(&self, path: PathId) -> bool {
        self.flows.of(path).is_some_and(|flow| flow.window.starts())
    }

    fn on_first_flight(&mut self, path: PathId, first: &FirstFlight) {
        self.flows.of_mut(path).into_iter().for_each(|flow| flow.window.on_first_flight(first));
    }

    fn on_ack(&mut self, now: Instant, path: PathId, sample: &AckSample, paths: &[PathView]) {
        self.flows.look(paths);
        let Some(flow) = self.flows.of_mut(path) else { return };
        flow.rtt = sample.srtt.or(flow.rtt);
        flow.since_loss += sample.newly_acked;
        let Some(acked) = flow.window.on_ack(now, sample) else { return };
        let Some(flow) = self.flows.of(path).filter(|flow| flow.counts()) else { return };
        let (more, least) = (self.law.increase(flow, &self.flows) * acked as f64, flow.window.mss() as f64);
        if let Some(flow) = self.flows.of_mut(path) {
            flow.window.grow(more.max(least - flow.window.cwnd()));
        }
    }

    fn on_loss(&mut self, _: Instant, path: PathId, loss: &LossEvent, paths: &[PathView]) {
        self.flows.look(paths);
        let Some(flow) = self.flows.of(path) else { return };
        let left = if flow.counts() { self.law.decrease(flow, &self.flows) } else { 0.5 };
        if let Some(flow) = self.flows.of_mut(path) {
            flow.window.reduce(loss, loss.flight_size as f64 * left);
            (flow.between_losses, flow.since_loss) = (flow.since_loss, 0);
        }
    }

    fn on_undo(&mut self, _: Instant, path: PathId, episode: Episode) {
        if let Some(flow) = self.flows.of_mut(path)
            && flow.window.undo(episode)
        {
            flow.since_loss += flow.between_losses;
        }
    }

    fn window(&self, path: PathId) -> u64 {
        self.flows.of(path).map_or(0, |flow| flow.window.bytes())
    }

    fn pace(&self, path: PathId) -> Option<Pace> {
        self.flows.of(path)?.window.pace()
    }

    fn snapshot(&self, path: PathId) -> Snapshot {
        self.flows.of(path).map_or_else(Snapshot::default, |flow| flow.window.snapshot())
    }
}

#[cfg(test)]
pub(super) mod bench {
    //! Paths in a state of one's choice.

    use super::*;

    /// A connection whose paths have these windows, segments of 1,000 bytes, and round trips, ms; past slow start.
    pub(crate) fn coupled<L: Coupling>(law: L, paths: &[(u32, u64)]) -> (Coupled<L>, Vec<PathView>) {
        let mut coupled = Coupled::new(law, WindowConfig::default());
        for (n, &(window, rtt)) in paths.iter().enumerate() {
            coupled.config = WindowConfig {
                initial_window: window,
                initial_ssthresh: Some(window),
                ..WindowConfig::default()
            };
            let path = PathId(n as u16);
            coupled.on_path_added(Instant::ZERO, path, 1000);
            coupled.flows.of_mut(path).expect("just added").rtt = Some(Duration::from_millis(rtt));
        }
        let views = (0..paths.len()).map(|n| PathView::new(PathId(n as u16), 1000)).collect();
        (coupled, views)
    }

    /// By how many segments one acknowledged on `path` lets its window grow.
    pub(crate) fn growth<L: Coupling>((coupled, views): &mut (Coupled<L>, Vec<PathView>), path: u16) -> f64 {
        let before = coupled.flows.of(PathId(path)).map_or(0.0, Flow::segments);
        let sample = AckSample { newly_acked: 1000, window_limited: true, ..AckSample::default() };
        coupled.on_ack(Instant::ZERO, PathId(path), &sample, views);
        coupled.flows.of(PathId(path)).map_or(0.0, Flow::segments) - before
    }

    /// What a loss leaves of a full window, segments.
    pub(crate) fn after_loss<L: Coupling>(
        (coupled, views): &mut (Coupled<L>, Vec<PathView>),
        path: u16,
    ) -> f64 {
        let flight_size = coupled.window(PathId(path));
        let cause = crate::facts::LossCause::LaterDelivered;
        let loss =
            LossEvent { cause, episode: Episode(1), bytes: 1000, flight_size, oldest_sent: Instant::ZERO };
        coupled.on_loss(Instant::ZERO, PathId(path), &loss, views);
        coupled.flows.of(PathId(path)).map_or(0.0, Flow::segments)
    }

    /// Bytes delivered on `path` since its last loss, and between the last two.
    pub(crate) fn losses<L: Coupling>(coupled: &mut Coupled<L>, path: u16, since: u64, between: u64) {
        let flow = coupled.flows.of_mut(PathId(path)).expect("it is there");
        (flow.since_loss, flow.between_losses) = (since, between);
    }
}

#[cfg(test)]
mod tests {
    use super::bench::{after_loss, coupled, growth};
    use super::lia::Lia;
    use super::*;

    #[test]
    fn a_path_that_failed_or_left_does_not_count() {
        let mut two = coupled(Lia, &[(10, 100), (10, 100)]);
        let shared = growth(&mut two, 0);
        two.1[1].state = PathState::Failed;
        let alone = growth(&mut two, 0);
        assert!((shared - 0.025).abs() < 1e-3 && (alone - 0.1).abs() < 1e-3, "{shared} {alone}");
        two.1[1].state = PathState::Active;
        two.0.on_path_removed(Instant::ZERO, PathId(1));
        assert!((growth(&mut two, 0) - 0.1).abs() < 1e-2);
        assert_eq!(two.0.window(PathId(1)), 0);
    }

    #[test]
    fn a_loss_halves_its_path_only_and_can_be_undone() {
        let mut two = coupled(Lia, &[(20, 100), (10, 100)]);
        assert_eq!(after_loss(&mut two, 0), 10.0);
        assert_eq!(two.0.window(PathId(1)), 10_000);
        two.0.on_undo(Instant::ZERO, PathId(0), Episode(1));
        assert_eq!(two.0.window(PathId(0)), 20_000);
    }
}
