//! The TUN device: packets from the kernel and for it, each behind its virtio-net header. Here its one queue, which the driver's own
//! task reads and writes.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use tun_rs::{AsyncDevice, SyncDevice};

use super::{GatewayStats, count};
use crate::pool::{Buffer, Pool};

/// Packets that wait for the device before the endpoint must wait.
pub(super) const MAX_PENDING: usize = 64;

/// What the gateway reads and writes.
pub(super) trait Device: Send {
    /// Reads a packet; `buffer` may become another one. Gives its length with the header, bytes.
    fn poll_receive(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>>;

    /// Writes the first `len` bytes of `buffer`, now or later. What the kernel refuses is counted.
    fn put(&mut self, buffer: Buffer, len: usize);

    /// Writes more of what waits, if this task must do so. The task of `cx` is woken when so few packets wait that the endpoint may
    /// go on.
    fn poll_flush(&mut self, cx: &mut Context<'_>);

    /// Packets that are not written yet.
    fn waiting(&self) -> usize;

    /// Whether the endpoint must wait.
    fn is_full(&self) -> bool {
        self.waiting() > MAX_PENDING
    }
}

/// A device with one queue.
pub(super) struct OneQueue {
    device: AsyncDevice,
    pending: VecDeque<(Buffer, usize)>,
    spare: Pool,
    stats: Arc<GatewayStats>,
}

impl OneQueue {
    /// Needs a tokio runtime. Written buffers return to `spare`.
    pub fn new(device: SyncDevice, spare: Pool, stats: Arc<GatewayStats>) -> io::Result<Self> {
        Ok(Self { device: AsyncDevice::new(device)?, pending: VecDeque::new(), spare, stats })
    }
}

impl Device for OneQueue {
    fn poll_receive(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        self.device.poll_recv(cx, buffer)
    }

    fn put(&mut self, buffer: Buffer, len: usize) {
        let sent = match self.pending.is_empty() {
            true => self.device.try_send(&buffer[..len]),
            false => Err(io::ErrorKind::WouldBlock.into()),
        };
        match sent {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return self.pending.push_back((buffer, len)),
            Err(_) => count(&self.stats.refused),
            Ok(_) => {}
        }
        self.spare.give_back(buffer);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) {
        while let Some((buffer, len)) = self.pending.front() {
            let Poll::Ready(sent) = self.device.poll_send(cx, &buffer[..*len]) else { break };
            if sent.is_err() {
                count(&self.stats.refused);
            }
            let sent = self.pending.pop_front();
            sent.into_iter().for_each(|(buffer, _)| self.spare.give_back(buffer));
        }
    }

    fn waiting(&self) -> usize {
        self.pending.len()
    }
}
