//! Our TUN host and a Linux host, with a Linux router and an emulated link between them.
//!
//! ```text
//! TUN host 10.78.0.2 ── tun `host` ┤ router ├ tun `link` ══ emulated link ══ tun `link` ┤ kernel 10.78.1.2
//! ```

use std::future::Future;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use bytes::Bytes;
use polypath_endpoint::{EndpointConfig, ListenConfig, Locators};
use polypath_hop::HopConfig;
use polypath_node::{Clock, Listener, Node, Stream, StreamError, Tun, TunConfig};
use polypath_testbed::emulated_link::{EmulatedLink, LinkStats};
use polypath_testbed::netns::Netns;
use polypath_testbed::tun_end;
use polypath_transport::{ConnectionConfig, PathConfig};
use polypath_transport::{Pattern, Payload};
use polypath_wire::Seed;
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;

use super::counters::Counters;
use crate::common::sh;

pub const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 0, 2));
pub const KERNEL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 1, 2));
/// Nothing here waits longer.
const PATIENCE: Duration = Duration::from_secs(200);
const CHUNK: u64 = 64 << 10;

/// What an application says about a stream of bytes it wrote or read.
pub type Sha = [u8; 32];

/// Who opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opens {
    Host,
    Kernel,
}

pub struct Bed {
    pub router: Netns,
    pub kernel: Netns,
    link: EmulatedLink,
    node: Option<Node>,
    runtime: Runtime,
    next_port: AtomicU16,
}

impl Bed {
    /// `hops`: from the router to the kernel, and back. `mtu`: of the router's and of the kernel's device.
    pub fn new(hops: [HopConfig; 2], mtu: [u16; 2]) -> Self {
        let [router, kernel] = ["router", "kernel"].map(|name| Netns::create(name).unwrap());
        let link_address = |host| IpAddr::from([10, 78, 1, host]);
        let ends = [
            tun_end(&router, "link", link_address(1), mtu[0]).unwrap(),
            tun_end(&kernel, "link", link_address(2), mtu[1]).unwrap(),
        ];
        let link = EmulatedLink::start("link", ends, hops, Seed(1), Clock::start()).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let node = router.run(|| tun_host(&runtime)).unwrap();
        sh(
            &router,
            "ip link set lo up; ip link set host txqueuelen 20000; echo 1 > /proc/sys/net/ipv4/ip_forward",
        );
        sh(&kernel, "ip link set lo up; ip route add default via 10.78.1.1");
        Self { router, kernel, link, node: Some(node), runtime, next_port: 5000.into() }
    }

    /// A connection of our host's and its other end in the kernel.
    pub fn connect(&self, opens: Opens, config: ConnectionConfig) -> (Stream, TcpStream) {
        let (stream, tcp) = match opens {
            Opens::Host => {
                let listener = self.kernel_listener();
                let stream = self.host_connect(listener.local_addr().unwrap().port(), config).unwrap();
                (stream, listener.accept().unwrap().0)
            }
            Opens::Kernel => {
                let (port, listener) = self.host_listener(config);
                let tcp = self.kernel_connect(port).unwrap();
                (self.wait(listener.accept()).unwrap(), tcp)
            }
        };
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        tcp.set_write_timeout(Some(PATIENCE)).unwrap();
        (stream, tcp)
    }

    pub fn host_connect(&self, port: u16, config: ConnectionConfig) -> Result<Stream, StreamError> {
        let locators = Locators { local: (HOST, 0).into(), remote: (KERNEL, 0).into() };
        self.wait(self.node().connect(config, port, &[(locators, PathConfig::default())]))
    }

    pub fn host_listener(&self, connection: ConnectionConfig) -> (u16, Listener) {
        let port = self.next_port.fetch_add(1, Ordering::Relaxed);
        let config = ListenConfig { connection, ..ListenConfig::default() };
        (port, self.node().listen(port, config).unwrap())
    }

    pub fn kernel_connect(&self, port: u16) -> std::io::Result<TcpStream> {
        let host = SocketAddr::from((HOST, port));
        self.kernel.run(|| TcpStream::connect_timeout(&host, PATIENCE)).unwrap()
    }

    pub fn kernel_listener(&self) -> TcpListener {
        self.kernel.run(|| TcpListener::bind((KERNEL, 0))).unwrap().unwrap()
    }

    /// Waits for what our host does, but not for ever.
    pub fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        let patient = async { tokio::time::timeout(PATIENCE, what).await };
        self.runtime.block_on(patient).expect("the host stalled")
    }

    /// Our host sends `len` bytes of pattern `key`; the hash of what it sent.
    pub fn host_sends(&self, stream: &Stream, key: u32, len: u64) -> Sha {
        let mut sha = Sha256::new();
        self.wait(async {
            for chunk in chunks(key, len) {
                sha.update(&chunk);
                stream.write(chunk).await.unwrap();
            }
        });
        sha.finalize().into()
    }

    /// Our host reads `len` bytes; their hash.
    pub fn host_reads(&self, stream: &Stream, len: u64) -> Sha {
        let mut sha = Sha256::new();
        let mut left = len;
        self.wait(async {
            while left > 0 {
                let bytes = stream.read(left.min(1 << 20) as usize).await.unwrap();
                let bytes = bytes.unwrap_or_else(|| panic!("the kernel finished {left} bytes early"));
                left -= bytes.len() as u64;
                sha.update(&bytes);
            }
        });
        sha.finalize().into()
    }

    pub fn host_sees_the_end(&self, stream: &Stream) {
        assert_eq!(self.wait(stream.read(1)), Ok(None), "the end of the kernel's stream");
    }

    pub fn link(&self) -> LinkStats {
        self.link.stats()
    }

    /// Fails if the kernel of `kernel` or `router` saw anything it does not like.
    pub fn expect_no_complaints(&self) {
        self.expect_complaints(|_, _| 0);
    }

    /// The same, but for counters of which a test knows why they rise, and how far at most.
    pub fn expect_complaints(&self, allowed: impl Fn(&Counters, &str) -> i64) {
        for ns in [&self.kernel, &self.router] {
            let counters = Counters::of(ns);
            assert_eq!(counters.complaints(|name| allowed(&counters, name)), [], "in the {}", ns.name());
        }
    }

    fn node(&self) -> &Node {
        self.node.as_ref().expect("it is taken only by drop")
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let node = self.node.take();
        let _runtime = self.runtime.enter();
        drop(node);
    }
}

/// Our host on a TUN device of the namespace it is called in.
fn tun_host(runtime: &Runtime) -> Node {
    let _runtime = runtime.enter();
    let config =
        TunConfig { name: "host".into(), kernel: ([10, 78, 0, 1].into(), 24), host: HOST, mtu: 1500 };
    Node::start(EndpointConfig::default(), Tun::open(&[config]).unwrap()).unwrap()
}

pub fn kernel_sends(tcp: &mut TcpStream, key: u32, len: u64) -> Sha {
    let mut sha = Sha256::new();
    for chunk in chunks(key, len) {
        sha.update(&chunk);
        tcp.write_all(&chunk).unwrap();
    }
    sha.finalize().into()
}

pub fn kernel_reads(tcp: &mut TcpStream, len: u64) -> Sha {
    let mut sha = Sha256::new();
    let mut buffer = vec![0; CHUNK as usize];
    let mut left = len;
    while left > 0 {
        let n = tcp.read(&mut buffer[..left.min(CHUNK) as usize]).unwrap();
        assert!(n > 0, "the host finished {left} bytes early");
        sha.update(&buffer[..n]);
        left -= n as u64;
    }
    sha.finalize().into()
}

pub fn kernel_sees_the_end(tcp: &mut TcpStream) {
    assert_eq!(tcp.read(&mut [0]).unwrap(), 0, "the end of the host's stream");
}

/// The first `len` bytes of pattern `key` in pieces.
fn chunks(key: u32, len: u64) -> impl Iterator<Item = Bytes> {
    (0..len.div_ceil(CHUNK)).map(move |i| {
        let offset = i * CHUNK;
        Payload::Pattern(Pattern { key, offset, len: CHUNK.min(len - offset) }).to_bytes()
    })
}
