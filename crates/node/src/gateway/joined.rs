//! Packets of a flow that the kernel takes as one: what follows one another in TCP, or is of equal size in UDP.

use tun_rs::{ExpandBuffer, GROTable, VIRTIO_NET_HDR_LEN};

use crate::pool::Buffer;

/// What stands in place of a header that has not been written: no header has such flags.
const NO_HEADER: u8 = 0xff;

/// A packet behind its virtio-net header, at the start of a buffer.
#[derive(Debug)]
pub(super) struct Filled {
    /// As long as any packet with its header.
    pub buffer: Buffer,
    /// What of it is filled, bytes.
    pub len: usize,
}

impl Filled {
    /// `packet` behind an empty header; `None` if the buffer is too short, or the packet has no byte.
    pub fn new(mut buffer: Buffer, packet: &[u8]) -> Option<Self> {
        if packet.is_empty() {
            return None;
        }
        let len = VIRTIO_NET_HDR_LEN + packet.len();
        buffer.get_mut(VIRTIO_NET_HDR_LEN..len)?.copy_from_slice(packet);
        buffer[..VIRTIO_NET_HDR_LEN].fill(0);
        Some(Self { buffer, len })
    }

    /// Whether it has a header.
    pub fn is_headed(&self) -> bool {
        self.buffer[..VIRTIO_NET_HDR_LEN] != [NO_HEADER; VIRTIO_NET_HDR_LEN]
    }
}

impl AsRef<[u8]> for Filled {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

impl AsMut<[u8]> for Filled {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.len]
    }
}

impl ExpandBuffer for Filled {
    fn buf_capacity(&self) -> usize {
        self.buffer.len()
    }

    fn buf_resize(&mut self, len: usize, value: u8) {
        let before = std::mem::replace(&mut self.len, len.min(self.buffer.len()));
        self.buffer[before.min(self.len)..self.len].fill(value);
    }

    fn buf_extend_from_slice(&mut self, more: &[u8]) {
        let (before, room) = (self.len, self.buffer.len() - self.len);
        self.len += more.len().min(room);
        self.buffer[before..self.len].copy_from_slice(&more[..self.len - before]);
    }
}

/// Joins packets; it keeps memory that this takes.
#[derive(Default)]
pub(super) struct Joiner(Option<Box<GROTable>>);

impl Joiner {
    /// Joins `packets` where the kernel cuts them again, datagrams, too, if it does so (`udp`). What is
    /// [unheaded](Filled::is_headed) afterwards is part of one before it.
    pub fn join(&mut self, packets: &mut [Filled], udp: bool) {
        let table = self.0.get_or_insert_with(|| Box::new(GROTable::new()));
        packets.iter_mut().for_each(|packet| packet.buffer[..VIRTIO_NET_HDR_LEN].fill(NO_HEADER));
        // It refuses only packets without a byte, of which there are none.
        let _ = table.apply_gro(packets, VIRTIO_NET_HDR_LEN, udp);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use polypath_wire::ipv4::Ipv4Header;
    use polypath_wire::ipv6::Ipv6Header;
    use polypath_wire::tcp;
    use polypath_wire::udp::{self, UdpHeader};
    use tun_rs::VirtioNetHdr;

    use super::super::BUFFER;
    use super::*;
    use crate::pool::Pool;

    const UDP_HEADERS: usize = 20 + udp::HEADER_LEN;

    /// What is left of `packets`, with headers.
    fn joined(packets: &[Vec<u8>], udp: bool) -> Vec<Vec<u8>> {
        let pool = Pool::new(BUFFER, 0);
        let filled = |packet: &Vec<u8>| {
            let mut buffer = pool.take();
            buffer.fill(0xff);
            Filled::new(buffer, packet).unwrap()
        };
        let mut packets: Vec<Filled> = packets.iter().map(filled).collect();
        Joiner::default().join(&mut packets, udp);
        packets.iter().filter(|packet| packet.is_headed()).map(|packet| packet.as_ref().to_vec()).collect()
    }

    /// A datagram of `len` bytes, all `fill`, from `port`.
    fn datagram(port: u16, len: u16, fill: u8) -> Vec<u8> {
        let [src, dst] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(std::net::Ipv4Addr::from);
        let header = Ipv4Header::new(udp::PROTOCOL, src, dst, len + udp::HEADER_LEN as u16);
        let mut packet = vec![fill; UDP_HEADERS + usize::from(len)];
        header.emit(&mut packet).unwrap();
        let udp = UdpHeader { src_port: port, dst_port: 443, payload_len: len };
        udp.emit(&mut packet[20..], header.pseudo_header()).unwrap();
        packet
    }

    fn lengths(packets: &[Vec<u8>]) -> Vec<usize> {
        packets.iter().map(|p| p.len() - VIRTIO_NET_HDR_LEN - UDP_HEADERS).collect()
    }

    #[test]
    fn datagrams_of_a_flow_are_one_packet_up_to_the_first_shorter_one() {
        let packets = [(1, 1000), (1, 1000), (2, 1000), (1, 300), (1, 1000)];
        let packets = packets.map(|(port, len)| datagram(port, len, 7));
        let made = joined(&packets, true);
        assert_eq!(lengths(&made), [2300, 1000, 1000]);
        let header = VirtioNetHdr::decode(&made[0]).unwrap();
        assert_eq!((header.gso_size, header.csum_start, header.csum_offset), (1000, 20, 6));
        assert!(made[0][VIRTIO_NET_HDR_LEN + UDP_HEADERS..].iter().all(|byte| *byte == 7));
        assert_eq!(lengths(&joined(&packets, false)), [1000, 1000, 1000, 300, 1000]);
    }

    /// A segment of TCP over IPv6: 1,000 bytes from `seq` on.
    fn segment(seq: u32) -> Vec<u8> {
        let [src, dst] = [1, 2].map(|n| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n));
        let header = Ipv6Header::new(tcp::PROTOCOL, src, dst, 1020);
        let mut packet = vec![0; 40 + 1020];
        header.emit(&mut packet).unwrap();
        let tcp = &mut packet[40..];
        tcp[..4].copy_from_slice(&[0, 80, 1, 187]);
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        (tcp[12], tcp[13]) = (5 << 4, 0x10); // 20 bytes, ACK
        let sum = header.pseudo_header().compute(tcp::PROTOCOL, tcp).unwrap();
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    #[test]
    fn segments_of_a_connection_are_one_packet_as_far_as_they_follow_one_another() {
        let made = joined(&[0, 1000, 2000, 4000].map(segment), false);
        let lengths: Vec<usize> = made.iter().map(|p| p.len() - VIRTIO_NET_HDR_LEN - 60).collect();
        assert_eq!(lengths, [3000, 1000]);
        let header = VirtioNetHdr::decode(&made[0]).unwrap();
        assert_eq!((header.gso_size, header.csum_start, header.csum_offset), (1000, 40, 16));
    }

    #[test]
    fn no_packet_is_longer_than_ip_can_say() {
        let packets: Vec<Vec<u8>> = (0..100).map(|_| datagram(1, 1000, 7)).collect();
        assert_eq!(lengths(&joined(&packets, true)), [65_000, 35_000]);
    }

    #[test]
    fn a_datagram_with_a_wrong_checksum_stays_alone_and_keeps_it() {
        let mut spoilt = datagram(1, 1000, 7);
        spoilt[500] ^= 1;
        let packets = [datagram(1, 1000, 7), spoilt.clone(), datagram(1, 1000, 7)];
        let made = joined(&packets, true);
        assert!(made.iter().any(|packet| packet[VIRTIO_NET_HDR_LEN..] == spoilt), "{:?}", lengths(&made));
    }

    /// A peer may send any bytes behind a header whose addresses are its own.
    #[test]
    fn whatever_is_wrong_with_packets_of_a_flow_they_are_joined_or_not() {
        let mut state = 1_u64;
        let mut chance = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..20_000 {
            let packets: Vec<Vec<u8>> = (0..4)
                .map(|n| {
                    let mut packet = if chance(2) == 0 { datagram(1, 100, 7) } else { segment(1000 * n) };
                    for _ in 0..chance(4) {
                        let at = chance(64);
                        packet[at] = chance(256) as u8;
                    }
                    packet.truncate(1 + chance(2 * packet.len()));
                    packet
                })
                .collect();
            let made = joined(&packets, chance(2) == 0);
            assert!((1..=4).contains(&made.len()));
        }
    }

    #[test]
    fn what_is_no_packet_is_left_as_it_is() {
        for bytes in [&b"x"[..], &[0x45; 19], &[0x60; 41], &[0xff; 1500]] {
            let made = joined(&[bytes.to_vec(), datagram(1, 10, 7)], true);
            assert_eq!(made[0][VIRTIO_NET_HDR_LEN..], *bytes);
            assert_eq!(made.len(), 2);
        }
    }
}
