//! One path in its SAs.

use std::net::Ipv6Addr;

use bytes::BytesMut;
use polypath_esp::{Inbound, OpenError, Opened, Outbound};
use polypath_hip::{Link, SaPair, suite::EspSuite};
use polypath_transport::PathConfig;
use polypath_wire::hip::Hit;
use polypath_wire::icmp::{IcmpFamily, PROTOCOL_V6};
use polypath_wire::shim::Shim;
use polypath_wire::tcp::MIN_HEADER_LEN;
use polypath_wire::{Checksum, Duration, Ecn, Instant, Rate, udp};

use super::ecn::Marking;
use super::heartbeat::{self, Heart};
use super::mtu::PathMtu;
use super::report::PeerEvent;
use crate::cover::{Cargo, Inner};
use crate::frame;
use crate::paths::Locators;

/// Most bytes of a UDP payload that we make.
pub(super) const ROOM: usize = 1 << 16;
/// What every network carries as a payload of UDP, bytes.
const SMALL: usize = 500;
/// How long the rate of the fastest connection counts, although others are slower.
const RATE_LASTS: Duration = Duration::from_secs(10);
/// Packets between two heartbeats that are no flow of data.
const FEW: u64 = 4;
/// Heartbeats in a hurry leave no sooner after one another than this many times the smallest one-way delay: on a
/// link of 2 kbit/s they would take half of it.
const HURRY: u64 = 16;

/// A path to a peer: its SAs and what it measures.
#[derive(Debug)]
pub(super) struct SecurePath {
    /// The name of its association, and the peer's HIT.
    pub peer: Hit,
    pub hit: Hit,
    /// The outer addresses.
    pub locators: Locators,
    /// Those between which whoever began the association looks for it: they stay when the other end is seen elsewhere.
    pub sought: Locators,
    /// Those between which the newest packet came.
    pub source: Locators,
    pub suite: EspSuite,
    /// What we send with.
    pub outbound: Outbound,
    /// What will replace it when the peer has used the new SA of a pair that it asked for.
    pub next_outbound: Option<Outbound>,
    /// What we receive with, the newest last: two while new keys are taken into use.
    pub inbound: Vec<Inbound>,
    /// Whether the peer proved that it is there.
    pub reachable: bool,
    /// Whether connections may use it.
    pub up: bool,
    /// It was silent when a connection began, which does not have it.
    pub left_out: bool,
    /// The last that was reported of it while it was up: that the peer does not answer on it.
    pub told_silent: bool,
    /// The program at its other end may have ended without a word.
    pub doubted: bool,
    /// Heartbeats in a row without an answer while another association with the peer was heard between the same addresses.
    pub outlived: u32,
    /// We asked HIP to take it away.
    pub gone: bool,
    /// We asked for new keys.
    pub rekeying: bool,
    /// Bytes received that HIP has not heard of.
    pub untold: u64,
    /// Nothing came on the newest SA yet.
    pub fresh: bool,
    pub heart: Heart,
    pub marks: Marking,
    pub mtu: PathMtu,
    /// Whether we check TCP's checksums, and whether the peer may do so.
    pub checksums: [bool; 2],
    /// What was measured: half the smallest round trip of a heartbeat, and the [rate](Self::see_rate) at which a connection delivers that has more to send.
    pub measured: Link,
    /// When that rate was measured.
    measured_at: Instant,
    /// Whether connections last heard that it spills: that it is for what others have no room for.
    pub spills: bool,
    /// Whether something large left since the last heartbeat.
    pub busy: bool,
    /// How often it got new keys.
    pub rekeyed: u32,
    /// Packets that our SAs before the present ones sealed, and how many were sealed at the last heartbeat.
    pub sealed_before: u64,
    pub sealed_at_beat: u64,
    /// Bytes of packets with data sent, and of all received.
    pub sent: u64,
    pub received: u64,
    /// Packets received with a mark of congestion.
    pub marked: u64,
}

/// What TCP's checksum covers beside the segment (BEET, RFC 7402 §3.1), if it is in use.
fn checksum(used: bool, from: Hit, to: Hit) -> Checksum {
    match used {
        true => Checksum::Ipv6 { src: from.as_ipv6(), dst: to.as_ipv6() },
        false => Checksum::Unused,
    }
}

/// What an opened packet held.
pub(super) enum Content {
    /// A payload for others.
    Inner(Inner),
    /// An ICMPv6 message, in the buffer it came in.
    Icmp(BytesMut),
    /// Nothing.
    Nothing,
}

impl SecurePath {
    /// A connection delivers at `rate`. Of several the fastest tells most; a small one after it, or its own end, tells less than it did.
    pub fn see_rate(&mut self, now: Instant, rate: Option<Rate>) {
        let lapsed = now.since(self.measured_at) > RATE_LASTS;
        if rate.is_some() && (lapsed || rate >= self.measured.bandwidth) {
            (self.measured.bandwidth, self.measured_at) = (rate, now);
        }
    }

    /// One that nobody uses yet, of an association's name and the peer's HIT.
    pub fn new(
        now: Instant,
        (peer, hit): (Hit, Hit),
        pair: &SaPair,
        (inbound, outbound): (Inbound, Outbound),
        mtu: PathMtu,
    ) -> Self {
        let locators = Locators { local: pair.route.local, remote: pair.route.remote };
        Self {
            peer,
            hit,
            locators,
            sought: locators,
            source: locators,
            suite: pair.suite,
            outbound,
            next_outbound: None,
            inbound: vec![inbound],
            reachable: false,
            up: false,
            left_out: false,
            told_silent: false,
            doubted: false,
            outlived: 0,
            gone: false,
            rekeying: false,
            untold: 0,
            fresh: true,
            heart: Heart::new(now, Duration::ZERO),
            marks: Marking::default(),
            mtu,
            checksums: [true; 2],
            measured: Link::default(),
            measured_at: now,
            spills: false,
            busy: false,
            rekeyed: 0,
            sealed_before: 0,
            sealed_at_beat: 0,
            sent: 0,
            received: 0,
            marked: 0,
        }
    }

    /// The SPI by which HIP knows the path.
    pub fn spi(&self) -> u32 {
        self.inbound.last().map_or(0, |sa| sa.spi().0)
    }

    /// The SPI of what the peer is known to send with.
    pub fn used_spi(&self) -> u32 {
        let used = if self.fresh { self.inbound.first() } else { self.inbound.last() };
        used.map_or(0, |sa| sa.spi().0)
    }

    /// Makes a packet of `cargo` in `out`; its length.
    pub fn seal(&mut self, ours: Hit, cargo: &Cargo<'_>, out: &mut [u8]) -> Option<usize> {
        let room = out.get_mut(self.outbound.payload_offset()..)?;
        let len = match cargo {
            Cargo::Segment(segment) => {
                let checksum = checksum(self.checksums[1], ours, self.hit);
                frame::encode(segment, checksum, room).ok()?
            }
            Cargo::Frame(frame) => frame.emit(room).ok()?,
        };
        self.busy |= len > SMALL;
        self.outbound.seal(out, len, cargo.next_header()).ok()
    }

    /// Makes a packet of the ICMPv6 message that `write` writes, `len` bytes.
    pub fn seal_icmp(&mut self, len: usize, out: &mut [u8], write: impl FnOnce(&mut [u8])) -> Option<usize> {
        let at = self.outbound.payload_offset();
        write(out.get_mut(at..at + len)?);
        self.outbound.seal(out, len, PROTOCOL_V6).ok()
    }

    /// Opens a packet for the SA with that SPI, where it stands.
    pub fn open(&mut self, spi: u32, packet: &mut [u8]) -> Option<Result<Opened, OpenError>> {
        let sa = self.inbound.iter_mut().find(|sa| sa.spi().0 == spi)?;
        Some(sa.open(packet))
    }

    /// Whether the packet number `seq` of the SA with that SPI, which was opened, is the last that the peer is known to have sent.
    pub fn is_newest(&self, spi: u32, seq: u64) -> bool {
        let sa = self.inbound.iter().find(|sa| sa.spi().0 == spi);
        spi == self.used_spi() && sa.is_some_and(|sa| sa.highest() == seq)
    }

    /// What an opened packet on the path `at` holds, in its memory.
    pub fn content(&self, ours: Hit, at: Locators, opened: &Opened, mut packet: BytesMut) -> Content {
        let (next_header, payload) = (opened.next_header, opened.payload.clone());
        if next_header == PROTOCOL_V6 {
            packet.truncate(payload.end);
            return Content::Icmp(packet.split_off(payload.start));
        }
        if opened.is_dummy() {
            return Content::Nothing;
        }
        Content::Inner(Inner {
            path: at,
            next_header,
            checksum: checksum(self.checksums[0], self.hit, ours),
            ecn: Ecn::None,
            bytes: packet.freeze().slice(payload),
        })
    }

    /// The new SA pair replaces the present one: at once if the peer has it already, else when the
    /// peer has used it.
    pub fn rekey(&mut self, pair: &SaPair, inbound: Inbound, outbound: Outbound) {
        if pair.replaces.is_some_and(|before| before != self.spi()) {
            // Another pair has taken the place of the replaced one meanwhile, and is what we send with.
            self.inbound.insert(0, inbound);
            return;
        }
        self.inbound.push(inbound);
        self.suite = pair.suite;
        self.fresh = true;
        self.rekeyed += 1;
        self.next_outbound = Some(outbound);
        self.rekeying = false;
        if pair.confirmed {
            self.use_next();
        }
    }

    /// The peer has what we made for it: what we send from now on, we send with it.
    pub fn use_next(&mut self) {
        if let Some(next) = self.next_outbound.take() {
            self.sealed_before += self.outbound.sealed();
            self.outbound = next;
        }
    }

    /// Whether the SAs have served long enough.
    pub fn is_worn(&self) -> bool {
        !self.rekeying
            && self.next_outbound.is_none()
            && self.inbound.len() == 1
            && (self.outbound.needs_rekey() || self.inbound.iter().any(Inbound::needs_rekey))
    }

    /// Whether more left since the last heartbeat than heartbeats, their answers and probes.
    pub fn carried_data(&mut self) -> bool {
        let sealed = self.sealed_before + self.outbound.sealed();
        sealed > std::mem::replace(&mut self.sealed_at_beat, sealed) + FEW
    }

    /// Smallest round trip of a heartbeat, before there is one that of the exchange that made the path, if it was measured.
    fn round_trip(&self) -> Option<Duration> {
        self.measured.delay.map(|delay| delay.times(2)).or(self.last_round_trip())
    }

    /// What a packet and its answer take now, if it was measured.
    fn last_round_trip(&self) -> Option<Duration> {
        Some(self.heart.round_trip()).filter(|rtt| *rtt > Duration::ZERO)
    }

    /// The path as connections have it.
    pub fn config(&self) -> PathConfig {
        let (segment, carried) = (self.largest(self.mtu.link()), self.largest(self.mtu.carried()));
        let overhead = self.headers() + self.outbound.sealed_len(segment as usize) as u32 - segment;
        let tcp = MIN_HEADER_LEN as u32;
        let mss = |segment: u32| segment.saturating_sub(tcp).max(64);
        PathConfig {
            mss: mss(segment),
            carried: Some(mss(carried)),
            overhead: overhead + tcp,
            round_trip: self.round_trip(),
            last_round_trip: self.last_round_trip(),
            ..PathConfig::default()
        }
    }

    /// The largest IP packet that is sent on it, and the largest packet of another program that one carries, bytes.
    pub fn sizes(&self) -> (u32, u32) {
        let payload = self.largest(self.mtu.carried());
        let sealed = self.outbound.sealed_len(payload as usize) as u32;
        (self.headers() + sealed, payload.saturating_sub(Shim::LEN as u32))
    }

    /// The most that an IP packet of `mtu` bytes carries in ESP, bytes.
    fn largest(&self, mtu: u32) -> u32 {
        self.outbound.max_payload(mtu.saturating_sub(self.headers()) as usize) as u32
    }

    /// Bytes before ESP.
    fn headers(&self) -> u32 {
        let ip = if self.locators.remote.is_ipv4() { 20 } else { 40 };
        let udp = if self.locators.remote.port() == 0 { 0 } else { udp::HEADER_LEN as u32 };
        ip + udp
    }

    /// An answer of `len` bytes came. Whether that was to a probe, and more is sent from now on.
    pub fn probe_answered(&mut self, len: usize) -> bool {
        let asked = self.mtu.asked().map(|size| self.largest(size) as usize);
        asked == Some(len) && self.mtu.answered()
    }

    /// Makes the probe that is due, if one is.
    pub fn probe(&mut self, ours: Hit, id: u16, now: Instant, out: &mut [u8]) -> Option<usize> {
        let size = self.mtu.next_probe(now, std::mem::take(&mut self.busy))?;
        let (len, family) = (self.largest(size) as usize, self.family(ours, false));
        self.seal_icmp(len, out, |message| heartbeat::request(id, 0, now, family, message))
    }

    /// The heartbeat that left at `sent` came back; its round trip.
    pub fn on_heartbeat(&mut self, now: Instant, sent: Instant) -> Duration {
        self.heart.on_answer(now, sent);
        self.doubted = false;
        let rtt = now.since(sent);
        let delay = rtt.over(2);
        self.measured.delay = Some(self.measured.delay.map_or(delay, |least| least.min(delay)));
        rtt
    }

    /// The event that the peer answers on it no longer, or again, if that is news.
    pub fn tell_whether_it_answers(&mut self) -> Option<(Hit, PeerEvent)> {
        let silent = !self.heart.answers();
        if !self.up || silent == self.told_silent {
            return None;
        }
        self.told_silent = silent;
        let event = if silent { PeerEvent::PathSilent } else { PeerEvent::PathAnswers };
        Some((self.hit, event(self.locators)))
    }

    /// The checksum context of ICMPv6 messages that we send, or receive.
    pub fn family(&self, ours: Hit, inbound: bool) -> IcmpFamily {
        let (ours, peer): (Ipv6Addr, Ipv6Addr) = (ours.as_ipv6(), self.hit.as_ipv6());
        match inbound {
            true => IcmpFamily::V6 { src: peer, dst: ours },
            false => IcmpFamily::V6 { src: ours, dst: peer },
        }
    }

    /// Makes the heartbeat that is due; the next one follows after `every`, see [`Heart::beat`]. There is a hurry while data
    /// flows to the peer, and more of it where a program may have ended.
    pub fn beat(
        &mut self,
        ours: Hit,
        id: u16,
        now: Instant,
        (every, missed, flows): (Duration, u32, bool),
        out: &mut [u8],
    ) -> Option<usize> {
        let least = self.measured.delay.unwrap_or(Duration::ZERO).times(HURRY);
        let hurry = match self.doubted {
            true => Some(every.over(10)),
            false => flows.then(|| every.times(3).over(10).max(least)),
        };
        let (seq, family) = (self.heart.beat(now, every, missed, hurry), self.family(ours, false));
        self.seal_icmp(heartbeat::LEN, out, |message| heartbeat::request(id, seq, now, family, message))
    }
}
