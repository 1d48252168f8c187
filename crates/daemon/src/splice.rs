//! Two connections joined: what one brings the other takes on, as fast as it can.

use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use polypath_node::{KeepAlive, Stream, StreamError};
use polypath_transport::Probes;
use tokio::sync::SetOnce;
use tokio::time::sleep;

/// Most bytes taken from a connection at once.
const PIECE: usize = 256 << 10;
/// Pieces smaller than this on average are joined: a packet's worth each costs more than a copy.
const SMALL: usize = 16 << 10;

/// Carries bytes both ways until both ends have finished; the end of one direction leaves the other open. If either
/// connection is lost, the other one is reset; what the lost one sent before it finished is delivered first. Keep-alives
/// pass too. `taken` and `given` count the bytes from and to `inner`. What a lost connection sent may stand still on its way for
/// `patience`, or a little longer.
pub async fn splice(
    inner: &Stream,
    outer: &Stream,
    taken: &AtomicU64,
    given: &AtomicU64,
    patience: Duration,
) {
    let (inner, outer) = (&End::new(inner), &End::new(outer));
    let carried = async {
        let whole = tokio::join!(direction(inner, outer, taken), direction(outer, inner, given));
        let well = whole == (true, true);
        if !well {
            let _ = tokio::join!(inner.stream.delivered(), outer.stream.delivered());
        }
        well
    };
    let well = tokio::select! {
        biased; // each direction learns at once of a loss
        never = relay(inner, outer) => match never {},
        well = carried => well,
        () = stuck(inner, outer, patience) => false,
    };
    if !well {
        inner.stream.abort();
        outer.stream.abort();
    }
}

/// One of the two connections, and whether it is lost.
struct End<'a> {
    stream: &'a Stream,
    lost: SetOnce<()>,
}

impl<'a> End<'a> {
    fn new(stream: &'a Stream) -> Self {
        Self { stream, lost: SetOnce::new() }
    }

    async fn lost(&self) {
        self.lost.wait().await;
    }
}

/// Ends when one is lost and nothing has moved for `patience`: the other takes no more of what the lost one sent.
async fn stuck(inner: &End<'_>, outer: &End<'_>, patience: Duration) {
    tokio::select! {
        () = inner.lost() => {},
        () = outer.lost() => {},
    }
    let moved = || (inner.stream.acknowledged(), outer.stream.acknowledged());
    let mut before = moved();
    loop {
        sleep(patience).await;
        match moved() {
            now if now == before => return,
            now => before = now,
        }
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
            Err(_) => return drop(from.lost.set(())),
        }
    }
}

/// Carries what `from` sends, to its end. `false` if it does not get there: `to` is lost, or `from` is before it has finished.
async fn direction(from: &End<'_>, to: &End<'_>, count: &AtomicU64) -> bool {
    let cut = async {
        from.lost().await;
        if from.stream.peer_has_finished() {
            pending().await
        }
    };
    tokio::select! {
        biased; // what came before a loss is carried first
        carried = carry(from.stream, to.stream, count) => carried.is_ok(),
        () = to.lost() => false,
        () = cut => false,
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
