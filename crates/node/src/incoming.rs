//! Connections to addresses of others, for a host that stands in for them.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use polypath_endpoint::packet::encode_packet;
use polypath_endpoint::{Answer, Incoming as Syn};
use polypath_transport::Segment;

use crate::bypass::Bypass;
use crate::shared::{Shared, Stop};
use crate::stream::{Stream, StreamError};
use crate::wishes::{StreamState, wait};

/// Largest SYN that somebody else carries, bytes: what every link of the Internet does.
const MAX_SYN: usize = 1280;

/// Hands out the connections that others open to any address.
pub struct Interceptor {
    shared: Arc<Shared>,
}

impl Interceptor {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The next one. Cancelled, it has taken none.
    pub async fn next(&self) -> Result<Incoming, StreamError> {
        let syn = poll_fn(|cx| {
            let mut state = self.shared.lock();
            if let Some(syn) = state.endpoint.poll_incoming() {
                return Poll::Ready(Ok(syn));
            }
            if let Stop::Done(error) = &state.stop {
                return Poll::Ready(Err(StreamError::Stopped(error.clone())));
            }
            wait(&mut state.asked, cx);
            Poll::Pending
        });
        Ok(Incoming { shared: self.shared.clone(), syn: syn.await?, answered: false })
    }
}

/// A connection that waits for an answer. Dropped without one, it gets none.
pub struct Incoming {
    shared: Arc<Shared>,
    syn: Syn,
    answered: bool,
}

impl Incoming {
    /// Who opens it.
    pub fn client(&self) -> SocketAddr {
        SocketAddr::new(self.syn.locators.remote.ip(), self.syn.ports.remote)
    }

    /// The address that it is for.
    pub fn server(&self) -> SocketAddr {
        SocketAddr::new(self.syn.locators.local.ip(), self.syn.ports.local)
    }

    /// Opens it; `None` if there are too many connections. What is written meanwhile is sent once it is there.
    pub fn accept(mut self) -> Option<Stream> {
        self.answered = true;
        let handle = self.shared.act(|state, now| {
            let handle = state.endpoint.answer(now, &self.syn, Answer::Accept)?;
            state.streams.insert(handle, StreamState::default());
            Some(handle)
        })?;
        Some(Stream::new(self.shared.clone(), handle))
    }

    /// Answers with a reset.
    pub fn refuse(mut self) {
        self.say(Answer::Refuse);
    }

    /// Answers with an ICMP error: no packet gets to that host.
    pub fn unreachable(mut self) {
        self.say(Answer::Unreachable);
    }

    /// Answers with an ICMP error: nothing leads to that network.
    pub fn net_unreachable(mut self) {
        self.say(Answer::NetUnreachable);
    }

    /// Leaves it to whoever takes packets from `bypass`: this SYN, later copies of it, and all that follows.
    pub fn go_by(mut self, bypass: &Bypass) {
        self.answered = true;
        self.shared.act(|state, _| {
            // What does not fit is a SYN with data: the next one may have none.
            state
                .endpoint
                .withdraw(&self.syn, |syn| self.packet(syn).is_some_and(|packet| bypass.divert(packet)));
        });
    }

    /// The packet that the SYN came in, unless it is too large.
    fn packet(&self, syn: &Segment) -> Option<Bytes> {
        let mut packet = vec![0; MAX_SYN];
        let len = encode_packet(&self.syn.locators.reversed(), syn, &mut packet).ok()?;
        packet.truncate(len);
        Some(packet.into())
    }

    fn say(&mut self, answer: Answer) {
        self.answered = true;
        self.shared.act(|state, now| state.endpoint.answer(now, &self.syn, answer));
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.answered {
            self.say(Answer::Silence);
        }
    }
}
