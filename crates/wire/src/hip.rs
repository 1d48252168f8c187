//! HIPv2 messages (RFC 7401 §5) with the parameters of RFC 7402, 8003, 8004, 8046 and 9028 that we
//! know, and their encapsulation in UDP.
//!
//! A [`PacketView`] has checked bytes: lengths, version, parameter order. A [`Packet`] is the same as
//! a value. What a MAC or a signature covers is in [`coverage`].

pub mod coverage;
mod cursor;
mod hit;
mod kind;
mod packet;
mod params;
pub mod udp;
mod view;

pub use hit::{Hit, ParseHitError};
pub use kind::{Kind, NotifyType, PacketType};
pub use packet::{Packet, set_checksum};
pub use params::{
    DiffieHellman, DomainId, EspInfo, HostId, Locator, LocatorAddress, Multipath, MultipathPath,
    NatTraversal, Notification, Param, Puzzle, R1Counter, Registration, RegistrationInfo, Signature,
    Solution, TrafficType, TransportAddress,
};
pub use view::{PacketView, RawParam};

/// The IP protocol number of HIP.
pub const PROTOCOL: u8 = 139;
/// Length of a packet without parameters, bytes.
pub const HEADER_LEN: usize = 40;
/// The longest packet that the 8-bit length field can say, bytes.
pub const MAX_LEN: usize = 8 * 256;
/// Controls: the sender's Host Identity is anonymous (RFC 7401 §5.1.2).
pub const ANONYMOUS: u16 = 0x0001;

const WHAT: &str = "HIP";
const NO_NEXT_HEADER: u8 = 59;
const VERSION: u8 = 2;
/// Where the checksum stands.
const CHECKSUM_AT: usize = 4;
/// Where the receiver's HIT stands.
const RECEIVER_AT: usize = 24;

/// Bytes that a parameter with `contents` bytes of contents takes, padding included (RFC 7401 §5.2.1).
const fn padded(contents: usize) -> usize {
    (4 + contents).next_multiple_of(8)
}
