//! The bytes we number: what was written and not acknowledged yet.

use std::collections::VecDeque;

use bytes::BytesMut;

use crate::payload::Payload;

/// The sending half of a byte stream.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SendStream {
    /// Everything below is acknowledged.
    start: u64,
    /// Offset after the first of them.
    first_end: u64,
    /// Real bytes held.
    stored: u64,
    /// Everything below is written.
    end: u64,
    finished: bool,
    /// Written, not acknowledged, with the offset of the first byte of each.
    chunks: VecDeque<(u64, Payload)>,
    capacity: u64,
}

impl SendStream {
    /// Holds up to `capacity` bytes that are not acknowledged.
    pub(crate) fn new(capacity: u64) -> Self {
        Self { chunks: VecDeque::new(), first_end: 0, start: 0, end: 0, stored: 0, capacity, finished: false }
    }

    /// Room for real bytes.
    pub(crate) fn room(&self) -> u64 {
        if self.finished { 0 } else { self.capacity.saturating_sub(self.stored) }
    }

    /// Real bytes that are written and not acknowledged.
    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }

    /// Appends as much of `data` as there is room for; patterns take no room.
    pub(crate) fn write(&mut self, data: &Payload) -> u64 {
        if self.finished {
            return 0;
        }
        let stored = matches!(data, Payload::Bytes(_));
        let taken = if stored { data.slice(0, self.room()) } else { data.clone() };
        let len = taken.len();
        if len > 0 {
            self.chunks.push_back((self.end, taken));
            self.end += len;
            self.stored += if stored { len } else { 0 };
        }
        len
    }

    /// No more writes.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// Whether [`finish`](Self::finish) was called.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Offset after the last byte written.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The bytes `from..to`; they must be written and not acknowledged.
    #[inline]
    pub(crate) fn slice(&self, from: u64, to: u64) -> Payload {
        match self.chunks.back() {
            Some((at, chunk)) if *at <= from => chunk.slice(from - at, to - at),
            _ => self.slice_earlier(from, to),
        }
    }

    /// The same where they begin before the last chunk.
    #[inline(never)]
    fn slice_earlier(&self, from: u64, to: u64) -> Payload {
        let i = self.chunks.partition_point(|(at, c)| at + c.len() <= from);
        let Some((at, chunk)) = self.chunks.get(i) else { return Payload::EMPTY };
        let part = chunk.slice(from - at, to - at);
        if from + part.len() == to { part } else { self.gather(i, from, to) }
    }

    /// Everything below `offset` is acknowledged.
    #[inline]
    pub(crate) fn release(&mut self, offset: u64) {
        if offset < self.first_end && self.stored == 0 {
            self.start = self.start.max(offset); // patterns take no room
        } else {
            self.release_chunks(offset);
        }
    }

    #[inline(never)]
    fn release_chunks(&mut self, offset: u64) {
        while let Some((at, chunk)) = self.chunks.front()
            && *at < offset
        {
            let end = at + chunk.len();
            if matches!(chunk, Payload::Bytes(_)) {
                self.stored -= end.min(offset) - self.start.max(*at);
            }
            if end > offset {
                break;
            }
            self.chunks.pop_front();
        }
        self.start = self.start.max(offset);
        self.first_end = self.chunks.front().map_or(0, |(at, chunk)| at + chunk.len());
    }

    /// A range over several chunks.
    fn gather(&self, first: usize, from: u64, to: u64) -> Payload {
        let mut bytes = BytesMut::with_capacity((to - from) as usize);
        for (at, chunk) in self.chunks.iter().skip(first).take_while(|(at, _)| *at < to) {
            bytes.extend_from_slice(&chunk.slice(from.saturating_sub(*at), to - at).to_bytes());
        }
        bytes.freeze().into()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::payload::Pattern;

    #[test]
    fn slices_across_chunks_and_releases() {
        let mut s = SendStream::new(10);
        assert_eq!(s.write(&Bytes::from_static(b"abcde").into()), 5);
        assert_eq!(s.write(&Bytes::from_static(b"fghijkl").into()), 5);
        assert_eq!((s.room(), s.end()), (0, 10));
        assert_eq!(s.slice(3, 7).to_bytes(), "defg");
        s.release(6);
        assert_eq!(s.room(), 6);
        assert_eq!(s.slice(6, 10).to_bytes(), "ghij");
        s.finish();
        assert_eq!(s.write(&Bytes::from_static(b"x").into()), 0);
    }

    #[test]
    fn patterns_take_no_room() {
        let mut s = SendStream::new(0);
        let pattern = Pattern { key: 1, offset: 0, len: u64::MAX / 2 };
        assert_eq!(s.write(&pattern.into()), pattern.len);
        let Payload::Pattern(p) = s.slice(1_000_000, 1_001_000) else { panic!("not a pattern") };
        assert_eq!((p.offset, p.len), (1_000_000, 1000));
    }
}
