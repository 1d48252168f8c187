//! When the interfaces that are for backup are used.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use polypath_endpoint::PathReport;
use polypath_node::LiveChoice;
use polypath_wire::hip::Hit;
use tokio::time::sleep;
use tracing::info;

use crate::lane::Lane;

/// How often it is looked whether the others carry anything.
const LOOK: Duration = Duration::from_secs(1);

/// Calls the backups up while some peer has no path without them, for ever.
pub(crate) async fn mind(lane: Arc<Lane>, choice: LiveChoice) {
    loop {
        sleep(LOOK).await;
        let now = choice.now();
        let needed = now.has_backups() && are_needed(&lane, &now.backups().unwrap_or_default());
        if needed != now.called_up {
            info!("backup interfaces are {}", if needed { "called up" } else { "no longer needed" });
            choice.call_up(needed);
            lane.outer.look();
        }
    }
}

/// Whether a peer that is there, or that we call, has no path but those over `backups`.
fn are_needed(lane: &Lane, backups: &[IpAddr]) -> bool {
    let carries = |path: &PathReport| path.up && path.answers;
    let is_first = |path: &PathReport| !backups.contains(&path.locators.local.ip());
    let first = lane.outer.secure_paths().into_iter().filter(|path| carries(path) && is_first(path));
    let first: BTreeSet<Hit> = first.map(|path| path.peer).collect();
    let peers = lane.peers.now();
    let wanted = peers
        .iter()
        .filter(|peer| !peer.config.addresses.is_empty() || lane.outer.is_associated(peer.config.hit));
    wanted.map(|peer| peer.config.hit).any(|hit| !first.contains(&hit))
}
