//! Memory that is used again once nobody holds the bytes in it. It is zeroed once, not each time.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Buffers of one size that wait to be used again.
pub(crate) struct Pool(Arc<Free>);

struct Free {
    size: usize,
    /// Most of `buffers`.
    most: usize,
    buffers: Mutex<Vec<Box<[u8]>>>,
}

/// A buffer that is shared as `Bytes`, and returns when they are gone.
struct Shared {
    buffer: Box<[u8]>,
    free: Arc<Free>,
}

impl Pool {
    /// No buffers yet, of `size` bytes; `most` of them wait at once.
    pub fn new(size: usize, most: usize) -> Self {
        Self(Arc::new(Free { size, most, buffers: Mutex::default() }))
    }

    /// The buffer that returned last, with what was in it, or a new one.
    pub fn take(&self) -> Box<[u8]> {
        let mut buffers = self.0.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.pop().unwrap_or_else(|| vec![0; self.0.size].into())
    }

    /// The first `len` bytes of `buffer`, which returns when nobody holds them.
    pub fn share(&self, buffer: Box<[u8]>, len: usize) -> Bytes {
        Bytes::from_owner(Shared { buffer, free: self.0.clone() }).slice(..len)
    }
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let mut buffers = self.free.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if buffers.len() < self.free.most {
            buffers.push(std::mem::take(&mut self.buffer));
        }
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
    fn no_more_memory_waits_than_asked_for() {
        let pool = Pool::new(1000, 2);
        let held: Vec<Bytes> = (0..5).map(|_| pool.share(pool.take(), 1)).collect();
        drop(held);
        assert_eq!(pool.0.buffers.lock().unwrap().len(), 2);
    }
}
