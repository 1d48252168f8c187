//! A HIP packet as a value.

use super::kind::{Kind, PacketType};
use super::params::Param;
use super::view::PacketView;
use super::{CHECKSUM_AT, HEADER_LEN, Hit, MAX_LEN, NO_NEXT_HEADER, PROTOCOL, VERSION, WHAT};
use crate::checksum::Checksum;
use crate::error::WireError;

/// A HIP packet as a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// What it is.
    pub packet_type: PacketType,
    /// The controls; [`super::ANONYMOUS`] is the one in use.
    pub controls: u16,
    /// The sender's HIT.
    pub sender: Hit,
    /// The receiver's HIT; all zero in an opportunistic I1.
    pub receiver: Hit,
    /// The parameters, in ascending order of their types.
    pub params: Vec<Param>,
}

impl Packet {
    /// A packet with these parameters, which it puts in order.
    pub fn new(packet_type: PacketType, sender: Hit, receiver: Hit, mut params: Vec<Param>) -> Self {
        params.sort_by_key(Param::kind);
        Self { packet_type, controls: 0, sender, receiver, params }
    }

    /// The packet of a view.
    pub fn parse(view: &PacketView<'_>) -> Result<Self, WireError> {
        Ok(Self {
            packet_type: view.packet_type(),
            controls: view.controls(),
            sender: view.sender(),
            receiver: view.receiver(),
            params: view.values()?,
        })
    }

    /// Appends `param`, whose type is not below the last one's.
    pub fn push(&mut self, param: Param) {
        debug_assert!(self.params.last().is_none_or(|last| last.kind() <= param.kind()));
        self.params.push(param);
    }

    /// The first parameter of `kind`.
    pub fn param(&self, kind: Kind) -> Option<&Param> {
        self.params.iter().find(|p| p.kind() == kind)
    }

    /// The bytes of the packet. Fails if the parameters are out of order or too long together.
    pub fn emit(&self, checksum: Checksum) -> Result<Vec<u8>, WireError> {
        let mut bytes = vec![0; HEADER_LEN];
        let mut last = Kind(0);
        for param in &self.params {
            let kind = param.kind();
            if kind < last {
                return Err(WireError::new(WHAT, "parameter order", last.0.into(), kind.0.into()));
            }
            last = kind;
            param.emit(&mut bytes);
        }
        if bytes.len() > MAX_LEN {
            return Err(WireError::new(WHAT, "length", MAX_LEN, bytes.len()));
        }
        self.write_header(&mut bytes);
        set_checksum(&mut bytes, checksum);
        Ok(bytes)
    }

    fn write_header(&self, bytes: &mut [u8]) {
        bytes[0] = NO_NEXT_HEADER;
        bytes[1] = (bytes.len() / 8 - 1) as u8;
        bytes[2] = u8::from(self.packet_type) & 0x7f;
        bytes[3] = VERSION << 4 | 1;
        bytes[6..8].copy_from_slice(&self.controls.to_be_bytes());
        bytes[8..24].copy_from_slice(&self.sender.0);
        bytes[24..40].copy_from_slice(&self.receiver.0);
    }
}

/// Writes the checksum of the packet `bytes`, for instance when it goes to another address.
pub fn set_checksum(bytes: &mut [u8], checksum: Checksum) {
    bytes[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
    if let Some(sum) = checksum.compute(PROTOCOL, bytes) {
        bytes[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
    }
}
