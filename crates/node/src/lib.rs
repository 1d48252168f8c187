//! Floor 3: the real driver. Sockets, the TUN device and the OS clock live here and nowhere below.

pub mod clock;

pub use clock::Clock;
