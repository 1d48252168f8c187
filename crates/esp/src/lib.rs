//! Floor 1: ESP security associations (RFC 4303, 7402). [`Outbound`] seals and [`Inbound`] opens
//! packets in the caller's buffer; neither allocates, looks at a clock or draws a random number.
//!
//! ```text
//! SPI(4) seq(4) IV | payload padding pad_len(1) next_header(1) | ICV
//!                  '------------- under the cipher -----------'
//! '--------------------- authenticated ----------------------'
//! ```

mod config;
mod inbound;
mod outbound;
pub mod replay;
mod simulated;
#[cfg(test)]
mod tests;
mod transform;

pub use config::{EspConfig, Keys, Quirks, SetupError};
pub use inbound::{Inbound, InboundStats, OpenError, Opened};
pub use outbound::{Outbound, SealError};
pub use polypath_wire::esp::{Spi, Suite};
