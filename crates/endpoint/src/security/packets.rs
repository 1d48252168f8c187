//! Packets in and out: what is in them, and on which path they go.

use bytes::BytesMut;
use polypath_wire::hip::{Hit, PacketView, udp};
use polypath_wire::{Ecn, Instant};

use super::heartbeat::{self, Heard};
use super::path::Content;
use super::{Security, inner, route};
use crate::cover::{Cargo, Change, Inner};
use crate::outlet::Outlet;
use crate::paths::Locators;

/// HIP hears with each heartbeat that data comes from an address where the peer is not proved to be, and after this many bytes.
const MUCH: u64 = 4096;

impl Security {
    /// A UDP payload came. What is in it for others is returned.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        locators: &Locators,
        ecn: Ecn,
        bytes: BytesMut,
    ) -> Option<Inner> {
        match udp::classify(&bytes) {
            udp::Payload::Hip(packet) => self.receive_hip(now, locators, &bytes, packet),
            udp::Payload::Esp(packet) => {
                let spi = packet.first_chunk().map_or(0, |spi| u32::from_be_bytes(*spi));
                return self.receive_esp(now, locators, spi, (ecn, bytes));
            }
            udp::Payload::Keepalive => {}
            udp::Payload::Unknown => self.stats.unknown += 1,
        }
        None
    }

    /// `packet` is all of `payload` but its marker, if it has one.
    fn receive_hip(&mut self, now: Instant, locators: &Locators, payload: &[u8], packet: &[u8]) {
        let route = route(*locators);
        let payload = if route.is_udp() { payload } else { packet };
        let view = PacketView::new(packet).ok();
        let names: Vec<Hit> = view.iter().flat_map(|view| self.hip.names_of(view.sender())).collect();
        names.iter().for_each(|name| self.cancel_renewal(now, *name));
        if view.is_some_and(|view| self.doubts(now, locators, &view, payload)) {
            return;
        }
        if self.hip.handle(now, route, payload) {
            names.into_iter().for_each(|name| self.peers.touch(name));
            self.settle(now);
        }
    }

    fn receive_esp(
        &mut self,
        now: Instant,
        locators: &Locators,
        spi: u32,
        (ecn, mut bytes): (Ecn, BytesMut),
    ) -> Option<Inner> {
        let Some(&number) = self.spis.get(&spi) else {
            self.stats.unknown_spi += 1;
            return None;
        };
        let path = self.paths.get_mut(number)?;
        let Some(Ok(opened)) = path.open(spi, &mut bytes) else {
            self.stats.refused += 1;
            return None;
        };
        self.stats.opened += 1;
        path.heart.hear(now);
        if path.told_silent {
            self.events.extend(path.tell_whether_it_answers());
        }
        path.untold += bytes.len() as u64;
        path.received += bytes.len() as u64;
        path.marked += u64::from(ecn == Ecn::Marked);
        if opened.skipped > 0 {
            self.changes.push_back(Change::Skipped(inner(self.ours, path.peer, number)));
        }
        let first = path.fresh && path.spi() == spi;
        if first {
            path.fresh = false;
            path.use_next();
        }
        let moved = *locators != path.source && path.is_newest(spi, opened.seq);
        if moved {
            path.source = *locators;
        }
        let elsewhere = path.source != path.locators && path.untold > MUCH;
        if first || moved || elsewhere || !path.reachable && self.config.hip.same_spi {
            self.tell_hip(now, number); // who is not proved yet earns what it is sent
        }
        self.opened(now, number, opened, (ecn, bytes))
    }

    fn opened(
        &mut self,
        now: Instant,
        number: u16,
        opened: polypath_esp::Opened,
        (ecn, bytes): (Ecn, BytesMut),
    ) -> Option<Inner> {
        let path = self.paths.get_mut(number)?;
        let at = inner(self.ours, path.peer, number);
        match path.content(self.ours, at, &opened, bytes) {
            Content::Inner(inner) => return Some(Inner { ecn, ..inner }),
            Content::Icmp(mut message) => {
                match heartbeat::read(&message, number, path.family(self.ours, true)) {
                    Heard::Request { id, seq } => {
                        heartbeat::reply(id, seq, path.family(self.ours, false), &mut message);
                        let write = |out: &mut [u8]| out.copy_from_slice(&message);
                        let len = path.seal_icmp(message.len(), &mut self.scratch, write);
                        self.send_scratch(now, number, self.config.answer_ecn(ecn), len);
                    }
                    Heard::Reply { len, .. } if len > heartbeat::LEN => {
                        if path.probe_answered(len) {
                            self.tell_size(number);
                        }
                    }
                    Heard::Reply { sent, .. } => {
                        self.stats.heartbeats += 1;
                        path.marks.on_answer(ecn);
                        let rtt = path.on_heartbeat(now, sent);
                        self.events.extend(path.tell_whether_it_answers());
                        let (peer, inner) = (path.peer, inner(self.ours, path.peer, number));
                        self.peers.touch(peer);
                        if std::mem::take(&mut path.left_out) && path.up {
                            self.changes.push_back(Change::Up(inner));
                        }
                        self.changes.push_back(Change::Sample(inner, rtt));
                        if path.mtu.overtaken(sent) {
                            self.probe(now, number);
                        }
                        self.paths.retime(number);
                        self.cancel_renewal(now, peer);
                        self.tell_round_trip(now, number);
                    }
                    Heard::Other => self.stats.other += 1,
                }
            }
            Content::Nothing => {}
        }
        None
    }

    /// Gives `outlet` a payload on the path with these inner locators, sealed where it is sent from.
    pub(super) fn send(
        &mut self,
        now: Instant,
        inner: &Locators,
        cargo: &Cargo<'_>,
        outlet: &mut impl Outlet,
    ) {
        let (ours, path) = (self.ours, self.paths.get_mut(inner.local.port()));
        let Some(path) = path.filter(|p| p.peer.as_ipv6() == inner.remote.ip()) else {
            self.stats.unsent += 1;
            return;
        };
        let len = path.outbound.sealed_len(cargo.len());
        if !path.reachable && !self.hip.may_send(now, path.peer, path.spi(), len as u64) {
            self.stats.unsent += 1;
            return;
        }
        let (locators, unsent) = (path.locators, &mut self.stats.unsent);
        let ecn = if path.marks.may_be() { cargo.ecn() } else { Ecn::None };
        outlet.send_datagram_with(now, &locators, ecn, len, |room| {
            let sealed = path.seal(ours, cargo, room).is_some();
            path.sent += if sealed { len as u64 } else { 0 };
            *unsent += u64::from(!sealed);
            sealed
        });
    }

    pub(super) fn send_scratch(&mut self, now: Instant, number: u16, ecn: Ecn, len: Option<usize>) {
        let Some(path) = self.paths.get(number) else { return };
        match len {
            Some(len) if path.reachable || self.hip.may_send(now, path.peer, path.spi(), len as u64) => {
                self.outbox.push_back((path.locators, ecn, self.scratch[..len].to_vec()));
            }
            _ => self.stats.unsent += 1,
        }
    }
}
