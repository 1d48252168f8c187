//! The end at which a connection enters: it is answered when the other end has opened the real one.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use polypath_node::{Incoming, Interceptor, Stream, StreamError};
use tokio::time::timeout;
use tracing::debug;

use crate::lane::Lane;
use crate::peers::Peer;
use crate::request::{Reply, Request};
use crate::splice::splice;

/// How long a connection waits for an association that is not there.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves the connections that the kernel routes to the device, until the node stops.
pub(crate) async fn serve(lane: Arc<Lane>, interceptor: Interceptor) {
    while let Ok(incoming) = interceptor.next().await {
        tokio::spawn(carry(lane.clone(), incoming));
    }
}

async fn carry(lane: Arc<Lane>, incoming: Incoming) {
    let (client, server) = (incoming.client(), incoming.server());
    let Some(peer) = lane.peers.behind(server.ip()) else {
        lane.counters.no_peer.fetch_add(1, Relaxed);
        return incoming.refuse(true);
    };
    let Ok(_place) = lane.places.clone().try_acquire_owned() else {
        lane.counters.busy.fetch_add(1, Relaxed);
        return;
    };
    let Some(request) = Request::new(client, server) else { return };
    let (reply, outer) = match timeout(PATIENCE, associated(&lane, peer)).await {
        Ok(()) => ask(&lane, peer, &request).await,
        Err(_) => (Reply::Unreachable, None),
    };
    debug!(%client, %server, ?reply, "connection");
    let Some(outer) = outer.filter(|_| reply == Reply::Connected) else {
        if reply == Reply::Unreachable {
            lane.counters
                .no_association
                .fetch_add(u64::from(!lane.outer.is_associated(peer.config.hit)), Relaxed);
        }
        return turn_down(incoming, reply);
    };
    lane.counters.outgoing.fetch_add(1, Relaxed);
    match incoming.accept() {
        Some(inner) => splice(&inner, &outer, &peer.sent, &peer.received).await,
        None => outer.abort(),
    }
}

fn turn_down(incoming: Incoming, reply: Reply) {
    match reply {
        Reply::Refused => incoming.refuse(false),
        Reply::Unreachable | Reply::Forbidden => incoming.refuse(true),
        Reply::Connected | Reply::TimedOut | Reply::Busy => {} // the client asks again, and gives up when it likes
    }
}

async fn associated(lane: &Lane, peer: &Peer) {
    while !lane.outer.is_associated(peer.config.hit) {
        peer.changed.notified().await;
    }
}

/// Has the peer open the connection. One that was opened ahead may be dead without our knowing: then on a new one.
async fn ask(lane: &Lane, peer: &Peer, request: &Request) -> (Reply, Option<Stream>) {
    if let Some(stream) = peer.pool.take()
        && let Ok(reply) = put(&stream, request).await
    {
        return (reply, Some(stream));
    }
    let Ok(stream) = peer.pool.open(&lane.outer).await else { return (Reply::Unreachable, None) };
    match put(&stream, request).await {
        Ok(reply) => (reply, Some(stream)),
        Err(_) => (Reply::Unreachable, None),
    }
}

/// The reply to `request` on `stream`.
async fn put(stream: &Stream, request: &Request) -> Result<Reply, StreamError> {
    stream.write(request.encode().into()).await?;
    let code = stream.read(1).await?;
    let reply = code.and_then(|code| Reply::of(*code.first()?).ok());
    Ok(reply.unwrap_or(Reply::Unreachable))
}
