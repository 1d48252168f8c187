//! `polypath lab record` between two hosts whose link follows a known trace.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use polypath_hop::{HopConfig, LinkTrace, QueueLimit};
use polypath_node::Clock;
use polypath_testbed::emulated_link::EmulatedLink;
use polypath_wire::Seed;

use super::bed::{Bed, end, tool};

/// Opportunities for `mbps`, two seconds each in turn.
fn steps(mbps: &[u32]) -> LinkTrace {
    let (mut times, mut bits) = (Vec::new(), 0);
    for ms in 1..=mbps.len() as u32 * 2000 {
        bits += mbps[(ms as usize - 1) / 2000] * 1000;
        while bits >= 12_000 {
            bits -= 12_000;
            times.push(ms);
        }
    }
    LinkTrace::try_from(times).unwrap()
}

fn hop(trace: LinkTrace) -> HopConfig {
    HopConfig {
        trace: Some(trace),
        delay: Duration::from_millis(15).into(),
        queue: QueueLimit::Bytes(300_000),
        ..HopConfig::default()
    }
}

/// Hosts joined by one link, whose ways have these traces.
fn bed(up: LinkTrace, down: LinkTrace) -> Option<(Bed, EmulatedLink)> {
    let bed = Bed::apart()?;
    let [a, b] = &bed.hosts;
    let ends = [(a, "10.9.0.1"), (b, "10.9.0.2")].map(|(host, address)| {
        polypath_testbed::tun_end(host, "t0", address.parse().unwrap(), 1500).unwrap()
    });
    let link = EmulatedLink::start("t0", ends, [hop(up), hop(down)], Seed(1), Clock::start()).unwrap();
    Some((bed, link))
}

/// Megabits in each tenth of a second.
fn tenths(trace: &LinkTrace) -> Vec<f64> {
    let times = Vec::<u32>::from(trace.clone());
    let bin = |ms: u32| ms.saturating_sub(1) as usize / 100;
    let mut bins = vec![0.0; bin(*times.last().unwrap()) + 1];
    times.iter().for_each(|ms| bins[bin(*ms)] += 0.012);
    bins
}

/// What a link had carried each way, and since when it was watched, every few milliseconds.
type Carried = Vec<(Duration, [u64; 2])>;

/// Watches `link` until `ended` says so.
fn watched(link: &EmulatedLink, ended: &AtomicBool) -> Carried {
    let (begin, mut carried) = (Instant::now(), Vec::new());
    while !ended.load(Ordering::Relaxed) {
        let hops = link.stats().hops;
        carried.push((begin.elapsed(), [hops[0].bytes_left, hops[1].bytes_left]));
        std::thread::sleep(Duration::from_millis(5));
    }
    carried
}

/// Megabits that a way carried in each tenth of a second.
fn carried_tenths(carried: &Carried, way: usize) -> Vec<f64> {
    let mut bins = Vec::new();
    for [(_, before), (at, after)] in carried.array_windows() {
        let bin = (at.as_millis() / 100) as usize;
        bins.resize(bins.len().max(bin + 1), 0.0);
        bins[bin] += (after[way] - before[way]) as f64 * 8e-6;
    }
    bins
}

/// The median error of a recorded second, as a share of what the link carried in it, where both fit best: nobody knows at which moment
/// the recording began.
fn usual_second(recorded: &[f64], carried: &[f64]) -> f64 {
    let seconds = recorded.len() / 10;
    let error = |shift: usize| {
        let sum = |of: &[f64], n: usize| of[n * 10..n * 10 + 10].iter().sum::<f64>();
        let mut errors: Vec<f64> =
            (0..seconds).map(|n| (sum(recorded, n) / sum(&carried[shift..], n) - 1.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        errors[seconds / 2]
    };
    (0..=carried.len() - seconds * 10).map(error).fold(f64::MAX, f64::min)
}

/// Compared with what the link carried, as a busy machine carries less than the trace allows. That a path is kept full is tested
/// in virtual time (`record/saturate.rs`).
#[test]
fn a_recording_has_what_the_link_carried_in_every_second_and_the_delay_of_the_path() {
    let Some((bed, link)) = bed(steps(&[4, 12, 8]), steps(&[20, 6, 14])) else { return };
    let hits = bed.hits();
    let mut listener = bed.spawn(1, &["lab", "record", "--listen", "--allow", &hits[0]]);
    std::thread::sleep(Duration::from_millis(500));
    let (to, out) = (format!("{}@10.9.0.2", hits[1]), bed.path("cell"));
    let recorder = bed.spawn(0, &["lab", "record", &to, "--seconds", "8", "--out", out.to_str().unwrap()]);
    let ended = AtomicBool::new(false);
    let (output, carried) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watched(&link, &ended));
        let output = end(recorder, 60);
        ended.store(true, Ordering::Relaxed);
        (output, watching.join().unwrap())
    });
    listener.kill().unwrap();
    listener.wait().unwrap();
    assert!(output.status.success(), "{output:?}");
    for (n, way) in ["up", "down"].into_iter().enumerate() {
        let text = std::fs::read_to_string(bed.path(&format!("cell.{way}.trace"))).unwrap();
        let trace = LinkTrace::parse(&text).unwrap();
        assert!((7.0..9.0).contains(&trace.period().as_secs_f64()), "{trace:?}");
        let usual = usual_second(&tenths(&trace), &carried_tenths(&carried, n));
        assert!(usual < 0.1, "{way}: half of the seconds are off by {usual:.3} or more");
    }
    let link = String::from_utf8(output.stdout).unwrap();
    let delay = link.lines().find_map(|l| l.strip_prefix("delay = \"")?.strip_suffix("ms\""));
    let delay: f64 = delay.unwrap_or_else(|| panic!("{link}")).parse().unwrap();
    assert!((14.5..22.0).contains(&delay), "the way takes 15 ms, an opportunity up to 3 more: {link}");
    assert!(link.contains("rate = { trace = \"cell.up.trace\" }"), "{link}");
}

#[test]
fn a_recording_that_is_interrupted_keeps_what_it_has_and_a_stranger_gets_nothing() {
    let Some((bed, _link)) = bed(steps(&[8]), steps(&[8])) else { return };
    let hits = bed.hits();
    let to = format!("{}@10.9.0.2", hits[1]);
    let out = bed.path("cut");
    let args = ["lab", "record", &to, "--seconds", "60", "--out", out.to_str().unwrap()];
    let mut refuses = bed.spawn(1, &["lab", "record", "--listen", "--allow", &hits[1]]);
    std::thread::sleep(Duration::from_millis(500));
    let refused = end(bed.spawn(0, &args), 30);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        refused.status.code() == Some(3) && said.contains(&format!("--allow {}", hits[0])),
        "{refused:?}"
    );
    refuses.kill().unwrap();
    refuses.wait().unwrap();
    let mut listener = bed.spawn(1, &["lab", "record", "--listen", "--allow", &hits[0]]);
    std::thread::sleep(Duration::from_millis(500));
    let recorder = bed.spawn(0, &args);
    std::thread::sleep(Duration::from_secs(5));
    tool(&bed.hosts[0], &format!("kill -INT {}", recorder.id()));
    let ended = end(recorder, 20);
    listener.kill().unwrap();
    listener.wait().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    let trace = LinkTrace::parse(&std::fs::read_to_string(bed.path("cut.down.trace")).unwrap()).unwrap();
    assert!((1.0..5.0).contains(&trace.period().as_secs_f64()), "{trace:?}");
    assert!(!bed.path("cut.up.trace").exists(), "that direction was not reached");
}
