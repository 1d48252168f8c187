//! Segments in bytes: as UDP payloads.

use bytes::Bytes;
use polypath_transport::Segment;
use polypath_wire::tcp::TcpHeader;
use polypath_wire::{Checksum, WireError};

/// Most bytes of a segment in a UDP payload: 65,535 less the headers of IPv4 and UDP.
pub const MAX_DATAGRAM: usize = 65_507;

/// Writes `segment` as a UDP payload to the start of `out`; returns its length. UDP's checksum covers the addresses; TCP's
/// covers zeros in their place, so that a translator between IPv4 and IPv6 may change them.
pub fn encode_datagram(segment: &Segment, out: &mut [u8]) -> Result<usize, WireError> {
    encode(segment, Checksum::ZeroPseudoHeader, out)
}

/// The segment in `bytes`. Its data shares their memory.
pub(crate) fn decode(bytes: &Bytes, checksum: Checksum) -> Result<Segment, WireError> {
    let (header, data_at) = TcpHeader::parse(bytes, checksum)?;
    Ok(Segment { header, payload: bytes.slice(data_at..).into(), ..Segment::default() })
}

pub(crate) fn encode(segment: &Segment, checksum: Checksum, out: &mut [u8]) -> Result<usize, WireError> {
    let header_len = segment.header.len();
    let len = header_len + segment.payload.len() as usize;
    let got = out.len() as u64;
    let out = out.get_mut(..len).ok_or(WireError { what: "TCP", field: "room", need: len as u64, got })?;
    segment.payload.copy_to(&mut out[header_len..]);
    segment.header.emit(out, checksum)?;
    Ok(len)
}

#[cfg(test)]
mod tests {
    use polypath_transport::Pattern;
    use polypath_wire::Seq;
    use polypath_wire::tcp::{TcpFlags, Timestamps};

    use super::*;

    fn segment() -> Segment {
        let mut header =
            TcpHeader { src_port: 1, dst_port: 2, seq: Seq(3), ack: Seq(4), ..Default::default() };
        header.flags = TcpFlags::ACK;
        header.options.timestamps = Some(Timestamps { value: 5, echo: 6 });
        Segment { header, payload: Pattern { key: 1, offset: 0, len: 1001 }.into(), ..Segment::default() }
    }

    fn decoded(out: &[u8]) -> Result<Segment, WireError> {
        decode(&Bytes::copy_from_slice(out), Checksum::ZeroPseudoHeader)
    }

    #[test]
    fn a_datagram_survives_the_round_trip() {
        let mut out = [0; 2000];
        let len = encode_datagram(&segment(), &mut out).unwrap();
        let back = decoded(&out[..len]).unwrap();
        assert_eq!(back.header, segment().header);
        assert!(back.payload.same_bytes(&segment().payload));
    }

    #[test]
    fn too_little_room_and_flipped_bits_are_errors() {
        let mut out = [0; 2000];
        assert!(encode_datagram(&segment(), &mut out[..1000]).is_err());
        let len = encode_datagram(&segment(), &mut out).unwrap();
        out[len - 1] ^= 1;
        assert!(decoded(&out[..len]).unwrap_err().is_checksum());
        assert!(decoded(&out[..10]).is_err());
    }
}
