//! A connection with the kernel about routes and rules.

use ipnet::IpNet;
use rtnetlink::{Handle, new_connection};
use tokio::task::JoinHandle;

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
    /// The kernel refused a rule of the kill switch, or to list them.
    #[error("kill switch: {0}")]
    Rule(String),
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
