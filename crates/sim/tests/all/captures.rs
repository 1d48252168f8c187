//! Captures that another program dissects: no malformed packet, no bad checksum.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{hop, line, secs, shared_buffer};
use polypath_endpoint::SecurityConfig;
use polypath_sim::{FlowConfig, HopConfig, HostConfig, SourceConfig, Via, World, WorldConfig, identity};
use polypath_transport::{PathConfig, RecordFilter};
use polypath_wire::{Instant, Rate, Seed};

/// Both directions of a lossy hop with a transfer and 20 s of datagrams on it.
fn capture(seed: u64) -> Vec<u8> {
    let mut l = line(seed, HopConfig { loss: 0.02, ..hop(10, 10, 15) });
    let (out, written) = shared_buffer();
    l.world.capture(&[l.second.there(), l.second.back()], None, out);
    let paths = vec![(l.path, PathConfig { mss: 1400, ..PathConfig::default() })];
    let flow = FlowConfig { paths, bytes: Some(10_000_001), ..FlowConfig::default() };
    let flow = l.world.flow(flow).unwrap();
    let cbr = SourceConfig::constant("cbr", l.path, 1000, Rate::from_mbps(4), Instant::ZERO);
    l.world.source(SourceConfig { stop: Some(secs(20.0)), ..cbr }).unwrap();
    l.world.run(secs(120.0));
    assert!(l.world.flow_report(flow).finished.is_some());
    l.world.finish_capture().unwrap();
    written.lock().unwrap().clone()
}

/// Both directions of both paths of a secure transfer of `seconds`.
fn secure_capture(seed: u64, seconds: f64) -> Vec<u8> {
    let mut world = World::new(WorldConfig { seed: Seed(seed), ..WorldConfig::default() });
    let [a, b] = ["a", "b"].map(|name| {
        let identity = identity(Seed(seed).child(name));
        world.secure_host(name, HostConfig::default(), SecurityConfig::default(), identity).unwrap()
    });
    let routers = ["x", "y"].map(|name| world.router(name).unwrap());
    let (out, written) = shared_buffer();
    let (mut paths, mut hops) = (Vec::new(), Vec::new());
    for r in routers {
        world.link(a, r, hop(100, 1, 100), hop(100, 1, 100)).unwrap();
        let link = world.link(r, b, hop(4, 10, 30), hop(4, 10, 30)).unwrap();
        hops.extend([link.there(), link.back()]);
        paths.push((world.path(a, b, &[Via::Node(r)]).unwrap(), PathConfig::default()));
    }
    world.capture(&hops, None, out);
    let flow = world.flow(FlowConfig { paths, ..FlowConfig::default() }).unwrap();
    world.run(secs(seconds));
    assert!(world.flow_report(flow).bytes > (seconds * 500_000.0) as u64, "{:?}", world.flow_report(flow));
    world.finish_capture().unwrap();
    written.lock().unwrap().clone()
}

/// The trace of a secure transfer over two paths tells what its associations and its scheduler did.
#[test]
fn a_trace_tells_of_hip_and_of_the_scheduler() {
    let mut world = World::new(WorldConfig::default());
    let mut config = HostConfig::default();
    config.endpoint.record = RecordFilter { packets: true, state: false, events: true };
    let [a, b] = ["a", "b"].map(|name| {
        let identity = identity(Seed(1).child(name));
        world.secure_host(name, config.clone(), SecurityConfig::default(), identity).unwrap()
    });
    let links = [10, 15].map(|ms| world.link(a, b, hop(4, ms, 30), hop(4, ms, 30)).unwrap());
    let paths = links.map(|l| (world.path(a, b, &[Via::Link(l)]).unwrap(), PathConfig::default()));
    world.flow(FlowConfig { paths: paths.into(), bytes: Some(1_000_000), ..FlowConfig::default() }).unwrap();
    world.trace(true, false);
    world.run(secs(5.0));
    let mut csv = Vec::new();
    world.take_trace().unwrap().write_csv(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let states = |node: &str| -> Vec<&str> {
        let of_node = csv.lines().filter_map(|row| row.split_once(',')?.1.strip_prefix(node));
        of_node.filter_map(|row| row.strip_prefix(",,,hip_state,")?.split(',').next()).collect()
    };
    assert_eq!(states("a"), ["i1_sent", "i2_sent", "established"]);
    assert_eq!(states("b"), ["r2_sent", "established"]);
    let picked = |path: u8| csv.matches(&format!(",a,0,{path},picked,")).count();
    assert!(picked(0) > 100 && picked(1) > 100, "{} and {}", picked(0), picked(1));
}

#[test]
fn the_same_seed_writes_the_same_file() {
    assert!(capture(1) == capture(1));
    assert!(capture(1) != capture(2));
    assert!(secure_capture(1, 2.0) == secure_capture(1, 2.0), "base exchange, signatures, ESP");
    assert!(secure_capture(1, 2.0) != secure_capture(2, 2.0));
}

/// Number of frames of `file` that each of `filters` selects, in one reading of it; none if there is no tshark.
fn frames<const N: usize>(file: &Path, options: &[&str], filters: [&str; N]) -> Option<[usize; N]> {
    let checked =
        ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    let table = format!("io,stat,0,{}", filters.join(","));
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(checked).args(options).args(["-q", "-z", &table]);
    let output = command.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    // | 0.0 <> 20.0 | frames | bytes | frames | bytes |
    let row = table.lines().find(|line| line.contains("<>")).unwrap_or_else(|| panic!("{table}"));
    let cells: Vec<&str> = row.split('|').skip(2).map(str::trim).collect();
    Some(std::array::from_fn(|n| cells[2 * n].parse().unwrap()))
}

/// `capture` in a file with that name, and the number of its frames; none, loudly, without tshark.
fn dissected(name: &str, capture: &[u8]) -> Option<(PathBuf, usize)> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).with_extension("pcapng");
    std::fs::write(&file, capture).unwrap();
    let Some([all]) = frames(&file, &[], ["frame"]) else {
        polypath_testing::skip("tshark is not installed");
        return None;
    };
    Some((file, all))
}

const BAD_CHECKSUM: &str = "ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0";

#[test]
fn tshark_finds_nothing_wrong() {
    let Some((file, all)) = dissected("plain", &capture(1)) else { return };
    let count = |filters: [&str; 6]| frames(&file, &[], filters).unwrap();
    assert!(all > 15_000, "{all}");
    // The protocols that are there: no payload is taken for another.
    let known = ["raw:ip:tcp", "raw:ip:tcp:data", "raw:ip:udp:data"]
        .map(|protocols| format!("frame.protocols == \"{protocols}\""))
        .join(" || ");
    let good = ["ip", "tcp", "udp"].map(|layer| format!("{layer}.checksum.status == 1"));
    let [malformed, bad, known, ip, tcp, udp] =
        count(["_ws.malformed", BAD_CHECKSUM, &known, &good[0], &good[1], &good[2]]);
    assert_eq!((malformed, bad, ip, known), (0, 0, all, all));
    assert!(tcp > 7_000 && udp > 9_000, "{tcp} {udp}");
    // What it is to hold: both ends of the connection, losses, and their repair.
    let [syn, fin, sack, again, there, back] = count([
        "tcp.flags.syn == 1",
        "tcp.flags.fin == 1",
        "tcp.options.sack_le",
        "tcp.analysis.retransmission",
        "frame.interface_name == \"r→b\"",
        "frame.interface_name == \"b→r\"",
    ]);
    assert_eq!((syn, fin >= 2), (2, true));
    assert!(sack > 0 && again > 0, "{sack} {again}");
    assert!(there > 15_000 && back > 3_000, "{there} {back}");
}

/// Of packets in UDP, tshark shows HIP or ESP, as it is asked to (docs/experiments.md).
#[test]
fn tshark_finds_nothing_wrong_with_secure_flows() {
    const ESP: [&str; 4] = ["-d", "udp.port==10500,udpencap", "--disable-protocol", "isakmp"];
    for (seed, seconds) in [(1, 20.0), (2, 2.0), (3, 2.0), (4, 2.0), (5, 2.0)] {
        let capture = secure_capture(seed, seconds);
        let Some((file, all)) = dissected(&format!("secure-{seed}"), &capture) else { return };
        let [hip, esp] = [&[][..], &ESP].map(|options| {
            let filters = ["_ws.malformed", BAD_CHECKSUM, "ip.checksum.status == 1", "hip", "esp", "data"];
            let [malformed, bad, ip, of_kinds @ ..] = frames(&file, options, filters).unwrap();
            assert_eq!((malformed, bad, ip), (0, 0, all), "seed {seed} {options:?}");
            of_kinds
        });
        let [packets, _, sealed] = hip;
        assert!(packets >= 6, "a base exchange and an UPDATE: {packets}");
        assert_eq!(sealed, all - packets, "what is sealed is taken for no protocol");
        assert_eq!(esp, [0, sealed, packets], "seed {seed}");
        assert!(all > (seconds * 500.0) as usize, "{all}");
    }
}
