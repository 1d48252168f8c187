//! Captures that another program dissects: no malformed packet, no bad checksum.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod common;

use std::process::Command;

use common::{hop, line, secs, shared_buffer};
use polypath_sim::{FlowConfig, HopConfig, SourceConfig};
use polypath_transport::PathConfig;
use polypath_wire::{Instant, Rate};

/// Both directions of a lossy hop with a transfer and datagrams on it.
fn capture(seed: u64) -> Vec<u8> {
    let mut l = line(seed, HopConfig { loss: 0.02, ..hop(10, 10, 15) });
    let (out, written) = shared_buffer();
    l.world.capture(&[l.second.there(), l.second.back()], out);
    let paths = vec![(l.path, PathConfig { mss: 1400, ..PathConfig::default() })];
    let flow = l.world.flow(FlowConfig { paths, bytes: Some(500_001), ..FlowConfig::default() }).unwrap();
    let cbr = SourceConfig::constant("cbr", l.path, 333, Rate::from_mbps(1), Instant::ZERO);
    l.world.source(SourceConfig { stop: Some(secs(1.0)), ..cbr }).unwrap();
    l.world.run(secs(120.0));
    assert!(l.world.flow_report(flow).finished.is_some());
    l.world.finish_capture().unwrap();
    written.lock().unwrap().clone()
}

#[test]
fn the_same_seed_writes_the_same_file() {
    assert_eq!(capture(1), capture(1));
    assert_ne!(capture(1), capture(2));
}

/// Number of frames of `file` that `filter` selects; none if there is no tshark.
fn frames(file: &std::path::Path, filter: &str) -> Option<usize> {
    let checked =
        ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    let output =
        Command::new("tshark").arg("-r").arg(file).args(checked).args(["-Y", filter]).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout.iter().filter(|b| **b == b'\n').count())
}

#[test]
fn tshark_finds_nothing_wrong() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("tshark_finds_nothing_wrong.pcapng");
    std::fs::write(&file, capture(1)).unwrap();
    let Some(all) = frames(&file, "frame") else {
        eprintln!("SKIPPED tshark_finds_nothing_wrong: tshark is not installed");
        return;
    };
    let count = |filter| frames(&file, filter).unwrap();
    assert!(all > 700, "{all}");
    assert_eq!(count("_ws.malformed"), 0);
    assert_eq!(count("ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0"), 0);
    assert_eq!(count("ip.checksum.status == 1"), all);
    assert!(count("tcp.checksum.status == 1") > 300 && count("udp.checksum.status == 1") > 300);
    // What it is to hold: both ends of the connection, losses, and their repair.
    assert_eq!((count("tcp.flags.syn == 1"), count("tcp.flags.fin == 1") >= 2), (2, true));
    assert!(count("tcp.options.sack_le") > 0 && count("tcp.analysis.retransmission") > 0);
    assert!(count("frame.interface_name == \"r→b\"") > 300);
    assert!(count("frame.interface_name == \"b→r\"") > 100);
}
