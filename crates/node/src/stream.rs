//! One connection as an application uses it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use polypath_endpoint::{ConnectionHandle, Locators, OpenError, PathReport};
use polypath_transport::{
    CloseReason, Connection, ConnectionStats, PathConfig, PathStats, Payload, Probes, SchedulerConfig,
    State as TcpState,
};
use polypath_wire::hip::Hit;
use polypath_wire::{Instant, PathId};
use thiserror::Error;

use crate::shared::{Shared, State, Stop};
use crate::wishes::{KeepAlive, StreamState, Wish};

/// Why an operation on a connection failed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum StreamError {
    /// It could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It ended early.
    #[error("connection {}", describe(*.0))]
    Lost(CloseReason),
    /// It was finished: nothing can be written any more.
    #[error("write after finish")]
    Finished,
    /// The node has stopped.
    #[error("node stopped{}", .0.as_ref().map(|e| format!(": {e}")).unwrap_or_default())]
    Stopped(Option<String>),
}

fn describe(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Reset => "reset by peer",
        CloseReason::TimedOut => "timed out",
        CloseReason::Aborted => "aborted",
        CloseReason::Refused => "refused",
        CloseReason::Unreachable => "unreachable",
        CloseReason::NetUnreachable => "network unreachable",
    }
}

/// Counters of one connection and of its paths at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StreamStats {
    /// Of the connection.
    pub connection: ConnectionStats,
    /// Of each path in use.
    pub paths: Vec<(PathId, Locators, PathStats)>,
    /// What is below each of these paths, in their order, if they are secure.
    pub secure: Vec<Option<PathReport>>,
}

/// One connection: bytes in both directions, over any number of paths.
///
/// All methods take `&self`, so one task may write while another reads. A stream that is dropped after
/// [`finish`](Self::finish) lingers in the background until the peer has everything and finishes too, which it
/// is given [a minute](polypath_transport::ConnectionConfig::fin_wait) for; one dropped before, or with bytes that
/// were not read, resets the connection.
pub struct Stream {
    shared: Arc<Shared>,
    handle: ConnectionHandle,
}

impl Stream {
    pub(crate) fn new(shared: Arc<Shared>, handle: ConnectionHandle) -> Self {
        Self { shared, handle }
    }

    /// Writes all of `data`, waiting while the send buffer is full. If it is cancelled, a part may
    /// have been written; [`write_some`](Self::write_some) tells how much.
    pub async fn write(&self, mut data: Bytes) -> Result<(), StreamError> {
        while !data.is_empty() {
            let taken = self.write_some(data.clone()).await?;
            data.advance(taken);
        }
        Ok(())
    }

    /// Writes the first part of `data` that fits into the send buffer, at least one byte; returns how
    /// many. Cancelled, it has written nothing.
    pub async fn write_some(&self, data: Bytes) -> Result<usize, StreamError> {
        self.when(Wish::Write, |stream, connection| {
            if stream.write_finished {
                return Some(Err(StreamError::Finished));
            }
            let taken = connection.write(Payload::from(data.clone())) as usize;
            (taken > 0 || data.is_empty()).then_some(Ok(taken))
        })
        .await?
    }

    /// The next bytes from the peer, at most `max` and at least one; `None` after its last. Cancelled, it
    /// has read nothing.
    pub async fn read(&self, max: usize) -> Result<Option<Bytes>, StreamError> {
        self.read_with(|connection| Some(connection.read(max as u64)?.to_bytes())).await
    }

    /// The bytes from the peer that can be read now, in the pieces in which they arrived: at most `max` and at least
    /// one; `None` after its last. Cancelled, it has read nothing.
    pub async fn read_chunks(&self, max: usize) -> Result<Option<Vec<Bytes>>, StreamError> {
        self.read_with(|connection| {
            let mut left = max as u64;
            let next = || {
                let payload = (left > 0).then(|| connection.read(left))??;
                left -= payload.len();
                Some(payload.to_bytes())
            };
            let chunks: Vec<_> = std::iter::from_fn(next).collect();
            (!chunks.is_empty()).then_some(chunks)
        })
        .await
    }

    async fn read_with<T>(
        &self,
        mut read: impl FnMut(&mut Connection) -> Option<T>,
    ) -> Result<Option<T>, StreamError> {
        self.when(Wish::Read, |stream, connection| match read(connection) {
            Some(data) => Some(Some(data)),
            None => (connection.peer_has_finished() || stream.has_ended_well()).then_some(None),
        })
        .await
    }

    /// Says that nothing more will be written. The peer may go on sending.
    pub fn finish(&self) {
        self.shared.act(|state, _| state.finish(self.handle));
    }

    /// Waits until the peer has everything we wrote, if [that is all](Self::finish).
    pub async fn delivered(&self) -> Result<(), StreamError> {
        self.when(Wish::State, |stream, _| (stream.delivered || !stream.write_finished).then_some(())).await
    }

    /// Waits until both sides have finished and the peer has everything we wrote.
    pub async fn finished(&self) -> Result<(), StreamError> {
        self.when(Wish::State, |stream, _| stream.finished.then_some(())).await
    }

    /// Lets the peer send as fast as its bytes leave on `to`, if its window
    /// [grows](polypath_transport::ConnectionConfig::grow_window).
    pub fn keep_pace_with(&self, to: &Self) {
        if self.look(Connection::is_window_open) == Some(false)
            && let Some(pace) = to.look(Connection::pace)
        {
            let mut state = self.shared.lock();
            if let Some(connection) = state.endpoint.connection_mut(self.handle) {
                connection.grow_window(pace);
            }
            if state.endpoint.has_output(self.handle) {
                state.wake_driver();
            }
        }
    }

    /// Whether the peer's last byte has come, if only to be read.
    pub fn peer_has_finished(&self) -> bool {
        self.look(Connection::peer_has_finished).unwrap_or(false)
    }

    /// Bytes that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.look(|connection| connection.stats().bytes_acked).unwrap_or(0)
    }

    /// Resets the connection.
    pub fn abort(&self) {
        self.with(Connection::abort);
    }

    /// Stops answering the keep-alives of the peer, or of the host behind it: [`keep_alive`](Self::keep_alive) reports them.
    /// Once the stream is dropped, they are answered again.
    pub fn relay(&self, probes: Probes) {
        self.with(|connection, now| connection.relay(now, Some(probes)));
    }

    /// Asks the peer, or the host behind it, whether it is there; `false` if the connection is over.
    pub fn probe(&self) -> bool {
        self.with(Connection::probe).unwrap_or(false)
    }

    /// Answers what the peer asked.
    pub fn answer_probe(&self) {
        self.with(Connection::answer_probe);
    }

    /// The next keep-alive of the peer, or its answer; `None` once both sides have finished and the connection is closed.
    pub async fn keep_alive(&self) -> Result<Option<KeepAlive>, StreamError> {
        self.when(Wish::KeepAlive, |stream, _| match stream.take_keep_alive() {
            Some(said) => Some(Some(said)),
            None => stream.has_ended_well().then_some(None),
        })
        .await
    }

    fn look<T>(&self, at: impl FnOnce(&Connection) -> T) -> Option<T> {
        self.shared.lock().endpoint.connection(self.handle).map(at)
    }

    /// Does something to the connection, if it is there, and has the driver act on it.
    fn with<T>(&self, act: impl FnOnce(&mut Connection, Instant) -> T) -> Option<T> {
        self.shared.act(|state, now| Some(act(state.endpoint.connection_mut(self.handle)?, now)))
    }

    /// Adds a path.
    pub fn add_path(&self, locators: Locators, config: PathConfig) -> Result<PathId, OpenError> {
        self.shared.act(|state, now| state.endpoint.add_path(now, self.handle, locators, config))
    }

    /// Removes a path; what is in flight on it is sent again on others.
    pub fn remove_path(&self, path: PathId) {
        self.shared.act(|state, now| state.endpoint.remove_path(now, self.handle, path));
    }

    /// From now on `scheduler` chooses the paths of what we send.
    pub fn set_scheduler(&self, scheduler: SchedulerConfig) {
        self.with(|connection, _| connection.set_scheduler(scheduler));
    }

    /// Counters as they stand.
    pub fn stats(&self) -> StreamStats {
        let state = self.shared.lock();
        let Some(connection) = state.endpoint.connection(self.handle) else {
            return StreamStats::default();
        };
        let paths = connection.paths().filter_map(|id| {
            let locators = state.endpoint.locators(self.handle, id)?;
            Some((id, locators, connection.path_stats(id)))
        });
        let paths: Vec<_> = paths.collect();
        let secure = paths.iter().map(|(id, ..)| state.endpoint.secure_path(self.handle, *id)).collect();
        StreamStats { connection: connection.stats().clone(), paths, secure }
    }

    /// The HIT at the other end, if the connection is secure.
    pub fn peer(&self) -> Option<Hit> {
        self.shared.lock().endpoint.peer(self.handle)
    }

    /// State of the connection; `Closed` if the node has stopped.
    pub fn state(&self) -> TcpState {
        let state = self.shared.lock();
        state.endpoint.connection(self.handle).map_or(TcpState::Closed, Connection::state)
    }

    /// Waits until the handshake is complete.
    pub async fn connected(&self) -> Result<(), StreamError> {
        self.when(Wish::State, |stream, _| stream.connected.then_some(())).await
    }

    /// Waits until `ready` gives something, or the connection can no more. The driver is woken only if the connection
    /// then has something to send.
    async fn when<T>(
        &self,
        wish: Wish,
        mut ready: impl FnMut(&mut StreamState, &mut Connection) -> Option<T>,
    ) -> Result<T, StreamError> {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            let result = poll(&mut state, self.handle, wish, &mut ready, cx);
            if state.endpoint.has_output(self.handle) {
                state.wake_driver();
            }
            result
        })
        .await
    }
}

fn poll<T>(
    state: &mut State,
    handle: ConnectionHandle,
    wish: Wish,
    ready: &mut impl FnMut(&mut StreamState, &mut Connection) -> Option<T>,
    cx: &Context<'_>,
) -> Poll<Result<T, StreamError>> {
    let gone = match &state.stop {
        Stop::Done(error) => StreamError::Stopped(error.clone()),
        _ => StreamError::Lost(CloseReason::Aborted),
    };
    let (Some(stream), Some(connection)) =
        (state.streams.get_mut(&handle), state.endpoint.connection_mut(handle))
    else {
        return Poll::Ready(Err(gone));
    };
    if let Some(value) = ready(stream, connection) {
        return Poll::Ready(Ok(value));
    }
    if let Some(reason) = stream.lost {
        return Poll::Ready(Err(StreamError::Lost(reason)));
    }
    if stream.closed || matches!(state.stop, Stop::Done(_)) {
        return Poll::Ready(Err(gone));
    }
    stream.wait(wish, cx);
    Poll::Pending
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.act(|state, now| {
            let finished = state.streams.get(&self.handle).is_some_and(|stream| stream.write_finished);
            let connection = state.endpoint.connection_mut(self.handle);
            if finished && connection.is_some_and(|c| c.read(1).is_none()) {
                state.streams.remove(&self.handle);
                state.endpoint.release(self.handle);
            } else {
                state.discard(now, self.handle);
            }
        });
    }
}
