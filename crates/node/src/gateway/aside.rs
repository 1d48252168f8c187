//! Which packets of the device its endpoint takes, and which go by.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use polypath_endpoint::Locators;
use polypath_endpoint::inner::InnerPacket;
use polypath_transport::{Ports, Segment};
use polypath_wire::tcp::{self, TcpFlags};
use polypath_wire::{Seq, icmp};

use super::remembered::{Ends, Remembered};
use crate::bypass::Bypass;

/// Says of a packet of TCP whether it goes by.
pub type Exclude = Box<dyn Fn(&InnerPacket) -> bool + Send>;

/// The way past the endpoint.
pub(super) struct Aside {
    exclude: Exclude,
    /// Connections of TCP whose packets came by: what the kernel answers goes by too.
    by: Remembered,
    /// Connections that the endpoint opened though they are excluded: the other host knows of no exclusion.
    ours: Remembered,
    /// Connections that were to end at the endpoint and go by instead, by the sequence numbers of their SYNs: copies of
    /// these go by too.
    diverted: Remembered<Seq>,
    /// What goes by in this round.
    pub leaving: Vec<Bytes>,
    pub bypass: Arc<Bypass>,
}

impl Aside {
    pub fn new(exclude: Exclude) -> Self {
        let (by, ours, diverted) = Default::default();
        Self { exclude, by, ours, diverted, leaving: Vec::new(), bypass: Arc::default() }
    }

    /// Whether a packet that the kernel sends goes by. An ICMP error may be about a segment of the endpoint's.
    pub fn takes(&mut self, packet: &InnerPacket) -> bool {
        match packet.protocol {
            tcp::PROTOCOL => self.takes_segment(packet),
            icmp::PROTOCOL_V4 | icmp::PROTOCOL_V6 => packet.ports.is_some(),
            _ => true,
        }
    }

    fn takes_segment(&mut self, packet: &InnerPacket) -> bool {
        let excluded = (self.exclude)(packet);
        let Some(ends) = ends(packet) else { return excluded };
        if packet.opens.is_some() {
            let again = self.diverted.of(&ends) == packet.opens;
            if !again {
                self.forget(&ends);
            }
            return excluded || again;
        }
        self.by.contains(&ends) || excluded && !self.ours.contains(&ends)
    }

    /// A packet from elsewhere is given to the kernel: what it answers goes the same way.
    pub fn came(&mut self, packet: &Bytes) {
        let looked = InnerPacket::parse(packet).ok().filter(|looked| looked.protocol == tcp::PROTOCOL);
        if let Some((src, dst)) = looked.and_then(|looked| ends(&looked)) {
            self.ours.remove(&(dst, src));
            self.by.insert((dst, src), ());
        }
    }

    /// Has the connection that `syn` opens go by.
    pub fn divert(&mut self, syn: &Bytes) {
        let Ok(looked) = InnerPacket::parse(syn) else { return };
        if let (Some(ends), Some(seq)) = (ends(&looked), looked.opens) {
            self.ours.remove(&ends);
            self.by.insert(ends, ());
            self.diverted.insert(ends, seq);
        }
    }

    /// Whether an ICMP error that the kernel sends is about a segment that came by. `locators` and `ports` are those of the
    /// segment as its sender sees them.
    pub fn came_by(&mut self, locators: &Locators, ports: Ports) -> bool {
        let [local, remote] = [(locators.local, ports.local), (locators.remote, ports.remote)]
            .map(|(end, port)| SocketAddr::new(end.ip(), port));
        self.by.contains(&(remote, local))
    }

    fn forget(&mut self, ends: &Ends) {
        self.by.remove(ends);
        self.ours.remove(ends);
        self.diverted.remove(ends);
    }

    /// The endpoint sends a segment. If it opens a connection between two ports, whatever went by between them is over.
    pub fn opens(&mut self, locators: &Locators, segment: &Segment) {
        let header = &segment.header;
        if header.flags.contains(TcpFlags::SYN) {
            let remote = SocketAddr::new(locators.remote.ip(), header.dst_port);
            let local = SocketAddr::new(locators.local.ip(), header.src_port);
            self.forget(&(remote, local));
            self.ours.insert((remote, local), ());
        }
    }
}

fn ends(packet: &InnerPacket) -> Option<Ends> {
    let (src, dst) = packet.ports?;
    Some((SocketAddr::new(packet.src, src), SocketAddr::new(packet.dst, dst)))
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.bypass.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment of the kernel at 10.0.0.2 for 10.0.0.1.
    fn packet(src: u16, dst: u16, opens: bool) -> InnerPacket {
        let opens = opens.then_some(Seq(7));
        InnerPacket {
            src: [10, 0, 0, 2].into(),
            dst: [10, 0, 0, 1].into(),
            protocol: tcp::PROTOCOL,
            ports: Some((src, dst)),
            traffic_class: 0,
            opens,
            fragment: false,
            starts: true,
            len: 40,
        }
    }

    /// The endpoint opens a connection from 10.0.0.1.
    fn open(aside: &mut Aside, src_port: u16, dst_port: u16) {
        let mut syn = Segment::default();
        (syn.header.src_port, syn.header.dst_port, syn.header.flags) = (src_port, dst_port, TcpFlags::SYN);
        let end = |last| ([10, 0, 0, last], 0).into();
        aside.opens(&Locators { local: end(1), remote: end(2) }, &syn);
    }

    #[test]
    fn connections_that_came_by_go_by_until_either_end_opens_another_one() {
        let mut aside = Aside::new(Box::new(|_| false));
        let came = |aside: &mut Aside| aside.by.insert(ends(&packet(80, 5000, false)).unwrap(), ());
        came(&mut aside);
        assert!(aside.takes(&packet(80, 5000, false)) && !aside.takes(&packet(80, 5001, false)));
        open(&mut aside, 5000, 80);
        assert!(!aside.takes(&packet(80, 5000, false)));
        came(&mut aside);
        assert!(!aside.takes(&packet(80, 5000, true)) && !aside.takes(&packet(80, 5000, false)));
    }

    #[test]
    fn what_is_excluded_goes_by_unless_the_endpoint_opened_it() {
        let mut aside = Aside::new(Box::new(|packet| packet.ports.is_some_and(|(src, _)| src == 80)));
        assert!(aside.takes(&packet(80, 5000, true)) && aside.takes(&packet(80, 5000, false)));
        assert!(!aside.takes(&packet(81, 5000, true)));
        open(&mut aside, 5000, 80);
        assert!(!aside.takes(&packet(80, 5000, false)) && aside.takes(&packet(80, 5001, false)));
    }

    #[test]
    fn a_diverted_connection_goes_by_from_its_syn_on_and_the_next_between_its_ports_does_not() {
        let mut aside = Aside::new(Box::new(|_| false));
        let locators = Locators { local: ([10, 0, 0, 2], 0).into(), remote: ([10, 0, 0, 1], 0).into() };
        let mut syn = Segment::default();
        let header = &mut syn.header;
        (header.src_port, header.dst_port, header.seq) = (5000, 80, Seq(7));
        header.flags = TcpFlags::SYN;
        let mut bytes = vec![0; 100];
        let len = polypath_endpoint::packet::encode_packet(&locators, &syn, &mut bytes).unwrap();
        bytes.truncate(len);
        aside.divert(&bytes.into());
        assert!(aside.takes(&packet(5000, 80, true)), "a copy of the SYN");
        assert!(aside.takes(&packet(5000, 80, false)) && !aside.takes(&packet(5001, 80, false)));
        let another = InnerPacket { opens: Some(Seq(8)), ..packet(5000, 80, true) };
        assert!(!aside.takes(&another) && !aside.takes(&packet(5000, 80, false)));
    }
}
