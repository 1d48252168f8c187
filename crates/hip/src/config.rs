//! What an administrator may choose.

use std::collections::BTreeSet;

use polypath_wire::Duration;
use polypath_wire::hip::Hit;
use serde::{Deserialize, Serialize};

use crate::dh::DhGroup;
use crate::suite::{EspSuite, HipCipher};

/// Settings of a [`crate::Host`]. RFC 7401 leaves most numbers open; the defaults are ours then.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HipConfig {
    /// Diffie-Hellman groups, most preferred first (RFC 7401 §5.2.6).
    pub dh_groups: Vec<DhGroup>,
    /// Ciphers of ENCRYPTED, most preferred first (RFC 7401 §5.2.8).
    pub hip_ciphers: Vec<HipCipher>,
    /// ESP suites, most preferred first (RFC 7402 §5.1.2).
    pub esp_suites: Vec<EspSuite>,
    /// Whether AES takes this host long, as without instructions for it: ChaCha20-Poly1305 then comes first among `esp_suites`,
    /// and is taken wherever a peer offers it.
    pub slow_aes: bool,
    /// Whose I1 and I2 are answered.
    pub accept: Accept,
    /// Whether strangers are told that they are refused, once they have proved who they are: a NOTIFY
    /// BLOCKED_BY_POLICY in answer to I2 (RFC 7401 §5.2.19). Otherwise they hear nothing.
    pub tell_refused: bool,
    /// Whether a peer may have several associations with us at once, one for each of its programs. Otherwise its I2 replaces the one that
    /// there is, wherever it comes from (RFC 7401 §4.5.4).
    pub several: bool,
    /// Whether associations may begin without knowing the peer's HIT (RFC 7401 §4.1.8): on trust.
    pub opportunistic: bool,
    /// Whether I2 carries our Host Identity encrypted; middleboxes then cannot check it (RFC 7401 §5.3.3).
    pub encrypt_host_id: bool,
    /// Whether R1 carries its generation counter (RFC 7401 §5.2.3).
    pub send_r1_counter: bool,
    /// How many paths at once we announce, 1–64; 1 leaves the multipath parameter out.
    pub max_paths: u8,
    /// Whether data that comes directly behind a SYN is delivered, which MULTIPATH announces (docs/protocol.md).
    pub early_data: bool,
    /// Whether both SPIs of an added path are one number, if the peer does the same: data then needs no answer to the request
    /// where an R1 showed that the path works (docs/hip.md).
    pub same_spi: bool,
    /// Whether TCP's checksum inside ESP, whose ICV covers the same bytes, is not checked, which MULTIPATH announces. A host that
    /// announces it leaves the field 0 for a peer that does so, too (docs/hip.md).
    pub no_checksums: bool,
    /// First wait before I1, I2, UPDATE or CLOSE is sent again; doubles each time (RFC 7401 §6.6).
    pub retransmit: Duration,
    /// How often each of them is sent again before giving up (I1_RETRIES_MAX and its like), 1–16.
    pub retries: u32,
    /// How long an idle association is kept: UAL (RFC 7401 §4.4.1).
    pub unused_lifetime: Duration,
    /// How long a packet may live in the network: MSL (RFC 7401 §4.4.1).
    pub segment_lifetime: Duration,
    /// How long E-FAILED lasts (RFC 7401 §4.4.3, table 9).
    pub failed_hold: Duration,
    /// How long puzzles of one generation are handed out; they are good for twice as long (RFC 7401 appendix A).
    pub puzzle_generation: Duration,
    /// How many generations one Diffie-Hellman key serves (RFC 7401 §6.7: about 15 minutes).
    pub dh_generations: u32,
    /// Difficulty K of puzzles without load, bits, 0–20 (RFC 7401 §7: 0).
    pub calm_difficulty: u8,
    /// I1 packets per second from which on puzzles become harder.
    pub calm_i1_rate: u32,
    /// Highest difficulty we ask for or accept, bits, 0–26.
    pub max_difficulty: u8,
    /// R1 packets and refusals per second to one address (RFC 7401 §6.7); as many R1s for peers that we know.
    pub r1_rate: u32,
    /// I2 packets with solved puzzles whose keys are computed, per second, and as many at once; 1 or more. Half of those at
    /// once are kept for peers that we know.
    pub i2_rate: u32,
    /// Associations kept at once.
    pub max_associations: usize,
}

/// Whose packets are answered.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accept {
    /// Everybody who can prove his HIT.
    Everybody,
    /// Those peers.
    Only(BTreeSet<Hit>),
    /// Nobody: we are only an Initiator.
    Nobody,
}

impl Accept {
    /// Whether it contains `peer`.
    pub fn allows(&self, peer: Hit) -> bool {
        match self {
            Self::Everybody => true,
            Self::Only(peers) => peers.contains(&peer),
            Self::Nobody => false,
        }
    }

    /// Whether `peer` is one of a list.
    pub fn names(&self, peer: Hit) -> bool {
        matches!(self, Self::Only(peers) if peers.contains(&peer))
    }
}

impl HipConfig {
    /// What today's programs use: the default, nothing that waits for an answer it does not need, and first of all AES-GCM
    /// without IVs in packets.
    #[must_use]
    pub fn of_today() -> Self {
        let mut config = Self { early_data: true, same_spi: true, no_checksums: true, ..Self::default() };
        config.esp_suites.insert(0, EspSuite::Aes128GcmImplicit);
        config
    }

    /// Our ESP suites, most preferred first.
    pub(crate) fn offered_suites(&self) -> Vec<EspSuite> {
        let mut suites = self.esp_suites.clone();
        suites.sort_by_key(|suite| self.takes_long(*suite));
        suites
    }

    /// The one that we take of a peer's ESP suites, its most preferred first: the first that we have, and that does not take long.
    pub(crate) fn chosen_suite(&self, offered: impl Iterator<Item = EspSuite>) -> Option<EspSuite> {
        offered.filter(|suite| self.esp_suites.contains(suite)).min_by_key(|suite| self.takes_long(*suite))
    }

    fn takes_long(&self, suite: EspSuite) -> bool {
        self.slow_aes && suite != EspSuite::Chacha20Poly1305
    }

    /// All waits between the first sending of a packet and giving up.
    pub(crate) fn patience(&self) -> Duration {
        self.retransmit.times((1 << self.retries.min(16)) - 1)
    }
}

impl Default for HipConfig {
    fn default() -> Self {
        Self {
            dh_groups: vec![DhGroup::P384, DhGroup::P256, DhGroup::P521, DhGroup::Modp3072],
            hip_ciphers: vec![HipCipher::Aes256Cbc, HipCipher::Aes128Cbc],
            esp_suites: vec![
                EspSuite::Aes128Gcm,
                EspSuite::Chacha20Poly1305,
                EspSuite::Aes256CbcHmacSha256,
                EspSuite::Aes128CbcHmacSha256,
            ],
            slow_aes: false,
            accept: Accept::Everybody,
            tell_refused: false,
            several: true,
            opportunistic: false,
            encrypt_host_id: false,
            send_r1_counter: true,
            max_paths: 8,
            early_data: false,
            same_spi: false,
            no_checksums: false,
            retransmit: Duration::from_secs(1),
            retries: 4,
            unused_lifetime: Duration::from_secs(900),
            segment_lifetime: Duration::from_secs(120),
            failed_hold: Duration::from_secs(30),
            puzzle_generation: Duration::from_secs(60),
            dh_generations: 15,
            calm_difficulty: 0,
            calm_i1_rate: 100,
            max_difficulty: 20,
            r1_rate: 20,
            i2_rate: 200,
            max_associations: 10_000,
        }
    }
}
