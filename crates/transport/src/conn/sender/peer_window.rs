//! The peer's window, as segments that may overtake one another tell of it.

/// SND.WND with SND.WL1 and SND.WL2 (RFC 9293 §3.10.7.4), and its maximum (§3.8.6.2.1).
#[derive(Debug)]
pub(crate) struct PeerWindow {
    /// Offset up to which the peer lets us send.
    pub edge: u64,
    /// Largest window the peer ever offered.
    pub largest: u64,
    /// Offset and acknowledgment of the segment that told.
    told_by: (i64, u64),
}

impl Default for PeerWindow {
    fn default() -> Self {
        Self { edge: 0, largest: 0, told_by: (i64::MIN, 0) }
    }
}

impl PeerWindow {
    /// The window of a SYN.
    pub(crate) fn open(&mut self, window: u64) {
        (self.edge, self.largest) = (window, window);
    }

    /// Bytes that may be sent from `offset` on.
    pub(crate) fn left(&self, offset: u64) -> u64 {
        self.edge.saturating_sub(offset)
    }

    /// A segment at `offset` of the peer's stream offers `window` beyond `una`. Between acknowledgments of
    /// the same age, which paths may reorder, the larger window counts. Returns whether the edge moved.
    pub(crate) fn update(&mut self, offset: i64, una: u64, window: u64) -> bool {
        let last = self.told_by;
        if offset < last.0 || (offset == last.0 && una < last.1) {
            return false;
        }
        let same_age = offset == last.0 && una == last.1;
        let (edge, before) = (una + window, self.edge);
        self.edge = if same_age { edge.max(before) } else { edge };
        self.largest = self.largest.max(window);
        self.told_by = (offset, una);
        self.edge != before
    }
}
