//! Limits of an endpoint and what a listener gives to the connections it accepts.

use polypath_transport::{ConnectionConfig, PathConfig, RecordFilter};
use serde::{Deserialize, Serialize};

/// Limits of one endpoint. They bound what strangers can make it hold.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EndpointConfig {
    /// Most connections at a time, closed ones that were not released included; 1 or more.
    pub max_connections: u32,
    /// Most accepted connections whose handshake is not complete (RFC 4987 §3.2); 0 or more.
    pub max_half_open: u32,
    /// Most connections that peers opened and the application has not taken up, half open ones included; 1 or more.
    pub max_unserved: u32,
    /// The same of one peer: of one HIT, or of one address.
    pub max_unserved_of_peer: u32,
    /// Most paths of one connection, 1 to 64.
    pub max_paths: u8,
    /// Most resets and ICMP messages a second in answer to segments of no connection; 0 sends none.
    pub resets_per_second: u32,
    /// Most bytes that all connections hold together, written and not acknowledged or received and not read; none: their buffers
    /// alone limit. Each may hold half of what is left, and always 16 KiB in each direction.
    pub memory: Option<u64>,
    /// What connections record from their first segment on, and with `events` the states of HIP.
    pub record: RecordFilter,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            max_connections: 65_536,
            max_half_open: 1024,
            max_unserved: 4096,
            max_unserved_of_peer: 4096,
            max_paths: 64,
            resets_per_second: 1000,
            memory: None,
            record: RecordFilter::default(),
        }
    }
}

/// What connections accepted on one port begin with.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListenConfig {
    /// Parameters of the connection.
    pub connection: ConnectionConfig,
    /// Parameters of each of its paths.
    pub path: PathConfig,
    /// Whether a segment of a known connection from a new pair of locators adds a path. Until
    /// connections are authenticated (ESP), whoever guesses ports and a sequence number inside
    /// the window can add one; leave it off under IP framing on an open network.
    pub accept_paths: bool,
}
