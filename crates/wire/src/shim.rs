//! The shim between ESP and a packet of somebody else's transport (`docs/protocol.md`), and the acknowledgments of what
//! came on one path.
//!
//! | kind | frame |
//! |---|---|
//! | 1 | a packet behind a [`Shim`] |
//! | 2 | a [`Report`] of what came on its path |
//! | 3 | an [`Ask`] for one |

use crate::error::{WireError, room, split, u16_at, u32_at};

/// Next header of ESP payloads that are frames: the first number for experiments (RFC 3692).
pub const NEXT_HEADER: u8 = 253;

const WHAT: &str = "shim";
const PACKET: u8 = 1;
/// The bits of a class; the one above says whether the packet is [repaired](Shim::repaired).
const CLASS: u8 = 0x7f;
const REPORT: u8 = 2;
const ASK: u8 = 3;

/// Ranges that a report holds at most.
pub const MAX_RANGES: usize = 32;

/// Length of a report before its ranges, bytes.
const REPORT_LEN: usize = 20;
/// Length of a range, bytes.
const RANGE_LEN: usize = 8;

/// What comes before a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shim {
    /// Class of the packet, as its sender queues and duplicates it, below 128.
    pub class: u8,
    /// Its sender sends it again if it is lost: what follows in its flow waits for that.
    pub repaired: bool,
    /// Which of the packets are one flow, that is, in an order that somebody cares for.
    pub flow: u16,
    /// By how much `sequence` exceeds the flow's previous one; 0 if that is long ago or there was none.
    pub previous: u16,
    /// The sender's clock, in units of 0.1 ms.
    pub stamp: u16,
    /// Number of the packet in the order in which the sender took all of them.
    pub sequence: u32,
    /// Number of the transmission on its path.
    pub number: u32,
}

impl Shim {
    /// Length on the wire, bytes.
    pub const LEN: usize = 16;

    /// Writes the shim to the start of `buf` and returns its length.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, WireError> {
        let buf = room(WHAT, buf, Self::LEN)?;
        (buf[0], buf[1]) = (PACKET, self.class & CLASS | u8::from(self.repaired) << 7);
        buf[2..4].copy_from_slice(&self.flow.to_be_bytes());
        buf[4..6].copy_from_slice(&self.previous.to_be_bytes());
        buf[6..8].copy_from_slice(&self.stamp.to_be_bytes());
        buf[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        buf[12..16].copy_from_slice(&self.number.to_be_bytes());
        Ok(Self::LEN)
    }

    fn read(bytes: &[u8; Self::LEN]) -> Self {
        Self {
            class: bytes[1] & CLASS,
            repaired: bytes[1] & !CLASS != 0,
            flow: u16_at(bytes, 2),
            previous: u16_at(bytes, 4),
            stamp: u16_at(bytes, 6),
            sequence: u32_at(bytes, 8),
            number: u32_at(bytes, 12),
        }
    }
}

/// Packets of one path by the ECN bits that they came with (RFC 3168), modulo 2³².
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EcnCounts {
    /// ECT, 0 or 1.
    pub capable: u32,
    /// CE: congestion experienced.
    pub marked: u32,
}

/// What came on the path that the report takes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// When the highest number came, by the reporter's clock, µs modulo 2³².
    pub received: u32,
    /// How long before the report left that was, µs.
    pub delay: u32,
    /// Since the path began.
    pub ecn: EcnCounts,
    /// Numbers that came, first and last of each range, highest first; 1 to [`MAX_RANGES`].
    pub ranges: Vec<(u32, u32)>,
}

impl Report {
    /// Length on the wire, bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        REPORT_LEN + RANGE_LEN * self.ranges.len()
    }

    /// Keeps the highest ranges, as many as fit into `len` bytes; at least one.
    pub fn fit(&mut self, len: usize) {
        self.ranges.truncate((len.saturating_sub(REPORT_LEN) / RANGE_LEN).max(1));
    }

    /// Writes the report to the start of `buf` and returns its length.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, WireError> {
        let n = self.ranges.len();
        if !(1..=MAX_RANGES).contains(&n) {
            return Err(WireError::new(WHAT, "number of ranges", MAX_RANGES, n));
        }
        let buf = room(WHAT, buf, self.len())?;
        buf[..4].copy_from_slice(&[REPORT, n as u8, 0, 0]);
        buf[4..8].copy_from_slice(&self.received.to_be_bytes());
        buf[8..12].copy_from_slice(&self.delay.to_be_bytes());
        buf[12..16].copy_from_slice(&self.ecn.capable.to_be_bytes());
        buf[16..20].copy_from_slice(&self.ecn.marked.to_be_bytes());
        for ((first, last), room) in self.ranges.iter().zip(buf[REPORT_LEN..].chunks_exact_mut(RANGE_LEN)) {
            room[..4].copy_from_slice(&first.to_be_bytes());
            room[4..].copy_from_slice(&last.to_be_bytes());
        }
        Ok(self.len())
    }

    fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let (fixed, rest) = split::<REPORT_LEN>(WHAT, bytes)?;
        let n = usize::from(fixed[1]);
        if !(1..=MAX_RANGES).contains(&n) {
            return Err(WireError::new(WHAT, "number of ranges", MAX_RANGES, n));
        }
        if rest.len() != n * RANGE_LEN {
            return Err(WireError::new(WHAT, "length", REPORT_LEN + n * RANGE_LEN, bytes.len()));
        }
        let ranges = rest.chunks_exact(RANGE_LEN).map(|range| (u32_at(range, 0), u32_at(range, 4)));
        let ranges = ranges.map(in_order).collect::<Result<_, _>>()?;
        let ecn = EcnCounts { capable: u32_at(fixed, 12), marked: u32_at(fixed, 16) };
        Ok(Self { received: u32_at(fixed, 4), delay: u32_at(fixed, 8), ecn, ranges })
    }
}

/// A range of at most half of all numbers.
fn in_order((first, last): (u32, u32)) -> Result<(u32, u32), WireError> {
    let len = last.wrapping_sub(first);
    match len < 1 << 31 {
        true => Ok((first, last)),
        false => Err(WireError::new(WHAT, "range", 1 << 31, len as usize)),
    }
}

/// A transmission without a packet: whoever gets it reports at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask {
    /// Its number on the path.
    pub number: u32,
}

impl Ask {
    /// Length on the wire, bytes.
    pub const LEN: usize = 8;

    /// Writes it to the start of `buf` and returns its length.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, WireError> {
        let buf = room(WHAT, buf, Self::LEN)?;
        buf[..4].copy_from_slice(&[ASK, 0, 0, 0]);
        buf[4..].copy_from_slice(&self.number.to_be_bytes());
        Ok(Self::LEN)
    }
}

/// What a payload of ESP is in the packet lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// A packet, which begins after [`Shim::LEN`] bytes.
    Packet(Shim),
    /// A report.
    Report(Report),
    /// A question.
    Ask(Ask),
}

impl Frame {
    /// What `bytes`, which are one whole payload, are.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        match bytes.first() {
            Some(&PACKET) => {
                split::<{ Shim::LEN }>(WHAT, bytes).map(|(shim, _)| Self::Packet(Shim::read(shim)))
            }
            Some(&REPORT) => Report::parse(bytes).map(Self::Report),
            Some(&ASK) => {
                split::<{ Ask::LEN }>(WHAT, bytes).map(|(ask, _)| Self::Ask(Ask { number: u32_at(ask, 4) }))
            }
            kind => Err(WireError::new(WHAT, "kind", ASK.into(), kind.map_or(0, |kind| usize::from(*kind)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_shim_by_hand() {
        let shim = Shim {
            class: 2,
            repaired: true,
            flow: 0x0304,
            previous: 5,
            stamp: 6,
            sequence: 7,
            number: 0x0809_0a0b,
        };
        let mut bytes = [0; 20];
        assert_eq!(shim.emit(&mut bytes), Ok(16));
        assert_eq!(bytes, [1, 0x82, 3, 4, 0, 5, 0, 6, 0, 0, 0, 7, 8, 9, 10, 11, 0, 0, 0, 0]);
        assert_eq!(Frame::parse(&bytes), Ok(Frame::Packet(shim)));
    }

    #[test]
    fn a_report_that_must_be_short_keeps_its_highest_ranges() {
        let ranges = vec![(9, 9), (5, 6), (1, 3)];
        for (len, kept) in
            [(1000, 3), (REPORT_LEN + 3 * RANGE_LEN, 3), (REPORT_LEN + 3 * RANGE_LEN - 1, 2), (0, 1)]
        {
            let mut report = Report { ranges: ranges.clone(), ..Report::default() };
            report.fit(len);
            assert_eq!(report.ranges, ranges[..kept], "{len}");
        }
    }

    #[test]
    fn a_report_says_how_many_ranges_it_has() {
        let ranges = vec![(9, 9), (u32::MAX, 3)];
        let report = Report { received: 2, delay: 3, ranges, ..Report::default() };
        let mut bytes = [0; 100];
        let len = report.emit(&mut bytes).expect("there is room");
        assert_eq!((len, Frame::parse(&bytes[..len])), (36, Ok(Frame::Report(report))));
        for len in 0..len {
            assert!(Frame::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
        bytes[1] = 0;
        assert!(Frame::parse(&bytes[..20]).is_err(), "no range");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_frame_that_comes_back_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut out = [0; 300];
            let written = match Frame::parse(&bytes) {
                Ok(Frame::Packet(shim)) => shim.emit(&mut out),
                Ok(Frame::Report(report)) => report.emit(&mut out),
                Ok(Frame::Ask(ask)) => ask.emit(&mut out),
                Err(_) => return Ok(()),
            };
            let len = written.expect("there is room");
            prop_assert_eq!(Frame::parse(&out[..len]), Frame::parse(&bytes));
        }
    }
}
