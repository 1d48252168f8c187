//! Several queues of the TUN device, each read and written by a thread of its own, so that the driver's core is free for the rest.
//!
//! Packets of one flow stay in order. They are written to one queue, and the kernel gives its packets of that flow to the queue to
//! which the flow's last packet was written. Until there is one the kernel chooses; so the first answer to a flow may move the flow,
//! and what is being read then may change its order once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::thread::{self, JoinHandle};

use polypath_endpoint::inner::InnerPacket;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use tokio::runtime;
use tokio::sync::mpsc;
use tun_rs::{AsyncDevice, SyncDevice, VIRTIO_NET_HDR_LEN};

use super::device::{Device, MAX_PENDING};
use super::{GatewayStats, MAX_INJECTED, count};
use crate::pool::{Buffer, Pool};

/// Packets that were read and wait for the driver, times the number of queues; more wait in the kernel.
const READ_AHEAD: usize = 32;
/// Packets for one queue that wait, at most: injected ones, and those that the endpoint still sends.
const MAX_LEAVING: usize = MAX_INJECTED + MAX_PENDING;

/// A packet and its length.
type Packet = (Buffer, usize);

/// A device with several queues. Dropping it writes what waits, and ends the threads.
pub(super) struct Queues {
    received: mpsc::Receiver<io::Result<Packet>>,
    /// By queue.
    leaving: Vec<mpsc::Sender<Packet>>,
    threads: Vec<JoinHandle<()>>,
    /// Packets that waited when the driver looked last, and those since: what the driver was told stays true until it looks again.
    seen: usize,
    shared: Shared,
}

/// What the driver and the threads of all queues use.
#[derive(Clone)]
struct Shared {
    /// Of what is read.
    pool: Pool,
    /// Of what is written.
    spare: Pool,
    waiting: Arc<Waiting>,
    stats: Arc<GatewayStats>,
}

impl Queues {
    /// Gives `device`, which was created for several queues, as many as `queues` says. An error of the kind
    /// [`Unsupported`](io::ErrorKind::Unsupported) says that the kernel refused them. Buffers of what is read
    /// and of what is written return to the two pools.
    pub fn start(
        device: SyncDevice,
        queues: usize,
        [pool, spare]: [&Pool; 2],
        stats: &Arc<GatewayStats>,
    ) -> io::Result<Self> {
        let refused =
            |e| io::Error::new(io::ErrorKind::Unsupported, format!("it cannot have {queues} queues: {e}"));
        let others: io::Result<Vec<_>> = (1..queues).map(|_| device.try_clone().map_err(refused)).collect();
        let (tell, received) = mpsc::channel(READ_AHEAD * queues);
        let (pool, spare, stats) = (pool.clone(), spare.clone(), stats.clone());
        let shared = Shared { pool, spare, waiting: Arc::default(), stats };
        let mut all = Self { received, leaving: Vec::new(), threads: Vec::new(), seen: 0, shared };
        for (n, device) in [device].into_iter().chain(others?).enumerate() {
            all.serve(n, device, tell.clone())?;
        }
        Ok(all)
    }

    fn look(&mut self) {
        self.seen = self.shared.waiting.packets.load(Ordering::Relaxed);
    }

    /// Begins the thread of queue `n`.
    fn serve(
        &mut self,
        n: usize,
        device: SyncDevice,
        received: mpsc::Sender<io::Result<Packet>>,
    ) -> io::Result<()> {
        let (put, leaving) = mpsc::channel(MAX_LEAVING);
        let queue = Queue { received, shared: self.shared.clone() };
        let thread = thread::Builder::new().name(format!("queue {n}")).spawn(move || {
            if let Err(error) = queue.run(device, leaving) {
                let _ = queue.received.blocking_send(Err(error)); // the driver may have ended
            }
        })?;
        self.leaving.push(put);
        self.threads.push(thread);
        Ok(())
    }
}

impl Device for Queues {
    fn poll_receive(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        let packet = ready!(self.received.poll_recv(cx));
        let (full, len) = packet.unwrap_or_else(|| Err(io::Error::other("its threads have ended")))?;
        self.shared.pool.give_back(std::mem::replace(buffer, full));
        Poll::Ready(Ok(len))
    }

    fn put(&mut self, buffer: Buffer, len: usize) {
        let packet = buffer.get(VIRTIO_NET_HDR_LEN..len).unwrap_or_default();
        let queue = &self.leaving[queue_of(packet, self.leaving.len())];
        self.shared.waiting.packets.fetch_add(1, Ordering::Relaxed);
        self.seen += 1;
        if let Err(refused) = queue.try_send((buffer, len)) {
            count(&self.shared.stats.refused);
            self.shared.left(refused.into_inner().0);
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) {
        self.look();
        if self.is_full() {
            self.shared.waiting.wake_later(cx);
            self.look();
        }
    }

    fn waiting(&self) -> usize {
        self.seen
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        self.received.close();
        self.leaving.clear();
        // One that panicked has said so.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// The number of the queue to which `packet` is written. All packets of a flow have the same, in both directions. Fragments have no ports:
/// those between two hosts are one flow.
fn queue_of(packet: &[u8], queues: usize) -> usize {
    let Ok(looked) = InnerPacket::parse(packet) else { return 0 };
    let (src, dst) = looked.ports.unwrap_or_default();
    let mut ends = [(looked.src, src), (looked.dst, dst)];
    ends.sort_unstable();
    let mut hasher = DefaultHasher::new();
    (ends, looked.protocol).hash(&mut hasher);
    (hasher.finish() % queues as u64) as usize
}

/// Packets that the threads have not written, and who waits until they have.
#[derive(Default)]
struct Waiting {
    packets: AtomicUsize,
    driver: Mutex<Option<Waker>>,
}

impl Waiting {
    /// A packet is written. The driver is woken once, when half of what made it wait has left.
    fn left(&self) {
        if self.packets.fetch_sub(1, Ordering::Relaxed) == MAX_PENDING / 2 {
            let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner).take();
            driver.into_iter().for_each(Waker::wake);
        }
    }

    /// Wakes the task when packets have left. Its owner looks afterwards whether they did so meanwhile.
    fn wake_later(&self, cx: &Context<'_>) {
        *self.driver.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
    }
}

impl Shared {
    /// A packet has left, and its buffer is free.
    fn left(&self, buffer: Buffer) {
        self.spare.give_back(buffer);
        self.waiting.left();
    }
}

/// What the thread of a queue has.
struct Queue {
    received: mpsc::Sender<io::Result<Packet>>,
    shared: Shared,
}

impl Queue {
    /// Reads and writes, until nothing can follow in `leaving` or the device fails.
    fn run(&self, device: SyncDevice, leaving: mpsc::Receiver<Packet>) -> io::Result<()> {
        give_up_rights()?;
        let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(async {
            let device = AsyncDevice::new(device)?;
            tokio::select! {
                Err(error) = self.read(&device) => Err(error),
                () = self.write(&device, leaving) => Ok(()),
            }
        })
    }

    /// Reads a packet only when there is room for it, so that the kernel's queue is the one that grows.
    async fn read(&self, device: &AsyncDevice) -> io::Result<()> {
        while let Ok(place) = self.received.reserve().await {
            let mut buffer = self.shared.pool.take();
            let len = device.recv(&mut buffer).await?;
            place.send(Ok((buffer, len)));
        }
        Ok(())
    }

    async fn write(&self, device: &AsyncDevice, mut leaving: mpsc::Receiver<Packet>) {
        while let Some((buffer, len)) = leaving.recv().await {
            if device.send(&buffer[..len]).await.is_err() {
                count(&self.shared.stats.refused);
            }
            self.shared.left(buffer);
        }
    }
}

/// Reading and writing needs none. What another user needs to be made of the process stays, since all threads change together, or the
/// process ends (nptl(7)); it goes with that.
fn give_up_rights() -> io::Result<()> {
    let to_change = CapabilitySet::SETUID | CapabilitySet::SETGID;
    let (kept, none) = (capabilities(None)?.permitted & to_change, CapabilitySet::empty());
    Ok(set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: none })?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use polypath_wire::ipv4::Ipv4Header;
    use polypath_wire::udp::{self, UdpHeader};

    use super::*;

    /// A datagram between ports of 10.0.0.1 and 10.0.0.2; `back`: in the other direction. `fragment`: its first half.
    fn datagram(ports: (u16, u16), back: bool, fragment: bool) -> Vec<u8> {
        let mut ends = [(1, ports.0), (2, ports.1)];
        if back {
            ends.reverse();
        }
        let [(src, src_port), (dst, dst_port)] = ends;
        let [src, dst] = [src, dst].map(|last| [10, 0, 0, last].into());
        let header = Ipv4Header {
            more_fragments: fragment,
            dont_fragment: false,
            ..Ipv4Header::new(udp::PROTOCOL, src, dst, 8)
        };
        let mut packet = vec![0; 28];
        header.emit(&mut packet).unwrap();
        let udp = UdpHeader { src_port, dst_port, payload_len: 0 };
        udp.emit(&mut packet[20..], header.pseudo_header()).unwrap();
        packet
    }

    #[test]
    fn flows_are_spread_over_all_queues_and_each_stays_on_one_in_both_directions() {
        for queues in 2..=16 {
            let queue = |port, back| queue_of(&datagram((port, 443), back, false), queues);
            let of: Vec<usize> = (1..=200).map(|port| queue(port, false)).collect();
            assert_eq!(of.iter().collect::<BTreeSet<_>>().len(), queues);
            assert_eq!(of, (1..=200).map(|port| queue(port, true)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn fragments_between_two_hosts_stay_on_one_queue_whatever_their_ports() {
        let queue = |port| queue_of(&datagram((port, 443), false, true), 16);
        assert_eq!((1..100).map(queue).collect::<BTreeSet<_>>().len(), 1);
    }

    #[test]
    fn what_is_no_packet_has_a_queue_too() {
        for bytes in [&b""[..], b"x", &[0x45; 19], &[0xff; 1500]] {
            assert_eq!(queue_of(bytes, 4), 0);
        }
    }

    /// Counts how often it was woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_driver_that_waits_is_woken_once_when_half_has_left() {
        let (waiting, woken) = (Waiting::default(), Arc::<Woken>::default());
        waiting.packets.store(MAX_PENDING + 1, Ordering::Relaxed);
        waiting.wake_later(&Context::from_waker(&woken.clone().into()));
        let times: Vec<usize> = (0..=MAX_PENDING)
            .map(|_| {
                waiting.left();
                woken.0.load(Ordering::Relaxed)
            })
            .collect();
        let half = MAX_PENDING / 2 + 1;
        assert!(
            times[..half].iter().all(|times| *times == 0) && times[half..].iter().all(|times| *times == 1),
            "{times:?}"
        );
    }
}
