//! Two connections joined: what one brings the other takes on, as fast as it can.

use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use polypath_node::{KeepAlive, Stream, StreamError};
use polypath_transport::Probes;

/// Most bytes taken from a connection at once.
const PIECE: usize = 256 << 10;
/// Pieces smaller than this on average are joined: a packet's worth each costs more than a copy.
const SMALL: usize = 16 << 10;

/// Carries bytes both ways until both ends have finished; the end of one direction leaves the other open. If either
/// connection is lost, the other one is reset. Keep-alives pass too. `taken` and `given` count the bytes from and to `inner`.
pub async fn splice(inner: &Stream, outer: &Stream, taken: &AtomicU64, given: &AtomicU64) {
    let both = async { tokio::try_join!(carry(inner, outer, taken), carry(outer, inner, given)) };
    let ended = tokio::select! {
        biased; // what came before a loss is carried first
        carried = both => carried.map(drop),
        lost = relay(inner, outer) => lost.map(|never| match never {}),
    };
    if ended.is_err() {
        // The loss of one that had ended its direction takes nothing from the other.
        let _ = tokio::join!(inner.delivered(), outer.delivered());
        inner.abort();
        outer.abort();
    }
}

/// What asks on one connection whether the other host is there is answered when that host has answered on the other connection
/// (RFC 1122 §4.2.3.6). Ends when one is lost, also after the end of its direction.
async fn relay(inner: &Stream, outer: &Stream) -> Result<Infallible, StreamError> {
    inner.relay(Probes::KeepAlives);
    outer.relay(Probes::Heartbeats);
    tokio::try_join!(pass(inner, outer), pass(outer, inner))?;
    pending().await
}

async fn pass(from: &Stream, to: &Stream) -> Result<(), StreamError> {
    while let Some(said) = from.keep_alive().await? {
        match said {
            KeepAlive::Asked if to.probe() => {}
            KeepAlive::Asked => from.answer_probe(), // nobody is left to ask: both directions have ended
            KeepAlive::Answered => to.answer_probe(),
        }
    }
    Ok(())
}

async fn carry(from: &Stream, to: &Stream, count: &AtomicU64) -> Result<(), StreamError> {
    while let Some(chunks) = from.read_chunks(PIECE).await? {
        let len: usize = chunks.iter().map(Bytes::len).sum();
        count.fetch_add(len as u64, Ordering::Relaxed);
        for piece in joined(chunks, len) {
            to.write(piece).await?;
        }
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
