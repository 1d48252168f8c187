//! HIP and ESP in one UDP flow (RFC 9028 §5.1, RFC 5770 §5.1, RFC 3948).

/// The port of HIP and ESP in UDP.
pub const PORT: u16 = 10_500;
/// What stands before a HIP packet: an SPI that no SA has.
pub const HIP_MARKER: [u8; 4] = [0; 4];

/// What a UDP payload holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload<'a> {
    /// A HIP packet; its checksum is 0.
    Hip(&'a [u8]),
    /// An ESP packet.
    Esp(&'a [u8]),
    /// One byte 0xff: keeps a NAT binding, to be ignored (RFC 3948 §2.3).
    Keepalive,
    /// None of these: too short to have an SPI.
    Unknown,
}

/// Tells HIP from ESP by the first four bytes.
pub fn classify(payload: &[u8]) -> Payload<'_> {
    match payload.split_first_chunk() {
        Some((&HIP_MARKER, packet)) => Payload::Hip(packet),
        Some(_) => Payload::Esp(payload),
        None if payload == [0xff] => Payload::Keepalive,
        None => Payload::Unknown,
    }
}
