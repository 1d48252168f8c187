//! Transfers between namespaces through queues that mark packets (RFC 3168) instead of dropping them.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::time::Duration;

use polypath_endpoint::SecurityConfig;
use polypath_hip::{Identity, KeyKind, Random};
use polypath_hop::{CodelConfig, Discipline, Drop, FqCodelConfig, HopConfig, HopStats, QueueLimit};
use polypath_testbed::netns;
use polypath_testbed::transfer::{TransferConfig, TransferPath, TransferReport, transfer};
use polypath_testing::skip;
use polypath_transport::{CcConfig, ConnectionConfig, PathConfig};
use polypath_wire::{Duration as Span, Rate, Seed};
use tempfile::NamedTempFile;

/// What the queue of 40 Mbit/s and 20 ms counted, and the report of a file of 20 MB sent through it, with HIP and ESP or without.
async fn through(discipline: Discipline, ecn: bool, secure: bool) -> Option<(HopStats, TransferReport)> {
    if !netns::may_create() {
        skip("network namespaces need root: run it as root, or whole under `unshare -Ur`");
        return None;
    }
    let mut source = NamedTempFile::new().unwrap();
    source.write_all(&vec![7; 20_000_000]).unwrap();
    let hop = HopConfig {
        rate: Rate::from_mbps(40),
        delay: Span::from_millis(10),
        queue: QueueLimit::Packets(1000),
        discipline,
        ..HopConfig::default()
    };
    let back = HopConfig { discipline: Discipline::DropTail, ..hop.clone() };
    let path = TransferPath { hops: [hop, back], config: PathConfig { mss: 1400, ..PathConfig::default() } };
    let identity = |n| Identity::generate(KeyKind::P256, &mut Random::from_seed([n; 32])).unwrap();
    let security = SecurityConfig { ecn, ..SecurityConfig::default() };
    let config = TransferConfig {
        source: source.path().to_owned(),
        sink: None,
        connection: ConnectionConfig {
            cc: CcConfig::usual().of_today(),
            ecn,
            send_buffer: 8 << 20,
            receive_buffer: 8 << 20,
            ..ConnectionConfig::default()
        },
        paths: vec![path],
        namespaces: true,
        seed: Seed(1),
        interval: Duration::from_millis(50),
        security: secure.then(|| (security, [identity(1), identity(2)])),
    };
    let report = transfer(&config, |_| {}).await.unwrap();
    assert!(report.sha256_match());
    Some((report.links[0].hops[0], report))
}

fn check(secure: bool, hop: &HopStats, report: &TransferReport) {
    let path = &report.paths[0].stats;
    println!("{} marked, {:?} dropped, {path:?}", hop.marked, hop.drops);
    assert!(hop.marked > 0, "{hop:?}");
    // ESP begins before a heartbeat has proved the path.
    let few = if secure { 20 } else { 2 };
    assert!(hop.dropped_total() <= few && path.retransmissions <= few, "{hop:?} {path:?}");
    assert!(path.marks > 1 && path.marks <= hop.marked, "{hop:?} {path:?}");
    let (srtt, least) = (path.srtt.unwrap(), path.min_rtt.unwrap());
    assert!(srtt < least.times(3), "the window follows: {path:?}");
    assert!(report.goodput.0 > 25_000_000, "{}", report.goodput.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_through_codel_is_marked_and_loses_nothing() {
    for secure in [false, true] {
        let codel = Discipline::Codel(CodelConfig::default());
        let Some((hop, report)) = through(codel, true, secure).await else { return };
        check(secure, &hop, &report);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_through_fq_codel_is_marked_and_loses_nothing() {
    let Some((hop, report)) = through(Discipline::FqCodel(FqCodelConfig::default()), true, true).await else {
        return;
    };
    check(true, &hop, &report);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_ecn_the_same_queue_drops() {
    let Some((hop, report)) = through(Discipline::Codel(CodelConfig::default()), false, true).await else {
        return;
    };
    assert!(hop.marked == 0 && hop.dropped(Drop::Aqm) > 0, "{hop:?}");
    assert_eq!(report.paths[0].stats.marks, 0);
}
