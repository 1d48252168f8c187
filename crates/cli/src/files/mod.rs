//! `polypath send` and `polypath receive`: files between two hosts, over all their links at once.

mod bars;
mod call;
mod diagnose;
mod known;
mod meet;
mod progress;
mod receive;
mod report;
mod run;
mod send;
mod serve;
mod transfer;

use std::time::Duration;

use polypath_endpoint::{EndpointConfig, SecurityConfig};
use polypath_hip::{HipConfig, Identity};
use polypath_node::{Choice, HostSockets, LiveChoice, Node};
use polypath_transport::{AckConfig, CcConfig, ConnectionConfig, SchedulerConfig};

pub use receive::receive;
pub use send::send;
#[cfg(feature = "lab")]
pub use serve::{accept, definite, greet};

use crate::args::LinkArgs;
use crate::failure::Failure;

/// Send and receive buffer, bytes: 1 Gbit/s with a round trip of 500 ms.
const BUFFER: u64 = 64 << 20;
/// Receive window that a connection advertises until its first read, bytes.
const UNREAD: u64 = 256 << 10;
/// Bytes read from the file ahead of what is sent: 2 ms at 8 Gbit/s.
const AHEAD: u64 = 2 << 20;
/// How long the last packets may take at the end.
pub const GRACE: Duration = Duration::from_millis(500);

/// The interfaces that the arguments admit.
pub fn choice(links: &LinkArgs) -> Choice {
    let limits = links.limits.iter().map(|limit| (limit.interface.clone(), limit.rate));
    Choice::new(links.only.clone(), links.backup.clone(), limits.collect())
}

/// A secure node on all addresses of this host, on that port of UDP or without UDP; `ecn`: see [`SecurityConfig::ecn`].
pub fn node(
    identity: Identity,
    hip: HipConfig,
    port: Option<u16>,
    choice: impl Into<LiveChoice>,
    ecn: bool,
) -> Result<Node, Failure> {
    let choice = choice.into();
    choice.now().check().map_err(|e| Failure::usage(e).help("see `ip link`"))?;
    // Who does not answer within 7.5 s is not there.
    let hip = HipConfig { retransmit: polypath_wire::Duration::from_millis(500), retries: 3, ..hip };
    let security = SecurityConfig { hip, ecn, ..SecurityConfig::default() };
    let no_socket = |port, e: std::io::Error| {
        let taken = e.kind() == std::io::ErrorKind::AddrInUse;
        let failure = Failure::system(format!("no UDP socket on port {port}"), e);
        if taken {
            failure.help("does another polypath run here? --port chooses another port")
        } else {
            failure
        }
    };
    let sockets = match port {
        Some(port) => HostSockets::bind(port, choice).map_err(|e| no_socket(port, e)),
        None => HostSockets::native(choice).map_err(|e| {
            Failure::system("no raw sockets", e)
                .help("--native needs root; without it HIP and ESP travel in UDP")
        }),
    }?;
    // With `UNREAD`: what peers that are not served make us hold is 64 MiB at most.
    let limits = EndpointConfig { max_unserved: 256, max_unserved_of_peer: 32, ..EndpointConfig::default() };
    Node::secure(limits, security, identity, sockets).map_err(|e| Failure::system("cannot start", e))
}

fn connection(links: &LinkArgs) -> ConnectionConfig {
    ConnectionConfig {
        cc: CcConfig::usual().of_today(),
        acks: AckConfig::thinned(),
        send_buffer: BUFFER,
        send_ahead: Some(AHEAD),
        receive_buffer: BUFFER,
        unread_window: Some(UNREAD),
        scheduler: SchedulerConfig::EarliestCompletion,
        fail_silent: true,
        early_data: true,
        ecn: !links.no_ecn,
        ..ConnectionConfig::default()
    }
}
