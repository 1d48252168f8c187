//! Which tasks wait for what, to be woken when it may be there.

use std::task::{Context, Waker};

use polypath_transport::{CloseReason, Event};

/// What the events of one connection said, and who waits for more.
#[derive(Debug, Default)]
pub(crate) struct StreamState {
    pub connected: bool,
    pub write_finished: bool,
    pub peer_finished: bool,
    pub finished: bool,
    pub lost: Option<CloseReason>,
    pub closed: bool,
    /// Who waits for what, by [`Wish`].
    pub waiting: [Vec<Waker>; Wish::COUNT],
}

/// What an application waits for on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// Something to read, or the peer's end.
    Read,
    /// Room to write.
    Write,
    /// Another state.
    State,
}

impl Wish {
    /// Number of wishes.
    pub const COUNT: usize = Self::State as usize + 1;
}

impl StreamState {
    /// Remembers to wake the task of `cx` when `wish` may be fulfilled.
    pub fn wait(&mut self, wish: Wish, cx: &Context<'_>) {
        wait(&mut self.waiting[wish as usize], cx);
    }

    fn wake(&mut self, wish: Wish) {
        wake(&mut self.waiting[wish as usize]);
    }

    /// Wakes all that wait on the connection.
    pub fn wake_all(&mut self) {
        self.waiting.iter_mut().for_each(wake);
    }

    /// Records an event and wakes those who wait for it.
    pub fn note(&mut self, event: Event) {
        match event {
            Event::Readable => self.wake(Wish::Read),
            Event::Writable => self.wake(Wish::Write),
            Event::Connected => self.connected = true,
            Event::PeerFinished => self.peer_finished = true,
            Event::Finished => self.finished = true,
            Event::Lost(reason) => self.lost = Some(reason),
        }
        if !matches!(event, Event::Readable | Event::Writable) {
            self.wake_all();
        }
    }
}

/// Wakes all that wait.
pub(crate) fn wake(waiting: &mut Vec<Waker>) {
    waiting.drain(..).for_each(Waker::wake);
}

/// Remembers to wake the task of `cx`, once.
pub(crate) fn wait(waiting: &mut Vec<Waker>, cx: &Context<'_>) {
    if !waiting.iter().any(|w| w.will_wake(cx.waker())) {
        waiting.push(cx.waker().clone());
    }
}
