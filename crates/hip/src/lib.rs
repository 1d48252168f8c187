//! Floor 1: the Host Identity Protocol, version 2 (RFC 7401), as a pure state machine. `now` is an
//! argument, randomness a seed, and packets go in and out as bytes.

pub mod dh;
mod error;
pub mod identity;
pub mod keymat;
mod modp;
pub mod puzzle;
mod random;
pub mod suite;

pub use error::CryptoError;
pub use identity::{Identity, KeyKind, PublicIdentity};
pub use random::Random;
