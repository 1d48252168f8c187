//! Why a host does not answer: each of its addresses gets an I1 without a receiver's HIT (opportunistic mode, RFC 7401 §4.1.8).

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use polypath_node::inquiry::inquire;
use polypath_wire::Checksum;
use polypath_wire::hip::{Hit, Packet, PacketType, PacketView, Param, udp};

use crate::failure::Failure;

/// How long each of two I1s waits for an answer.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Diffie-Hellman groups of which every host has one (RFC 7401 §5.2.7): NIST P-384, 3072-bit MODP, NIST P-256.
const GROUPS: [u8; 3] = [8, 4, 7];

/// What was found at one address.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Finding {
    /// Another host answers.
    Other(Hit),
    /// The host answers that nobody listens on that port.
    Closed,
    /// No such host, or no way to it, in the system's words.
    Unreachable(String),
    /// No answer, or one of the host that was meant.
    Nothing,
}

/// What was found at the addresses of a host.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    peer: Hit,
    found: Vec<(SocketAddr, Finding)>,
}

impl Diagnosis {
    /// No address has answered.
    pub fn silence(peer: Hit, addresses: &[SocketAddr]) -> Self {
        Self { peer, found: addresses.iter().map(|address| (*address, Finding::Nothing)).collect() }
    }

    /// Asks all addresses at once, as `ours`.
    pub async fn make(ours: Hit, peer: Hit, addresses: &[SocketAddr]) -> Self {
        let mut asked = tokio::task::JoinSet::new();
        for (n, address) in addresses.iter().copied().enumerate().filter(|(_, a)| a.port() != 0) {
            asked.spawn(async move { (n, ask(ours, peer, address).await) });
        }
        let mut all = Self::silence(peer, addresses);
        while let Some(Ok((n, finding))) = asked.join_next().await {
            all.found[n].1 = finding;
        }
        all
    }

    /// Whether waiting is of no use: the peer is at none of the addresses.
    pub fn is_certain(&self) -> bool {
        self.found.iter().all(|(_, finding)| *finding != Finding::Nothing)
    }

    /// The error to print. `there` is the command that should run on that host.
    pub fn failure(&self, there: &str) -> Failure {
        let certain = self.found.iter().find(|(_, finding)| *finding != Finding::Nothing);
        let peer = self.peer;
        let Some((at, finding)) = certain else {
            return Failure::system(
                format!("no answer from {peer}"),
                "no host there, or packets are lost on the way",
            )
            .help(self.is_it_there(there));
        };
        match finding {
            Finding::Other(other) => {
                Failure::system(format!("{at} is not {peer}"), format!("{other} answers there"))
                    .help(format!("if you mean that host: {other}@{at}"))
            }
            Finding::Closed => {
                Failure::system(format!("{at} is closed"), "no program listens on that UDP port there")
                    .help(format!("on that host: {there}; to name another port: HIT@ADDR:PORT"))
            }
            Finding::Unreachable(words) => Failure::system(format!("no route to {at}"), words)
                .help("is the address right? see `ip route get`"),
            Finding::Nothing => unreachable!("filtered above"),
        }
    }

    /// The help if nobody answers.
    fn is_it_there(&self, there: &str) -> String {
        let ports: BTreeSet<u16> = self.found.iter().map(|(address, _)| address.port()).collect();
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let way = match ports[..] == ["0"] {
            true => "do IP protocols 139 and 50 (`--native` on both ends)".to_owned(),
            false => format!("does UDP port {}", ports.join(" or ")),
        };
        format!("is `{there}` running there, is the address right, and {way} reach it?")
    }
}

async fn ask(ours: Hit, peer: Hit, address: SocketAddr) -> Finding {
    use io::ErrorKind as K;
    let groups = Param::DhGroupList(GROUPS.to_vec());
    let i1 = Packet::new(PacketType::I1, ours, Hit::NULL, vec![groups]).emit(Checksum::Unused);
    let payload = [&udp::HIP_MARKER[..], &i1.unwrap_or_default()].concat();
    match inquire(address, &payload, PATIENCE).await {
        Ok(answer) => match who(&answer) {
            Some(other) if other != peer => Finding::Other(other),
            _ => Finding::Nothing,
        },
        Err(error) if error.kind() == K::ConnectionRefused => Finding::Closed,
        Err(error) if matches!(error.kind(), K::HostUnreachable | K::NetworkUnreachable | K::NetworkDown) => {
            Finding::Unreachable(error.to_string())
        }
        Err(_) => Finding::Nothing,
    }
}

/// The sender of an R1. Nothing proves it: it is for a message only.
fn who(answer: &[u8]) -> Option<Hit> {
    let udp::Payload::Hip(packet) = udp::classify(answer) else { return None };
    let view = PacketView::new(packet).ok()?;
    (view.packet_type() == PacketType::R1 && view.sender().is_orchid()).then(|| view.sender())
}
