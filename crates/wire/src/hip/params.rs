//! The parameters as values. Reserved fields are written as zero and not looked at.

mod base;
mod identity;
mod locator;
mod multipath;
mod nat;

pub use base::{DiffieHellman, EspInfo, Notification, Puzzle, R1Counter, Signature, Solution};
pub use identity::{DomainId, HostId};
pub use locator::{Locator, LocatorAddress, TrafficType};
pub use multipath::{Multipath, MultipathPath};
pub use nat::{NatTraversal, Registration, RegistrationInfo, TransportAddress};

use std::net::IpAddr;

use super::cursor::{Cursor, address_bytes};
use super::kind::Kind;
use super::padded;
use crate::error::WireError;

/// One parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Param {
    /// ESP_INFO.
    EspInfo(EspInfo),
    /// R1_COUNTER.
    R1Counter(R1Counter),
    /// LOCATOR_SET: always the complete list.
    LocatorSet(Vec<Locator>),
    /// PUZZLE.
    Puzzle(Puzzle),
    /// SOLUTION.
    Solution(Solution),
    /// SEQ: the number of this UPDATE.
    Seq(u32),
    /// ACK: numbers of the peer's UPDATEs.
    Ack(Vec<u32>),
    /// DH_GROUP_LIST, most preferred first.
    DhGroupList(Vec<u8>),
    /// DIFFIE_HELLMAN.
    DiffieHellman(DiffieHellman),
    /// HIP_CIPHER, most preferred first.
    HipCipher(Vec<u16>),
    /// NAT_TRAVERSAL_MODE, most preferred first.
    NatTraversalMode(NatTraversal),
    /// TRANSACTION_PACING: least time between connectivity checks, ms.
    TransactionPacing(u32),
    /// ENCRYPTED: initialisation vector and ciphertext.
    Encrypted(Vec<u8>),
    /// HOST_ID.
    HostId(HostId),
    /// HIT_SUITE_LIST: suite ids as on the wire, in the upper four bits.
    HitSuiteList(Vec<u8>),
    /// NOTIFICATION.
    Notification(Notification),
    /// ECHO_REQUEST_SIGNED.
    EchoRequestSigned(Vec<u8>),
    /// REG_INFO.
    RegInfo(RegistrationInfo),
    /// REG_REQUEST.
    RegRequest(Registration),
    /// REG_RESPONSE.
    RegResponse(Registration),
    /// REG_FAILED; the first byte of it is the failure type instead of a lifetime.
    RegFailed(Registration),
    /// REG_FROM.
    RegFrom(TransportAddress),
    /// ECHO_RESPONSE_SIGNED.
    EchoResponseSigned(Vec<u8>),
    /// TRANSPORT_FORMAT_LIST: types of the parameters that stand for the formats.
    TransportFormatList(Vec<Kind>),
    /// ESP_TRANSFORM, most preferred first.
    EspTransform(Vec<u16>),
    /// RELAYED_ADDRESS.
    RelayedAddress(TransportAddress),
    /// MAPPED_ADDRESS.
    MappedAddress(TransportAddress),
    /// Our private parameter.
    Multipath(Multipath),
    /// HIP_MAC.
    HipMac(Vec<u8>),
    /// HIP_MAC_2.
    HipMac2(Vec<u8>),
    /// HIP_SIGNATURE_2.
    HipSignature2(Signature),
    /// HIP_SIGNATURE.
    HipSignature(Signature),
    /// ECHO_RESPONSE_UNSIGNED.
    EchoResponseUnsigned(Vec<u8>),
    /// ECHO_REQUEST_UNSIGNED.
    EchoRequestUnsigned(Vec<u8>),
    /// RELAY_FROM.
    RelayFrom(TransportAddress),
    /// RELAY_TO.
    RelayTo(TransportAddress),
    /// FROM.
    From(IpAddr),
    /// RVS_HMAC.
    RvsHmac(Vec<u8>),
    /// VIA_RVS.
    ViaRvs(Vec<IpAddr>),
    /// RELAY_HMAC.
    RelayHmac(Vec<u8>),
    /// One that we do not know, as it came.
    Unknown {
        /// Its type.
        kind: Kind,
        /// Its contents.
        contents: Vec<u8>,
    },
}

impl Param {
    /// The parameter of `kind` with these contents.
    pub fn parse(kind: Kind, contents: &[u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor { what: kind.name().unwrap_or("HIP parameter"), rest: contents };
        let c = &mut cursor;
        let value = match kind {
            Kind::ESP_INFO => Self::EspInfo(EspInfo::parse(c)?),
            Kind::R1_COUNTER => Self::R1Counter(R1Counter::parse(c)?),
            Kind::LOCATOR_SET => Self::LocatorSet(c.list(Locator::parse)?),
            Kind::PUZZLE => Self::Puzzle(Puzzle::parse(c)?),
            Kind::SOLUTION => Self::Solution(Solution::parse(c)?),
            Kind::SEQ => Self::Seq(c.u32()?),
            Kind::ACK => Self::Ack(c.list(Cursor::u32)?),
            Kind::DH_GROUP_LIST => Self::DhGroupList(rest(c)),
            Kind::DIFFIE_HELLMAN => Self::DiffieHellman(DiffieHellman::parse(c)?),
            Kind::HIP_CIPHER => Self::HipCipher(c.list(Cursor::u16)?),
            Kind::NAT_TRAVERSAL_MODE => Self::NatTraversalMode(NatTraversal::parse(c)?),
            Kind::TRANSACTION_PACING => Self::TransactionPacing(c.u32()?),
            Kind::ENCRYPTED => {
                c.u32()?;
                Self::Encrypted(rest(c))
            }
            Kind::HOST_ID => Self::HostId(HostId::parse(c)?),
            Kind::HIT_SUITE_LIST => Self::HitSuiteList(rest(c)),
            Kind::NOTIFICATION => Self::Notification(Notification::parse(c)?),
            Kind::ECHO_REQUEST_SIGNED => Self::EchoRequestSigned(rest(c)),
            Kind::REG_INFO => Self::RegInfo(RegistrationInfo::parse(c)?),
            Kind::REG_REQUEST => Self::RegRequest(Registration::parse(c)?),
            Kind::REG_RESPONSE => Self::RegResponse(Registration::parse(c)?),
            Kind::REG_FAILED => Self::RegFailed(Registration::parse(c)?),
            Kind::REG_FROM => Self::RegFrom(TransportAddress::parse(c)?),
            Kind::ECHO_RESPONSE_SIGNED => Self::EchoResponseSigned(rest(c)),
            Kind::TRANSPORT_FORMAT_LIST => Self::TransportFormatList(c.list(|c| c.u16().map(Kind))?),
            Kind::ESP_TRANSFORM => {
                c.u16()?;
                Self::EspTransform(c.list(Cursor::u16)?)
            }
            Kind::RELAYED_ADDRESS => Self::RelayedAddress(TransportAddress::parse(c)?),
            Kind::MAPPED_ADDRESS => Self::MappedAddress(TransportAddress::parse(c)?),
            Kind::MULTIPATH if Multipath::is_known(contents) => Self::Multipath(Multipath::parse(c)?),
            Kind::HIP_MAC => Self::HipMac(rest(c)),
            Kind::HIP_MAC_2 => Self::HipMac2(rest(c)),
            Kind::HIP_SIGNATURE_2 => Self::HipSignature2(Signature::parse(c)?),
            Kind::HIP_SIGNATURE => Self::HipSignature(Signature::parse(c)?),
            Kind::ECHO_RESPONSE_UNSIGNED => Self::EchoResponseUnsigned(rest(c)),
            Kind::ECHO_REQUEST_UNSIGNED => Self::EchoRequestUnsigned(rest(c)),
            Kind::RELAY_FROM => Self::RelayFrom(TransportAddress::parse(c)?),
            Kind::RELAY_TO => Self::RelayTo(TransportAddress::parse(c)?),
            Kind::FROM => Self::From(c.address()?),
            Kind::RVS_HMAC => Self::RvsHmac(rest(c)),
            Kind::VIA_RVS => Self::ViaRvs(c.list(Cursor::address)?),
            Kind::RELAY_HMAC => Self::RelayHmac(rest(c)),
            kind => Self::Unknown { kind, contents: rest(c) },
        };
        cursor.end(value)
    }

    /// Its type.
    pub fn kind(&self) -> Kind {
        match self {
            Self::EspInfo(_) => Kind::ESP_INFO,
            Self::R1Counter(_) => Kind::R1_COUNTER,
            Self::LocatorSet(_) => Kind::LOCATOR_SET,
            Self::Puzzle(_) => Kind::PUZZLE,
            Self::Solution(_) => Kind::SOLUTION,
            Self::Seq(_) => Kind::SEQ,
            Self::Ack(_) => Kind::ACK,
            Self::DhGroupList(_) => Kind::DH_GROUP_LIST,
            Self::DiffieHellman(_) => Kind::DIFFIE_HELLMAN,
            Self::HipCipher(_) => Kind::HIP_CIPHER,
            Self::NatTraversalMode(_) => Kind::NAT_TRAVERSAL_MODE,
            Self::TransactionPacing(_) => Kind::TRANSACTION_PACING,
            Self::Encrypted(_) => Kind::ENCRYPTED,
            Self::HostId(_) => Kind::HOST_ID,
            Self::HitSuiteList(_) => Kind::HIT_SUITE_LIST,
            Self::Notification(_) => Kind::NOTIFICATION,
            Self::EchoRequestSigned(_) => Kind::ECHO_REQUEST_SIGNED,
            Self::RegInfo(_) => Kind::REG_INFO,
            Self::RegRequest(_) => Kind::REG_REQUEST,
            Self::RegResponse(_) => Kind::REG_RESPONSE,
            Self::RegFailed(_) => Kind::REG_FAILED,
            Self::RegFrom(_) => Kind::REG_FROM,
            Self::EchoResponseSigned(_) => Kind::ECHO_RESPONSE_SIGNED,
            Self::TransportFormatList(_) => Kind::TRANSPORT_FORMAT_LIST,
            Self::EspTransform(_) => Kind::ESP_TRANSFORM,
            Self::RelayedAddress(_) => Kind::RELAYED_ADDRESS,
            Self::MappedAddress(_) => Kind::MAPPED_ADDRESS,
            Self::Multipath(_) => Kind::MULTIPATH,
            Self::HipMac(_) => Kind::HIP_MAC,
            Self::HipMac2(_) => Kind::HIP_MAC_2,
            Self::HipSignature2(_) => Kind::HIP_SIGNATURE_2,
            Self::HipSignature(_) => Kind::HIP_SIGNATURE,
            Self::EchoResponseUnsigned(_) => Kind::ECHO_RESPONSE_UNSIGNED,
            Self::EchoRequestUnsigned(_) => Kind::ECHO_REQUEST_UNSIGNED,
            Self::RelayFrom(_) => Kind::RELAY_FROM,
            Self::RelayTo(_) => Kind::RELAY_TO,
            Self::From(_) => Kind::FROM,
            Self::RvsHmac(_) => Kind::RVS_HMAC,
            Self::ViaRvs(_) => Kind::VIA_RVS,
            Self::RelayHmac(_) => Kind::RELAY_HMAC,
            Self::Unknown { kind, .. } => *kind,
        }
    }

    /// Appends type, length, contents and padding. Contents longer than 65535 bytes do not fit any
    /// packet; their length is cut, and [`super::Packet::emit`] refuses the packet.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.kind().0.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
        self.emit_contents(out);
        let len = out.len() - start - 4;
        out[start + 2..start + 4].copy_from_slice(&(len as u16).to_be_bytes());
        out.resize(start + padded(len), 0);
    }

    fn emit_contents(&self, out: &mut Vec<u8>) {
        match self {
            Self::EspInfo(v) => v.emit(out),
            Self::R1Counter(v) => v.emit(out),
            Self::LocatorSet(v) => v.iter().for_each(|l| l.emit(out)),
            Self::Puzzle(v) => v.emit(out),
            Self::Solution(v) => v.emit(out),
            Self::Seq(v) | Self::TransactionPacing(v) => out.extend_from_slice(&v.to_be_bytes()),
            Self::Ack(v) => v.iter().for_each(|id| out.extend_from_slice(&id.to_be_bytes())),
            Self::DiffieHellman(v) => v.emit(out),
            Self::HipCipher(v) => u16s(v, out),
            Self::NatTraversalMode(v) => v.emit(out),
            Self::Encrypted(v) => {
                out.extend_from_slice(&[0; 4]);
                out.extend_from_slice(v);
            }
            Self::HostId(v) => v.emit(out),
            Self::Notification(v) => v.emit(out),
            Self::RegInfo(v) => v.emit(out),
            Self::RegRequest(v) | Self::RegResponse(v) | Self::RegFailed(v) => v.emit(out),
            Self::TransportFormatList(v) => v.iter().for_each(|k| out.extend_from_slice(&k.0.to_be_bytes())),
            Self::EspTransform(v) => {
                out.extend_from_slice(&[0; 2]);
                u16s(v, out);
            }
            Self::RegFrom(v)
            | Self::RelayedAddress(v)
            | Self::MappedAddress(v)
            | Self::RelayFrom(v)
            | Self::RelayTo(v) => v.emit(out),
            Self::Multipath(v) => v.emit(out),
            Self::HipSignature(v) | Self::HipSignature2(v) => v.emit(out),
            Self::From(v) => out.extend_from_slice(&address_bytes(*v)),
            Self::ViaRvs(v) => v.iter().for_each(|a| out.extend_from_slice(&address_bytes(*a))),
            Self::DhGroupList(v)
            | Self::HitSuiteList(v)
            | Self::EchoRequestSigned(v)
            | Self::EchoResponseSigned(v)
            | Self::EchoRequestUnsigned(v)
            | Self::EchoResponseUnsigned(v)
            | Self::HipMac(v)
            | Self::HipMac2(v)
            | Self::RvsHmac(v)
            | Self::RelayHmac(v)
            | Self::Unknown { contents: v, .. } => out.extend_from_slice(v),
        }
    }
}

fn rest(c: &mut Cursor<'_>) -> Vec<u8> {
    std::mem::take(&mut c.rest).to_vec()
}

fn u16s(items: &[u16], out: &mut Vec<u8>) {
    items.iter().for_each(|i| out.extend_from_slice(&i.to_be_bytes()));
}
