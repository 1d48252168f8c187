//! Captures of hops as pcapng (draft-ietf-opsawg-pcapng): one interface per hop, nanoseconds,
//! raw IP packets as they reach the far end of the hop.

use std::io::{self, Write};
use std::num::NonZero;

use polypath_endpoint::Locators;
use polypath_wire::Instant;

use crate::bytes;
use crate::packet::{Body, Packet};
use crate::topology::HopId;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LINKTYPE_RAW: u16 = 101;
const OPT_COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// Powers of ten below a second.
const NANOSECONDS: u8 = 9;

/// A capture under way. The first error ends it and is kept.
pub(crate) struct Capture {
    out: Box<dyn Write + Send>,
    /// The interface of each watched hop, sorted.
    interfaces: Vec<(HopId, u32)>,
    /// Most bytes that are kept of a packet, as the format has it: 0 keeps all.
    snap: u32,
    block: Vec<u8>,
    result: io::Result<()>,
}

impl Capture {
    /// Begins a capture of `hops` with their names, of at most `snap` bytes of each packet.
    pub fn new(out: Box<dyn Write + Send>, hops: &[(HopId, &str)], snap: Option<NonZero<u32>>) -> Self {
        let interfaces = hops.iter().zip(0..).map(|((hop, _), i)| (*hop, i)).collect();
        let snap = snap.map_or(0, NonZero::get);
        let mut capture = Self { out, interfaces, snap, block: Vec::new(), result: Ok(()) };
        capture.interfaces.sort_unstable();
        capture.section();
        for (_, name) in hops {
            capture.interface(name);
        }
        capture
    }

    pub fn watches(&self, hop: HopId) -> bool {
        self.interface_of(hop).is_some()
    }

    /// A packet at the far end of `hop`, sent between `locators`.
    pub fn packet(&mut self, now: Instant, hop: HopId, packet: &Packet, locators: &Locators) {
        let Some(interface) = self.interface_of(hop) else { return };
        let encoded;
        let bytes = match &packet.body {
            Body::Bytes(bytes) => bytes,
            Body::Segment(segment) => {
                encoded = bytes::encode(segment, locators);
                &encoded
            }
            Body::Datagram(datagram) => {
                encoded = bytes::encode_datagram(datagram, locators, packet.size);
                &encoded
            }
        };
        self.begin(ENHANCED_PACKET);
        let len = bytes.len() as u32;
        let kept = if self.snap == 0 { len } else { len.min(self.snap) };
        for word in [interface, (now.0 >> 32) as u32, now.0 as u32, kept, len] {
            self.block.extend(word.to_le_bytes());
        }
        self.block.extend(&bytes[..kept as usize]);
        self.pad();
        self.end();
    }

    /// Ends the capture; its first error if there was one.
    pub fn finish(mut self) -> io::Result<()> {
        self.result?;
        self.out.flush()
    }

    fn interface_of(&self, hop: HopId) -> Option<u32> {
        let i = self.interfaces.binary_search_by_key(&hop, |(h, _)| *h).ok()?;
        Some(self.interfaces[i].1)
    }

    fn section(&mut self) {
        self.begin(SECTION_HEADER);
        self.block.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        self.block.extend([1, 0, 0, 0]); // version 1.0
        self.block.extend((-1i64).to_le_bytes()); // length of the section: not known
        self.end();
    }

    fn interface(&mut self, name: &str) {
        self.begin(INTERFACE_DESCRIPTION);
        self.block.extend(LINKTYPE_RAW.to_le_bytes());
        self.block.extend([0; 2]);
        self.block.extend(self.snap.to_le_bytes());
        self.option(IF_NAME, name.as_bytes());
        self.option(OPT_COMMENT, format!("hop {name}").as_bytes());
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        self.option(0, &[]);
        self.end();
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.block.extend(kind.to_le_bytes());
        self.block.extend([0; 4]);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Closes the block with its length at both ends and writes it.
    fn end(&mut self) {
        let len = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&len);
        self.block.extend(len);
        if self.result.is_ok() {
            self.result = self.out.write_all(&self.block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_say_their_length_at_both_ends() {
        let (file, written) = crate::testing::shared_buffer();
        Capture::new(Box::new(file), &[(HopId(3), "a→b")], None).finish().unwrap();
        let bytes = written.lock().unwrap().clone();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((word(0), word(4), word(24)), (SECTION_HEADER, 28, 28));
        let interface_len = bytes.len() - 28;
        assert_eq!((word(28), word(32)), (INTERFACE_DESCRIPTION, interface_len as u32));
        assert_eq!(word(bytes.len() - 4), interface_len as u32);
    }
}
