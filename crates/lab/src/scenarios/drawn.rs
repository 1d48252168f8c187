//! What a scenario is like, drawn by its number. Only whole numbers are drawn, so that every machine draws the same.

use polypath_wire::{Duration, Rate, Seed};

use crate::traces::Dice;

/// The values of the E24 series (IEC 60063), ten times: 24 steps a decade.
const E24: [u64; 24] =
    [10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91];
/// Queues, in hundredths of a BDP: a quarter to eight, half a doubling apart.
const BDPS: [u64; 11] = [25, 35, 50, 71, 100, 141, 200, 283, 400, 566, 800];
/// Bytes of a packet.
const PACKET: u64 = 1500;

/// A connection of one to four paths, the bottlenecks that they lead through, and who else is there.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Its number, which decides all else.
    pub number: u64,
    /// The law of the TCPs beside it.
    pub rival: Rival,
    /// Each leads at least one path.
    pub bottlenecks: Vec<Bottleneck>,
    /// The paths of the connection.
    pub paths: Vec<Path>,
    /// A TCP from its receiver to its sender, through the first bottleneck.
    pub reverse: bool,
}

/// The law of the TCPs beside the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rival {
    /// NewReno.
    Reno,
    /// CUBIC.
    Cubic,
    /// BBR version 3.
    Bbr,
}

/// A link with a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bottleneck {
    /// Its rate.
    pub rate: Rate,
    /// What may wait, bytes.
    pub queue: u64,
    /// Under CoDel instead of drop-tail.
    pub codel: bool,
    /// How many TCPs there are beside the connection.
    pub rivals: u64,
    /// Its rate of each second, in percent of `rate`; empty: always all.
    pub rates: Vec<u64>,
    /// Bursts of UDP as well.
    pub bursts: bool,
}

/// A path before its bottleneck.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// Which bottleneck it leads through.
    pub bottleneck: usize,
    /// One way.
    pub delay: Duration,
    /// Packets of ten thousand that are lost at random.
    pub lost: u64,
    /// Some packets arrive late.
    pub reorders: bool,
}

impl Rival {
    /// Its name among the algorithms.
    pub fn law(self) -> &'static str {
        match self {
            Self::Reno => "newreno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    /// The law that the connection is compared with, and that `polypath` follows.
    pub fn base(self) -> &'static str {
        match self {
            Self::Reno => "newreno",
            Self::Cubic | Self::Bbr => "cubic",
        }
    }
}

impl Scenario {
    /// The scenario `number`.
    pub fn draw(number: u64) -> Self {
        let mut dice = Dice::new(Seed(number).child("frontier"));
        let (places, bottlenecks) = layout(&mut dice);
        let paths: Vec<Path> = places.into_iter().map(|place| path(&mut dice, place)).collect();
        let fastest = e24(&mut dice, 72); // 1 to 1000 Mbit/s
        let slower = |dice: &mut Dice| Rate((fastest * 10_000 * (10 + dice.below(91))) / 10);
        let rates: Vec<Rate> = (0..bottlenecks)
            .map(|n| if n == 0 { Rate(fastest * 100_000) } else { slower(&mut dice) })
            .collect();
        let longest = |n| paths.iter().filter(|p| p.bottleneck == n).map(|p| p.delay).max();
        let bottlenecks = rates
            .iter()
            .enumerate()
            .map(|(n, rate)| bottleneck(&mut dice, *rate, longest(n).unwrap_or_default()))
            .collect();
        let rival = [Rival::Reno, Rival::Cubic, Rival::Bbr][dice.below(3) as usize];
        Self { number, rival, bottlenecks, paths, reverse: dice.below(6) == 0 }
    }

    /// How long it runs, s: as long as it takes to carry 3 Gbit, 20 to 60. The second half counts.
    pub fn seconds(&self) -> u64 {
        let sum: u64 = self.bottlenecks.iter().map(|b| b.rate.0).sum();
        (3_000_000_000 / sum).clamp(20, 60)
    }

    /// The paths through bottleneck `n`, by number.
    pub fn through(&self, n: usize) -> impl Iterator<Item = usize> {
        self.paths.iter().enumerate().filter(move |(_, p)| p.bottleneck == n).map(|(i, _)| i)
    }

    /// The path of the shortest delay through bottleneck `n`.
    pub fn quickest(&self, n: usize) -> usize {
        self.through(n).min_by_key(|i| self.paths[*i].delay).unwrap_or_default()
    }

    /// What bottleneck `n` and its quickest path hold with a full queue, packets.
    pub fn pipe(&self, n: usize) -> u64 {
        let Bottleneck { rate, queue, .. } = &self.bottlenecks[n];
        let rtt = self.paths[self.quickest(n)].delay.times(2);
        (rate.bytes_in(rtt) + queue) / PACKET
    }

    /// What the connection may have under way before a window of its own limits it, bytes.
    pub fn buffer(&self) -> u64 {
        let rate: u64 = self.bottlenecks.iter().map(|b| b.rate.0).sum();
        let rtt = self.paths.iter().map(|p| p.delay).max().unwrap_or_default().times(2);
        let queues: u64 = self.bottlenecks.iter().map(|b| b.queue).sum();
        4 * (Rate(rate).bytes_in(rtt) + queues) + (1 << 20)
    }
}

/// The bottleneck of each path, and how many bottlenecks there are: each path has its own, all share one, or as it falls.
fn layout(dice: &mut Dice) -> (Vec<usize>, usize) {
    let paths = 1 + dice.below(4);
    let kind = dice.below(3);
    let drawn: Vec<u64> = (0..paths)
        .map(|n| match kind {
            0 => n,
            1 => 0,
            _ => dice.below(paths.max(3) - 1),
        })
        .collect();
    let mut used = drawn.clone();
    used.sort_unstable();
    used.dedup();
    let place = |d: &u64| used.iter().position(|u| u == d).unwrap_or_default();
    (drawn.iter().map(place).collect(), used.len())
}

fn path(dice: &mut Dice, bottleneck: usize) -> Path {
    let delay = Duration::from_millis(1).times(e24(dice, 52)).over(10); // 1 to 150 ms
    let lost = if dice.below(4) == 0 { 10 + dice.below(291) } else { 0 };
    Path { bottleneck, delay, lost, reorders: dice.below(8) == 0 }
}

fn bottleneck(dice: &mut Dice, rate: Rate, delay: Duration) -> Bottleneck {
    let bdps = BDPS[dice.below(BDPS.len() as u64) as usize];
    let queue = (rate.bytes_in(delay.times(2)) * bdps / 100).max(4 * PACKET);
    let (codel, rivals) = (dice.below(4) == 0, dice.below(3));
    let unsteady = dice.below(6) == 0;
    let rates = (0..if unsteady { 60 } else { 0 }).map(|_| 50 + dice.below(51)).collect();
    Bottleneck { rate, queue, codel, rivals, rates, bursts: dice.below(6) == 0 }
}

/// Ten times one of the first `last` + 1 values of the series from 1 on.
fn e24(dice: &mut Dice, last: u64) -> u64 {
    let n = dice.below(last + 1);
    E24[(n % 24) as usize] * 10u64.pow((n / 24) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_draws_the_same_scenario_and_all_kinds_come() {
        assert_eq!(Scenario::draw(7), Scenario::draw(7));
        let all: Vec<Scenario> = (1..=200).map(Scenario::draw).collect();
        let some = |is: &dyn Fn(&Scenario) -> bool| all.iter().filter(|s| is(s)).count();
        for paths in 1..=4 {
            assert!(some(&|s| s.paths.len() == paths) > 20);
        }
        assert!(
            some(&|s| s.bottlenecks.len() > 1 && s.bottlenecks.len() < s.paths.len()) > 10,
            "partly shared"
        );
        assert!(some(&|s| s.paths.len() > 1 && s.bottlenecks.len() == 1) > 20, "shared");
        assert!(some(&|s| s.bottlenecks.iter().any(|b| b.codel)) > 20);
        assert!(some(&|s| s.paths.iter().any(|p| p.lost > 0)) > 20);
    }

    #[test]
    fn every_number_is_within_its_range() {
        for s in (1..=300).map(Scenario::draw) {
            for (n, b) in s.bottlenecks.iter().enumerate() {
                assert!((100_000..=1_000_000_000).contains(&b.rate.0) && b.queue >= 6000, "{b:?}");
                assert!(s.through(n).count() > 0, "bottleneck {n} of {} leads no path", s.number);
            }
            assert!(s.paths.iter().all(|p| (1..=150).contains(&(p.delay.0 / 1_000_000)) && p.lost <= 300));
            assert!((20..=60).contains(&s.seconds()));
        }
    }
}
