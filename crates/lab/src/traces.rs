//! Traces of delivery opportunities that are drawn, not recorded: links whose rate moves as those of LTE, of Starlink and of Wi-Fi
//! do. They are for what changes and when, not for what any one place measures: `docs/experiments.md` says which number comes from
//! where. Only whole numbers and the four operations are used, so that the same seed gives the same bytes on every machine.

mod lte;
mod starlink;
mod wifi;

use polypath_hop::LinkTrace;
use polypath_wire::{Rate, Seed};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// What a trace is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A cellular link whose rate wanders, down to outages.
    Lte,
    /// A link over satellites that are assigned anew every 15 s.
    Starlink,
    /// A shared channel on which frames leave in bursts.
    Wifi,
}

/// A trace that cannot be drawn.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceError {
    /// There is no such kind.
    #[error("no trace is like \"{0}\": there are lte, starlink, wifi")]
    Kind(String),
    /// It has no end, or none that anybody waits for.
    #[error("a trace lasts 1 s to 3600 s")]
    Length(u64),
    /// Too slow for an opportunity, or too fast for a file.
    #[error("a mean of {0} bit/s: it is from 100kbit/s to 1Gbit/s")]
    Mean(u64),
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Lte, Self::Starlink, Self::Wifi];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lte => "lte",
            Self::Starlink => "starlink",
            Self::Wifi => "wifi",
        }
    }

    /// The one called `name`.
    pub fn called(name: &str) -> Result<Self, TraceError> {
        Self::ALL.into_iter().find(|k| k.name() == name).ok_or_else(|| TraceError::Kind(name.to_owned()))
    }

    /// The mean rate of a long trace, unless another is asked for.
    pub fn mean(self) -> Rate {
        match self {
            Self::Lte => lte::MEAN,
            Self::Starlink => starlink::MEAN,
            Self::Wifi => wifi::MEAN,
        }
    }

    /// A trace of `seconds`, whose rates are as many times its usual ones as `mean` is its [`mean`](Self::mean).
    pub fn draw(self, seed: Seed, seconds: u64, mean: Rate) -> Result<LinkTrace, TraceError> {
        if !(1..=3600).contains(&seconds) {
            return Err(TraceError::Length(seconds));
        }
        if !(100_000..=1_000_000_000).contains(&mean.0) {
            return Err(TraceError::Mean(mean.0));
        }
        let mut dice = Dice::new(seed.child(self.name()));
        let length = seconds as u32 * 1000;
        let mut opportunities = match self {
            Self::Lte => lte::draw(&mut dice, length, mean),
            Self::Starlink => starlink::draw(&mut dice, length, mean),
            Self::Wifi => wifi::draw(&mut dice, length, mean),
        };
        opportunities.push(length); // the trace ends here, so that it repeats after its length
        Ok(LinkTrace::try_from(opportunities).expect("opportunities come in order, the last above zero"))
    }
}

/// What is drawn comes from here.
pub(crate) struct Dice(Pcg64Mcg);

impl Dice {
    pub(crate) fn new(seed: Seed) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed.0))
    }

    /// From 0 to below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// From 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Near a standard normal number: twelve of [`unit`](Self::unit), less their mean.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// Opportunities as bits fill them.
#[derive(Default)]
struct Filled {
    bits: f64,
    opportunities: Vec<u32>,
}

impl Filled {
    fn carry(&mut self, ms: u32, bits: f64) {
        const OPPORTUNITY: f64 = polypath_hop::trace::OPPORTUNITY as f64 * 8.0;
        self.bits += bits;
        while self.bits >= OPPORTUNITY {
            self.bits -= OPPORTUNITY;
            self.opportunities.push(ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::Duration;

    use super::*;

    fn times(trace: &LinkTrace) -> Vec<u32> {
        trace.clone().into()
    }

    /// Mbit/s in each span of `ms`.
    fn rates(trace: &LinkTrace, ms: u32) -> Vec<f64> {
        let times = times(trace);
        let spans = times[times.len() - 1] / ms;
        let mut rates = vec![0.0; spans as usize];
        for at in times.iter().filter(|at| **at < spans * ms) {
            rates[(at / ms) as usize] += 0.012 / (f64::from(ms) / 1000.0);
        }
        rates
    }

    #[test]
    fn the_same_seed_draws_the_same_trace_and_another_another() {
        for kind in Kind::ALL {
            let draw = |seed| kind.draw(Seed(seed), 5, kind.mean()).unwrap();
            assert_eq!(draw(1), draw(1));
            assert_ne!(draw(1), draw(2));
            assert_eq!(draw(3).period(), Duration::from_secs(5));
        }
    }

    #[test]
    fn the_mean_over_many_seeds_is_the_one_that_is_asked_for() {
        for (kind, mean) in
            [(Kind::Lte, 5), (Kind::Lte, 20), (Kind::Starlink, 150), (Kind::Wifi, 40), (Kind::Wifi, 10)]
        {
            let of =
                |seed| kind.draw(Seed(seed), 120, Rate::from_mbps(mean)).unwrap().mean_rate().0 as f64 / 1e6;
            let drawn = (0..20).map(of).sum::<f64>() / 20.0;
            assert!((drawn / mean as f64 - 1.0).abs() < 0.1, "{kind:?}: {drawn} of {mean}");
        }
    }

    #[test]
    fn a_cellular_link_wanders_over_all_rates_and_has_outages() {
        let trace = Kind::Lte.draw(Seed(1), 600, lte::MEAN).unwrap();
        let rates = rates(&trace, 200);
        assert!(rates.contains(&0.0) && rates.iter().any(|r| *r > 10.0));
        let steps = rates.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        let steps = steps.sum::<f64>() / (rates.len() - 1) as f64;
        assert!((0.4..1.6).contains(&steps), "mean step in 200 ms: {steps} Mbit/s");
        let outages = rates.iter().filter(|r| **r == 0.0).count() as f64 / rates.len() as f64;
        assert!((0.01..0.12).contains(&outages), "{outages} of the time");
    }

    #[test]
    fn a_satellite_link_changes_every_15_seconds_after_a_pause() {
        let trace = Kind::Starlink.draw(Seed(4), 90, starlink::MEAN).unwrap();
        let pauses: Vec<u32> = times(&trace).windows(2).filter(|p| p[1] - p[0] >= 20).map(|p| p[0]).collect();
        assert_eq!(pauses.len(), 6, "{pauses:?}");
        assert!(pauses.windows(2).all(|p| (14_900..=15_100).contains(&(p[1] - p[0]))), "{pauses:?}");
        let within = |from: u32| {
            let rates = &rates(&trace, 1000)[from as usize / 1000 + 2..][..12];
            rates.iter().sum::<f64>() / 12.0
        };
        let (one, two) = (within(pauses[0]), within(pauses[1]));
        assert!((one / two - 1.0).abs() > 0.05, "{one} {two}");
    }

    #[test]
    fn a_shared_channel_delivers_in_bursts() {
        let times = times(&Kind::Wifi.draw(Seed(1), 60, wifi::MEAN).unwrap());
        let mut bursts = vec![1];
        for pair in times.windows(2) {
            if pair[0] == pair[1] { *bursts.last_mut().unwrap() += 1 } else { bursts.push(1) }
        }
        let mean = bursts.iter().sum::<i32>() as f64 / bursts.len() as f64;
        assert!((5.0..64.0).contains(&mean) && bursts.iter().all(|b| *b <= 64), "{mean}");
        let gaps: Vec<u32> = times.windows(2).map(|p| p[1] - p[0]).filter(|gap| *gap > 0).collect();
        assert!(gaps.iter().any(|gap| *gap > 20) && gaps.iter().any(|gap| *gap <= 5));
    }

    #[test]
    fn what_cannot_be_drawn_is_told() {
        let told =
            |kind: Kind, seconds, mean| kind.draw(Seed(1), seconds, Rate(mean)).unwrap_err().to_string();
        assert!(told(Kind::Lte, 0, 1_000_000).contains("lasts 1 s to 3600 s"));
        assert!(told(Kind::Lte, 10, 1).contains("100kbit/s"));
        assert!(Kind::called("5g").unwrap_err().to_string().contains("there are lte, starlink, wifi"));
    }
}
