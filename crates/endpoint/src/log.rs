//! A log of timed inputs: what an endpoint was given, to be given again (everything
//! between input and transmit is one function of configuration, seed and timed inputs).
//!
//! Format: the 8 bytes `PPINPUT4`, then entries. All integers are little-endian.
//!
//! ```text
//! entry     instant (u64, ns), kind (u8), body
//! kind 0    a turn without arrival: timers may have expired
//! kind 1    segment:  local address, remote address, length (u32), bytes as in a UDP payload
//! kind 2    datagram: the same, as it came
//! kind 3    IP packet: length (u32), bytes
//! kind 4    too big: local address, remote address, length (u32), then local and remote port (u16),
//!           sequence number (u32), largest packet (u32)
//! kind 5    local address up: address, MTU (u32, 0 if unknown), rate (u64, bit/s, 0 if unknown),
//!           delay (u64, ns, all ones if unknown)
//! kind 6    local address down: address
//! kind 7    path MTU: local address, remote address, length (u32, 4), largest packet (u32)
//! kind 8    known path: peer, local address, remote address, rate (u64, bit/s), round trip (u64, ns), age (u64, ns)
//! address   family (u8: 4 or 6), octets, port (u16)
//! ```

use std::net::{IpAddr, SocketAddr};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use polypath_hip::Link;
use polypath_transport::{KnownPath, Ports};
use polypath_wire::{Duration, Instant, Rate, Seq, WireError};
use thiserror::Error;

use crate::frame::{decode_datagram, encode_datagram};
use crate::input::Input;
use crate::known::PathName;
use crate::paths::Locators;
use crate::security::LocalInfo;

const MAGIC: &[u8; 8] = b"PPINPUT4";
const TURN: u8 = 0;
const SEGMENT: u8 = 1;
const DATAGRAM: u8 = 2;
const PACKET: u8 = 3;
const TOO_BIG: u8 = 4;
const LOCAL_UP: u8 = 5;
const LOCAL_DOWN: u8 = 6;
const PATH_MTU: u8 = 7;
const KNOWN: u8 = 8;

/// Writes a log into memory.
#[derive(Clone, Debug)]
pub struct LogWriter {
    bytes: Vec<u8>,
}

impl Default for LogWriter {
    fn default() -> Self {
        Self { bytes: MAGIC.to_vec() }
    }
}

impl LogWriter {
    /// Something arrived. Fails on a segment that has no form in bytes.
    pub fn input(&mut self, at: Instant, input: &Input) -> Result<(), WireError> {
        match input {
            Input::Segment { locators, segment } => {
                let mut bytes = vec![0; segment.header.len() + segment.payload.len() as usize];
                encode_datagram(segment, &mut bytes)?;
                self.entry(at, SEGMENT, Some(locators), &bytes);
            }
            Input::Datagram { locators, bytes } => self.entry(at, DATAGRAM, Some(locators), bytes),
            Input::Packet { bytes } => self.entry(at, PACKET, None, bytes),
            Input::TooBig { locators, ports, seq, mtu } => {
                let mut bytes = Vec::with_capacity(12);
                bytes.put_u16_le(ports.local);
                bytes.put_u16_le(ports.remote);
                bytes.put_u32_le(seq.0);
                bytes.put_u32_le(*mtu);
                self.entry(at, TOO_BIG, Some(locators), &bytes);
            }
            Input::PathMtu { locators, mtu } => {
                self.entry(at, PATH_MTU, Some(locators), &mtu.to_le_bytes());
            }
            Input::LocalUp { local, info } => {
                self.head(at, LOCAL_UP);
                self.address(*local);
                self.bytes.put_u32_le(info.mtu.unwrap_or(0));
                self.bytes.put_u64_le(info.link.bandwidth.map_or(0, |rate| rate.0));
                self.bytes.put_u64_le(info.link.delay.map_or(u64::MAX, |delay| delay.0));
                self.bytes.put_u32_le(info.interface.unwrap_or(0));
                self.bytes.put_u64_le(info.limit.map_or(0, |rate| rate.0));
                self.bytes.put_u8(info.link.spill.into());
            }
            Input::LocalDown { local } => {
                self.head(at, LOCAL_DOWN);
                self.address(*local);
            }
            Input::Known { name, path, age } => {
                self.head(at, KNOWN);
                let ends = [name.peer, name.local, name.remote];
                ends.into_iter().for_each(|ip| self.address(SocketAddr::new(ip, 0)));
                let numbers = [path.rate.0, path.rtt.0, age.0];
                numbers.into_iter().for_each(|number| self.bytes.put_u64_le(number));
            }
        }
        Ok(())
    }

    /// The endpoint was polled at `at` with nothing new.
    pub fn turn(&mut self, at: Instant) {
        self.head(at, TURN);
    }

    /// The log so far.
    pub fn into_bytes(self) -> Bytes {
        self.bytes.into()
    }

    fn entry(&mut self, at: Instant, kind: u8, locators: Option<&Locators>, bytes: &[u8]) {
        self.head(at, kind);
        locators.iter().flat_map(|l| [l.local, l.remote]).for_each(|address| self.address(address));
        self.bytes.put_u32_le(bytes.len() as u32);
        self.bytes.put_slice(bytes);
    }

    fn head(&mut self, at: Instant, kind: u8) {
        self.bytes.put_u64_le(at.0);
        self.bytes.put_u8(kind);
    }

    fn address(&mut self, address: SocketAddr) {
        match address.ip() {
            IpAddr::V4(ip) => {
                self.bytes.put_u8(4);
                self.bytes.put_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                self.bytes.put_u8(6);
                self.bytes.put_slice(&ip.octets());
            }
        }
        self.bytes.put_u16_le(address.port());
    }
}

/// Why a log cannot be read (on).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum LogError {
    /// It does not begin as logs do.
    #[error("not a log of inputs")]
    Magic,
    /// It ends within an entry.
    #[error("log of inputs ends in the middle of an entry")]
    Truncated,
    /// There is no such kind of entry, or family of addresses.
    #[error("log of inputs: unknown {what} {got}")]
    Unknown {
        /// Kind or family.
        what: &'static str,
        /// Its number.
        got: u8,
    },
    /// A segment that is none.
    #[error("log of inputs: {0}")]
    Segment(#[from] WireError),
}

/// Reads a log: an iterator that ends after its last entry or its first error.
#[derive(Clone, Debug)]
pub struct LogReader {
    rest: Bytes,
}

impl LogReader {
    /// A reader at the first entry.
    pub fn new(mut log: Bytes) -> Result<Self, LogError> {
        if log.len() < MAGIC.len() || log.split_to(MAGIC.len()) != MAGIC[..] {
            return Err(LogError::Magic);
        }
        Ok(Self { rest: log })
    }

    fn entry(&mut self) -> Result<(Instant, Option<Input>), LogError> {
        let truncated = |_| LogError::Truncated;
        let at = Instant(self.rest.try_get_u64_le().map_err(truncated)?);
        let input = match self.rest.try_get_u8().map_err(truncated)? {
            TURN => return Ok((at, None)),
            SEGMENT => {
                Input::Segment { locators: self.locators()?, segment: decode_datagram(&self.bytes()?)? }
            }
            DATAGRAM => Input::Datagram { locators: self.locators()?, bytes: BytesMut::from(self.bytes()?) },
            PACKET => Input::Packet { bytes: self.bytes()? },
            TOO_BIG => self.too_big()?,
            LOCAL_UP => Input::LocalUp { local: self.address()?, info: self.info()? },
            PATH_MTU => {
                let (locators, bytes) = (self.locators()?, self.bytes()?);
                let mtu = bytes[..].try_into().map_err(|_| LogError::Truncated)?;
                Input::PathMtu { locators, mtu: u32::from_le_bytes(mtu) }
            }
            LOCAL_DOWN => Input::LocalDown { local: self.address()? },
            KNOWN => self.known()?,
            got => return Err(LogError::Unknown { what: "kind", got }),
        };
        Ok((at, Some(input)))
    }

    fn info(&mut self) -> Result<LocalInfo, LogError> {
        let truncated = |_| LogError::Truncated;
        let mtu = self.rest.try_get_u32_le().map_err(truncated)?;
        let rate = self.rest.try_get_u64_le().map_err(truncated)?;
        let delay = self.rest.try_get_u64_le().map_err(truncated)?;
        let interface = self.rest.try_get_u32_le().map_err(truncated)?;
        let limit = self.rest.try_get_u64_le().map_err(truncated)?;
        let spill = self.rest.try_get_u8().map_err(truncated)? != 0;
        let told = |rate| (rate != 0).then_some(Rate(rate));
        let (bandwidth, limit) = (told(rate), told(limit));
        let delay = (delay != u64::MAX).then_some(Duration(delay));
        let (mtu, interface) = ((mtu != 0).then_some(mtu), (interface != 0).then_some(interface));
        Ok(LocalInfo { mtu, link: Link { bandwidth, delay, spill }, interface, limit })
    }

    fn locators(&mut self) -> Result<Locators, LogError> {
        Ok(Locators { local: self.address()?, remote: self.address()? })
    }

    fn address(&mut self) -> Result<SocketAddr, LogError> {
        let ip: IpAddr = match self.rest.try_get_u8().map_err(|_| LogError::Truncated)? {
            4 => self.octets::<4>()?.into(),
            6 => self.octets::<16>()?.into(),
            got => return Err(LogError::Unknown { what: "family", got }),
        };
        Ok(SocketAddr::new(ip, self.rest.try_get_u16_le().map_err(|_| LogError::Truncated)?))
    }

    fn octets<const N: usize>(&mut self) -> Result<[u8; N], LogError> {
        let mut octets = [0; N];
        self.rest.try_copy_to_slice(&mut octets).map_err(|_| LogError::Truncated)?;
        Ok(octets)
    }

    fn too_big(&mut self) -> Result<Input, LogError> {
        let locators = self.locators()?;
        let mut bytes = self.bytes()?;
        if bytes.len() != 12 {
            return Err(LogError::Truncated);
        }
        let ports = Ports { local: bytes.get_u16_le(), remote: bytes.get_u16_le() };
        Ok(Input::TooBig { locators, ports, seq: Seq(bytes.get_u32_le()), mtu: bytes.get_u32_le() })
    }

    fn known(&mut self) -> Result<Input, LogError> {
        let [peer, local, remote] = [self.address()?.ip(), self.address()?.ip(), self.address()?.ip()];
        let mut number = || self.rest.try_get_u64_le().map_err(|_| LogError::Truncated);
        let path = KnownPath { rate: Rate(number()?), rtt: Duration(number()?) };
        Ok(Input::Known { name: PathName { peer, local, remote }, path, age: Duration(number()?) })
    }

    fn bytes(&mut self) -> Result<Bytes, LogError> {
        let len = self.rest.try_get_u32_le().map_err(|_| LogError::Truncated)? as usize;
        if len > self.rest.len() {
            return Err(LogError::Truncated);
        }
        Ok(self.rest.split_to(len))
    }
}

impl Iterator for LogReader {
    /// When, and what arrived; nothing for a turn without arrival.
    type Item = Result<(Instant, Option<Input>), LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.rest.clear();
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use polypath_transport::Segment;
    use proptest::prelude::*;

    use super::*;

    fn log() -> Bytes {
        let v4 = Locators { local: ([1, 2, 3, 4], 5).into(), remote: ([6, 7, 8, 9], 10).into() };
        let v6 = Locators { local: "[fe80::1]:5".parse().unwrap(), remote: "[fe80::2]:6".parse().unwrap() };
        let mut log = LogWriter::default();
        log.input(Instant(1), &Input::Segment { locators: v4, segment: Segment::default() }).unwrap();
        log.turn(Instant(2));
        let bytes = Bytes::from_static(b"what came");
        log.input(Instant(3), &Input::Datagram { locators: v6, bytes: BytesMut::from(&bytes[..]) }).unwrap();
        log.input(Instant(4), &Input::Packet { bytes }).unwrap();
        let ports = Ports { local: 1, remote: 2 };
        log.input(Instant(5), &Input::TooBig { locators: v4, ports, seq: Seq(7), mtu: 1300 }).unwrap();
        let link = Link { bandwidth: None, delay: Some(Duration(7)), spill: true };
        let info = LocalInfo { mtu: Some(1500), link, interface: Some(3), limit: Some(Rate(9)) };
        log.input(Instant(6), &Input::LocalUp { local: v6.local, info }).unwrap();
        log.input(Instant(7), &Input::LocalDown { local: v6.local }).unwrap();
        log.input(Instant(8), &Input::PathMtu { locators: v6, mtu: 1400 }).unwrap();
        let name = PathName { peer: v6.local.ip(), local: v4.local.ip(), remote: v4.remote.ip() };
        let path = KnownPath { rate: Rate(1), rtt: Duration(2) };
        log.input(Instant(9), &Input::Known { name, path, age: Duration(3) }).unwrap();
        log.into_bytes()
    }

    #[test]
    fn a_log_reads_as_it_was_written() {
        let entries: Vec<_> = LogReader::new(log()).unwrap().map(Result::unwrap).collect();
        let again = entries.iter().fold(LogWriter::default(), |mut again, (at, input)| {
            match input {
                Some(input) => again.input(*at, input).unwrap(),
                None => again.turn(*at),
            }
            again
        });
        assert_eq!(again.into_bytes(), log());
        assert_eq!(entries.iter().map(|(at, _)| at.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    proptest! {
        #[test]
        fn a_damaged_log_is_an_error_and_nothing_worse(cut in 0usize..200, at in 8usize..200, bit in 0u8..8) {
            let mut bytes = log().to_vec();
            let at = at.min(bytes.len() - 1);
            bytes[at] ^= 1 << bit;
            bytes.truncate(cut.max(8));
            for entry in LogReader::new(bytes.into()).unwrap() {
                let _: Result<_, LogError> = entry;
            }
        }
    }

    #[test]
    fn a_cut_log_says_so() {
        let whole = log();
        let last = LogReader::new(whole.slice(..whole.len() - 1)).unwrap().last().unwrap();
        assert_eq!(last.unwrap_err(), LogError::Truncated);
        assert_eq!(LogReader::new(Bytes::from_static(b"PPINPUT")).unwrap_err(), LogError::Magic);
    }
}
