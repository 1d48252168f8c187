//! The end at which a connection enters: it is answered when the other end has opened the real one.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use polypath_endpoint::OpenError;
use polypath_node::{Incoming, Interceptor, Stream, StreamError};
use polypath_transport::CloseReason;
use tokio::time::timeout;
use tracing::debug;

use crate::lane::Lane;
use crate::peers::Peer;
use crate::request::{Reply, Request};
use crate::splice::splice;

/// How long a peer may take to say what became of a request: it gives a server 60 s.
const ANSWER: Duration = Duration::from_secs(65);
/// How long a client may take to answer a SYN of ours.
const HANDSHAKE: Duration = Duration::from_secs(60);

/// Serves the connections that the kernel routes to the device, until the node stops.
pub(crate) async fn serve(lane: Arc<Lane>, interceptor: Interceptor) {
    while let Ok(incoming) = interceptor.next().await {
        lane.spawn(carry(lane.clone(), incoming));
    }
}

async fn carry(lane: Arc<Lane>, incoming: Incoming) {
    let (client, server) = (incoming.client(), incoming.server());
    let Some(peer) = lane.peers.behind(server.ip()) else {
        lane.counters.no_peer.fetch_add(1, Relaxed);
        return incoming.unreachable();
    };
    let Some(_place) = lane.place(&peer) else {
        return go_by(&lane, incoming);
    };
    let Some(request) = Request::new(client, server) else { return };
    let opened = open(&lane, &peer, &request).await;
    match &opened {
        Ok(_) => debug!(%client, %server, "connection"),
        Err(why) => debug!(%client, %server, "no connection: {why}"),
    }
    let outer = match opened {
        Ok(outer) => outer,
        Err(Reply::Busy) => return go_by(&lane, incoming),
        Err(reply) => return turn_down(incoming, reply),
    };
    lane.counters.outgoing.fetch_add(1, Relaxed);
    match incoming.accept() {
        Some(inner) if matches!(timeout(HANDSHAKE, inner.connected()).await, Ok(Ok(()))) => {
            splice(&inner, &outer, &peer.link.sent, &peer.link.received, lane.patience()).await;
        }
        _ => outer.abort(), // too many connections, or the client has given up
    }
}

/// The lane is full, here or at the peer: the connection travels as packets.
fn go_by(lane: &Lane, incoming: Incoming) {
    lane.counters.by_packets.fetch_add(1, Relaxed);
    incoming.go_by(&lane.packets.device);
}

fn turn_down(incoming: Incoming, reply: Reply) {
    match reply {
        Reply::Refused => incoming.refuse(),
        Reply::Unreachable | Reply::Forbidden => incoming.unreachable(),
        Reply::NetUnreachable => incoming.net_unreachable(),
        Reply::Connected | Reply::TimedOut | Reply::Busy => {} // the client asks again, and gives up when it likes
    }
}

/// Has the peer open the connection, if it answers, and as long as it does.
async fn open(lane: &Lane, peer: &Peer, request: &Request) -> Result<Stream, Reply> {
    if peer.link.is_silent() {
        lane.outer.ask(peer.config.hit);
    }
    let reached = timeout(peer.link.patience(), lane.reached(peer)).await.is_ok();
    if reached {
        tokio::select! {
            opened = open_at(lane, peer, request) => return opened,
            () = peer.link.until(|| peer.link.is_silent()) => {}
        }
    }
    lane.counters.no_association.fetch_add(1, Relaxed);
    Err(Reply::Unreachable)
}

/// The same at a peer that answers. A connection to it that was opened ahead may be dead without our knowing: then on a new one.
async fn open_at(lane: &Lane, peer: &Peer, request: &Request) -> Result<Stream, Reply> {
    if let Some(stream) = peer.link.pool.take()
        && let Ok(reply) = put(&stream, request).await
    {
        return reply.map(|()| stream);
    }
    let stream = peer.link.pool.begin(&lane.outer).map_err(|error| reply_for(&error))?;
    let reply = put(&stream, request).await.map_err(|error| reply_for(&error))?;
    reply.map(|()| stream)
}

/// Why there is no connection to the peer. Only where there are too many, here or there, or no port is left, may another way be
/// open.
fn reply_for(error: &StreamError) -> Reply {
    match error {
        StreamError::Open(OpenError::TooManyConnections { .. } | OpenError::InUse(_))
        | StreamError::Lost(CloseReason::Refused) => Reply::Busy,
        _ => Reply::Unreachable,
    }
}

/// The reply to `request` on `stream`: whether the connection is there.
async fn put(stream: &Stream, request: &Request) -> Result<Result<(), Reply>, StreamError> {
    let code = async {
        stream.write(request.encode().into()).await?;
        stream.read(1).await
    };
    let Ok(code) = timeout(ANSWER, code).await else { return Ok(Err(Reply::TimedOut)) };
    let code = code?;
    Ok(match code.and_then(|code| Reply::of(*code.first()?).ok()) {
        Some(Reply::Connected) => Ok(()),
        Some(reply) => Err(reply),
        None => Err(Reply::Unreachable),
    })
}

#[cfg(test)]
mod tests {
    use polypath_endpoint::Locators;

    use super::*;

    #[test]
    fn only_what_finds_too_many_connections_goes_by_packets() {
        let end = ([192, 0, 2, 1], 1).into();
        for (error, reply) in [
            (OpenError::TooManyConnections { max: 3 }, Reply::Busy),
            (OpenError::InUse(Locators { local: end, remote: end }), Reply::Busy),
            (OpenError::NoPath, Reply::Unreachable),
            (OpenError::NoConnection, Reply::Unreachable),
        ] {
            assert_eq!(reply_for(&StreamError::Open(error)), reply, "{error}");
        }
        assert_eq!(reply_for(&StreamError::Stopped(None)), Reply::Unreachable);
        assert_eq!(reply_for(&StreamError::Lost(CloseReason::Refused)), Reply::Busy, "the peer has too many");
        assert_eq!(reply_for(&StreamError::Lost(CloseReason::Aborted)), Reply::Unreachable);
    }
}
