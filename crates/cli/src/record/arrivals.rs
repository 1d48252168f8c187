//! What arrived when, and the trace that it makes.

use polypath_hop::LinkTrace;
use polypath_hop::trace::OPPORTUNITY;
use polypath_node::{Stream, StreamStats};
use tokio::time::Instant;

/// Headers of a full packet, bytes: UDP 8, ESP with AES-GCM 34 (RFC 4303, RFC 4106), TCP with timestamps 32.
const HEADERS: u64 = 74;

/// Bytes on the wire by the millisecond.
#[derive(Debug)]
pub struct Arrivals {
    since: Instant,
    /// Payload so far, bytes.
    payload: u64,
    /// Milliseconds since the beginning, and the bytes with headers that arrived by then since the one before.
    pub notes: Vec<(u32, u32)>,
}

impl Arrivals {
    /// Of what arrives on `stream` from now on.
    pub fn new(stream: &Stream) -> Self {
        Self { since: Instant::now(), payload: payload(&stream.stats()), notes: Vec::new() }
    }

    /// Notes what arrived since the last time.
    pub fn note(&mut self, stream: &Stream) {
        let stats = stream.stats();
        let now = payload(&stats);
        let new = now.saturating_sub(self.payload);
        self.payload = now;
        if new > 0 {
            let at = u32::try_from(self.since.elapsed().as_millis()).unwrap_or(u32::MAX);
            self.notes.push((at, u32::try_from(with_headers(new, &stats)).unwrap_or(u32::MAX)));
        }
    }
}

fn payload(stats: &StreamStats) -> u64 {
    stats.paths.iter().map(|(.., path)| path.bytes_received).sum()
}

/// `payload` in full packets.
fn with_headers(payload: u64, stats: &StreamStats) -> u64 {
    let Some(path) = stats.secure.iter().flatten().next() else { return payload };
    let headers = HEADERS + if path.locators.local.is_ipv6() { 40 } else { 20 };
    let mtu = u64::from(path.mtu).max(headers + 1);
    payload * mtu / (mtu - headers)
}

/// The opportunities that `notes` used from `begin` ms, which is its zero, to `end`. `None` if there are none.
pub fn trace(notes: &[(u32, u32)], begin: u32, end: u32) -> Option<LinkTrace> {
    let (mut opportunities, mut waiting) = (Vec::new(), 0);
    for (at, bytes) in notes.iter().filter(|(at, _)| (begin..=end).contains(at)) {
        waiting += u64::from(*bytes);
        let whole = waiting / u64::from(OPPORTUNITY);
        waiting %= u64::from(OPPORTUNITY);
        opportunities.extend(std::iter::repeat_n(at - begin, whole as usize));
    }
    LinkTrace::try_from(opportunities).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opportunity_is_used_when_its_last_byte_arrives() {
        let notes = [(0, 1500), (5, 700), (7, 2300), (7, 1500), (9, 100), (11, 1400)];
        let of = |begin| trace(&notes, begin, 10).map(Vec::<u32>::from);
        assert_eq!(of(0), Some(vec![0, 7, 7, 7]));
        assert_eq!(of(5), Some(vec![2, 2, 2]));
        assert_eq!(of(8), None);
    }
}
