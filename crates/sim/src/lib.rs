//! Floor 3: a deterministic packet-level simulator. Virtual time, seeded chance, no clock.

pub mod hop;

pub use hop::{Change, Departure, Drop, Fate, Hop, HopConfig, HopStats, QueueLimit, Step};
