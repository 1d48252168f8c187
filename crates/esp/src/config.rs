//! Parameters and keys of an association.

use std::fmt;

use polypath_wire::esp::{Spi, Suite};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Parameters of an association; both ends must agree on all but the last two.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EspConfig {
    /// Transform.
    pub suite: Suite,
    /// 64-bit sequence numbers of which the low half is sent (RFC 4303 §2.2.1; RFC 7402 asks for them).
    pub extended_sequence: bool,
    /// Whether a suite that does not protect is taken ([`Suite::is_secure`]): in simulations and tests only.
    pub allow_insecure: bool,
    /// Deviations of peers.
    pub quirks: Quirks,
    /// Packets the replay window holds, 64 to 65,536, rounded up to a multiple of 64 (RFC 4303 §3.4.3: 64).
    pub replay_window: u32,
    /// Packets after which the association asks for new keys. With 2²⁹ packets of 1,350 bytes an
    /// attacker's advantage against AES-GCM stays below 2⁻⁵⁷, the bound of RFC 9001 §B.1.
    pub rekey_after: u64,
}

impl Default for EspConfig {
    fn default() -> Self {
        Self {
            suite: Suite::default(),
            extended_sequence: true,
            allow_insecure: false,
            quirks: Quirks::default(),
            replay_window: 1024,
            rekey_after: 1 << 29,
        }
    }
}

impl EspConfig {
    /// The default with this suite.
    pub fn with_suite(suite: Suite) -> Self {
        Self { suite, ..Self::default() }
    }

    pub(crate) fn iv_len(&self) -> usize {
        let forced = self.quirks.null_iv && self.suite == Suite::NullHmacSha256;
        if forced { 16 } else { self.suite.iv_len() }
    }

    pub(crate) fn icv_len(&self) -> usize {
        let forced = self.quirks.full_icv && self.suite.authentication_key_len() != 0;
        if forced { 32 } else { self.suite.icv_len() }
    }

    /// The largest sequence number; it is sent, none after it.
    pub(crate) fn last_sequence(&self) -> u64 {
        if self.extended_sequence { u64::MAX } else { u64::from(u32::MAX) }
    }

    /// Whether an association whose last number is `seq` should get new keys.
    pub(crate) fn needs_rekey(&self, seq: u64) -> bool {
        let last = self.last_sequence();
        seq >= self.rekey_after.min(last - last / 8)
    }

    pub(crate) fn check(&self, spi: Spi, keys: &Keys) -> Result<(), SetupError> {
        if spi.is_reserved() {
            return Err(SetupError::ReservedSpi(spi));
        }
        if !(64..=65_536).contains(&self.replay_window) {
            return Err(SetupError::ReplayWindow(self.replay_window));
        }
        if !self.suite.is_secure() && !self.allow_insecure {
            return Err(SetupError::Insecure(self.suite));
        }
        let lengths = [
            ("encryption", self.suite.encryption_key_len(), keys.encryption.len()),
            ("authentication", self.suite.authentication_key_len(), keys.authentication.len()),
        ];
        match lengths.into_iter().find(|(_, need, got)| need != got) {
            Some((which, need, got)) => Err(SetupError::KeyLength { which, need, got }),
            None => Ok(()),
        }
    }
}

/// Deviations from the RFCs that known implementations of HIP have; all off by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// HMAC-SHA-256 is not cut to 16 bytes (cutehip).
    pub full_icv: bool,
    /// The NULL cipher has an IV of 16 bytes (cutehip).
    pub null_iv: bool,
}

/// The keys of one direction; zeroed when dropped, never printed.
#[derive(Clone)]
pub struct Keys {
    pub(crate) encryption: Zeroizing<Vec<u8>>,
    pub(crate) authentication: Zeroizing<Vec<u8>>,
}

impl Keys {
    /// Copies the keys: [`Suite::encryption_key_len`] and [`Suite::authentication_key_len`] bytes.
    pub fn new(encryption: &[u8], authentication: &[u8]) -> Self {
        Self {
            encryption: Zeroizing::new(encryption.to_vec()),
            authentication: Zeroizing::new(authentication.to_vec()),
        }
    }

    /// No keys, for [`Suite::Simulated`].
    pub fn none() -> Self {
        Self::new(&[], &[])
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

/// Why an association could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SetupError {
    /// 0 to 255.
    #[error("SPI {0:?} is reserved: choose one above 255")]
    ReservedSpi(Spi),
    /// Not as long as the suite's key.
    #[error("{which} key: the suite needs {need} bytes, got {got}")]
    KeyLength {
        /// `"encryption"` or `"authentication"`.
        which: &'static str,
        /// Bytes the suite has.
        need: usize,
        /// Bytes given.
        got: usize,
    },
    /// A suite without protection, outside a simulation.
    #[error("{0:?} does not protect the payload: only for simulations and tests")]
    Insecure(Suite),
    /// Out of range.
    #[error("replay_window {0}: must be 64 to 65536 packets")]
    ReplayWindow(u32),
}
