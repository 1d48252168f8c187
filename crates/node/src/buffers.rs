//! Buffers that are used again once nobody holds what was in them.

use std::collections::VecDeque;

use bytes::BytesMut;

/// Data shorter than its buffer divided by this is copied out of it.
const WORTH_KEEPING: usize = 4;

/// Buffers of one size. Their data is handed on as `Bytes`; their memory is reused in the order they were taken.
pub(crate) struct Buffers {
    size: usize,
    /// Largest number of `rests`.
    most: usize,
    /// What is left of each after its data was split off, the oldest first.
    rests: VecDeque<BytesMut>,
}

impl Buffers {
    /// No buffers yet, of `size` bytes; `most` of them are used again.
    pub fn new(size: usize, most: usize) -> Self {
        Self { size, most, rests: VecDeque::new() }
    }

    /// A buffer full of zeros: the oldest, if it is free, or a new one.
    pub fn take(&mut self) -> BytesMut {
        let oldest = self.rests.pop_front_if(|rest| rest.try_reclaim(self.size));
        let mut buffer = oldest.unwrap_or_else(|| BytesMut::with_capacity(self.size));
        buffer.resize(self.size, 0);
        buffer
    }

    /// The first `len` bytes of `buffer`, which has its full length again afterwards. Short data is copied, so that it
    /// does not keep a whole buffer; long data keeps the buffer, and another one takes its place.
    pub fn detach(&mut self, buffer: &mut BytesMut, len: usize) -> BytesMut {
        if len < self.size / WORTH_KEEPING {
            return BytesMut::from(&buffer[..len]);
        }
        let mut rest = std::mem::replace(buffer, self.take());
        let data = rest.split_to(len);
        self.give_back(rest);
        data
    }

    /// Takes back what is left of a buffer after its data was split off.
    pub fn give_back(&mut self, mut rest: BytesMut) {
        rest.clear();
        if self.rests.len() == self.most {
            self.rests.pop_front();
        }
        self.rests.push_back(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_data_does_not_hold_a_buffer() {
        let mut buffers = Buffers::new(1000, 2);
        let mut buffer = buffers.take();
        let place = buffer.as_ptr();
        buffer[..1000].fill(7);
        let (small, large) = (buffers.detach(&mut buffer, 249), buffers.detach(&mut buffer, 250));
        assert!(small.capacity() < 1000 && small[..] == [7; 249]);
        assert!(large.as_ptr() == place && large[..] == [7; 250]);
        assert!(buffer.as_ptr() != place && buffer.len() == 1000);
    }

    #[test]
    fn memory_is_used_again_when_its_data_is_dropped_and_not_before() {
        let mut buffers = Buffers::new(1000, 2);
        let fill = |buffers: &mut Buffers, byte| {
            let mut buffer = buffers.take();
            buffer.fill(byte);
            let data = buffer.split_to(900).freeze();
            buffers.give_back(buffer);
            data
        };
        let first = fill(&mut buffers, 1);
        let second = fill(&mut buffers, 2);
        assert!(first.iter().all(|b| *b == 1), "it is held");
        let place = first.as_ptr();
        drop(first);
        let third = fill(&mut buffers, 3);
        assert_eq!(third.as_ptr(), place);
        assert!(second.iter().all(|b| *b == 2));
    }
}
