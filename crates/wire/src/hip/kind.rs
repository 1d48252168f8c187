//! The numbers that say what a packet, a parameter or a notification is.

use std::fmt;

/// Packet types (RFC 7401 §5.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PacketType {
    /// The Initiator asks.
    I1,
    /// The Responder's puzzle, key and offer.
    R1,
    /// The Initiator's solution and choice.
    I2,
    /// The Responder concludes.
    R2,
    /// Changes to an association.
    Update,
    /// Information, never acknowledged.
    Notify,
    /// The end of an association.
    Close,
    /// Its acknowledgment.
    CloseAck,
    /// One that we do not know.
    Other(u8),
}

impl From<u8> for PacketType {
    fn from(number: u8) -> Self {
        match number {
            1 => Self::I1,
            2 => Self::R1,
            3 => Self::I2,
            4 => Self::R2,
            16 => Self::Update,
            17 => Self::Notify,
            18 => Self::Close,
            19 => Self::CloseAck,
            n => Self::Other(n),
        }
    }
}
impl From<PacketType> for u8 {
    fn from(kind: PacketType) -> Self {
        match kind {
            PacketType::I1 => 1,
            PacketType::R1 => 2,
            PacketType::I2 => 3,
            PacketType::R2 => 4,
            PacketType::Update => 16,
            PacketType::Notify => 17,
            PacketType::Close => 18,
            PacketType::CloseAck => 19,
            PacketType::Other(n) => n,
        }
    }
}

/// A parameter type (RFC 7401 §5.2). Packets carry their parameters in its order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u16);

macro_rules! kinds {
    ($($name:ident = $number:literal, $doc:literal;)+) => {
        impl Kind {
            $(#[doc = $doc] pub const $name: Self = Self($number);)+

            /// The name of a parameter that we know.
            pub fn name(self) -> Option<&'static str> {
                match self { $(Self::$name => Some(stringify!($name)),)+ _ => None }
            }
        }
    };
}

kinds! {
    ESP_INFO = 65, "SPIs of an SA (RFC 7402 §5.1.1).";
    R1_COUNTER = 129, "Generation of the puzzle (RFC 7401 §5.2.3).";
    LOCATOR_SET = 193, "All locators of the sender (RFC 8046 §4).";
    PUZZLE = 257, "Work for the Initiator (RFC 7401 §5.2.4).";
    SOLUTION = 321, "That work, done (RFC 7401 §5.2.5).";
    SEQ = 385, "Number of an UPDATE (RFC 7401 §5.2.16).";
    ACK = 449, "Numbers of UPDATEs that arrived (RFC 7401 §5.2.17).";
    DH_GROUP_LIST = 511, "Groups the sender can use (RFC 7401 §5.2.6).";
    DIFFIE_HELLMAN = 513, "A public value (RFC 7401 §5.2.7).";
    HIP_CIPHER = 579, "Ciphers of ENCRYPTED (RFC 7401 §5.2.8).";
    NAT_TRAVERSAL_MODE = 608, "Ways through NATs (RFC 9028 §5.4).";
    TRANSACTION_PACING = 610, "Pace of connectivity checks (RFC 9028 §5.5).";
    ENCRYPTED = 641, "Encrypted parameters (RFC 7401 §5.2.18).";
    HOST_ID = 705, "A Host Identity (RFC 7401 §5.2.9).";
    HIT_SUITE_LIST = 715, "HIT suites the Responder accepts (RFC 7401 §5.2.10).";
    NOTIFICATION = 832, "An error or a status (RFC 7401 §5.2.19).";
    ECHO_REQUEST_SIGNED = 897, "Bytes to be echoed (RFC 7401 §5.2.20).";
    REG_INFO = 930, "Services on offer (RFC 8003 §4.2).";
    REG_REQUEST = 932, "Services wanted (RFC 8003 §4.3).";
    REG_RESPONSE = 934, "Services granted (RFC 8003 §4.4).";
    REG_FAILED = 936, "Services refused (RFC 8003 §4.5).";
    REG_FROM = 950, "The sender's address as a relay saw it (RFC 9028 §5.6).";
    ECHO_RESPONSE_SIGNED = 961, "Those bytes, echoed (RFC 7401 §5.2.22).";
    TRANSPORT_FORMAT_LIST = 2049, "Formats of user data (RFC 7401 §5.2.11).";
    ESP_TRANSFORM = 4095, "ESP suites (RFC 7402 §5.1.2).";
    RELAYED_ADDRESS = 4650, "An address at a relay (RFC 9028 §5.12).";
    MAPPED_ADDRESS = 4660, "An address behind a NAT (RFC 9028 §5.12).";
    MULTIPATH = 38_418, "Paths of a multipath transport: ours, for private use (docs/hip.md).";
    HIP_MAC = 61_505, "MAC of what stands before it (RFC 7401 §5.2.12).";
    HIP_MAC_2 = 61_569, "The same with the Responder's HOST_ID, in R2 (RFC 7401 §5.2.13).";
    HIP_SIGNATURE_2 = 61_633, "Signature of R1 (RFC 7401 §5.2.15).";
    HIP_SIGNATURE = 61_697, "Signature of what stands before it (RFC 7401 §5.2.14).";
    ECHO_RESPONSE_UNSIGNED = 63_425, "Echoed bytes (RFC 7401 §5.2.23).";
    ECHO_REQUEST_UNSIGNED = 63_661, "Bytes to be echoed (RFC 7401 §5.2.21).";
    RELAY_FROM = 63_998, "The Initiator's address (RFC 9028 §5.6).";
    RELAY_TO = 64_002, "The address a relay shall send to (RFC 9028 §5.6).";
    FROM = 65_498, "The Initiator's address (RFC 8004 §4.2.2).";
    RVS_HMAC = 65_500, "MAC of a rendezvous server (RFC 8004 §4.2.1).";
    VIA_RVS = 65_502, "Rendezvous servers passed (RFC 8004 §4.2.3).";
    RELAY_HMAC = 65_520, "MAC of a relay (RFC 9028 §5.8).";
}

impl Kind {
    /// Whether a receiver that does not know it must not go on (RFC 7401 §5.2.1): odd numbers.
    pub const fn is_critical(self) -> bool {
        self.0 & 1 == 1
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "parameter {}", self.0),
        }
    }
}

/// What a NOTIFICATION says (RFC 7401 §5.2.19 and the IANA registry). Below 16384 they are errors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NotifyType(pub u16);

impl NotifyType {
    /// An unknown parameter with an odd type; data: that type.
    pub const UNSUPPORTED_CRITICAL_PARAMETER: Self = Self(1);
    /// A length, value or combination that makes no sense.
    pub const INVALID_SYNTAX: Self = Self(7);
    /// No proposed group is acceptable.
    pub const NO_DH_PROPOSAL_CHOSEN: Self = Self(14);
    /// The group is not the one expected.
    pub const INVALID_DH_CHOSEN: Self = Self(15);
    /// No proposed HIP cipher is acceptable.
    pub const NO_HIP_PROPOSAL_CHOSEN: Self = Self(16);
    /// The HIP cipher is not one that was offered.
    pub const INVALID_HIP_CIPHER_CHOSEN: Self = Self(17);
    /// No proposed ESP suite is acceptable (RFC 7402 §5.1.3).
    pub const NO_ESP_PROPOSAL_CHOSEN: Self = Self(18);
    /// The ESP suite is not one that was offered (RFC 7402 §5.1.3).
    pub const INVALID_ESP_TRANSFORM_CHOSEN: Self = Self(19);
    /// The HIT suite is not supported.
    pub const UNSUPPORTED_HIT_SUITE: Self = Self(20);
    /// A signature does not verify.
    pub const AUTHENTICATION_FAILED: Self = Self(24);
    /// A MAC does not verify.
    pub const HIP_MAC_FAILED: Self = Self(28);
    /// ENCRYPTED does not decrypt.
    pub const ENCRYPTION_FAILED: Self = Self(32);
    /// A HIT does not belong to its Host Identity.
    pub const INVALID_HIT: Self = Self(40);
    /// Policy does not allow the association.
    pub const BLOCKED_BY_POLICY: Self = Self(42);
    /// Too busy; try again.
    pub const RESPONDER_BUSY_PLEASE_RETRY: Self = Self(44);
    /// A locator of a type we do not know; data: the locators (RFC 8046 §5.3).
    pub const LOCATOR_TYPE_UNSUPPORTED: Self = Self(46);
    /// No way through the NAT in common (RFC 9028 §5.10).
    pub const NO_VALID_NAT_TRAVERSAL_MODE: Self = Self(60);
    /// An I2 arrived and takes time.
    pub const I2_ACKNOWLEDGEMENT: Self = Self(16_384);
    /// Keeps a NAT binding (RFC 9028 §5.3).
    pub const NAT_KEEPALIVE: Self = Self(16_385);
}
