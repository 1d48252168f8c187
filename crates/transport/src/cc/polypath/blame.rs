//! What part of its losses a path has from the bottleneck that it shares with others.
//!
//! A full queue loses about the same share of the packets of each path through it. What a path loses beyond `MARGIN` times what the
//! cleanest path of its bottleneck loses is its own, unless chance explains it: it is lost before the bottleneck or after it. Of the path's losses only the
//! part that the bottleneck explains reduces the window, and the path has less of the window, which its siblings carry with fewer losses.
//! Where also the cleanest path loses much, windows are of a few segments, and a path's losses show how many of its packets left together: they
//! say nothing of the path. What a path that was held to share wrongly may take at its own bottleneck: docs/controller.md.

use polypath_wire::{Duration, Instant};

use crate::facts::LossCause;

/// The bottleneck explains a path's losses up to this multiple of what its cleanest path loses.
const MARGIN: f64 = 1.5;
/// Half of the interval of a rate of losses, in standard deviations. A path loses more often than the cleanest one, and not by chance, if the two
/// intervals do not overlap.
const SURE: f64 = 1.0;
/// Paths are not compared where the cleanest one loses a larger share of its packets.
const MOST: f64 = 1.0 / 200.0;
/// What a path lost is forgotten once it delivered for so long and lost nothing: else one with little to carry would wait for ever for
/// the next comparison.
const FORGOTTEN: Duration = Duration::from_secs(30);
/// Each comparison multiplies the counts by this.
const DECAY: f64 = 31.0 / 32.0;

/// Losses of one path.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// Only losses of packets count that left later.
    since: Instant,
    /// When its last loss episode began.
    last: Instant,
    /// Packets, and loss episodes: the last ones count most.
    delivered: f64,
    lost: f64,
    episodes: f64,
    /// The part that the bottleneck explains, and what of earlier episodes it explains that reduced nothing.
    part: f64,
    due: f64,
}

impl Losses {
    pub(super) fn new(since: Instant) -> Self {
        Self { since, last: since, delivered: 0.0, lost: 0.0, episodes: 0.0, part: 1.0, due: 0.0 }
    }

    /// `packets` were delivered.
    pub(super) fn on_delivered(&mut self, now: Instant, packets: u32) {
        if self.has_own() && now.since(self.last) > FORGOTTEN {
            *self = Self::new(now);
        }
        self.delivered += f64::from(packets);
    }

    /// A packet that left at `sent` was lost.
    pub(super) fn on_lost(&mut self, sent: Instant) {
        if sent > self.since {
            self.lost += 1.0;
        }
    }

    /// Whether it loses more than the bottleneck explains.
    pub(super) fn has_own(&self) -> bool {
        self.part < 1.0
    }

    /// What it has of what it would have of the window with no losses of its own.
    pub(super) fn weight(&self) -> f64 {
        self.part * self.part
    }

    /// A loss episode began. All that was in flight is taken to be lost where nothing came back: that is an outage, and
    /// what was counted is forgotten.
    pub(super) fn on_loss(&mut self, now: Instant, cause: LossCause) {
        self.last = now;
        match cause {
            LossCause::DupAck | LossCause::PartialAck | LossCause::LaterDelivered => self.episodes += 1.0,
            LossCause::TailProbe => {
                self.lost += 1.0; // it arrived with the probe, and nobody heard of it
                self.episodes += 1.0;
            }
            LossCause::Timeout | LossCause::Silence | LossCause::TooBig | LossCause::PathRemoved => {
                *self = Self::new(now);
            }
        }
    }

    /// Charges the bottleneck with an episode: whether it answers for it, as it does for that part of them.
    pub(super) fn charge(&mut self) -> bool {
        self.due += self.part;
        let is_due = self.due >= 1.0;
        if is_due {
            self.due -= 1.0;
        }
        is_due
    }

    /// Later losses count for more.
    pub(super) fn decay(&mut self) {
        self.delivered *= DECAY;
        self.lost *= DECAY;
        self.episodes *= DECAY;
    }

    /// The interval in which its rate of loss episodes per packet lies: Byar's approximation for Poisson counts (N. E. Breslow and N. E. Day, "Statistical Methods in Cancer
    /// Research", volume II, 1987, chapter 2). Packets of one episode are lost together and count once.
    fn rates(&self) -> [f64; 2] {
        let bound =
            |count: f64, z: f64| count * (1.0 - 1.0 / (9.0 * count) + z / (3.0 * count.sqrt())).powi(3);
        let least = if self.episodes > 0.0 { bound(self.episodes, -SURE).max(0.0) } else { 0.0 };
        [least, bound(self.episodes + 1.0, SURE)].map(|episodes| episodes / (self.delivered + self.lost))
    }

    /// Share of the packets that were lost, were there `more`.
    fn ratio(&self, more: f64) -> f64 {
        let lost = self.lost + more;
        lost / (lost + self.delivered)
    }
}

/// An episode began on one of the `paths` of a bottleneck: what part of the losses of each the bottleneck explains.
///
/// The cleanest path is taken to have lost half a burst more, of average length: few losses tell little.
pub(super) fn compare(paths: &mut [&mut Losses]) {
    let sum = |of: fn(&Losses) -> f64| paths.iter().map(|path| of(path)).sum::<f64>();
    let burst = (sum(|path| path.lost) / sum(|path| path.episodes)).max(1.0);
    let least = paths.iter().map(|path| path.ratio(burst / 2.0)).fold(1.0, f64::min);
    let cleanest = paths.iter().map(|path| path.rates()[1]).fold(f64::INFINITY, f64::min);
    for path in paths {
        let tells = least <= MOST && path.rates()[0] > cleanest;
        path.part = if tells { (MARGIN * least / path.ratio(0.0)).min(1.0) } else { 1.0 };
        path.decay();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polypath_wire::Duration;

    const MS: fn(u64) -> Instant = |ms| Instant::ZERO + Duration::from_millis(ms);

    fn path() -> Losses {
        Losses::new(MS(0))
    }

    /// Each path delivers its number of packets, then loses its burst.
    fn lose(paths: &mut [Losses; 2], delivered: [u32; 2], bursts: [usize; 2]) {
        paths.iter_mut().zip(delivered).for_each(|(path, packets)| path.on_delivered(MS(1), packets));
        for (at, lost) in bursts.into_iter().enumerate() {
            (0..lost).for_each(|_| paths[at].on_lost(MS(1)));
            if lost > 0 {
                paths[at].on_loss(MS(1), LossCause::LaterDelivered);
                compare(&mut paths.each_mut());
            }
        }
    }

    /// How many of the next 100 episodes the bottleneck answers for.
    fn shared(path: &mut Losses) -> usize {
        (0..100).filter(|_| path.charge()).count()
    }

    #[test]
    fn what_a_path_loses_beyond_the_others_is_its_own() {
        let mut paths = [path(), path()];
        (0..100).for_each(|n| lose(&mut paths, [1000, 1000], [10, if n % 10 == 0 { 10 } else { 0 }]));
        let [lossy, clean] = &mut paths;
        assert_eq!(shared(clean), 100);
        let of_lossy = shared(lossy);
        assert!((10..=25).contains(&of_lossy), "{of_lossy}: a tenth is the bottleneck's, and the margin");
        assert!(lossy.has_own() && !clean.has_own());
        assert!(lossy.weight() < 0.07 && clean.weight() == 1.0, "{}", lossy.weight());
    }

    /// A hundred times the same: how many episodes of each path the bottleneck answers for then.
    fn shared_after(delivered: [u32; 2], bursts: [usize; 2]) -> [usize; 2] {
        let mut paths = [path(), path()];
        (0..100).for_each(|_| lose(&mut paths, delivered, bursts));
        paths.each_mut().map(shared)
    }

    #[test]
    fn paths_of_different_shares_lose_as_much_of_what_they_carry() {
        assert_eq!(shared_after([10_000, 1000], [10, 1]), [100, 100]);
    }

    #[test]
    fn paths_that_all_lose_much_are_not_compared() {
        assert_eq!(shared_after([100, 100], [10, 1]), [100, 100]);
    }

    #[test]
    fn a_few_losses_tell_little() {
        let mut paths = [path(), path()];
        lose(&mut paths, [10_000, 10_000], [20, 0]);
        assert_eq!(paths.each_mut().map(shared), [100, 100], "a burst that met one path by chance");
        (0..2).for_each(|_| lose(&mut paths, [10_000, 10_000], [20, 0]));
        assert_eq!(paths.each_mut().map(shared), [100, 100], "three in a row");
        (0..8).for_each(|_| lose(&mut paths, [10_000, 10_000], [20, 0]));
        let [lossy, clean] = paths.each_mut().map(shared);
        assert!(lossy < 30 && clean == 100, "eleven in a row are no chance: {lossy}");
        let mut idle = [path(), path()];
        (0..9).for_each(|_| lose(&mut idle, [100, 0], [5, 0]));
        assert_eq!(shared(&mut idle[0]), 100, "a path that carries nothing shows nothing");
    }

    #[test]
    fn what_a_full_queue_takes_from_either_path_by_chance_is_the_bottlenecks() {
        for bursts in [[7, 3], [8, 4], [10, 5]] {
            let mut paths = [path(), path()];
            let all = bursts[0] + bursts[1];
            let lost = |n: usize| if n * bursts[1] % all < bursts[1] { [0, 2] } else { [2, 0] };
            (0..all).for_each(|n| lose(&mut paths, [300, 300], lost(n)));
            assert_eq!(paths.each_mut().map(shared), [100, 100], "{bursts:?}");
        }
    }

    #[test]
    fn an_outage_is_no_loss_of_packets() {
        let mut paths = [path(), path()];
        paths.iter_mut().for_each(|path| path.on_delivered(MS(1), 3000));
        (0..100).for_each(|_| paths[0].on_lost(MS(1)));
        paths[0].on_loss(MS(2), LossCause::Timeout);
        lose(&mut paths, [3000, 3000], [1, 1]);
        assert_eq!(paths.each_mut().map(shared), [100, 100]);
    }

    #[test]
    fn what_was_lost_long_ago_is_forgotten() {
        let mut paths = [path(), path()];
        (0..100).for_each(|_| lose(&mut paths, [1000, 1000], [10, 0]));
        paths[0].on_delivered(MS(30_000), 1);
        assert!(paths[0].has_own());
        paths[0].on_delivered(MS(30_002), 1);
        assert!(!paths[0].has_own() && paths[0].weight() == 1.0);
    }

    #[test]
    fn what_left_before_counts_for_nothing() {
        let mut path = Losses::new(MS(5));
        path.on_lost(MS(5));
        assert_eq!(path.lost, 0.0);
        path.on_lost(MS(6));
        assert_eq!(path.lost, 1.0);
    }
}
