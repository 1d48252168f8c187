//! Packets of a gateway's device that are not for its endpoint: somebody else carries them, and brings what comes back.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use bytes::Bytes;

use crate::wishes::{wait, wake};

/// Packets that wait in either direction, at most; more are dropped.
const MOST: usize = 8192;

/// What a gateway and a carrier of packets share.
#[derive(Debug, Default)]
pub struct Bypass(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// From the device, and who waits for them.
    out: VecDeque<Bytes>,
    waiting: Vec<Waker>,
    /// For the device, and the task that writes there.
    back: VecDeque<Bytes>,
    writer: Option<Waker>,
    /// The same whose answers are for the endpoint.
    provoking: Vec<Bytes>,
    /// SYNs whose connections go by from now on, of which the gateway does not know yet.
    diverted: Vec<Bytes>,
    /// Packets dropped because too many waited.
    dropped: u64,
    closed: bool,
}

impl Bypass {
    /// The packets that the kernel sent since the last call, whole and with their checksums; waits for some. `None` when the
    /// gateway is gone.
    pub async fn next(&self) -> Option<VecDeque<Bytes>> {
        poll_fn(|cx| {
            let mut state = self.lock();
            if !state.out.is_empty() {
                return Poll::Ready(Some(std::mem::take(&mut state.out)));
            }
            if state.closed {
                return Poll::Ready(None);
            }
            wait(&mut state.waiting, cx);
            Poll::Pending
        })
        .await
    }

    /// Gives the kernel IP packets, whose checksums are in place.
    pub fn inject(&self, packets: impl IntoIterator<Item = Bytes>) {
        let mut state = self.lock();
        for packet in packets {
            if state.back.len() < MOST {
                state.back.push_back(packet);
            } else {
                state.dropped += 1;
            }
        }
        state.writer.take().into_iter().for_each(Waker::wake);
    }

    /// Gives the kernel packets, as from the endpoint: what it answers does not go by.
    pub fn provoke(&self, packets: impl IntoIterator<Item = Bytes>) {
        let mut state = self.lock();
        state.provoking.extend(packets);
        state.writer.take().into_iter().for_each(Waker::wake);
    }

    /// Packets dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Hands out a SYN that was to end at the endpoint, unless too many packets wait; whether it did. The gateway hears of it,
    /// so that its connection goes by.
    pub(crate) fn divert(&self, syn: Bytes) -> bool {
        let mut state = self.lock();
        if state.out.len().max(state.diverted.len()) >= MOST {
            state.dropped += 1;
            return false;
        }
        state.diverted.push(syn.clone());
        state.out.push_back(syn);
        state.writer.take().into_iter().for_each(Waker::wake);
        wake(&mut state.waiting);
        true
    }

    /// The SYNs whose connections go by, once.
    pub(crate) fn take_diverted(&self) -> Vec<Bytes> {
        std::mem::take(&mut self.lock().diverted)
    }

    /// The gateway hands out what it read.
    pub(crate) fn offer(&self, packets: &mut Vec<Bytes>) {
        if packets.is_empty() {
            return;
        }
        let mut state = self.lock();
        let room = MOST.saturating_sub(state.out.len()).min(packets.len());
        state.dropped += (packets.len() - room) as u64;
        state.out.extend(packets.drain(..).take(room));
        wake(&mut state.waiting);
    }

    /// What the gateway is to write for the endpoint.
    pub(crate) fn take_provoking(&self) -> Vec<Bytes> {
        std::mem::take(&mut self.lock().provoking)
    }

    /// What the gateway is to write, `most` packets of it; `writer` is woken when there is more than there was.
    pub(crate) fn take_back(&self, writer: &Waker, most: usize) -> Vec<Bytes> {
        let mut state = self.lock();
        if !state.writer.as_ref().is_some_and(|known| known.will_wake(writer)) {
            state.writer = Some(writer.clone());
        }
        let most = most.min(state.back.len());
        state.back.drain(..most).collect()
    }

    /// The gateway is gone.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        wake(&mut state.waiting);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
