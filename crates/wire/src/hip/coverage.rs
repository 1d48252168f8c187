//! What MACs and signatures cover (RFC 7401 §6.4): the packet as if it ended before them, checksum 0.

use super::kind::Kind;
use super::view::PacketView;
use super::{CHECKSUM_AT, HEADER_LEN, RECEIVER_AT};

/// The input of HIP_MAC (RFC 7401 §6.4.1).
pub fn mac(packet: &PacketView<'_>) -> Vec<u8> {
    before(packet, Kind::HIP_MAC, &[])
}

/// The input of HIP_MAC_2: with the Responder's HOST_ID at its end, as the whole parameter stood in R1.
pub fn mac_2(packet: &PacketView<'_>, host_id: &[u8]) -> Vec<u8> {
    before(packet, Kind::HIP_MAC_2, host_id)
}

/// The input of HIP_SIGNATURE (RFC 7401 §6.4.2).
pub fn signature(packet: &PacketView<'_>) -> Vec<u8> {
    before(packet, Kind::HIP_SIGNATURE, &[])
}

/// The input of HIP_SIGNATURE_2: no receiver, and in PUZZLE no opaque data and no I, so that one
/// signature serves all Initiators (RFC 7401 §5.2.15).
pub fn signature_2(packet: &PacketView<'_>) -> Vec<u8> {
    let mut input = before(packet, Kind::HIP_SIGNATURE_2, &[]);
    input[RECEIVER_AT..HEADER_LEN].fill(0);
    if let Some(puzzle) = packet.param(Kind::PUZZLE).filter(|p| p.contents.len() > 2) {
        // Type and length 4 bytes, K and lifetime 2; then what differs between Initiators.
        let start = puzzle.span.start;
        input[start + 6..start + 4 + puzzle.contents.len()].fill(0);
    }
    input
}

/// The packet as if it ended before its first parameter of `kind` or a higher type, and `extra` stood there.
pub fn before(packet: &PacketView<'_>, kind: Kind, extra: &[u8]) -> Vec<u8> {
    let end = packet.params().find(|p| p.kind >= kind).map_or(packet.bytes().len(), |p| p.span.start);
    let mut input = packet.bytes()[..end].to_vec();
    input.extend_from_slice(extra);
    input[1] = (input.len() / 8).wrapping_sub(1) as u8;
    input[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
    input
}
