//! Segments of TCP that a router cut into fragments, put together as the host that they are for would (RFC 791 §3.2, RFC 8200 §4.5).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use polypath_wire::ipv4::{Ipv4Header, Ipv4View};
use polypath_wire::ipv6::{Ipv6Header, Ipv6View};
use polypath_wire::tcp;

/// Segments of which parts are missing, at most: 64 KiB each.
const MOST: usize = 64;
/// Parts of one, at most: 64 KiB over a link of 576 bytes.
const PARTS: usize = 128;
/// How long the missing parts are waited for (RFC 791: 15 s and more).
const PATIENCE: Duration = Duration::from_secs(30);

/// Source, destination and identification.
type Key = (IpAddr, IpAddr, u32);

/// Segments of which parts are missing.
#[derive(Debug, Default)]
pub(super) struct Fragments(BTreeMap<Key, Parts>);

/// What has come of one.
#[derive(Debug)]
struct Parts {
    began: Instant,
    /// By where they begin, bytes.
    parts: BTreeMap<usize, Part>,
}

/// A fragment, its data, and whether more follow.
#[derive(Debug)]
struct Part {
    packet: Bytes,
    data: Bytes,
    more: bool,
}

/// A segment in a packet of its own, and the fragments that it came in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub packet: Bytes,
    pub fragments: Vec<Bytes>,
}

impl Fragments {
    /// Takes a fragment of TCP; the whole, if it is the last one missing. `lost` counts fragments that are given up, and packets that are none.
    pub fn add(&mut self, now: Instant, packet: &Bytes, lost: &mut u64) -> Option<Whole> {
        let Some((key, at, part)) = read(packet) else {
            *lost += 1;
            return None;
        };
        self.give_up(now, &key, lost);
        let waiting = self.0.entry(key).or_insert_with(|| Parts { began: now, parts: BTreeMap::new() });
        if waiting.parts.len() == PARTS || !waiting.take(at, part) {
            // A router makes neither overlapping fragments (RFC 5722 §4) nor more of them.
            *lost += 1 + self.0.remove(&key).map_or(0, |waiting| waiting.parts.len() as u64);
            return None;
        }
        let data = waiting.data()?;
        let waiting = self.0.remove(&key)?;
        let fragments: Vec<Bytes> = waiting.parts.into_values().map(|part| part.packet).collect();
        let packet = joined(key, &data);
        *lost += if packet.is_none() { fragments.len() as u64 } else { 0 };
        Some(Whole { packet: packet?, fragments })
    }

    /// Gives up what has waited for too long, and the oldest if there is no room for `key`.
    fn give_up(&mut self, now: Instant, key: &Key, lost: &mut u64) {
        let full = self.0.len() >= MOST && !self.0.contains_key(key);
        let oldest = self.0.iter().min_by_key(|(_, waiting)| waiting.began).map(|(key, _)| *key);
        let oldest = oldest.filter(|_| full);
        self.0.retain(|key, waiting| {
            let stays = now.duration_since(waiting.began) < PATIENCE && oldest != Some(*key);
            *lost += if stays { 0 } else { waiting.parts.len() as u64 };
            stays
        });
    }
}

impl Parts {
    /// Whether `part` is a copy of one that is there, or fits beside all of them; if so it is there.
    fn take(&mut self, at: usize, part: Part) -> bool {
        if self.parts.get(&at).is_some_and(|there| there.data == part.data && there.more == part.more) {
            return true;
        }
        let end = at + part.data.len();
        let before = self.parts.range(..=at).next_back();
        let after = self.parts.range(at..).next();
        let behind = before.is_none_or(|(start, part)| part.more && start + part.data.len() <= at);
        let ahead = after.is_none_or(|(start, _)| part.more && end <= *start);
        let fits = behind && ahead;
        if fits {
            self.parts.insert(at, part);
        }
        fits
    }

    /// All data, if none is missing.
    fn data(&self) -> Option<Vec<u8>> {
        let mut end = 0;
        for (start, part) in &self.parts {
            end = (*start == end).then_some(end + part.data.len())?;
        }
        let is_last = self.parts.values().next_back().is_some_and(|part| !part.more);
        is_last.then(|| self.parts.values().flat_map(|part| part.data.iter().copied()).collect())
    }
}

/// Where a fragment of TCP belongs and begins, and what it holds. None that others follow ends between the units of 8 bytes.
fn read(packet: &Bytes) -> Option<(Key, usize, Part)> {
    let (key, at, more, payload) = match packet.first()? >> 4 {
        6 => {
            let view = Ipv6View::new(packet).ok()?;
            let fragment = view.upper().fragment.filter(|_| view.upper().protocol == tcp::PROTOCOL)?;
            let key = (view.src().into(), view.dst().into(), fragment.id);
            (key, fragment.offset, fragment.more, view.payload())
        }
        _ => {
            let view = Ipv4View::new(packet).ok()?;
            let header = Ipv4Header::from_view(&view);
            if header.protocol != tcp::PROTOCOL || !view.is_fragment() {
                return None;
            }
            let key = (view.src().into(), view.dst().into(), header.id.into());
            (key, header.fragment_offset, header.more_fragments, view.payload())
        }
    };
    if payload.is_empty() || more && !payload.len().is_multiple_of(8) {
        return None;
    }
    let part = Part { packet: packet.clone(), data: packet.slice_ref(payload), more };
    Some((key, usize::from(at) * 8, part))
}

/// A packet of `data` alone; `None` if it would be too long for one.
fn joined((src, dst, _): Key, data: &[u8]) -> Option<Bytes> {
    let len = u16::try_from(data.len()).ok()?;
    let mut packet = vec![0; 40 + data.len()];
    let header = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => Ipv4Header::new(tcp::PROTOCOL, src, dst, len).emit(&mut packet),
        (IpAddr::V6(src), IpAddr::V6(dst)) => Ipv6Header::new(tcp::PROTOCOL, src, dst, len).emit(&mut packet),
        _ => return None,
    };
    let header = header.ok()?;
    packet.truncate(header + data.len());
    packet[header..].copy_from_slice(data);
    Some(packet.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: usize = 8;

    /// The fragment of a datagram `id` that begins `at` bytes behind its start.
    fn v4(id: u16, at: usize, data: &[u8], more: bool) -> Bytes {
        let [src, dst] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
        let header = Ipv4Header {
            id,
            dont_fragment: false,
            more_fragments: more,
            fragment_offset: (at / UNIT) as u16,
            ..Ipv4Header::new(tcp::PROTOCOL, src, dst, data.len() as u16)
        };
        let mut packet = vec![0; 20];
        header.emit(&mut packet).unwrap();
        [&packet, data].concat().into()
    }

    fn v6(at: usize, data: &[u8], more: bool) -> Bytes {
        let [src, dst] = ["fd00::1", "fd00::2"].map(|ip| ip.parse().unwrap());
        let mut packet = vec![0; 40];
        Ipv6Header::new(44, src, dst, 8 + data.len() as u16).emit(&mut packet).unwrap();
        let [high, low] = (at as u16 | u16::from(more)).to_be_bytes();
        [&packet[..], &[tcp::PROTOCOL, 0, high, low, 0, 0, 0, 9], data].concat().into()
    }

    fn data(from: usize, to: usize) -> Vec<u8> {
        (from..to).map(|n| n as u8).collect()
    }

    /// The data of the packet of what `all` make, and how many are lost.
    fn made(all: &[Bytes]) -> (Vec<Vec<u8>>, u64) {
        let (mut fragments, mut lost, now) = (Fragments::default(), 0, Instant::now());
        let wholes: Vec<Whole> = all.iter().filter_map(|one| fragments.add(now, one, &mut lost)).collect();
        let data = wholes.iter().map(|whole| match whole.packet[0] >> 4 {
            6 => Ipv6View::new(&whole.packet).unwrap().payload().to_vec(),
            _ => Ipv4View::new(&whole.packet).unwrap().payload().to_vec(),
        });
        (data.collect(), lost)
    }

    #[test]
    fn fragments_in_any_order_are_one_segment_and_come_with_it() {
        let parts = |of: &dyn Fn(usize, &[u8], bool) -> Bytes| {
            [(0, 16, true), (16, 40, true), (40, 45, false)].map(|(at, to, more)| of(at, &data(at, to), more))
        };
        for [a, b, c] in [parts(&|at, data, more| v4(7, at, data, more)), parts(&v6)] {
            for order in [[&a, &b, &c], [&c, &b, &a], [&b, &c, &a]] {
                let order = order.map(Bytes::clone);
                assert_eq!(made(&order), (vec![data(0, 45)], 0));
            }
            let copies = [&a, &c, &a, &b].map(Bytes::clone);
            assert_eq!(made(&copies), (vec![data(0, 45)], 0), "a copy");
            let (mut fragments, mut lost, now) = (Fragments::default(), 0, Instant::now());
            let wholes = [&b, &a, &c].map(|one| fragments.add(now, one, &mut lost));
            assert_eq!(wholes[2].as_ref().unwrap().fragments, [a, b, c]);
        }
    }

    #[test]
    fn what_overlaps_or_is_longer_than_a_packet_is_given_up() {
        let first = v4(7, 0, &data(0, 16), true);
        for wrong in
            [v4(7, 8, &data(8, 24), false), v4(7, 0, &data(1, 17), true), v4(7, 0, &data(0, 8), true)]
        {
            assert_eq!(made(&[first.clone(), wrong, v4(7, 16, &data(16, 24), false)]), (vec![], 2));
        }
        assert_eq!(made(&[v4(7, 8, &data(8, 9), false), first]), (vec![], 2), "behind the last one");
        let long = [v4(7, 0, &[7; 40_000], true), v4(7, 40_000, &[7; 40_000], false)];
        assert_eq!(made(&long), (vec![], 2));
        let small: Vec<Bytes> = (0..=PARTS).map(|n| v4(7, n * UNIT, &data(0, UNIT), true)).collect();
        assert_eq!(made(&small), (vec![], PARTS as u64 + 1));
        let uneven = v4(7, 0, &data(0, 15), true);
        assert_eq!(made(&[uneven, v4(7, 0, &[], true)]), (vec![], 2));
        let mut whole = v4(7, 0, &data(0, 16), false).to_vec();
        (whole[6], whole[10], whole[11]) = (0, 0, 0);
        assert_eq!(made(&[whole.into(), Bytes::from_static(&[0x45])]), (vec![], 2), "no fragments");
    }

    #[test]
    fn only_so_many_wait_and_only_so_long() {
        let (mut fragments, mut lost, now) = (Fragments::default(), 0, Instant::now());
        let first = |id| v4(id, 0, &data(0, 8), true);
        let last = |id| v4(id, 8, &data(8, 9), false);
        for id in 0..=MOST as u16 {
            assert_eq!(fragments.add(now + Duration::from_millis(id.into()), &first(id), &mut lost), None);
        }
        assert_eq!((lost, fragments.0.len()), (1, MOST), "the oldest makes room");
        let now = now + Duration::from_secs(1);
        assert!(fragments.add(now, &last(1), &mut lost).is_some());
        assert_eq!(fragments.add(now, &last(0), &mut lost), None, "it was given up");
        assert_eq!(fragments.add(now + PATIENCE, &last(2), &mut lost), None);
        assert_eq!((lost, fragments.0.len()), (MOST as u64 + 1, 1));
    }
}
