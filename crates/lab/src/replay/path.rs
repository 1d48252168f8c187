//! What a log says about one path, and the link made from it.

use std::fmt::{self, Write as _};
use std::net::IpAddr;

use polypath_wire::{Duration, Rate};

use super::log::{Look, Peer};
use super::{FULL, IDLE, time};
use crate::units::Human;

/// Rates that differ by less than this part are one.
const SAME: f64 = 0.1;
/// Random loss that is less is none.
const LEAST_LOSS: f64 = 0.0005;
/// Packets that tell of random loss.
const ENOUGH: u64 = 1000;
/// No queue stands while the round trip is below the smallest times this.
const CALM: f64 = 1.2;
/// The least queue, bytes.
const LEAST_QUEUE: f64 = 15_000.0;

/// A path over the time of the log: second `n` lies between lines `n` and `n + 1`.
#[derive(Debug)]
pub(super) struct Path {
    ends: (IpAddr, IpAddr),
    /// What was sent in each second, bits on the wire.
    bits: Vec<f64>,
    /// What the link was at first, and each time that it became another.
    states: Vec<State>,
    /// Round trip without queues, and the longest, s.
    round_trip: [f64; 2],
    loss: f64,
}

/// What a link is from some time on.
#[derive(Clone, Copy, PartialEq, Debug)]
struct State {
    /// Since when, s.
    at: f64,
    /// bit/s.
    rate: f64,
    up: bool,
}

impl Path {
    pub fn of(ends: (IpAddr, IpAddr), times: &[f64], lines: &[Option<&Peer>]) -> Self {
        let looks = || lines.iter().map(|peer| (*peer)?.paths.iter().find(|path| path.ends() == ends));
        let pairs = || looks().zip(looks().skip(1));
        let took = times.iter().zip(&times[1..]).map(|(from, to)| to - from);
        let told: Vec<Told> = pairs().zip(took).map(|(pair, took)| Told::of(pair, took)).collect();
        let heard = || looks().flatten();
        let queued = || heard().filter_map(|look| look.load.rtt_ms);
        // Acknowledgments may come back on another path, the answers of heartbeats do not.
        let unloaded = heard().filter_map(|look| Some(2.0 * look.delay_ms?)).reduce(f64::min);
        let least = unloaded.or_else(|| queued().reduce(f64::min)).unwrap_or(1.0);
        let most = queued().fold(least, f64::max);
        Self {
            ends,
            bits: told.iter().map(|second| second.bits).collect(),
            states: states(&told, times),
            round_trip: [least / 1e3, most / 1e3],
            loss: loss(pairs(), least),
        }
    }

    /// Everything sent, bytes.
    pub fn carried(&self) -> u64 {
        (self.bits.iter().sum::<f64>() / 8.0) as u64
    }

    /// What was sent in a second, bits.
    pub fn bits(&self, second: usize) -> f64 {
        self.bits[second]
    }

    /// The lowest and the highest rate, bit/s.
    fn rates(&self) -> [f64; 2] {
        let rates = || self.states.iter().map(|state| state.rate);
        [rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max)]
    }

    /// Links from `a` over `router` to `b` that do as it did.
    pub fn link(&self, router: &str) -> String {
        let [least, longest] = self.round_trip;
        let [_, highest] = self.rates();
        let queue = ((longest - least) * highest / 8.0).max(least * highest / 16.0).max(LEAST_QUEUE);
        let loss = if self.loss > 0.0 { format!("loss = {:.4}\n", self.loss) } else { String::new() };
        let mut text = format!(
            "
[[link]]                         # {} to {}
from = \"a\"
to = \"{router}\"
rate = \"{}\"
delay = \"{}\"
queue = \"{}B\"
{loss}",
            self.ends.0,
            self.ends.1,
            human(self.states[0].rate),
            Human(Duration::from_micros((least * 5e5) as u64)),
            queue.round(),
        );
        for (before, now) in self.states.iter().zip(&self.states[1..]) {
            // Writing into a string cannot fail.
            let _ = write!(text, "\n[[link.change]]\nat = \"{}\"\n", time(now.at));
            if now.rate != before.rate {
                let _ = writeln!(text, "rate = \"{}\"", human(now.rate));
            }
            if now.up != before.up {
                let _ = writeln!(text, "up = {}", now.up);
            }
        }
        text + &format!(
            "\n[[link]]\nfrom = \"{router}\"\nto = \"b\"\nrate = \"10Gbit/s\"\ndelay = \"1us\"\nqueue = \"10000p\"\n"
        )
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([lowest, highest], [least, longest]) = (self.rates(), self.round_trip);
        write!(f, "{} to {}: ", self.ends.0, self.ends.1)?;
        match highest > lowest {
            true => write!(f, "{:.1} to {:.1} Mbit/s", lowest / 1e6, highest / 1e6)?,
            false => write!(f, "{:.1} Mbit/s", highest / 1e6)?,
        }
        write!(f, ", round trip {:.1} ms, queue {:.0} ms", least * 1e3, (longest - least) * 1e3)?;
        match self.loss > 0.0 {
            true => write!(f, ", random loss {:.2} %", self.loss * 100.0),
            false => Ok(()),
        }
    }
}

/// What two looks tell of the second between them.
struct Told {
    up: bool,
    bits: f64,
    /// What was sent, headers included, bit/s.
    sent: f64,
    /// The rate of delivery, bit/s without headers.
    measured: Option<f64>,
}

impl Told {
    fn of((before, after): (Option<&Look>, Option<&Look>), took: f64) -> Self {
        let bits = match (before, after) {
            (Some(before), Some(after)) => after.wire().saturating_sub(before.wire()) as f64 * 8.0,
            _ => 0.0,
        };
        let up = before.is_some_and(|look| look.up && look.answers);
        let measured = after.and_then(|look| look.rate_mbps).map(|mbps| mbps * 1e6);
        Self { up, bits, sent: bits / took, measured: measured.filter(|rate| *rate > 0.0) }
    }

    fn is_full(&self) -> bool {
        self.measured.is_some_and(|measured| self.sent >= FULL * measured)
    }
}

/// What the link was at first, and each time that it became another. Seconds in which next to nothing was sent tell no rate.
fn states(told: &[Told], times: &[f64]) -> Vec<State> {
    let most = told.iter().map(|second| second.sent).fold(0.0, f64::max);
    let full = || told.iter().filter(|second| second.is_full());
    let (sent, measured) = full().fold((0.0, 0.0), |(sent, measured), second| {
        (sent + second.sent, measured + second.measured.unwrap_or_default())
    });
    let headers = if measured > 0.0 { sent / measured } else { 1.0 };
    let rate = |second: &Told| match second.is_full() {
        _ if second.sent <= most * IDLE => None,
        true => Some(second.sent),
        false => second.measured.map(|measured| measured * headers),
    };
    let mut now = State { at: 0.0, rate: told.iter().find_map(rate).unwrap_or(1e6), up: true };
    let mut states = vec![now];
    for (second, at) in told.iter().zip(times) {
        let differs = |other: &f64| (other / now.rate - 1.0).abs() > SAME;
        let then = State { at: *at, rate: rate(second).filter(differs).unwrap_or(now.rate), up: second.up };
        if (then.rate, then.up) != (now.rate, now.up) {
            states.push(then);
            now = then;
        }
    }
    states
}

/// The share of packets that were sent again in seconds in which no queue stood.
fn loss<'a>(pairs: impl Iterator<Item = (Option<&'a Look>, Option<&'a Look>)>, least: f64) -> f64 {
    let calm = |look: &Look| look.load.rtt_ms.is_some_and(|rtt| rtt <= least * CALM);
    let (mut again, mut sent) = (0, 0);
    for pair in pairs {
        let (Some(before), Some(after)) = pair else { continue };
        // Less than before: connections have closed since.
        let more = after.load.again.checked_sub(before.load.again);
        if let Some(more) = more.filter(|_| calm(before) && calm(after)) {
            again += more;
            sent += after.sent_packets.saturating_sub(before.sent_packets);
        }
    }
    let share = again as f64 / sent.max(1) as f64;
    if sent >= ENOUGH && (LEAST_LOSS..1.0).contains(&share) { share } else { 0.0 }
}

/// A rate as a spec file has it, in whole kbit/s.
fn human(bits: f64) -> Human<Rate> {
    Human(Rate(((bits / 1e3).round() as u64).max(1) * 1000))
}
