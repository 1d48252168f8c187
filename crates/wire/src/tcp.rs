//! TCP segments (RFC 9293 §3.1) with the options we speak.

mod flags;
mod header;
mod option;
mod options;
mod view;

pub use flags::TcpFlags;
pub use header::TcpHeader;
pub use option::{MultiRoute, SackBlock, SackBlocks, TcpOption, TcpOptionsIter, Timestamps};
pub use options::{MAX_OPTIONS_LEN, TcpOptions};
pub use view::TcpView;

/// Length of a header without options, bytes.
pub const MIN_HEADER_LEN: usize = 20;
/// The protocol number of TCP.
pub const PROTOCOL: u8 = 6;

pub(crate) const WHAT: &str = "TCP";
/// Where the checksum stands.
pub const CHECKSUM_AT: usize = 16;

/// Option kinds (RFC 9293 §3.1, RFC 2018, RFC 7323, RFC 6994).
mod kind {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
    pub const EXPERIMENT_1: u8 = 253;
    pub const EXPERIMENT_2: u8 = 254;
}
