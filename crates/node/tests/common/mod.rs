//! What tests in network namespaces share.
#![allow(dead_code, clippy::unwrap_used)]

use std::process::{Command, Output};

use bytes::Bytes;
use polypath_node::Stream;
use polypath_testbed::netns::{self, Netns};
use polypath_testing::{installed, skip};

/// Whether namespaces can be made and `tools` run; if not, says so where a captured test is heard.
pub fn ready(tools: &[&str]) -> bool {
    if !netns::may_create() {
        skip("network namespaces need root: run it as root, or whole under `unshare -Ur`");
        return false;
    }
    installed(tools)
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

/// The next `len` bytes of `stream`.
pub async fn read_exactly(stream: &Stream, len: u64) -> Bytes {
    let mut all = Vec::new();
    while (all.len() as u64) < len {
        let bytes = stream.read(len as usize - all.len()).await.unwrap();
        all.extend_from_slice(&bytes.expect("the stream ended early"));
    }
    all.into()
}
