//! What policies and the sender may ask.

use polypath_wire::PathId;

use super::lane::GONE;
use super::{Delivery, Scoreboard, Sent, SentId, Status};

impl Scoreboard {
    /// First offset not acknowledged cumulatively (SND.UNA).
    pub fn una(&self) -> u64 {
        self.una
    }

    /// First offset not sent (SND.NXT).
    pub fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Whether nothing is outstanding on any path.
    pub fn is_idle(&self) -> bool {
        self.segments.is_empty()
    }

    /// The oldest segment.
    pub fn head(&self) -> Option<(SentId, &Sent)> {
        self.segments.front().map(|s| (self.base, s))
    }

    /// The segment `id`.
    pub fn segment(&self, id: SentId) -> Option<&Sent> {
        self.segments.get(id.checked_sub(self.base)? as usize)
    }

    /// Whether the byte at `offset` was acknowledged, cumulatively or selectively.
    pub fn is_delivered(&self, offset: u64) -> bool {
        offset < self.una || self.sacked.containing(offset).is_some()
    }

    /// Bytes on their way on `path`, as far as acknowledgments tell.
    pub fn in_flight(&self, path: PathId) -> u64 {
        let lane = &self.lanes[path];
        lane.in_flight.saturating_sub(lane.credit)
    }

    /// FlightSize of `path` (RFC 5681): bytes sent, not judged lost, and not delivered in the order
    /// of the lane; `size` is the usual size of a segment.
    pub fn flight_size(&self, path: PathId, size: u32) -> u64 {
        let lane = &self.lanes[path];
        lane.in_flight + u64::from(lane.delivered) * u64::from(size)
    }

    /// Whether anything is on its way on `path`.
    pub fn is_outstanding(&self, path: PathId) -> bool {
        self.lanes[path].in_flight > 0
    }

    /// Duplicate acknowledgments since `una` moved.
    pub fn dupacks(&self) -> u32 {
        self.dupacks
    }

    /// Whether any segment is acknowledged selectively and not yet cumulatively.
    pub fn has_sacked(&self) -> bool {
        !self.sacked.is_empty()
    }

    /// What the present acknowledgment delivered on `path`.
    pub fn fresh(&self, path: PathId) -> &Delivery {
        &self.lanes[path].fresh
    }

    /// Bytes that the present acknowledgment delivered of what was sent last on paths that are gone.
    pub fn stranded(&self) -> u64 {
        self.stranded
    }

    /// Number that the next transmission on `path` will have.
    pub fn next_tx(&self, path: PathId) -> u64 {
        self.lanes[path].next_tx()
    }

    /// Highest transmission number delivered on `path`.
    pub fn highest_delivered(&self, path: PathId) -> Option<u64> {
        self.lanes[path].highest_delivered
    }

    /// Acknowledgments on `path` itself have told of everything delivered below this transmission.
    pub fn told(&self, path: PathId) -> u64 {
        self.lanes[path].told
    }

    /// Segments delivered after the oldest that is not, as [`vouch`](Self::vouch) was told.
    pub fn vouched(&self, path: PathId) -> u32 {
        self.lanes[path].vouched
    }

    /// The segments in flight on `path`, oldest transmission first.
    pub fn in_lane(&self, path: PathId) -> impl Iterator<Item = (SentId, &Sent)> {
        let order = self.lanes[path].order.iter();
        order.filter_map(|id| self.in_flight_segment(*id).map(|sent| (*id, sent)))
    }

    /// Names of the segments in flight on `path`, oldest transmission first.
    pub fn in_flight_ids(&self, path: PathId) -> Vec<SentId> {
        self.in_lane(path).map(|(id, _)| id).collect()
    }

    /// The oldest transmission on `path` of which nothing is known.
    pub fn oldest_in_flight(&self, path: PathId) -> Option<&Sent> {
        self.in_lane(path).next().map(|(_, sent)| sent)
    }

    /// Whether nothing is known yet of the last transmission of the segment `id`.
    pub fn is_in_flight(&self, id: SentId) -> bool {
        self.in_flight_segment(id).is_some()
    }

    /// Segments in flight on `path` with at least `threshold` later ones of the same lane delivered,
    /// as [`vouch`](Self::vouch) was told; oldest first.
    pub fn overtaken(&self, path: PathId, threshold: u32) -> impl Iterator<Item = (SentId, &Sent)> {
        let lane = &self.lanes[path];
        let mut later = lane.vouched;
        lane.order
            .iter()
            .map_while(move |id| {
                if later < threshold.max(1) {
                    return None;
                }
                match self.in_flight_segment(*id) {
                    Some(sent) => Some(Some((*id, sent))),
                    None => {
                        later -= u32::from(*id != GONE);
                        Some(None)
                    }
                }
            })
            .flatten()
    }

    fn in_flight_segment(&self, id: SentId) -> Option<&Sent> {
        self.segment(id).filter(|s| s.status == Status::InFlight)
    }
}
