//! What tests in network namespaces share.
#![allow(dead_code)]

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use polypath_node::Stream;
use polypath_node::netns::{self, Netns};
use polypath_testing::skip;

/// Whether namespaces can be made and `tools` run; if not, says so where a captured test is heard.
pub fn ready(tools: &[&str]) -> bool {
    let missing: Vec<_> = tools.iter().filter(|tool| !installed(tool)).collect();
    if !netns::may_create() {
        skip("network namespaces need root: run it as root, or whole under `unshare -Ur`");
    } else if !missing.is_empty() {
        skip(&format!("not installed: {missing:?} (`tools/deps net` installs it)"));
    } else {
        return true;
    }
    false
}

fn installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).any(|d| d.join(tool).exists())
}

/// A shell command that ends after two minutes at the latest, and when the thread that started it ends.
fn command(script: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "timeout", "-k", "1", "120", "sh", "-ec", script]);
    command
}

/// Runs a shell script in `ns`; its standard output. Panics with all it said if it fails.
pub fn sh(ns: &Netns, script: &str) -> String {
    let Output { status, stdout, stderr } = ns.run(|| command(script).output()).unwrap().unwrap();
    let said = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{script}: {status}\n{said}{}", String::from_utf8_lossy(&stderr));
    said
}

/// Measures how late this machine wakes a thread that asked to sleep a millisecond.
pub struct LatencyProbe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl LatencyProbe {
    /// Starts to measure.
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut overshoots = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let before = Instant::now();
                thread::sleep(Duration::from_millis(1));
                overshoots.push(before.elapsed().saturating_sub(Duration::from_millis(1)));
            }
            overshoots
        });
        Self { stop, thread }
    }

    /// The lateness that one wake-up in twenty exceeds.
    pub fn finish(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        let mut overshoots = self.thread.join().unwrap();
        overshoots.sort_unstable();
        overshoots.get(overshoots.len() * 19 / 20).copied().unwrap_or_default()
    }
}

/// The next `len` bytes of `stream`.
pub async fn read_exactly(stream: &Stream, len: u64) -> Bytes {
    let mut all = Vec::new();
    while (all.len() as u64) < len {
        let bytes = stream.read(len as usize - all.len()).await.unwrap();
        all.extend_from_slice(&bytes.expect("the stream ended early"));
    }
    all.into()
}
