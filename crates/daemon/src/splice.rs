//! Two connections joined: what one brings the other takes on, as fast as it can.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use polypath_node::{KeepAlive, Stream, StreamError};
use polypath_transport::Probes;

/// Most bytes taken from a connection at once.
const PIECE: usize = 256 << 10;
/// Pieces smaller than this on average are joined: a packet's worth each costs more than a copy.
const SMALL: usize = 16 << 10;

/// Carries bytes both ways until both ends have finished; the end of one direction leaves the other open. If either
/// connection is lost, the other one is reset; what the lost one sent before it finished is delivered first. Keep-alives
/// pass too. `taken` and `given` count the bytes from and to `inner`.
pub async fn splice(inner: &Stream, outer: &Stream, taken: &AtomicU64, given: &AtomicU64) {
    let (inner, outer) = (&End::new(inner), &End::new(outer));
    let both = async { tokio::join!(direction(inner, outer, taken), direction(outer, inner, given)) };
    let ended = tokio::select! {
        biased; // each direction learns at once of a loss
        never = relay(inner, outer) => match never {},
        ended = both => ended,
    };
    if ended != (Some(()), Some(())) {
        let _ = tokio::join!(inner.stream.delivered(), outer.stream.delivered());
        inner.stream.abort();
        outer.stream.abort();
    }
}

/// One of the two connections, and whether it is lost.
struct End<'a> {
    stream: &'a Stream,
    lost: AtomicBool,
}

impl<'a> End<'a> {
    fn new(stream: &'a Stream) -> Self {
        Self { stream, lost: AtomicBool::new(false) }
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

/// What asks on one connection whether the other host is there is answered when that host has answered on the other connection
/// (RFC 1122 §4.2.3.6), also after the end of its direction. Notes what is lost.
async fn relay(inner: &End<'_>, outer: &End<'_>) -> Infallible {
    inner.stream.relay(Probes::KeepAlives);
    outer.stream.relay(Probes::Heartbeats);
    tokio::join!(pass(inner, outer), pass(outer, inner));
    pending().await
}

async fn pass(from: &End<'_>, to: &End<'_>) {
    loop {
        match from.stream.keep_alive().await {
            Ok(Some(KeepAlive::Asked)) if to.stream.probe() => {}
            Ok(Some(KeepAlive::Asked)) => from.stream.answer_probe(), // nobody is left to ask: both directions have ended
            Ok(Some(KeepAlive::Answered)) => to.stream.answer_probe(),
            Ok(None) => return,
            Err(_) => return from.lost.store(true, Ordering::Relaxed),
        }
    }
}

/// Carries what `from` sends until it has finished, or `None` if either is lost before; but all that one has sent that had
/// finished before it was lost.
async fn direction(from: &End<'_>, to: &End<'_>, count: &AtomicU64) -> Option<()> {
    let cut = poll_fn(|_| match to.is_lost() || from.is_lost() && !from.stream.peer_has_finished() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    });
    tokio::select! {
        biased; // what came before a loss is carried first
        carried = carry(from.stream, to.stream, count) => carried.ok(),
        () = cut => None,
    }
}

async fn carry(from: &Stream, to: &Stream, count: &AtomicU64) -> Result<(), StreamError> {
    while let Some(chunks) = from.read_chunks(PIECE).await? {
        let len: usize = chunks.iter().map(Bytes::len).sum();
        count.fetch_add(len as u64, Ordering::Relaxed);
        for piece in joined(chunks, len) {
            to.write(piece).await?;
        }
        from.keep_pace_with(to);
    }
    to.finish();
    Ok(())
}

/// `chunks` of `len` bytes in pieces worth writing.
fn joined(chunks: Vec<Bytes>, len: usize) -> Vec<Bytes> {
    if chunks.len() < 2 || len / chunks.len() >= SMALL {
        return chunks;
    }
    let mut all = BytesMut::with_capacity(len);
    chunks.iter().for_each(|chunk| all.extend_from_slice(chunk));
    vec![all.freeze()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_are_joined_and_large_ones_are_not_copied() {
        let small: Vec<Bytes> = (0..3).map(|n| Bytes::from(vec![n; 1400])).collect();
        let all = joined(small.clone(), 4200);
        assert_eq!(all, [Bytes::from(small.concat())]);
        let large: Vec<Bytes> = (0..2).map(|n| Bytes::from(vec![n; SMALL])).collect();
        let same = joined(large.clone(), 2 * SMALL);
        assert!(same.iter().zip(&large).all(|(a, b)| a.as_ptr() == b.as_ptr()));
    }
}
