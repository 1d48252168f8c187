//! The emulated link against the tools of the kernel: iperf3 and ping in two namespaces.

#![allow(clippy::unwrap_used)]

#[path = "../../node/tests/common/mod.rs"]
mod common;

use std::net::UdpSocket;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::{ready, sh};
use polypath_hop::{Drop, HopConfig, QueueLimit};
use polypath_node::Clock;
use polypath_testbed::Testbed;
use polypath_testbed::emulated_link::LinkStats;
use polypath_testing::{LatencyProbe, excuse};
use polypath_wire::{Rate, Seed};
use serde_json::Value;

/// Allowed error of a rate, of the rate.
const RATE_TOLERANCE: f64 = 0.02;
/// Allowed error of a delay, ms.
const DELAY_TOLERANCE: f64 = 1.0;
/// Share of the packets that a link may deliver late for its rate to be judged.
const LATE_SHARE: f64 = 0.01;
const ATTEMPTS: usize = 3;

/// Held while a test measures: two saturated links at once are too much for two cores.
static MACHINE: Mutex<()> = Mutex::new(());

fn hop(mbps: u64, delay_ms: u64) -> HopConfig {
    HopConfig {
        rate: Rate::from_mbps(mbps),
        delay: polypath_wire::Duration::from_millis(delay_ms),
        queue: QueueLimit::Packets(1500),
        ..HopConfig::default()
    }
}

/// What one attempt saw: a number, what it should be, and by how much it may miss.
struct Reading {
    what: &'static str,
    got: f64,
    want: f64,
    tolerance: f64,
    /// Less of it is no wonder where packets left the link late.
    is_rate: bool,
    /// Less of it is no wonder, because the sender offered the link less than it carries.
    starved: bool,
}

impl Reading {
    fn ok(&self) -> bool {
        (self.got - self.want).abs() <= self.tolerance
    }
}

/// Measures until everything lies within its tolerance. Fails if it never does although in one attempt the machine
/// woke its threads in time (and where a rate is too low, the sender offered enough and the link delivered in time); skips
/// loudly if the machine was always too busy to tell.
fn judge(test: &str, mut measure: impl FnMut() -> (LinkStats, Vec<Reading>)) {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut wrong = None;
    for attempt in 1..=ATTEMPTS {
        let probe = LatencyProbe::start();
        let (link, readings) = measure();
        let (lateness, busy) = probe.finish();
        let delivered: u64 = link.hops.iter().map(|hop| hop.left).sum();
        let late = link.late as f64 / delivered.max(1) as f64;
        for Reading { what, got, want, tolerance, starved, .. } in &readings {
            let of = if *starved { ", of a sender that offered too little" } else { "" };
            println!("attempt {attempt}: {what}: {got:.3}, expected {want:.3} ± {tolerance:.3}{of}");
        }
        println!(
            "attempt {attempt}: one wake-up in twenty of this machine is {lateness:?} late or more; of \
             {delivered} packets {:.1} % late, the worst by {:?}, {} refused",
            1e2 * late,
            link.worst_lateness,
            link.refused
        );
        if readings.iter().all(Reading::ok) {
            return;
        }
        let excused = |r: &Reading| busy || r.got < r.want && (r.starved || r.is_rate && late > LATE_SHARE);
        wrong = readings.into_iter().find(|r| !r.ok() && !excused(r)).or(wrong);
    }
    match wrong {
        Some(Reading { what, got, want, tolerance, .. }) => {
            panic!("{test}: {what}: {got:.3}, expected {want:.3} ± {tolerance:.3}, {ATTEMPTS} times")
        }
        None => excuse("the machine was too busy to measure in every attempt"),
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    assert!(!of.is_empty(), "nothing was measured");
    of.sort_unstable_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Round trip times that ping printed, ms.
fn round_trips(ping: &str) -> Vec<f64> {
    ping.lines().filter_map(|l| l.split_once("time=")?.1.split(' ').next()?.parse().ok()).collect()
}

/// What `iperf3 -J` said.
fn report(json: &str) -> Value {
    serde_json::from_str(json).expect("iperf3 -J prints JSON")
}

/// What iperf3 received, Mbit/s of payload.
fn received_mbps(report: &Value) -> f64 {
    let sum = |name: &str| report["end"][name]["bits_per_second"].as_f64();
    sum("sum_received").or(sum("sum")).unwrap_or_else(|| panic!("no sum in {report}")) / 1e6
}

/// The least that iperf3 sent in one of the intervals that count, Mbit/s of payload.
fn least_sent_mbps(report: &Value) -> f64 {
    let sums =
        report["intervals"].as_array().expect("the client reports intervals").iter().map(|i| &i["sum"]);
    let sent = sums.filter(|sum| sum["omitted"] != true).filter_map(|sum| sum["bits_per_second"].as_f64());
    sent.reduce(f64::min).unwrap_or_else(|| panic!("no intervals in {report}")) / 1e6
}

#[test]
fn kernel_tools_see_200_mbit_and_20_ms() {
    const TEST: &str = "kernel_tools_see_200_mbit_and_20_ms";
    if !ready(&["ip", "setpriv", "ping", "iperf3"]) {
        return;
    }
    judge(TEST, || {
        let bed = Testbed::namespaces(&[[hop(200, 20), hop(200, 20)]], Seed(1), Clock::start()).unwrap();
        let [a, b] = &bed.hosts[..] else { panic!("two hosts") };
        let client = |args: &str| report(&sh(a, &format!("iperf3 -J -c 10.77.0.2 {args}")));
        let idle = round_trips(&sh(a, "ping -i 0.02 -c 100 10.77.0.2"));
        assert_eq!(idle.len(), 100, "no packet may be lost");
        let (udp, tcp, tcp_back) = thread::scope(|s| {
            s.spawn(|| (0..3).for_each(|_| drop(sh(b, "iperf3 -s -1"))));
            thread::sleep(Duration::from_millis(300));
            let udp = client("-u -b 240M -l 1400 -t 4 -O 1 -w 400K -i 0.1"); // the queue holds what 0.09 s carry
            thread::sleep(Duration::from_millis(300));
            let tcp = client("-t 4 -O 2");
            thread::sleep(Duration::from_millis(300));
            (udp, tcp, client("-t 4 -O 2 -R"))
        });
        let stats = bed.paths[0].link.stats();
        let overflowed = stats.hops[0].dropped(Drop::QueueFull) > 0;
        // Headers: 20 IP + 8 UDP; 20 IP + 20 TCP + 12 timestamps. A ping is 84 bytes each way.
        let rate = |what, iperf3, share: f64| Reading {
            what,
            got: received_mbps(iperf3),
            want: 200.0 * share,
            tolerance: 200.0 * RATE_TOLERANCE,
            is_rate: true,
            starved: false,
        };
        let udp_share = 1400.0 / 1428.0;
        let starved = least_sent_mbps(&udp) < 200.0 * udp_share;
        let readings = vec![
            Reading {
                what: "ping, ms",
                got: median(idle),
                want: 40.007,
                tolerance: DELAY_TOLERANCE,
                is_rate: false,
                starved: false,
            },
            Reading { starved, ..rate("UDP, Mbit/s", &udp, udp_share) },
            Reading {
                what: "whether 240 Mbit/s overflow the queue",
                got: f64::from(u8::from(overflowed)),
                want: 1.0,
                tolerance: 0.0,
                is_rate: true,
                starved,
            },
            rate("TCP there, Mbit/s", &tcp, 1448.0 / 1500.0),
            rate("TCP back, Mbit/s", &tcp_back, 1448.0 / 1500.0),
        ];
        (stats, readings)
    });
}

#[test]
fn datagrams_between_sockets_keep_rate_and_delay() {
    judge("datagrams_between_sockets_keep_rate_and_delay", || {
        let bed = Testbed::loopback(&[[hop(200, 20), hop(200, 5)]], Seed(1), Clock::start()).unwrap();
        let [a, b] = &bed.paths[0].ends;
        let delay = |from: &UdpSocket, to: std::net::SocketAddr, at: &UdpSocket| {
            let one = |_| {
                let sent = Instant::now();
                from.send_to(&[0; 100], to).unwrap();
                at.recv(&mut [0; 200]).unwrap();
                sent.elapsed().as_secs_f64() * 1e3
            };
            median((0..50).map(one).collect())
        };
        let there = delay(&a.socket, a.locators.remote, &b.socket);
        let back = delay(&b.socket, b.locators.remote, &a.socket);
        let mbps = saturate(&a.socket, a.locators.remote, &b.socket);
        let delay = |what, got, want| Reading {
            what,
            got,
            want,
            tolerance: DELAY_TOLERANCE,
            is_rate: false,
            starved: false,
        };
        let readings = vec![
            delay("there, ms", there, 20.0 + 128.0 * 8.0 / 200e3),
            delay("back, ms", back, 5.0 + 128.0 * 8.0 / 200e3),
            Reading {
                what: "Mbit/s",
                got: mbps,
                want: 200.0 * 1400.0 / 1428.0,
                tolerance: 200.0 * RATE_TOLERANCE,
                is_rate: true,
                starved: false,
            },
        ];
        (bed.paths[0].link.stats(), readings)
    });
}

/// Sends 10 % more than 200 Mbit/s for two seconds; the rate of what arrives after the first half second.
fn saturate(from: &UdpSocket, to: std::net::SocketAddr, at: &UdpSocket) -> f64 {
    const SIZE: usize = 1400;
    at.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    thread::scope(|s| {
        s.spawn(|| {
            let start = Instant::now();
            let mut sent = 0;
            while start.elapsed() < Duration::from_secs(2) {
                while (sent as f64) < start.elapsed().as_secs_f64() * 220e6 / 8.0 {
                    sent += from.send_to(&[0; SIZE], to).unwrap();
                }
                thread::sleep(Duration::from_micros(500));
            }
        });
        let mut buffer = [0; SIZE];
        let warm = Instant::now() + Duration::from_millis(500);
        while Instant::now() < warm {
            at.recv(&mut buffer).unwrap();
        }
        let (start, end) = (Instant::now(), Instant::now() + Duration::from_millis(1400));
        let mut bytes = 0;
        while Instant::now() < end {
            bytes += at.recv(&mut buffer).unwrap();
        }
        bytes as f64 * 8.0 / 1e6 / start.elapsed().as_secs_f64()
    })
}
