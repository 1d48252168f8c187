//! Floor 1: the Host Identity Protocol, version 2 (RFC 7401), as a pure state machine. `now` is an
//! argument, randomness a seed, and packets go in and out as bytes.

mod association;
mod config;
mod context;
pub mod dh;
mod effort;
mod error;
mod event;
mod host;
pub mod identity;
pub mod keymat;
mod load;
mod locators;
pub mod puzzle;
mod random;
mod responder;
mod session;
mod state;
pub mod suite;

pub use association::{Association, Path};
pub use config::{Accept, HipConfig};
pub use context::Link;
pub use effort::Effort;
pub use error::CryptoError;
pub use event::{DropReason, Event, Failure, PeerEvent, Route, SaPair, Transmit};
pub use host::{ConnectError, Host};
pub use identity::{Identity, KeyKind, PublicIdentity};
pub use locators::{LocatorState, PeerLocator, PeerLocators};
pub use random::Random;
pub use state::State;
