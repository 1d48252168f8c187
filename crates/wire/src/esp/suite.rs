//! The transforms and their sizes (RFC 7402 §5.1.2).

use serde::{Deserialize, Serialize};

/// How packets of an association are protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Suite {
    /// AES-GCM with a 16-byte ICV, 128-bit key (RFC 4106).
    #[default]
    Aes128Gcm,
    /// The same without its IV, which is the sequence number (RFC 8750): 8 bytes less in each packet.
    Aes128GcmImplicit,
    /// AES-GCM with a 16-byte ICV, 256-bit key (RFC 4106).
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 7634), for hosts without AES instructions.
    Chacha20Poly1305,
    /// AES-CBC with HMAC-SHA-256-128 (RFC 3602, 4868): what every HIP host must know (RFC 7402 §5.1.2).
    Aes128CbcHmacSha256,
    /// The same with a 256-bit key.
    Aes256CbcHmacSha256,
    /// Authenticated, not encrypted (RFC 2410, 4868). Only where nobody's data is at stake.
    NullHmacSha256,
    /// Neither: packets as long as AES-GCM's with a checksum for an ICV. Only in simulations.
    Simulated,
}

impl Suite {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Aes128Gcm,
        Self::Aes128GcmImplicit,
        Self::Aes256Gcm,
        Self::Chacha20Poly1305,
        Self::Aes128CbcHmacSha256,
        Self::Aes256CbcHmacSha256,
        Self::NullHmacSha256,
        Self::Simulated,
    ];

    /// Bytes of encryption key to draw, with the 4 bytes of salt of RFC 4106 §8.1 and 7634 §2.
    pub const fn encryption_key_len(self) -> usize {
        match self {
            Self::Aes128Gcm | Self::Aes128GcmImplicit => 16 + SALT_LEN,
            Self::Aes256Gcm | Self::Chacha20Poly1305 => 32 + SALT_LEN,
            Self::Aes128CbcHmacSha256 => 16,
            Self::Aes256CbcHmacSha256 => 32,
            Self::NullHmacSha256 | Self::Simulated => 0,
        }
    }

    /// Bytes of authentication key to draw.
    pub const fn authentication_key_len(self) -> usize {
        match self {
            Self::Aes128CbcHmacSha256 | Self::Aes256CbcHmacSha256 | Self::NullHmacSha256 => 32,
            _ => 0,
        }
    }

    /// Bytes between the header and the payload.
    pub const fn iv_len(self) -> usize {
        match self {
            Self::Aes128CbcHmacSha256 | Self::Aes256CbcHmacSha256 => 16,
            Self::Aes128GcmImplicit | Self::NullHmacSha256 => 0,
            _ => 8,
        }
    }

    /// Bytes at the end.
    pub const fn icv_len(self) -> usize {
        16
    }

    /// Payload and trailer fill a multiple of this many bytes.
    pub const fn alignment(self) -> usize {
        match self {
            Self::Aes128CbcHmacSha256 | Self::Aes256CbcHmacSha256 => 16,
            _ => 4,
        }
    }

    /// Whether it hides and protects the payload. Where not, an association must be
    /// allowed to have it.
    pub const fn is_secure(self) -> bool {
        !matches!(self, Self::NullHmacSha256 | Self::Simulated)
    }

    /// Its number in ESP_TRANSFORM. The registry has none for ChaCha20-Poly1305, AES-GCM-16 with a 256-bit
    /// key and implicit IVs: 0xf7c2 to 0xf7c4 are ours. `None` if it cannot be negotiated.
    pub const fn number(self) -> Option<u16> {
        match self {
            Self::NullHmacSha256 => Some(7),
            Self::Aes128CbcHmacSha256 => Some(8),
            Self::Aes256CbcHmacSha256 => Some(9),
            Self::Aes128Gcm => Some(13),
            Self::Chacha20Poly1305 => Some(0xf7c2),
            Self::Aes256Gcm => Some(0xf7c3),
            Self::Aes128GcmImplicit => Some(0xf7c4),
            Self::Simulated => None,
        }
    }

    /// The suite of a number in ESP_TRANSFORM, if we have it.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.number() == Some(number))
    }
}

/// Bytes of salt behind an AEAD's key.
pub const SALT_LEN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_rfc_and_three_of_ours() {
        let numbers: Vec<_> = (0..=u16::MAX).filter(|n| Suite::from_number(*n).is_some()).collect();
        assert_eq!(numbers, [7, 8, 9, 13, 0xf7c2, 0xf7c3, 0xf7c4]);
        assert_eq!(Suite::from_number(13), Some(Suite::default()));
    }
}
