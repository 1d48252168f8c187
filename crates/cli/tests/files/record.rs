//! `polypath lab record` between two hosts whose link follows a known trace.

use std::process::Output;
use std::time::Duration;

use polypath_hop::{HopConfig, LinkTrace, QueueLimit};
use polypath_node::Clock;
use polypath_node::emulated_link::EmulatedLink;
use polypath_wire::Seed;

use crate::bed::{Bed, end, tool};

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
        polypath_node::testbed::tun_end(host, "t0", address.parse().unwrap(), 1500).unwrap()
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

/// The median error of a recorded second, as a share of the true one, where both fit best: nobody knows at which moment of the
/// trace the recording began. Seconds with a step among them are left out, as they fit to a tenth only.
fn usual_second(recorded: &LinkTrace, truth: &LinkTrace) -> f64 {
    let (ours, theirs) = (tenths(recorded), tenths(truth));
    let period = theirs.len();
    let error = |shift: usize| {
        let seconds = ours.len() / 10;
        let second = |n: usize| {
            let at = |k: usize| theirs[(n * 10 + k + shift) % period];
            let even = (0..10).all(|k| (at(k) - at(0)).abs() < 0.3 * at(0));
            let (ours, theirs): (f64, f64) = ((0..10).map(|k| ours[n * 10 + k]).sum(), (0..10).map(at).sum());
            if even { (ours / theirs - 1.0).abs() } else { 0.0 }
        };
        let counted = (0..seconds).filter(|n| second(*n) > 0.0).count();
        let mut errors: Vec<f64> = (0..seconds).map(second).filter(|error| *error > 0.0).collect();
        errors.sort_by(f64::total_cmp);
        if counted * 5 < seconds * 2 { f64::MAX } else { errors[errors.len() / 2] }
    };
    (0..period).map(error).fold(f64::MAX, f64::min)
}

/// Records eight seconds of each way; what the command came to, and the usual error of a second.
fn recorded(bed: &Bed, to: &str, ways: [(&str, &LinkTrace); 2]) -> (Output, f64) {
    let out = bed.path("cell");
    let output =
        end(bed.spawn(0, &["lab", "record", to, "--seconds", "8", "--out", out.to_str().unwrap()]), 60);
    assert!(output.status.success(), "{output:?}");
    let usual = ways.map(|(way, truth)| {
        let text = std::fs::read_to_string(bed.path(&format!("cell.{way}.trace"))).unwrap();
        let trace = LinkTrace::parse(&text).unwrap();
        assert!((7.0..9.0).contains(&trace.period().as_secs_f64()), "{trace:?}");
        usual_second(&trace, truth)
    });
    (output, usual[0].max(usual[1]))
}

/// A busy machine delays packets, so it has three tries.
#[test]
#[ignore = "needs a quiet machine: cargo test -p polypath-cli --test files record -- --ignored"]
fn a_recording_has_the_rate_of_every_second_and_the_delay_of_the_path() {
    let (up, down) = (steps(&[4, 12, 8]), steps(&[20, 6, 14]));
    let Some((bed, _link)) = bed(up.clone(), down.clone()) else { return };
    let hits = [bed.hit(0), bed.hit(1)];
    let mut listener = bed.spawn(1, &["lab", "record", "--listen", "--allow", &hits[0]]);
    std::thread::sleep(Duration::from_millis(500));
    let to = format!("{}@10.9.0.2", hits[1]);
    let mut tries = (0..3).map(|_| recorded(&bed, &to, [("up", &up), ("down", &down)]));
    let found = tries.find(|(_, usual)| {
        eprintln!("half of the seconds are within {usual:.3}");
        *usual < 0.1
    });
    listener.kill().unwrap();
    listener.wait().unwrap();
    let (output, _) = found.expect("a try has half of the seconds within 10 %");
    let link = String::from_utf8(output.stdout).unwrap();
    let delay = link.lines().find_map(|l| l.strip_prefix("delay = \"")?.strip_suffix("ms\""));
    let delay: f64 = delay.unwrap_or_else(|| panic!("{link}")).parse().unwrap();
    assert!((14.5..22.0).contains(&delay), "the way takes 15 ms, an opportunity up to 3 more: {link}");
    assert!(link.contains("rate = { trace = \"cell.up.trace\" }"), "{link}");
}

#[test]
fn a_recording_that_is_interrupted_keeps_what_it_has_and_a_stranger_gets_nothing() {
    let Some((bed, _link)) = bed(steps(&[8]), steps(&[8])) else { return };
    let hits = [bed.hit(0), bed.hit(1)];
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
