//! Floods a host with HIP packets, to see that it stays calm: for tests on loopback and in private networks,
//! and it goes nowhere else.
//!
//! ```text
//! flood solved 10.77.0.2:10500 --hit HIT-of-the-host --rate 4000 --seconds 10
//! flood solved 10.77.0.2:10500 --hit HIT-of-the-host --anew --sources 16 --from 10.78.0.1:40000
//! flood notify 10.77.0.2:10500 --hit HIT-of-the-host --peer HIT-of-its-peer --from 10.77.0.1:40000
//! ```
//!
//! Prints one JSON object: what was sent, in which time, how many packets came back, and how hard the last puzzle was.

mod packets;

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
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
    /// Asks for new puzzles all the time, and answers each as often as it is good for.
    #[arg(long)]
    anew: bool,
    /// Solutions have at least that many zero bits, so that they take the same work here whatever is asked for.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=24))]
    bits: u8,
    /// Addresses to send from: --from and those after it.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..), requires = "from")]
    sources: u8,
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
    let sockets = (0..args.sources).map(|n| bind(&args, n)).collect::<io::Result<_>>()?;
    let forger = Forger::new(args.kind, args.hit, args.peer, args.bits)?;
    println!("{}", Flood { sockets, forger, args }.run()?);
    Ok(())
}

fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

/// A socket of the `n`-th source.
fn bind(args: &Args, n: u8) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(args.to), Type::DGRAM, Some(Protocol::UDP))?;
    if let Some(mut from) = args.from {
        from.set_ip(after(from.ip(), n));
        // Only who may pretend to be elsewhere needs it.
        let _ = setsockopt(&socket, sockopt::IpTransparent, &true);
        socket.set_reuse_address(true)?;
        socket.bind(&from.into())?;
    }
    socket.connect(&args.to.into())?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn after(ip: IpAddr, n: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits().wrapping_add(n.into())).into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits().wrapping_add(n.into())).into(),
    }
}

struct Flood {
    args: Args,
    sockets: Vec<UdpSocket>,
    forger: Forger,
}

/// What happened.
#[derive(Default)]
struct Count {
    sent: u64,
    /// The kernel did not take it.
    refused: u64,
    answers: u64,
    r1s: u64,
}

/// How often what is due is sent, and puzzles are asked for.
const TICK: Duration = Duration::from_millis(1);
const ASK: Duration = Duration::from_millis(100);
/// Puzzles asked for at once, until there are some: less than a host gives to one address in a second.
const AT_ONCE: usize = 16;
/// Puzzles asked for at once from each source, if all the time: as many as a host gives to one address in [`ASK`].
const ANEW: usize = 2;
/// How long packets are made before answers are looked at.
const TURN: Duration = Duration::from_millis(20);

impl Flood {
    fn run(mut self) -> io::Result<serde_json::Value> {
        let (began, mut count) = (Instant::now(), Count::default());
        let mut ask = began;
        while began.elapsed() < Duration::from_secs(self.args.seconds) {
            if self.args.kind == Kind::Solved && ask <= Instant::now() {
                ask += ASK;
                self.ask()?;
            }
            let due = (began.elapsed().as_secs_f64() * f64::from(self.args.rate)) as u64;
            self.strike(due, &mut count)?;
            for source in 0..self.sockets.len() {
                self.listen(source, &mut count)?;
            }
            std::thread::sleep(TICK);
        }
        let (seconds, difficulty) = (began.elapsed().as_secs_f64(), self.forger.difficulty());
        let Count { sent, refused, answers, r1s } = count;
        Ok(json!({ "sent": sent, "refused": refused, "seconds": seconds, "answers": answers, "r1s": r1s,
            "difficulty": difficulty }))
    }

    /// Asks for puzzles.
    fn ask(&mut self) -> io::Result<()> {
        let wanted = match self.args.anew {
            true => ANEW,
            false if self.forger.wants_puzzles() => AT_ONCE,
            false => 0,
        };
        for source in 0..self.sockets.len() {
            for _ in 0..wanted {
                let i1 = self.forger.i1();
                self.send(source, &i1)?;
            }
        }
        Ok(())
    }

    /// Sends packets until `due` of them left, or it has taken a [`TURN`].
    fn strike(&mut self, due: u64, count: &mut Count) -> io::Result<()> {
        let began = Instant::now();
        while count.sent + count.refused < due && began.elapsed() < TURN {
            let Some((source, mut packet)) = self.forger.next(self.args.anew) else { break };
            if self.args.spoil {
                packet[0] = 1;
            }
            match self.send(source, &packet)? {
                true => count.sent += 1,
                false => count.refused += 1,
            }
        }
        Ok(())
    }

    /// Whether the kernel took it.
    fn send(&self, source: usize, packet: &[u8]) -> io::Result<bool> {
        match self.sockets[source].send(packet) {
            Ok(_) => Ok(true),
            Err(e) if is_passing(&e) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Takes what came back to a source.
    fn listen(&mut self, source: usize, count: &mut Count) -> io::Result<()> {
        let mut buffer = [0; 4096];
        loop {
            match self.sockets[source].recv(&mut buffer) {
                Ok(len) => {
                    let kind = self.forger.learn(source, &buffer[..len]);
                    count.answers += 1;
                    count.r1s += u64::from(kind == PacketType::R1);
                }
                Err(e) if is_passing(&e) => return Ok(()),
                Err(e) => return Err(e),
            }
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    use ErrorKind as K;
    matches!(error.kind(), K::WouldBlock | K::ConnectionRefused | K::Interrupted)
        || error.raw_os_error() == Some(nix::libc::ENOBUFS)
}
