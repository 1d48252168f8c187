//! Associations with the peers: those that we can call are called until they answer, and again when they are gone.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use polypath_endpoint::{PeerEvent, PeerFailure, Reach};
use polypath_node::addresses::usable;
use polypath_node::{AssociateError, LiveChoice};
use polypath_wire::hip::Hit;
use thiserror::Error;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::config::with_port;
use crate::lane::Lane;
use crate::own::Own;
use crate::peers::{Link, Peer};

/// Pause between two calls.
const PAUSE: Duration = Duration::from_secs(1);
/// How often it is looked whether an association is still there.
const LOOK: Duration = Duration::from_secs(5);
/// How often it is looked whether the peers answer.
const GLANCE: Duration = Duration::from_millis(500);
/// How long a peer of which nothing comes on any path, despite heartbeats, counts as there.
const SILENT: polypath_wire::Duration = polypath_wire::Duration::from_secs(4);

/// Why nobody can be called.
const NO_ADDRESS: &str = "no interface that may carry paths has a usable address (`ip address` lists them)";

/// Keeps up the association with a peer, if it has addresses, for as long as the configuration names it. One that is silent is
/// sought where its names say now; the association stays, as it may only have been away.
pub(crate) async fn keep(lane: &Lane, choice: &LiveChoice, link: &Link) {
    let (hit, mut said, mut called) = (link.hit, None, Vec::new());
    loop {
        let mut changed = pin!(link.changed.notified());
        changed.as_mut().enable(); // what happens after the question is heard
        let Some(peer) = lane.peers.with_hit(hit) else { return };
        let addresses = &peer.config.addresses;
        if addresses.is_empty() {
            changed.await; // it calls us: nothing to look at meanwhile
            continue;
        }
        if !lane.outer.is_associated(hit) || called != *addresses || link.is_silent() {
            if !lane.outer.is_associated(hit) {
                link.called_in_vain(match has_address(choice) {
                    true => format!("no answer from {}", addresses.join(", ")),
                    false => NO_ADDRESS.to_owned(),
                });
            }
            let Some(called_up) = unless_moved(lane, &peer, call(lane, choice, &peer)).await else {
                continue;
            };
            let failed = called_up.err();
            if let Some(Vain::Other(why)) = &failed {
                link.called_in_vain(why.clone());
            }
            if let Some(why) = failed.as_ref().filter(|why| said.as_ref() != Some(*why)) {
                warn!(peer = %name(&peer), "no association: {why}; trying again");
            }
            (said, called) = (failed, addresses.clone());
            sleep(PAUSE).await;
        }
        if lane.outer.is_associated(hit) {
            // Either way it is time to look again.
            let _ = timeout(LOOK, changed).await;
        }
    }
}

/// Waits for a call of `peer`, unless the configuration names other addresses meanwhile.
async fn unless_moved<T>(lane: &Lane, peer: &Peer, call: impl Future<Output = T>) -> Option<T> {
    let moved = async {
        let stays = || {
            let now = lane.peers.with_hit(peer.config.hit);
            now.is_some_and(|now| now.config.addresses == peer.config.addresses)
        };
        peer.link.until(|| !stays()).await;
    };
    tokio::select! {
        biased;
        done = call => Some(done),
        () = moved => None,
    }
}

/// Notices which peers fall silent, and which answer again, for ever.
pub(crate) async fn listen(lane: Arc<Lane>) {
    loop {
        sleep(GLANCE).await;
        let peers = lane.peers.now();
        let silent = lane.outer.silent(peers.iter().map(|peer| peer.config.hit), SILENT);
        for (peer, silent) in peers.iter().zip(silent) {
            let (hit, link) = (peer.config.hit, &peer.link);
            if link.silent.swap(silent, Relaxed) == silent {
                continue;
            }
            match silent {
                true => warn!(peer = %name(peer), "it does not answer on any path"),
                false if lane.outer.is_associated(hit) => info!(peer = %name(peer), "it answers again"),
                false => {}
            }
            link.changed.notify_waiters();
        }
    }
}

/// Why a call came to nothing.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
enum Vain {
    /// Nobody answered, as one who does not know us does.
    #[error("no answer: is this host's tag, {0}, among its peers, and does its UDP port let us in?")]
    Unanswered(Hit),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Whether an interface that may carry paths has an address.
fn has_address(choice: &LiveChoice) -> bool {
    choice.now().of(usable().unwrap_or_default()).iter().any(|address| address.device.is_some())
}

async fn call(lane: &Lane, choice: &LiveChoice, peer: &Peer) -> Result<(), Vain> {
    let addresses = resolve(&peer.config.addresses).await.map_err(Vain::Other)?;
    let called = lane.outer.associate(peer.config.hit, Reach::Addresses(addresses.clone())).await;
    let is_ours = || {
        let own = Own::default().now();
        addresses.iter().all(|address| own.contains(&address.ip()))
    };
    called.map_err(|error| match error {
        _ if !has_address(choice) => Vain::Other(NO_ADDRESS.to_owned()),
        _ if is_ours() => Vain::Other(format!(
            "{} is this host's own address: write the peer's in [[peer]] addresses",
            peer.config.addresses.join(", ")
        )),
        AssociateError::Failed(PeerFailure::Timeout) => {
            Vain::Unanswered(lane.outer.hit().unwrap_or_default())
        }
        other => Vain::Other(other.to_string()),
    })
}

/// The addresses that the names stand for now.
async fn resolve(names: &[String]) -> Result<Vec<SocketAddr>, String> {
    let mut all = Vec::new();
    let mut failed = None;
    for name in names {
        match tokio::net::lookup_host(with_port(name)).await {
            Ok(found) => all.extend(found),
            Err(error) => failed = Some(format!("{name}: {error}")),
        }
    }
    match failed {
        Some(why) if all.is_empty() => Err(why),
        _ => Ok(all),
    }
}

/// Reports what happens to associations, until the node stops.
pub(crate) async fn watch(lane: Arc<Lane>) {
    while let Some((hit, event)) = lane.outer.peer_event().await {
        let peer = lane.peers.with_hit(hit);
        if let Some(peer) = &peer {
            match event {
                PeerEvent::Up => peer.link.came(),
                PeerEvent::Down => peer.link.left(),
                _ => {}
            }
            peer.link.changed.notify_waiters();
            peer.link.pool.wake();
        }
        if matches!(event, PeerEvent::Stranger { .. } | PeerEvent::Failed(_)) {
            continue;
        }
        // Who comes and goes for ever does not fill the disk.
        let Some(left_out) = peer.as_ref().map_or(Some(0), |peer| peer.link.lines.allows()) else { continue };
        let name = peer.map_or_else(|| hit.to_string(), |peer| name(&peer));
        if left_out > 0 {
            warn!(peer = %name, "{left_out} lines left out: its associations and paths come and go too often");
        }
        tell(&name, &event);
    }
}

fn tell(peer: &str, event: &PeerEvent) {
    match event {
        PeerEvent::Up => info!(%peer, "association is up"),
        PeerEvent::Down => warn!(%peer, "association is gone"),
        PeerEvent::PathUp(locators) => info!(%peer, "path {locators}"),
        PeerEvent::PathDown(locators) => warn!(%peer, "path {locators} is gone"),
        PeerEvent::PathSilent(locators) => warn!(%peer, "path {locators} is silent"),
        PeerEvent::PathAnswers(locators) => info!(%peer, "path {locators} answers again"),
        PeerEvent::Stranger { .. } | PeerEvent::Failed(_) => {}
    }
}

/// What a peer is called.
pub(crate) fn name(peer: &Peer) -> String {
    peer.config.called()
}
