//! Memory that is used again once nobody holds the bytes in it. It is zeroed once, not each time.

use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// A cache line, bytes.
const LINE: usize = 64;

/// Buffers of one size that wait to be used again. Clones are the same pool.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Free>);

struct Free {
    size: usize,
    /// Most of `buffers`.
    most: usize,
    buffers: Mutex<Vec<Buffer>>,
}

/// Bytes from the start of a cache line on. The allocator places large buffers 16 bytes after the start of a page, and to there
/// the kernel copies the pages of a file at a third of the speed (docs/performance.md).
#[derive(Default, Debug)]
pub(crate) struct Buffer {
    memory: Box<[u8]>,
    range: Range<usize>,
}

impl Buffer {
    /// Of `size` zeros.
    fn new(size: usize) -> Self {
        let memory: Box<[u8]> = vec![0; size + LINE].into();
        let start = memory.as_ptr().align_offset(LINE).min(LINE);
        Self { memory, range: start..start + size }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.range.clone()]
    }
}

/// A buffer that is shared as `Bytes`, and returns when they are gone.
struct Shared {
    buffer: Buffer,
    free: Arc<Free>,
}

impl Pool {
    /// No buffers yet, of `size` bytes; `most` of them wait at once.
    pub fn new(size: usize, most: usize) -> Self {
        Self(Arc::new(Free { size, most, buffers: Mutex::default() }))
    }

    /// The buffer that returned last, with what was in it, or a new one.
    pub fn take(&self) -> Buffer {
        self.0.lock().pop().unwrap_or_else(|| Buffer::new(self.0.size))
    }

    /// A buffer that nobody shares returns.
    pub fn give_back(&self, buffer: Buffer) {
        self.0.give_back(buffer);
    }

    /// The first `len` bytes of `buffer`, which returns when nobody holds them.
    pub fn share(&self, buffer: Buffer, len: usize) -> Bytes {
        Bytes::from_owner(Shared { buffer, free: self.0.clone() }).slice(..len)
    }
}

impl Free {
    fn lock(&self) -> MutexGuard<'_, Vec<Buffer>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, buffer: Buffer) {
        let mut buffers = self.lock();
        if buffers.len() < self.most {
            buffers.push(buffer);
        }
    }
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.free.give_back(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_when_its_bytes_are_dropped_and_not_before() {
        let pool = Pool::new(1000, 2);
        let fill = |byte| {
            let mut buffer = pool.take();
            buffer.fill(byte);
            pool.share(buffer, 900)
        };
        let (first, second) = (fill(1), fill(2));
        assert!(first[..] == [1; 900], "it is held");
        let place = first.as_ptr();
        drop(first);
        assert_eq!(fill(3).as_ptr(), place);
        assert!(second[..] == [2; 900]);
    }

    #[test]
    fn a_buffer_starts_with_a_cache_line_and_has_its_size() {
        for size in [1, 1000, 1 << 18] {
            let buffer = Pool::new(size, 1).take();
            assert!(buffer.as_ptr().addr().is_multiple_of(LINE) && buffer.len() == size);
        }
    }

    #[test]
    fn what_is_given_back_is_used_again() {
        let pool = Pool::new(1000, 1);
        let buffer = pool.take();
        let place = buffer.as_ptr();
        pool.clone().give_back(buffer);
        assert_eq!(pool.take().as_ptr(), place);
    }

    #[test]
    fn no_more_memory_waits_than_asked_for() {
        let pool = Pool::new(1000, 2);
        let held: Vec<Bytes> = (0..5).map(|_| pool.share(pool.take(), 1)).collect();
        drop(held);
        assert_eq!(pool.0.buffers.lock().unwrap().len(), 2);
    }
}
