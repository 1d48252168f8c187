//! Floor 3: the real driver. Sockets, the TUN device and the OS clock live here and nowhere below.

pub mod clock;
pub mod emulated_link;
pub mod netns;
pub mod testbed;

pub use clock::Clock;
