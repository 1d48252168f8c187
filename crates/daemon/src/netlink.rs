//! A connection with the kernel about routes and rules.

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use ipnet::IpNet;
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::route::{RouteAttribute, RouteProtocol};
use rtnetlink::{Handle, MulticastGroup, new_connection, new_multicast_connection};
use tokio::task::JoinHandle;
use tracing::warn;

use crate::config::Place;

/// Whose routes and rules ours are: a protocol number that nobody else uses (rt_protos of iproute2).
pub(crate) const OURS: RouteProtocol = RouteProtocol::Other(105);

/// Why there is no route.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// No netlink socket, or no such device.
    #[error("netlink: {0}")]
    Netlink(String),
    /// The kernel refused it.
    #[error("route to {to}: {why}")]
    Refused {
        /// Where to.
        to: IpNet,
        /// What it said.
        why: String,
    },
    /// There is one of somebody else.
    #[error("there is another route to {to} already: {by}")]
    Taken {
        /// Where to.
        to: IpNet,
        /// The other, as ip-route(8) takes it.
        by: String,
        /// Whether the other route leads to a network in which this host has an address.
        connected: bool,
    },
    /// The kernel refused a rule of the kill switch, or to list them.
    #[error("kill switch: {0}")]
    Rule(String),
    /// It refused them for lack of a privilege.
    #[error("kill switch: it is not permitted to change rules of routing")]
    Privilege,
}

/// Why something could not be restored, so that the log names each reason once.
#[derive(Default)]
pub(crate) struct Trouble(Option<String>);

impl Trouble {
    /// `what` was restored, or `error` prevented it.
    pub fn note(&mut self, what: &str, error: Option<RouteError>) {
        let why = error.map(|error| error.to_string());
        if let Some(new) = why.as_ref().filter(|_| self.0 != why) {
            warn!("{what} may be missing: {new}; trying again");
        }
        self.0 = why;
    }
}

impl RouteError {
    /// What in the configuration it is about.
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Taken { to, .. } => Some(Place::Prefix(*to)),
            _ => None,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Taken { connected: true, .. } => {
                "this host is in that network: leave it out; or name more specific prefixes, which precede it"
                    .into()
            }
            Self::Taken { by, .. } => {
                format!("`ip route del {by}` removes it; or name more specific prefixes, which precede it")
            }
            Self::Privilege => "it needs root (CAP_NET_ADMIN)".into(),
            _ => "see `ip route` and `ip rule`".into(),
        }
    }
}

/// A connection with the kernel, in the network namespace of the calling thread. Needs a tokio runtime.
pub(crate) struct Netlink {
    pub handle: Handle,
    task: JoinHandle<()>,
}

impl Netlink {
    pub fn open() -> Result<Self, RouteError> {
        let (connection, handle, _) = new_connection().map_err(|e| RouteError::Netlink(e.to_string()))?;
        Ok(Self { handle, task: tokio::spawn(connection) })
    }
}

impl Drop for Netlink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Word of routes that are deleted.
pub(crate) struct Deletions {
    messages: BoxStream<'static, RouteNetlinkMessage>,
    task: JoinHandle<()>,
}

impl Deletions {
    /// Listens from now on, in the network namespace of the calling thread. Needs a tokio runtime.
    pub fn open() -> std::io::Result<Self> {
        let groups = [MulticastGroup::Ipv4Route, MulticastGroup::Ipv6Route];
        let (connection, _, messages) = new_multicast_connection(&groups)?;
        let messages = messages.filter_map(async |(message, _)| match message.payload {
            NetlinkPayload::InnerMessage(message) => Some(message),
            _ => None,
        });
        Ok(Self { messages: messages.boxed(), task: tokio::spawn(connection) })
    }

    /// Waits for the end of one through the device of that number.
    pub async fn next(&mut self, device: u32) {
        while let Some(message) = self.messages.next().await {
            if let RouteNetlinkMessage::DelRoute(route) = message
                && route.attributes.contains(&RouteAttribute::Oif(device))
            {
                return;
            }
        }
        std::future::pending().await
    }
}

impl Drop for Deletions {
    fn drop(&mut self) {
        self.task.abort();
    }
}
