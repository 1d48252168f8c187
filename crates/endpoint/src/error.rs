//! What can go wrong when connections and paths are opened.

use thiserror::Error;

/// Why a connection or a path could not be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum OpenError {
    /// No locators were given.
    #[error("a connection needs at least one path")]
    NoPath,
    /// More paths than a connection may have.
    #[error("more than {max} paths")]
    TooManyPaths {
        /// The limit.
        max: u8,
    },
    /// More connections than the endpoint may have.
    #[error("more than {max} connections")]
    TooManyConnections {
        /// The limit.
        max: u32,
    },
    /// Another connection has these locators and ports, or all local ports are taken.
    #[error("address in use: {0}")]
    InUse(crate::Locators),
    /// Somebody listens on the port already.
    #[error("port {0} has a listener already")]
    PortTaken(u16),
    /// The handle names no connection, or a closed one.
    #[error("no such connection")]
    NoConnection,
    /// A parameter of the connection means nothing.
    #[error(transparent)]
    Config(#[from] polypath_transport::ConfigError),
}
