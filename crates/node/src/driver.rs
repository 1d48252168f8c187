//! One task owns the sockets, knows the time, and keeps an endpoint going.

use std::future::Future;
use std::io;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use polypath_endpoint::{Input, pump};
use tokio::task::{JoinHandle, unconstrained, yield_now};

use crate::alarm::Alarm;
use crate::carrier::Carrier;
use crate::shared::{Shared, Stop};

/// The driver: a future that ends when it is stopped or when its carrier fails.
pub(crate) struct Driver<C> {
    shared: Arc<Shared>,
    carrier: C,
    /// What one round received; kept for its memory.
    inbox: Vec<Input>,
    alarm: Alarm,
}

impl<C: Carrier> Driver<C> {
    /// Begins the task. Needs a tokio runtime. It is exempt from tokio's limit of 128 operations a poll: the carrier limits each round
    /// itself, and a TUN device drops packets if too few are read at a time.
    pub fn start(shared: &Arc<Shared>, carrier: C) -> io::Result<JoinHandle<()>> {
        Ok(tokio::spawn(unconstrained(Self::new(shared.clone(), carrier)?)))
    }

    fn new(shared: Arc<Shared>, carrier: C) -> io::Result<Self> {
        let alarm = Alarm::new(shared.clock)?;
        Ok(Self { shared, carrier, inbox: Vec::new(), alarm })
    }

    /// One round: receive, let timers expire, send, pass on events. What arrived together is answered together. The
    /// lock is free while the system receives and sends. Continues with whether there is more to do at once; breaks
    /// after it has reset all connections.
    fn round(&mut self, cx: &mut Context<'_>) -> io::Result<ControlFlow<(), bool>> {
        let mut more = self.carrier.poll_receive(cx, &mut self.inbox)?;
        let mut state = self.shared.lock();
        state.driver = Some(cx.waker().clone());
        let now = self.shared.clock.now();
        for input in self.inbox.drain(..) {
            state.endpoint.handle(now, input);
        }
        let stopping = state.stop == Stop::Asked;
        if stopping {
            state.abort_all(now);
        }
        let due = pump(&mut state.endpoint, now, &mut self.carrier);
        state.take_events(now);
        drop(state);
        let was_full = self.carrier.is_full();
        self.carrier.poll_flush(cx)?;
        if stopping {
            return Ok(ControlFlow::Break(()));
        }
        more |= was_full && !self.carrier.is_full();
        more |= due.map_or(Ok(false), |due| self.alarm.poll(cx, due))?;
        Ok(ControlFlow::Continue(more))
    }
}

impl<C: Carrier> Future for Driver<C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let error = match self.round(cx) {
            Ok(ControlFlow::Continue(more)) => {
                if more {
                    let _ = pin!(yield_now()).poll(cx); // what the system has for others is seen first
                }
                return Poll::Pending;
            }
            Ok(ControlFlow::Break(())) => None,
            Err(error) => Some(error.to_string()),
        };
        self.shared.lock().end(error);
        Poll::Ready(())
    }
}

impl<C> Drop for Driver<C> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if !matches!(state.stop, Stop::Done(_)) {
            let why = if std::thread::panicking() { "it panicked" } else { "the runtime was shut down" };
            state.end(Some(why.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use polypath_endpoint::{Endpoint, EndpointConfig, Locators, Outlet};
    use polypath_transport::{ConnectionConfig, PathConfig, Segment, State};
    use polypath_wire::{Instant, Seed};
    use tokio::sync::mpsc;

    use super::*;

    /// Asks the driver to stop while it flushes, with the lock free.
    struct StopsInFlush(Arc<Shared>);

    impl Outlet for StopsInFlush {
        fn send(&mut self, _now: Instant, _locators: &Locators, _segment: &mut Box<Segment>) {}
    }

    impl Carrier for StopsInFlush {
        fn poll_receive(&mut self, _cx: &mut Context<'_>, _inbox: &mut Vec<Input>) -> io::Result<bool> {
            Ok(false)
        }

        fn poll_flush(&mut self, _cx: &mut Context<'_>) -> io::Result<()> {
            self.0.act(|state, _| state.ask_to_stop());
            Ok(())
        }
    }

    /// Takes all that waits in a channel of tokio, and asks to stop.
    struct TakesAll(Arc<Shared>, mpsc::UnboundedReceiver<()>, mpsc::UnboundedSender<usize>);

    impl Outlet for TakesAll {
        fn send(&mut self, _now: Instant, _locators: &Locators, _segment: &mut Box<Segment>) {}
    }

    impl Carrier for TakesAll {
        fn poll_receive(&mut self, cx: &mut Context<'_>, _inbox: &mut Vec<Input>) -> io::Result<bool> {
            let took = std::iter::from_fn(|| self.1.poll_recv(cx).is_ready().then_some(())).count();
            self.2.send(took).unwrap();
            self.0.act(|state, _| state.ask_to_stop());
            Ok(false)
        }

        fn poll_flush(&mut self, _cx: &mut Context<'_>) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_round_takes_more_than_tokio_allows_a_task_at_a_time() {
        let shared = Shared::new(Endpoint::new(EndpointConfig::default(), Seed(1)));
        let ((put, waiting), (tell, mut took)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        (0..1000).for_each(|_| put.send(()).unwrap());
        Driver::start(&shared, TakesAll(shared.clone(), waiting, tell)).unwrap().await.unwrap();
        assert_eq!(took.recv().await, Some(1000));
    }

    #[tokio::test]
    async fn a_stop_asked_for_during_the_flush_resets_connections_too() {
        let shared = Shared::new(Endpoint::new(EndpointConfig::default(), Seed(1)));
        let end = |last| ([127, 0, 0, last], 7).into();
        let path = (Locators { local: end(1), remote: end(2) }, PathConfig::default());
        let open = |state: &mut crate::shared::State, now| {
            state.endpoint.connect(now, ConnectionConfig::default(), 1, &[path])
        };
        shared.act(open).unwrap();
        Driver::new(shared.clone(), StopsInFlush(shared.clone())).unwrap().await;
        let state = shared.lock();
        assert!(state.endpoint.connections().all(|(_, connection)| connection.state() == State::Closed));
    }
}
