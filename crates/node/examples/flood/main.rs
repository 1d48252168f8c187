//! Floods a host with HIP packets, to see that it stays calm: for tests on loopback and in private networks,
//! and it goes nowhere else.
//!
//! ```text
//! flood solved 10.77.0.2:10500 --hit HIT-of-the-host --rate 4000 --seconds 10
//! flood notify 10.77.0.2:10500 --hit HIT-of-the-host --peer HIT-of-its-peer --from 10.77.0.1:40000
//! ```
//!
//! Prints one JSON object: what was sent, in which time, and how many packets came back.

mod packets;

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use nix::sys::socket::{setsockopt, sockopt};
use packets::Forger;
use polypath_wire::hip::{Hit, PacketType};
use serde_json::json;
use socket2::{Domain, Protocol, Socket, Type};

#[derive(Parser)]
struct Args {
    /// What to send.
    kind: Kind,
    /// Where to: an address of loopback or of a private network.
    to: SocketAddr,
    /// The HIT of that host.
    #[arg(long)]
    hit: Hit,
    /// The HIT that NOTIFY and R1 claim to come from; if not given, another one in each.
    #[arg(long)]
    peer: Option<Hit>,
    /// The address to send from. One that is not ours takes CAP_NET_ADMIN.
    #[arg(long)]
    from: Option<SocketAddr>,
    /// Packets a second.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    rate: u32,
    /// Makes the first byte of each packet 1, so that it is no HIP: the same work here, for nothing there.
    #[arg(long)]
    spoil: bool,
    /// Duration, s.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
}

/// Kinds of floods.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Kind {
    /// I1, each from another HIT.
    I1,
    /// I2 that answer no puzzle.
    I2,
    /// I2 that solve true puzzles, and are nonsense otherwise.
    Solved,
    /// NOTIFY with a bad signature.
    Notify,
    /// R1 with a bad signature.
    R1,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    for address in [Some(args.to), args.from].into_iter().flatten() {
        if !is_private(address.ip()) {
            return Err(format!("{address}: only loopback and private networks").into());
        }
    }
    let socket = bind(&args)?;
    let flood = Flood { socket, forger: Forger::new(args.kind, args.hit, args.peer)?, args };
    println!("{}", flood.run()?);
    Ok(())
}

fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

fn bind(args: &Args) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(args.to), Type::DGRAM, Some(Protocol::UDP))?;
    if let Some(from) = args.from {
        // Only who may pretend to be elsewhere needs it.
        let _ = setsockopt(&socket, sockopt::IpTransparent, &true);
        socket.set_reuse_address(true)?;
        socket.bind(&from.into())?;
    }
    socket.connect(&args.to.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

struct Flood {
    args: Args,
    socket: UdpSocket,
    forger: Forger,
}

/// How often what is due is sent, and true puzzles are asked for until there are some.
const TICK: Duration = Duration::from_millis(1);
const ASK: Duration = Duration::from_millis(100);
/// Puzzles asked for at once: less than a host gives to one address in a second.
const AT_ONCE: usize = 16;

impl Flood {
    fn run(mut self) -> io::Result<serde_json::Value> {
        let began = Instant::now();
        let (mut sent, mut refused, mut answers, mut r1s) = (0u64, 0u64, 0u64, 0u64);
        let mut ask = began;
        while began.elapsed() < Duration::from_secs(self.args.seconds) {
            if self.args.kind == Kind::Solved && self.forger.wants_puzzles() && ask <= Instant::now() {
                ask += ASK;
                for _ in 0..AT_ONCE {
                    let i1 = self.forger.i1();
                    self.send(&i1)?;
                }
            }
            let due = (began.elapsed().as_secs_f64() * f64::from(self.args.rate)) as u64;
            while sent + refused < due {
                let Some(mut packet) = self.forger.next() else { break };
                if self.args.spoil {
                    packet[0] = 1;
                }
                match self.send(&packet)? {
                    true => sent += 1,
                    false => refused += 1,
                }
            }
            while let Some(kind) = self.receive()? {
                answers += 1;
                r1s += u64::from(kind == PacketType::R1);
            }
            std::thread::sleep(TICK);
        }
        let seconds = began.elapsed().as_secs_f64();
        Ok(json!({ "sent": sent, "refused": refused, "seconds": seconds, "answers": answers, "r1s": r1s }))
    }

    /// Whether the kernel took it.
    fn send(&self, packet: &[u8]) -> io::Result<bool> {
        match self.socket.send(packet) {
            Ok(_) => Ok(true),
            Err(e) if is_passing(&e) => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn receive(&mut self) -> io::Result<Option<PacketType>> {
        let mut buffer = [0; 4096];
        match self.socket.recv(&mut buffer) {
            Ok(len) => Ok(Some(self.forger.learn(&buffer[..len]))),
            Err(e) if is_passing(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    use ErrorKind as K;
    matches!(error.kind(), K::WouldBlock | K::ConnectionRefused | K::Interrupted)
        || error.raw_os_error() == Some(nix::libc::ENOBUFS)
}
