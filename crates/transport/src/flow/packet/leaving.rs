//! A frame that leaves.

use bytes::Bytes;
use polypath_wire::shim::{Ask, Report, Shim};
use polypath_wire::{Ecn, PathId, WireError};

/// A frame to be sealed and sent on a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaving {
    /// On which path.
    pub path: PathId,
    /// Whether queues may mark it: a packet, under a controller that answers marks.
    pub ecn: Ecn,
    /// What it is.
    pub(super) what: What,
}

/// What a frame holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum What {
    Packet(Shim, Bytes),
    Report(Report),
    Ask(Ask),
}

impl Leaving {
    /// Length of the frame, bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match &self.what {
            What::Packet(_, packet) => Shim::LEN + packet.len(),
            What::Report(report) => report.len(),
            What::Ask(_) => Ask::LEN,
        }
    }

    /// Writes the frame to the start of `buf` and returns its length.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, WireError> {
        match &self.what {
            What::Packet(shim, packet) => {
                let at = shim.emit(buf)?;
                let got = buf.len();
                let short =
                    WireError { what: "shim", field: "buffer", need: self.len() as u64, got: got as u64 };
                buf.get_mut(at..self.len()).ok_or(short)?.copy_from_slice(packet);
                Ok(self.len())
            }
            What::Report(report) => report.emit(buf),
            What::Ask(ask) => ask.emit(buf),
        }
    }

    /// The frame as bytes of its own.
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = vec![0; self.len()];
        match self.emit(&mut bytes) {
            Ok(_) => bytes.into(),
            Err(_) => Bytes::new(), // there is room
        }
    }
}

/// Bytes of the frame of a packet.
pub(super) fn frame_len(packet: usize) -> u32 {
    (packet + Shim::LEN) as u32
}
