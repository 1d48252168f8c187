//! The peer's window, as segments that may overtake one another tell of it.

/// SND.WND with SND.WL1 and SND.WL2 (RFC 9293 §3.10.7.4), and its maximum (§3.8.6.2.1).
#[derive(Debug)]
pub(crate) struct PeerWindow {
    /// Offset up to which the peer lets us send.
    pub edge: u64,
    /// Largest window the peer ever offered.
    pub largest: u64,
    /// Offset, acknowledgment and timestamp of the segment that advertised it.
    told_by: (i64, u64),
    told_at: Option<u32>,
}

impl Default for PeerWindow {
    fn default() -> Self {
        Self { edge: 0, largest: 0, told_by: (i64::MIN, 0), told_at: None }
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

    /// A segment at `offset` of the peer's stream, with timestamp `at`, offers `window` beyond `una`. Of acknowledgments of the
    /// same offsets, which paths may reorder, the one with the later timestamp counts, and without that the larger window: only a peer
    /// that is short of memory takes back what it offered. Returns whether the edge moved.
    pub(crate) fn update(&mut self, offset: i64, una: u64, window: u64, at: Option<u32>) -> bool {
        let last = self.told_by;
        if offset < last.0 || (offset == last.0 && una < last.1) {
            return false;
        }
        let same = offset == last.0 && una == last.1;
        let age = at.zip(self.told_at).map_or(0, |(at, last)| at.wrapping_sub(last).cast_signed());
        if same && age < 0 {
            return false;
        }
        let (edge, before) = (una + window, self.edge);
        self.edge = if same && age == 0 { edge.max(before) } else { edge };
        self.largest = self.largest.max(window);
        (self.told_by, self.told_at) = ((offset, una), at.or(self.told_at));
        self.edge != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_windows_beyond_the_same_offset_the_later_counts_or_the_larger() {
        let mut window = PeerWindow::default();
        window.open(100);
        assert!(window.update(0, 10, 100, Some(5)));
        assert!(!window.update(0, 10, 50, Some(5)), "it may have been overtaken");
        assert!(!window.update(0, 10, 50, None));
        assert!(window.update(0, 10, 50, Some(6)));
        assert_eq!((window.edge, window.largest), (60, 100));
        assert!(!window.update(0, 10, 40, Some(u32::MAX)), "earlier, around the end of the clock");
        assert!(!window.update(0, 10, 90, Some(4)), "earlier");
        assert!(window.update(0, 10, 90, Some(7)), "it opens again");
        assert!(!window.update(0, 9, 200, Some(7)), "older than what was advertised");
        assert!(window.update(0, 11, 0, Some(4)), "more is acknowledged");
        assert_eq!(window.left(11), 0);
    }
}
