//! Floor 0: the ciphers, hashes, key agreements and signatures of HIP and ESP, from one of two libraries.
//!
//! `aws` is AWS-LC, in assembly, and needs a C compiler; `pure` is RustCrypto, in Rust alone, and has no RSA. Both offer
//! the same names, and what one seals, signs or derives the other opens, accepts and derives. The root of the crate
//! exports `aws` if the feature `aws-lc` is on, else `pure`.

#[cfg(feature = "aws-lc")]
pub mod aws;
mod digest;
mod hash;
mod names;
mod processor;
#[cfg(feature = "pure")]
pub mod pure;

#[cfg(feature = "aws-lc")]
pub use aws as library;
#[cfg(all(feature = "pure", not(feature = "aws-lc")))]
pub use pure as library;
#[cfg(not(any(feature = "aws-lc", feature = "pure")))]
compile_error!("one of the features `aws-lc` and `pure` must be on");

pub use digest::Digest;
pub use library::{
    AeadKey, AgreementKey, Cbc, EcdsaKey, EcdsaPublic, MacKey, Prk, RSA, RsaKey, RsaPublic, equal,
};
pub use names::{Aead, BLOCK, Curve, Hash, NONCE_LEN, Private, TAG_LEN};
pub use processor::has_aes;
