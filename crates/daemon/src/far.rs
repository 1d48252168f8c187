//! The end at which a connection leaves: the real one is opened from the device, with the addresses it had where it entered.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use polypath_endpoint::OpenError;
use polypath_node::{Listener, Stream, StreamError};
use polypath_transport::CloseReason;
use tokio::time::timeout;
use tracing::{debug, warn};

use crate::lane::Lane;
use crate::packets::Sources;
use crate::peers::Peer;
use crate::request::{MAX_LEN, Reply, Request};
use crate::splice::splice;

/// How long a server may take to answer: as long as a client asks.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connections of one peer of which the request has not come: those that it opens ahead, and new ones.
const WAITING: usize = 512;

/// Serves the connections of peers until the node stops.
pub(crate) async fn serve(lane: Arc<Lane>, listener: Listener) {
    while let Ok(outer) = listener.accept().await {
        lane.spawn(carry(lane.clone(), outer));
    }
}

async fn carry(lane: Arc<Lane>, outer: Stream) {
    let peer = || outer.peer().and_then(|hit| lane.peers.with_hit(hit));
    let Some(link) = peer().map(|peer| peer.link.clone()) else { return };
    let Some(waiting) = link.count(|link| &link.waiting, WAITING) else {
        lane.counters.busy.fetch_add(1, Relaxed);
        return say(&outer, Reply::Busy).await;
    };
    let Some(request) = request(&outer).await else { return };
    drop(waiting);
    // Once more: it may have been opened long ahead.
    let Some(peer) = peer() else { return };
    let Some(_place) = lane.place(&peer) else {
        lane.counters.busy.fetch_add(1, Relaxed);
        return say(&outer, Reply::Busy).await;
    };
    let opened = open(&lane, &peer, &request).await;
    let Request { client, server } = request;
    match &opened {
        Ok(_) => debug!(%client, %server, "connection"),
        Err(why) => debug!(%client, %server, "no connection: {why}"),
    }
    match opened {
        Ok(inner) => {
            lane.counters.incoming.fetch_add(1, Relaxed);
            if outer.write(vec![Reply::Connected.code()].into()).await.is_ok() {
                splice(&inner, &outer, &peer.link.sent, &peer.link.received, lane.patience()).await;
            }
        }
        Err(reply) => say(&outer, reply).await,
    }
}

/// The peer's request; `None` if the connection was never used, or is used for something else.
async fn request(outer: &Stream) -> Option<Request> {
    let mut message = Vec::with_capacity(MAX_LEN);
    loop {
        let len = Request::len(&message).ok()?;
        if len == Some(message.len()) {
            return Request::decode(&message).ok();
        }
        let missing = len.unwrap_or(2).saturating_sub(message.len());
        message.extend_from_slice(&outer.read(missing).await.ok()??);
    }
}

async fn open(lane: &Lane, peer: &Peer, request: &Request) -> Result<Stream, Reply> {
    let Request { client, server } = *request;
    if !Sources::now(lane).admit(client.ip(), peer.config.hit) {
        lane.counters.forbidden.fetch_add(1, Relaxed);
        if peer.link.forbidden.allows() {
            warn!(peer = %peer.config.hit, %client, "refused: the client's address is not behind this peer");
        }
        return Err(Reply::Forbidden);
    }
    let opened = lane.inner.connect_between(lane.connection.clone(), client, server, lane.mtu);
    timeout(PATIENCE, opened)
        .await
        .map_or(Err(Reply::TimedOut), |opened| opened.map_err(|error| reply_for(&error)))
}

/// Why there is no connection to the server. Where this host carries one between the same addresses and ports, a second one
/// must not go by packets: the client asks again until the first is gone.
fn reply_for(error: &StreamError) -> Reply {
    match error {
        StreamError::Lost(CloseReason::Refused) => Reply::Refused,
        StreamError::Lost(CloseReason::Unreachable) => Reply::Unreachable,
        StreamError::Lost(CloseReason::NetUnreachable) => Reply::NetUnreachable,
        StreamError::Open(OpenError::TooManyConnections { .. }) => Reply::Busy,
        _ => Reply::TimedOut,
    }
}

/// Answers that there is no connection; if that fails the peer sees why.
async fn say(outer: &Stream, reply: Reply) {
    if outer.write(vec![reply.code()].into()).await.is_ok() {
        outer.finish();
        // What else may come is of no interest.
        let _ = timeout(PATIENCE, outer.finished()).await;
    }
}

#[cfg(test)]
mod tests {
    use polypath_endpoint::Locators;

    use super::*;

    #[test]
    fn a_connection_that_is_carried_already_is_not_sent_by_packets_too() {
        let end = ([192, 0, 2, 1], 1).into();
        for (error, reply) in [
            (StreamError::Open(OpenError::TooManyConnections { max: 3 }), Reply::Busy),
            (StreamError::Open(OpenError::InUse(Locators { local: end, remote: end })), Reply::TimedOut),
            (StreamError::Lost(CloseReason::Refused), Reply::Refused),
            (StreamError::Lost(CloseReason::Unreachable), Reply::Unreachable),
            (StreamError::Lost(CloseReason::NetUnreachable), Reply::NetUnreachable),
            (StreamError::Lost(CloseReason::TimedOut), Reply::TimedOut),
        ] {
            assert_eq!(reply_for(&error), reply, "{error}");
        }
    }
}
