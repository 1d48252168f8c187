//! `polypath lab record`: the rate and delay of a real path between two hosts, as traces that experiments follow. One host listens,
//! the other calls; each direction in turn is filled with data over HIP and ESP, and its receiver notes what arrives when.

mod arrivals;
mod call;
mod listen;
mod message;
mod saturate;

use std::time::Duration;

use polypath_node::{Stream, StreamError};
use polypath_transport::{AckConfig, ConnectionConfig};
use tokio::time::{Instant, interval};

use crate::args::RecordArgs;
use crate::failure::Failure;
use arrivals::Arrivals;

/// The port of recordings.
const PORT: u16 = 4828;
/// Longest recording of a direction, s: what a listener agrees to hold.
const LONGEST: u32 = 600;
/// How often the receiver looks what has arrived: the grain of mahimahi's format.
const GRAIN: Duration = Duration::from_millis(1);
/// Bytes that are written at once.
const PIECE: usize = 256 << 10;

/// Records, or waits for hosts that do.
pub fn record(args: &RecordArgs) -> Result<(), Failure> {
    match &args.to {
        Some(to) => call::call(args, to),
        None if args.listen => listen::listen(args),
        None => Err(Failure::usage("no host to record with given")
            .help("give HIT@ADDR of a host that listens, or --listen, on the other host")),
    }
}

/// A connection that fills its path: see [`saturate`].
fn connection() -> ConnectionConfig {
    ConnectionConfig {
        cc: saturate::config(),
        acks: AckConfig::thinned(),
        send_buffer: 64 << 20,
        send_ahead: Some(512 << 10),
        receive_buffer: 64 << 20,
        ..ConnectionConfig::default()
    }
}

/// Reads until the peer has finished or `stop` says so, and notes what arrived when.
async fn receive(stream: &Stream, mut stop: impl FnMut() -> bool) -> Result<Arrivals, StreamError> {
    let (mut arrivals, mut tick) = (Arrivals::new(stream), interval(GRAIN));
    loop {
        tokio::select! {
            biased;
            _ = tick.tick() => {
                arrivals.note(stream);
                if stop() {
                    return Ok(arrivals);
                }
            }
            piece = stream.read_chunks(PIECE) => if piece?.is_none() {
                arrivals.note(stream);
                return Ok(arrivals);
            },
        }
    }
}

/// Writes for `time`, `most` bytes at most, or until `stop` says so; then finishes.
async fn fill(
    stream: &Stream,
    time: Duration,
    most: u64,
    mut stop: impl FnMut() -> bool,
) -> Result<(), StreamError> {
    let (end, piece) = (Instant::now() + time, bytes::Bytes::from(vec![0x5a; PIECE]));
    let (mut left, mut tick) = (most, interval(Duration::from_millis(20)));
    while left > 0 && Instant::now() < end && !stop() {
        let next = piece.slice(..(left as usize).min(PIECE));
        tokio::select! {
            taken = stream.write_some(next) => left -= taken? as u64,
            _ = tick.tick() => {}
        }
    }
    stream.finish();
    Ok(())
}
