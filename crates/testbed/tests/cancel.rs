//! A cancelled transfer leaves nothing behind. Alone in its process, to count threads and sockets.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::time::Duration;

use polypath_hop::HopConfig;
use polypath_testbed::transfer::{TransferConfig, TransferPath, transfer};
use polypath_transport::{ConnectionConfig, PathConfig};
use polypath_wire::{Rate, Seed};

#[tokio::test]
async fn a_cancelled_transfer_ends_all_it_started() {
    let mut source = tempfile::NamedTempFile::new().unwrap();
    source.write_all(&vec![7; 20_000_000]).unwrap();
    let hop = HopConfig { rate: Rate::from_mbps(8), ..HopConfig::default() };
    let path = TransferPath { hops: [hop.clone(), hop], config: PathConfig::default() };
    let config = TransferConfig {
        source: source.path().to_owned(),
        sink: None,
        connection: ConnectionConfig::default(),
        paths: vec![path.clone(), path],
        namespaces: false,
        seed: Seed(1),
        interval: Duration::from_millis(50),
        security: None,
    };
    let before = sockets();
    let mut most = 0;
    let run = transfer(&config, |_| most = most.max(sockets()));
    assert!(
        tokio::time::timeout(Duration::from_millis(500), run).await.is_err(),
        "20 MB in 0.5 s at 16 Mbit/s"
    );
    assert!(most > before, "it had begun");

    // The drivers are tasks: they see that they are to end when they run next.
    for _ in 0..100 {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(links(), 0);
    assert_eq!(sockets(), before);
}

/// Threads of emulated links.
fn links() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
    let names = threads.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("path")).count()
}

/// Open sockets of this process.
fn sockets() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let targets = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}
