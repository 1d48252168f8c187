//! Host Identity Tags: the 128-bit names of hosts (RFC 7401 §3.1, RFC 7343).

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A Host Identity Tag. Ordered as the unsigned big-endian number that RFC 7401 §6.5 compares.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hit(pub [u8; 16]);

/// The text is no ORCHIDv2 address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no HIT: write the tag that `polypath hit` prints, such as 2001:22:…")]
pub struct ParseHitError(String);

impl Hit {
    /// The receiver of an opportunistic I1: "whoever you are".
    pub const NULL: Self = Self([0; 16]);

    /// Whether this is [`Self::NULL`].
    pub fn is_null(self) -> bool {
        self == Self::NULL
    }
    /// Whether it lies in the prefix of ORCHIDv2, 2001:20::/28 (RFC 7343 §2).
    pub fn is_orchid(self) -> bool {
        self.0[..3] == [0x20, 0x01, 0x00] && self.0[3] >> 4 == 2
    }
    /// The HIT suite: the four bits after the prefix (RFC 7401 appendix E).
    pub fn suite(self) -> u8 {
        self.0[3] & 0x0f
    }
    /// The HIT as the address that applications see.
    pub fn as_ipv6(self) -> Ipv6Addr {
        Ipv6Addr::from(self.0)
    }
}

impl FromStr for Hit {
    type Err = ParseHitError;
    fn from_str(text: &str) -> Result<Self, ParseHitError> {
        let hit = text.parse::<Ipv6Addr>().map(|a| Self(a.octets()));
        hit.ok().filter(|h| h.is_orchid()).ok_or_else(|| ParseHitError(text.to_owned()))
    }
}
impl TryFrom<String> for Hit {
    type Error = ParseHitError;
    fn try_from(text: String) -> Result<Self, ParseHitError> {
        text.parse()
    }
}
impl From<Hit> for String {
    fn from(hit: Hit) -> Self {
        hit.to_string()
    }
}
impl fmt::Display for Hit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ipv6().fmt(f)
    }
}
impl fmt::Debug for Hit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
