//! Files over emulated paths with real sockets on loopback.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::time::Duration;

use polypath_hop::{Change, HopConfig, QueueLimit, Step};
use polypath_testbed::transfer::{TransferConfig, TransferPath, transfer};
use polypath_transport::{ConnectionConfig, PathConfig};
use polypath_wire::{Duration as Span, Instant, Rate, Seed};
use tempfile::NamedTempFile;

/// A file of `len` bytes that do not repeat.
fn file(len: usize) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    let bytes: Vec<u8> = (0..len as u64 / 8 + 1).flat_map(|i| (i * i).to_le_bytes()).collect();
    file.write_all(&bytes[..len]).unwrap();
    file
}

fn path(mbps: u64, delay_ms: u64) -> TransferPath {
    let hop = HopConfig {
        rate: Rate::from_mbps(mbps),
        delay: Span::from_millis(delay_ms),
        queue: QueueLimit::Packets(500),
        ..HopConfig::default()
    };
    TransferPath { hops: [hop.clone(), hop], config: PathConfig { mss: 1440, ..PathConfig::default() } }
}

fn config(source: &NamedTempFile, paths: Vec<TransferPath>) -> TransferConfig {
    TransferConfig {
        source: source.path().to_owned(),
        sink: None,
        connection: ConnectionConfig::default(),
        paths,
        namespaces: false,
        seed: Seed(1),
        interval: Duration::from_millis(50),
        security: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_crosses_two_paths_whole() {
    let (source, sink) = (file(20_000_000), NamedTempFile::new().unwrap());
    let mut config = config(&source, vec![path(200, 5), path(100, 10)]);
    config.sink = Some(sink.path().to_owned());
    let mut seen = Vec::new();
    let report = transfer(&config, |progress| seen.push(progress.bytes)).await.unwrap();

    assert_eq!(report.bytes, 20_000_000);
    assert!(report.sha256_match());
    assert_eq!(std::fs::read(sink.path()).unwrap(), std::fs::read(source.path()).unwrap());
    assert_eq!(report.paths.len(), 2);
    for path in &report.paths {
        assert!(path.stats.bytes_delivered > 100_000, "{path:?}");
    }
    assert!(seen.is_sorted() && *seen.last().unwrap() == 20_000_000, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_dies_midway_costs_no_byte() {
    let source = file(8_000_000);
    let mut dying = path(50, 5);
    for hop in &mut dying.hops {
        hop.schedule = vec![Step { at: Instant::from_secs_f64(0.4), change: Change::Down }];
    }
    let report = transfer(&config(&source, vec![path(50, 5), dying]), |_| {}).await.unwrap();
    assert!(report.sha256_match());
    assert_eq!(report.bytes, 8_000_000);
    assert!(report.paths[1].stats.bytes_delivered > 0, "{:?}", report.paths[1]);
    assert!(report.paths[0].stats.bytes_delivered > report.paths[1].stats.bytes_delivered);
}

#[tokio::test(flavor = "multi_thread")]
async fn loss_and_reordering_cost_no_byte() {
    let source = file(2_000_000);
    let mut lossy = path(100, 2);
    for hop in &mut lossy.hops {
        (hop.loss, hop.reordering, hop.corruption, hop.duplication) = (0.01, 0.02, 0.005, 0.01);
    }
    let report = transfer(&config(&source, vec![lossy.clone(), lossy]), |_| {}).await.unwrap();
    assert!(report.sha256_match());
    assert_eq!(report.bytes, 2_000_000);
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let source = file(1);
    let mut config = config(&source, vec![path(100, 1)]);
    config.source = "/nonexistent/file".into();
    let error = transfer(&config, |_| {}).await.unwrap_err();
    assert!(error.to_string().contains("/nonexistent/file"), "{error}");
}
