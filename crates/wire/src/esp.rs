//! ESP on the wire (RFC 4303 §2): what stands outside the cipher. Keys, sequence numbers and windows are `polypath-esp`'s; what ESP
//! and HIP are inside UDP stands in [`hip::udp`](crate::hip::udp).

mod suite;

use serde::{Deserialize, Serialize};

pub use self::suite::{SALT_LEN, Suite};
use crate::WireError;

/// IP protocol number of ESP.
pub const PROTOCOL: u8 = 50;
/// Bytes of SPI and sequence number.
pub const HEADER_LEN: usize = 8;
/// Bytes of pad length and next header.
pub const TRAILER_LEN: usize = 2;
/// Next header of a dummy packet, which the receiver drops without a word (RFC 4303 §2.6).
pub const NO_NEXT_HEADER: u8 = 59;

/// Security parameters index: names an inbound security association.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Spi(pub u32);

impl Spi {
    /// 0 is for local use and 1 to 255 are reserved: not on the wire (RFC 4303 §2.1).
    pub const fn is_reserved(self) -> bool {
        self.0 < 256
    }
}

/// What an ESP packet shows to everyone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EspHeader {
    /// Association of the receiver.
    pub spi: Spi,
    /// Low 32 bits of the sequence number.
    pub seq: u32,
}

impl EspHeader {
    /// Reads the first [`HEADER_LEN`] bytes of `packet`.
    pub fn parse(packet: &[u8]) -> Result<Self, WireError> {
        let Some((head, _)) = packet.split_first_chunk::<HEADER_LEN>() else {
            return Err(WireError::new("ESP", "length", HEADER_LEN, packet.len()));
        };
        let [s0, s1, s2, s3, n0, n1, n2, n3] = *head;
        let spi = Spi(u32::from_be_bytes([s0, s1, s2, s3]));
        if spi.is_reserved() {
            return Err(WireError::new("ESP", "SPI", 256, spi.0 as usize));
        }
        Ok(Self { spi, seq: u32::from_be_bytes([n0, n1, n2, n3]) })
    }

    /// The bytes of the header.
    pub fn emit(&self) -> [u8; HEADER_LEN] {
        ((u64::from(self.spi.0) << 32) | u64::from(self.seq)).to_be_bytes()
    }
}

/// Padding and next header, the last bytes under the cipher (RFC 4303 §2.4 to §2.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EspTrailer {
    /// Bytes of padding, without the two of pad length and next header.
    pub pad_len: u8,
    /// Protocol of the payload.
    pub next_header: u8,
}

impl EspTrailer {
    /// The shortest trailer that makes `payload_len` bytes end on a multiple of `align` bytes
    /// (1 to 256; ESP itself asks for 4).
    pub fn after(payload_len: usize, align: usize, next_header: u8) -> Self {
        let over = (payload_len + TRAILER_LEN) % align;
        let pad_len = if over == 0 { 0 } else { align - over };
        Self { pad_len: u8::try_from(pad_len).expect("align is at most 256"), next_header }
    }

    /// Bytes on the wire.
    pub const fn len(&self) -> usize {
        self.pad_len as usize + TRAILER_LEN
    }

    /// Never: two bytes always follow the padding.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Fills `out`, which is [`len`](Self::len) bytes long, with padding 1, 2, 3, … and the fields.
    pub fn emit(&self, out: &mut [u8]) {
        let (padding, fields) = out.split_at_mut(usize::from(self.pad_len));
        for (byte, n) in padding.iter_mut().zip(1..=u8::MAX) {
            *byte = n;
        }
        fields.copy_from_slice(&[self.pad_len, self.next_header]);
    }

    /// Reads the trailer at the end of the deciphered `body`; the payload is what comes before it.
    /// Padding other than 1, 2, 3, … is refused, as RFC 4303 §2.4 advises.
    pub fn parse(body: &[u8]) -> Result<Self, WireError> {
        let Some((rest, &[pad_len, next_header])) = body.split_last_chunk::<TRAILER_LEN>() else {
            return Err(WireError::new("ESP", "trailer", TRAILER_LEN, body.len()));
        };
        let Some(start) = rest.len().checked_sub(usize::from(pad_len)) else {
            return Err(WireError::new("ESP", "pad length", rest.len(), usize::from(pad_len)));
        };
        match rest[start..].iter().zip(1..=u8::MAX).find(|(byte, n)| *byte != n) {
            Some((&byte, n)) => Err(WireError::new("ESP", "padding", usize::from(n), usize::from(byte))),
            None => Ok(Self { pad_len, next_header }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_trailer_must_fit_and_count() {
        assert!(EspTrailer::parse(&[]).is_err());
        assert!(EspTrailer::parse(&[6]).is_err());
        assert!(EspTrailer::parse(&[1, 2, 6]).is_err());
        assert!(EspTrailer::parse(&[1, 3, 2, 6]).is_err());
        assert_eq!(EspTrailer::parse(&[1, 2, 2, 6]), Ok(EspTrailer { pad_len: 2, next_header: 6 }));
    }

    #[test]
    fn the_longest_padding_counts_to_its_end() {
        let trailer = EspTrailer::after(255, 256, 6);
        assert_eq!(trailer.pad_len, 255);
        let mut body = [0; 255 + 257];
        trailer.emit(&mut body[255..]);
        assert_eq!(body[255..510], (1..=u8::MAX).collect::<Vec<_>>()[..]);
        assert_eq!(EspTrailer::parse(&body), Ok(trailer));
    }

    proptest! {
        #[test]
        fn trailers_survive_a_round_trip(len in 0usize..3000, align in prop_oneof![Just(4usize), Just(16), Just(256)],
                                         next_header: u8) {
            let trailer = EspTrailer::after(len, align, next_header);
            let mut body = vec![0xaa; len + trailer.len()];
            trailer.emit(&mut body[len..]);
            prop_assert_eq!(body.len() % align, 0);
            prop_assert!(usize::from(trailer.pad_len) < align);
            prop_assert_eq!(EspTrailer::parse(&body), Ok(trailer));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = EspHeader::parse(&bytes);
            let _ = EspTrailer::parse(&bytes);
        }
    }
}
