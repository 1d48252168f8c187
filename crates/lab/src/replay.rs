//! A real run as an experiment: what `polypath status --watch --json` recorded of a daemon becomes links that change as the real ones
//! did, and transfers of the sizes and at the times of the real ones. Other algorithms may then be tried on them.
//!
//! What is known of a path in each second:
//! - its rate: what was sent, headers included, where that was at least nine tenths of the measured rate of delivery; else the latter,
//!   as the path was not full; where next to nothing was sent, the one before;
//! - its delay: half the smallest round trip of a heartbeat;
//! - its queue: what makes up the difference to the longest round trip, and at least half of the product of rate and round trip;
//! - its random loss: the share of packets sent again in those seconds in which no queue stood.

mod log;
mod path;

use std::fmt::Write as _;
use std::net::IpAddr;

use polypath_wire::Duration;
use thiserror::Error;

use crate::units::{Bytes, Human};
use log::{Line, Peer};
use path::Path;

/// A path on which this part of the measured rate of delivery is sent, headers included, is full.
const FULL: f64 = 0.9;
/// A second counts as idle below this part of the busiest one.
const IDLE: f64 = 0.02;
/// Seconds without data that part two transfers.
const PAUSE: usize = 2;
/// What of the bytes of a path is data of connections, at most.
const DATA: f64 = 0.95;
/// Shorter transfers are not replayed, bytes.
const LEAST: u64 = 100_000;

/// Longest log, seconds.
const LONGEST: f64 = 86_400.0;

/// Why a log is no experiment.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// A line is not one of `polypath status --watch --json`.
    #[error("line {line} is not what `polypath status --watch --json` writes{}", detail(source))]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A number is larger than any that a daemon writes, or negative.
    #[error("line {line}: a number is out of range")]
    Range {
        /// The line, from 1.
        line: usize,
    },
    /// The log is too long.
    #[error("{0:.0} s: at most a day is replayed")]
    Long(f64),
    /// There are too few lines.
    #[error("{0} lines: rates take at least 3")]
    Short(usize),
    /// No such peer.
    #[error("no peer is called {name}; the log has {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Those of the log.
        known: Vec<String>,
    },
    /// Nothing was sent to the peer.
    #[error("nothing of at least {} was sent to {peer} in a connection", Human(Bytes(LEAST)))]
    Nothing {
        /// The peer.
        peer: String,
    },
}

/// What JSON of another form lacks.
fn detail(error: &serde_json::Error) -> String {
    if error.is_data() { format!(": {error}") } else { String::new() }
}

/// Data that were sent without a pause.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transfer {
    /// When it began, seconds from the first line.
    pub start: f64,
    /// How long it took, seconds.
    pub took: f64,
    /// Its size, bytes.
    pub bytes: u64,
}

/// A log as an experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Replay {
    /// The peer to which the data went.
    pub peer: String,
    /// What was sent, in order; flow `transfer1` is the first.
    pub transfers: Vec<Transfer>,
    /// Each path in words.
    pub paths: Vec<String>,
    /// The experiment, a spec file.
    pub spec: String,
}

impl Replay {
    /// The experiment of the log in `text`: what went to the peer of this name or tag, or else to the one that was sent most.
    pub fn of(text: &str, peer: Option<&str>) -> Result<Self, ReplayError> {
        let lines = log::read(text)?;
        if lines.len() < 3 {
            return Err(ReplayError::Short(lines.len()));
        }
        let Chosen { name, hit } = chosen(&lines, peer)?;
        let times: Vec<f64> = lines.iter().map(|line| line.time - lines[0].time).collect();
        if let Some(long) = times.last().filter(|last| **last > LONGEST) {
            return Err(ReplayError::Long(*long));
        }
        let looks: Vec<Option<&Peer>> = lines.iter().map(|line| line.peer(&hit)).collect();
        let paths: Vec<Path> = ends(&looks).into_iter().map(|ends| Path::of(ends, &times, &looks)).collect();
        let paths: Vec<Path> = paths.into_iter().filter(|path| path.carried() > 0).collect();
        let transfers = transfers(&times, &looks, &paths);
        if transfers.is_empty() {
            return Err(ReplayError::Nothing { peer: name });
        }
        let spec = spec(&times, &paths, &transfers);
        Ok(Self { transfers, paths: paths.iter().map(Path::to_string).collect(), spec, peer: name })
    }
}

/// A peer of the log.
struct Chosen {
    name: String,
    hit: String,
}

/// The peer of that name or tag, or the one that was sent most.
fn chosen(lines: &[Line], name: Option<&str>) -> Result<Chosen, ReplayError> {
    let of = |peer: &Peer| Chosen { name: peer.name.clone(), hit: peer.hit.clone() };
    let all = || lines.iter().flat_map(|line| &line.peers);
    match name {
        Some(name) => match all().find(|peer| peer.name == name || peer.hit == name) {
            Some(peer) => Ok(of(peer)),
            None => {
                let mut known: Vec<String> = all().map(|peer| peer.name.clone()).collect();
                known.sort();
                known.dedup();
                Err(ReplayError::Unknown { name: name.to_owned(), known })
            }
        },
        None => {
            let most = all().max_by_key(|peer| peer.sent).map(of);
            most.ok_or(ReplayError::Nothing { peer: "any peer".to_owned() })
        }
    }
}

/// The ends of all paths that the peer had, in the order of their coming.
fn ends(looks: &[Option<&Peer>]) -> Vec<(IpAddr, IpAddr)> {
    let mut ends = Vec::new();
    for path in looks.iter().flatten().flat_map(|peer| &peer.paths) {
        if !ends.contains(&path.ends()) {
            ends.push(path.ends());
        }
    }
    ends
}

/// What was sent without a pause of two seconds.
fn transfers(times: &[f64], looks: &[Option<&Peer>], paths: &[Path]) -> Vec<Transfer> {
    let sent = |second: usize| paths.iter().map(|path| path.bits(second)).sum::<f64>() / 8.0;
    let seconds = times.len() - 1;
    let most = (0..seconds).map(sent).fold(0.0, f64::max);
    let busy = |second: &usize| sent(*second) > most * IDLE;
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for second in (0..seconds).filter(busy) {
        match spans.last_mut() {
            Some((_, last)) if second <= *last + PAUSE => *last = second,
            _ => spans.push((second, second)),
        }
    }
    // Of the first and the last second as much was used as they carried of what their neighbours did.
    let part = |second: usize, inner: usize| {
        (sent(second) / sent(inner)).min(1.0) * (times[second + 1] - times[second])
    };
    let given = |line: usize| looks[line].map_or(0, |peer| peer.sent);
    let transfer = |(first, last): (usize, usize)| {
        let (begin, end) = match last - first {
            0 => (times[first], times[last + 1]),
            _ => (times[first + 1] - part(first, first + 1), times[last] + part(last, last - 1)),
        };
        let on_paths = (first..=last).map(sent).sum::<f64>() * DATA;
        // What is given before it is sent is given in the second before at the earliest.
        let given = given(last + 1).saturating_sub(given(first.saturating_sub(1)));
        Transfer { start: begin, took: end - begin, bytes: given.min(on_paths as u64) }
    };
    spans.into_iter().map(transfer).filter(|transfer| transfer.bytes >= LEAST).collect()
}

fn spec(times: &[f64], paths: &[Path], transfers: &[Transfer]) -> String {
    let end = times.last().copied().unwrap_or(0.0);
    let mut text = format!(
        "# Made by `polypath lab replay`. Every key: polypath lab schema; in words: docs/experiments.md.
version = 1
title = \"What a daemon sent\"
duration = \"{}\"
seeds = \"1..5\"

[connection]                     # as between two daemons
cc = {{ algorithm = \"polypath\" }}
scheduler = {{ policy = \"earliest_completion\" }}
acks = {{ policy = \"thinned\" }}
send_buffer = {buffer}
receive_buffer = {buffer}
fail_silent = true
",
        time(2.0 * end + 30.0),
        buffer = 16 << 20,
    );
    for (n, path) in paths.iter().enumerate() {
        text += &path.link(&format!("r{}", n + 1));
    }
    let via: Vec<String> = (1..=paths.len()).map(|n| format!("[\"r{n}\"]")).collect();
    for (n, transfer) in transfers.iter().enumerate() {
        // Writing into a string cannot fail.
        let _ = write!(
            text,
            "
[[flow]]
name = \"transfer{}\"
from = \"a\"
to = \"b\"
paths = [{}]
secure = true
start = \"{}\"
size = \"{}B\"                  # the real one took {:.1} s
",
            n + 1,
            via.join(", "),
            time(transfer.start),
            transfer.bytes,
            transfer.took,
        );
    }
    text
}

/// Seconds as a spec file has them.
fn time(seconds: f64) -> Human<Duration> {
    Human(Duration::from_millis((seconds * 1e3).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::parse;

    /// A log of `seconds`, over paths of (Mbit/s, round trip in ms), of which the second has 10 Mbit/s from the tenth second on and is
    /// down in the fifteenth; data flow from the third to the 18th second.
    fn log(seconds: u64) -> String {
        let mut sent = [0u64; 2];
        let mut text = String::new();
        for second in 0..=seconds {
            let paths: Vec<String> = [(80u64, 20), (40, 40)].iter().enumerate().map(|(n, (mbps, rtt))| {
                let mbps = if n == 1 && second > 10 { 10 } else { *mbps };
                if (3..=18).contains(&second) {
                    sent[n] += mbps * 125_000 * 1472 / 1500;
                }
                format!(
                    "{{\"local\":\"10.0.{n}.1:10500\",\"remote\":\"10.0.{n}.2:10500\",\"up\":true,\"answers\":{},\"delay_ms\":{},\
                     \"rate_mbps\":{mbps},\"mtu\":1500,\"sent_packets\":{},\"sent_bytes\":{},\"received_bytes\":0,\
                     \"load\":{{\"connections\":1,\"window\":1,\"in_flight\":1,\"again\":0,\"rtt_ms\":{}}}}}",
                    !(n == 1 && second == 15), rtt / 2, sent[n] / 1472, sent[n], rtt + 5,
                )
            }).collect();
            let given = sent.iter().sum::<u64>() * 9 / 10;
            text += &format!(
                "{{\"time\":{},\"hit\":\"x\",\"peers\":[{{\"name\":\"far\",\"hit\":\"2001:22::1\",\"sent\":{given},\"paths\":[{}]}}]}}\n",
                1000 + second,
                paths.join(",")
            );
        }
        text
    }

    #[test]
    fn a_log_becomes_links_that_change_and_a_transfer() {
        let replay = Replay::of(&log(25), None).unwrap();
        let [transfer] = replay.transfers[..] else { panic!("{:?}", replay.transfers) };
        let is = |found: f64, expected: f64| (found - expected).abs() < 0.01;
        assert!(is(transfer.start, 2.0) && is(transfer.took, 16.0), "{transfer:?}");
        let data = 16 * 80 * 125_000 + (8 * 40 + 8 * 10) * 125_000;
        assert!((transfer.bytes as f64 / f64::from(data) - 0.88).abs() < 0.02, "{transfer:?}");
        let spec = parse(&replay.spec, "replay").unwrap().spec;
        let links: Vec<_> = spec.link.iter().filter(|link| link.to.starts_with('r')).collect();
        let rates = |n: usize| links[n].rate.mean().0 as f64 / 1e6;
        assert!((rates(0) - 80.0).abs() < 1.0 && (rates(1) - 40.0).abs() < 1.0, "{} {}", rates(0), rates(1));
        assert_eq!(links[0].change.len(), 0);
        let changes: Vec<_> = links[1].change.iter().map(|c| (c.at.0.0 / 1_000_000_000, c.up)).collect();
        assert_eq!(changes, [(10, None), (15, Some(false)), (16, Some(true))]);
        assert_eq!(links[1].delay.0, Duration::from_millis(20));
    }

    #[test]
    fn what_is_no_log_says_where_and_why() {
        let said = |text: &str, peer| Replay::of(text, peer).unwrap_err().to_string();
        let log = log(25);
        assert!(said("{\"time\":1,\"peers\":[]}\nhello\n", None).starts_with("line 2 is not what"));
        assert!(said(&log.lines().take(2).collect::<Vec<_>>().join("\n"), None).contains("at least 3"));
        assert!(said(&log, Some("near")).contains("the log has far"));
        assert!(
            said(&log.replacen("\"rate_mbps\":80", "\"rate_mbps\":1e300", 1), None).contains("out of range")
        );
        assert!(said(&log.replacen("1000,", "-90000,", 1), None).contains("at most a day"));
        let start: Vec<&str> = log.lines().take(3).collect();
        assert!(said(&start.join("\n"), None).contains("nothing of at least"));
        assert!(Replay::of(&log, Some("far")).is_ok() && Replay::of(&log, Some("2001:22::1")).is_ok());
    }
}
