//! Floor 2: all connections of one host as one pure state machine.

pub mod paths;

pub use paths::Locators;
