//! Errors of keys and algorithms.

/// Why a cryptographic operation was refused. It never says anything about a secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CryptoError {
    /// An algorithm, curve or group that we do not have.
    #[error("algorithm {0} is not supported")]
    Unsupported(u16),
    /// A key too short to be safe.
    #[error("key of {bits} bits is too weak: need {need}")]
    Weak {
        /// What it has.
        bits: usize,
        /// The least we accept.
        need: usize,
    },
    /// A key that is no key of its algorithm.
    #[error("malformed key")]
    Key,
    /// A key behind a passphrase.
    #[error("the key is encrypted")]
    Encrypted,
    /// A public value outside its group, or one that gives a predictable secret.
    #[error("invalid Diffie-Hellman public value")]
    PublicValue,
    /// A ciphertext that does not decrypt.
    #[error("does not decrypt")]
    Decrypt,
    /// A signature that is not the key's.
    #[error("signature does not verify")]
    Signature,
    /// More key material than HKDF gives (RFC 5869 §2.3).
    #[error("key material is used up")]
    KeymatExhausted,
}
