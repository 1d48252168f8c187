//! The piece of data that a network card cuts into segments (`offload.rs`).

use polypath_wire::Instant;

/// What leaves together on a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Piece {
    /// When a segment left last.
    pub(super) at: Instant,
    /// Bytes of its piece that did not leave yet.
    left: u64,
    /// Bytes that left of the present buffer.
    pub(super) cut: u64,
}

impl Piece {
    /// `len` bytes leave; of a new piece at most `most`. A buffer holds `buffer`.
    pub(super) fn take(&mut self, now: Instant, len: u64, most: u64, buffer: u64) {
        if !self.goes_on(now) {
            self.left = most;
        }
        (self.at, self.left) = (now, self.left.saturating_sub(len));
        self.cut += len;
        if self.cut >= buffer {
            self.cut = 0;
        }
    }

    /// Whether more of the present piece leaves now.
    pub(super) fn goes_on(&self, now: Instant) -> bool {
        self.left > 0 && self.at == now
    }
}
