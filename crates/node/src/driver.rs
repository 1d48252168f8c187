//! One task owns the sockets, knows the time, and keeps an endpoint going.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use polypath_endpoint::{Input, pump};
use polypath_wire::Instant;
use tokio::time::Sleep;

use crate::carrier::Carrier;
use crate::shared::{Shared, Stop};

/// The driver: a future that ends when it is stopped or when its carrier fails.
pub(crate) struct Driver<C> {
    shared: Arc<Shared>,
    carrier: C,
    /// What one round received; kept for its memory.
    inbox: Vec<Input>,
    sleep: Pin<Box<Sleep>>,
}

impl<C: Carrier> Driver<C> {
    pub fn new(shared: Arc<Shared>, carrier: C) -> Self {
        let now = shared.clock.os_instant(shared.clock.now());
        Self { shared, carrier, inbox: Vec::new(), sleep: Box::pin(tokio::time::sleep_until(now.into())) }
    }

    /// One round: receive, let timers expire, send, tell. `true` if there is more to do at once. What arrived
    /// together is answered together. The state is free while the system receives and sends.
    fn round(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut more = self.carrier.poll_receive(cx, &mut self.inbox)?;
        let mut state = self.shared.lock();
        state.driver = Some(cx.waker().clone());
        let now = self.shared.clock.now();
        for input in self.inbox.drain(..) {
            state.endpoint.handle(now, input);
        }
        if state.stop == Stop::Asked {
            state.abort_all(now);
        }
        let due = pump(&mut state.endpoint, now, &mut self.carrier);
        state.take_events(now);
        drop(state);
        let was_full = self.carrier.is_full();
        self.carrier.poll_flush(cx)?;
        more |= was_full && !self.carrier.is_full();
        Ok(more | self.sleep_until(cx, due))
    }

    /// Has the task woken at `due`; `true` if that has passed.
    fn sleep_until(&mut self, cx: &mut Context<'_>, due: Option<Instant>) -> bool {
        let Some(due) = due else { return false };
        let at = tokio::time::Instant::from_std(self.shared.clock.os_instant(due));
        if self.sleep.deadline() != at {
            self.sleep.as_mut().reset(at);
        }
        self.sleep.as_mut().poll(cx).is_ready()
    }
}

impl<C: Carrier> Future for Driver<C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let result = self.round(cx);
        let mut state = self.shared.lock();
        let error = match result {
            Ok(_) if state.stop == Stop::Asked => None,
            Ok(more) => {
                if more {
                    cx.waker().wake_by_ref();
                }
                return Poll::Pending;
            }
            Err(error) => Some(error.to_string()),
        };
        state.end(error);
        Poll::Ready(())
    }
}

impl<C> Drop for Driver<C> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if !matches!(state.stop, Stop::Done(_)) {
            state.end(Some("the runtime was shut down".into()));
        }
    }
}
