//! Which tasks wait for what, to be woken when it may be there.

use std::task::{Context, Waker};

use polypath_transport::{CloseReason, Event};

/// What the events of one connection said, and who waits for more.
#[derive(Debug, Default)]
pub(crate) struct StreamState {
    pub connected: bool,
    pub write_finished: bool,
    pub delivered: bool,
    pub finished: bool,
    pub lost: Option<CloseReason>,
    pub closed: bool,
    /// The peer asked whether the other end is there, or answered that, and nobody took it up yet.
    pub probed: bool,
    pub probe_answered: bool,
    /// Who waits for what, by [`Wish`].
    pub waiting: [Vec<Waker>; Wish::COUNT],
}

/// What a peer says of keep-alives that are [relayed](crate::Stream::relay).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeepAlive {
    /// It asks, and waits for [`Stream::answer_probe`](crate::Stream::answer_probe).
    Asked,
    /// It answers [`Stream::probe`](crate::Stream::probe).
    Answered,
}

/// What an application waits for on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// Something to read, or the peer's end.
    Read,
    /// Room to write.
    Write,
    /// A keep-alive, or the answer to one.
    KeepAlive,
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

    /// Whether it closed without having been lost: then both sides have finished.
    pub fn has_ended_well(&self) -> bool {
        self.closed && self.lost.is_none()
    }

    /// What the peer said of keep-alives and nobody took up yet.
    pub fn take_keep_alive(&mut self) -> Option<KeepAlive> {
        if std::mem::take(&mut self.probe_answered) {
            return Some(KeepAlive::Answered);
        }
        std::mem::take(&mut self.probed).then_some(KeepAlive::Asked)
    }

    /// Records an event and wakes those who wait for it.
    pub fn note(&mut self, event: Event) {
        match event {
            Event::Readable | Event::Writable | Event::PeerFinished => {}
            Event::Connected => self.connected = true,
            Event::Delivered => self.delivered = true,
            Event::Finished => self.finished = true,
            Event::Lost(reason) => self.lost = Some(reason),
            Event::Probed => self.probed = true,
            Event::ProbeAnswered => self.probe_answered = true,
        }
        match event {
            Event::Readable => self.wake(Wish::Read),
            Event::Writable => self.wake(Wish::Write),
            Event::Probed | Event::ProbeAnswered => self.wake(Wish::KeepAlive),
            Event::Delivered => self.wake(Wish::State),
            Event::Connected | Event::PeerFinished | Event::Finished | Event::Lost(_) => self.wake_all(),
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
