//! What the driver carries segments with: sockets or a TUN device.

use std::io;
use std::task::Context;

use polypath_endpoint::{Input, Outlet};

/// The outside of an endpoint in the real world. Waiting is by waker only.
pub trait Carrier: Outlet + Send + Unpin + 'static {
    /// The local addresses at the start, if the carrier reports addresses.
    fn locals(&self) -> Vec<Input> {
        Vec::new()
    }

    /// Appends what has arrived to `inbox`, a bounded amount. `true` if the bound was reached; otherwise
    /// the task of `cx` is woken when more arrives.
    fn poll_receive(&mut self, cx: &mut Context<'_>, inbox: &mut Vec<Input>) -> io::Result<bool>;

    /// Gives what was sent to the operating system, as much as it takes. If something is left, the
    /// task of `cx` is woken when it takes more.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> io::Result<()>;
}
