//! Algorithms by name, and the lengths that they share.

/// Bytes of a nonce of the AEADs.
pub const NONCE_LEN: usize = 12;
/// Bytes of a tag of the AEADs.
pub const TAG_LEN: usize = 16;
/// Bytes of a block of AES.
pub const BLOCK: usize = 16;

/// Ciphers that authenticate too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aead {
    /// AES-128-GCM.
    Aes128Gcm,
    /// AES-256-GCM.
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 8439).
    Chacha20Poly1305,
}

/// SHA-2 of two lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
}

impl Hash {
    /// Length of a digest, bytes.
    #[expect(clippy::len_without_is_empty, reason = "no digest is empty")]
    pub const fn len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }
}

/// NIST curves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Curve {
    /// P-256.
    P256,
    /// P-384.
    P384,
    /// P-521; for key agreement only.
    P521,
}

/// What a private key's DER is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Private {
    /// PKCS#8 (RFC 5958).
    Pkcs8,
    /// As older tools write it: SEC 1 (RFC 5915) for curves, PKCS#1 (RFC 8017) for RSA.
    Old,
}
