//! The links that can be tried with `polypath testbed`, as users of bonding and tunnels have them.

use polypath_hop::{Change, HopConfig, QueueLimit, Step};
use polypath_wire::{Duration, Instant, Rate};

/// Links between two hosts.
#[derive(Debug)]
pub struct Scenario {
    pub name: &'static str,
    /// What it is there to show.
    pub about: &'static str,
    links: &'static [Link],
}

/// A link, the same both ways.
#[derive(Debug)]
pub struct Link {
    mbps: u64,
    /// One way.
    ms: u64,
    what: What,
}

/// What else there is to a link. Times are seconds since the start.
#[derive(Debug)]
enum What {
    Plain,
    /// Loses so much, 0 to 1.
    Lossy(f64),
    /// The same between two times.
    LossyFrom(f64, [u64; 2]),
    /// Carries nothing between two times.
    CutFrom([u64; 2]),
    /// Carries nothing at all.
    Dead,
    /// The delay varies by up to this many ms in both directions, for [`WANDERS`] s.
    Jittery(u64),
    /// Drops packets of more bytes silently.
    Hole(u32),
    /// Is reached over this many links of the first host that are no limit.
    Shared(usize),
}

/// How long the delay of a jittery link varies, s, and how often a second.
const WANDERS: u64 = 600;
const STEPS: u64 = 10;

const fn link(mbps: u64, ms: u64) -> Link {
    Link { mbps, ms, what: What::Plain }
}

/// All of them.
pub const ALL: &[Scenario] = &[
    Scenario { name: "dsl", about: "two slow lines", links: &[link(8, 60), link(4, 60)] },
    Scenario {
        name: "fibre-lte",
        about: "one line is faster and nearer",
        links: &[link(100, 10), link(40, 40)],
    },
    Scenario { name: "equal", about: "two equal lines", links: &[link(100, 10), link(100, 10)] },
    Scenario {
        name: "cable-lte",
        about: "a bond that many find slower than the cable",
        links: &[link(65, 15), link(12, 60)],
    },
    Scenario {
        name: "starlink",
        about: "the delay of the first wanders by 15 ms for ten minutes",
        links: &[Link { mbps: 150, ms: 45, what: What::Jittery(15) }, link(100, 12)],
    },
    Scenario {
        name: "small-mtu",
        about: "packets above 1400 and 1280 bytes vanish",
        links: &[
            Link { mbps: 100, ms: 10, what: What::Hole(1400) },
            Link { mbps: 40, ms: 40, what: What::Hole(1280) },
        ],
    },
    Scenario {
        name: "shared",
        about: "both lines of a lead through one bottleneck",
        links: &[Link { mbps: 8, ms: 30, what: What::Shared(2) }],
    },
    Scenario { name: "adsl", about: "two lines of a village", links: &[link(2, 20), link(3, 20)] },
    Scenario { name: "cable-vdsl", about: "two fast lines", links: &[link(200, 10), link(100, 15)] },
    Scenario { name: "unequal", about: "a line that hardly helps", links: &[link(100, 10), link(10, 100)] },
    Scenario {
        name: "lossy",
        about: "1 % random loss on the second",
        links: &[link(100, 10), Link { mbps: 40, ms: 40, what: What::Lossy(0.01) }],
    },
    Scenario {
        name: "bad-spell",
        about: "the second loses half of all from 60 to 80 s",
        links: &[link(100, 10), Link { mbps: 40, ms: 40, what: What::LossyFrom(0.5, [60, 80]) }],
    },
    Scenario {
        name: "cut",
        about: "the first falls silent from 60 to 90 s",
        links: &[Link { mbps: 100, ms: 10, what: What::CutFrom([60, 90]) }, link(40, 40)],
    },
    Scenario {
        name: "first-dead",
        about: "the first never carries anything",
        links: &[Link { mbps: 100, ms: 10, what: What::Dead }, link(40, 40)],
    },
    Scenario {
        name: "satellite",
        about: "fibre, LTE and a satellite",
        links: &[link(100, 6), link(30, 41), link(20, 281)],
    },
];

impl Scenario {
    /// The links in words.
    pub fn words(&self) -> String {
        let words = |link: &Link| {
            let before =
                if let What::Shared(lines) = link.what { format!("{lines} through ") } else { String::new() };
            format!("{before}{} Mbit/s {} ms", link.mbps, link.ms)
        };
        self.links.iter().map(words).collect::<Vec<_>>().join(" + ")
    }

    /// The sum of the links' rates, Mbit/s.
    pub fn sum(&self) -> u64 {
        self.links.iter().map(|link| link.mbps).sum()
    }

    /// How many links of the first host lead to the router in front of the only one, if there is such a router.
    pub fn shared(&self) -> Option<usize> {
        self.links
            .iter()
            .find_map(|link| if let What::Shared(lines) = link.what { Some(lines) } else { None })
    }

    /// The hops of each link, there and back.
    pub fn hops(&self) -> Vec<[HopConfig; 2]> {
        self.links.iter().map(|link| [link.hop(), link.hop()]).collect()
    }
}

impl Link {
    /// With a queue of one and a half round trips.
    fn hop(&self) -> HopConfig {
        let queue = self.mbps * 1000 / 8 * self.ms * 3;
        let plain = HopConfig {
            rate: Rate::from_mbps(self.mbps),
            delay: Duration::from_millis(self.ms),
            queue: QueueLimit::Bytes(queue.max(48_000)),
            ..HopConfig::default()
        };
        let between = |[from, to]: [u64; 2], then: [Change; 2]| {
            let at = |second: u64| Instant(second * 1_000_000_000);
            let [first, second] = then;
            vec![Step { at: at(from), change: first }, Step { at: at(to), change: second }]
        };
        match self.what {
            What::Plain | What::Shared(_) => plain,
            What::Lossy(loss) => HopConfig { loss, ..plain },
            What::LossyFrom(loss, when) => {
                HopConfig { schedule: between(when, [Change::Loss(loss), Change::Loss(0.0)]), ..plain }
            }
            What::CutFrom(when) => HopConfig { schedule: between(when, [Change::Down, Change::Up]), ..plain },
            What::Dead => HopConfig { up: false, ..plain },
            What::Jittery(by) => HopConfig { schedule: self.wanders(by), ..plain },
            What::Hole(mtu) => HopConfig { mtu: Some(mtu), ..plain },
        }
    }
}

impl Link {
    /// The steps of a delay that varies by up to `by` ms in both directions.
    fn wanders(&self, by: u64) -> Vec<Step> {
        let step = |n: u64| {
            let ms = self.ms - by + n * 7919 % (2 * by + 1); // a prime: neighbours are far apart
            let delay = Change::Delay(Duration::from_millis(ms));
            Step { at: Instant(n * 1_000_000_000 / STEPS), change: delay }
        };
        (0..WANDERS * STEPS).map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scenario_has_a_name_of_its_own_and_links_that_make_sense() {
        for (n, scenario) in ALL.iter().enumerate() {
            assert!(ALL[n + 1..].iter().all(|other| other.name != scenario.name), "{}", scenario.name);
            for hop in scenario.hops().iter().flatten() {
                assert!(hop.validate().is_ok(), "{}", scenario.name);
            }
        }
        // 1.5 × 8 Mbit/s × 120 ms.
        assert_eq!(ALL[0].hops()[0][0].queue, QueueLimit::Bytes(180_000));
    }
}
