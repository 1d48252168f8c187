//! What a segment carries: real bytes, or a range of a pattern that is never stored.
//!
//! Simulated bulk flows carry patterns: the content of every byte is a function of its offset, so
//! a receiver checks exactly what it would check of real bytes, and a capture or a corrupting hop
//! can write the bytes out, but nothing is copied while no one looks.

use bytes::Bytes;

/// A range of the endless byte pattern named by `key`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// Which pattern.
    pub key: u32,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Pattern {
    /// The byte at `offset` of pattern `key`: one of the 32 that no message of a known protocol begins
    /// with, so that whoever reads a capture takes the pattern for nothing else.
    pub fn byte(key: u32, offset: u64) -> u8 {
        Self::word(key, offset / 8)[(offset % 8) as usize]
    }

    /// The bytes from `8 * n` to `8 * n + 8` of pattern `key`.
    fn word(key: u32, n: u64) -> [u8; 8] {
        let word = n.wrapping_add(u64::from(key)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (u64::from_ne_bytes([0xe0; 8]) | word ^ (word >> 29)).to_le_bytes()
    }

    /// Fills `out`, which is not longer than the range, with its first bytes.
    fn fill(&self, out: &mut [u8]) {
        let word = |n| Self::word(self.key, self.offset / 8 + n);
        let skipped = (self.offset % 8) as usize;
        let (head, rest) = out.split_at_mut(out.len().min(8 - skipped));
        head.copy_from_slice(&word(0)[skipped..][..head.len()]);
        let (words, tail) = rest.as_chunks_mut();
        words.iter_mut().zip(1..).for_each(|(out, n)| *out = word(n));
        tail.copy_from_slice(&word(1 + words.len() as u64)[..tail.len()]);
    }

    /// Whether these are its bytes.
    fn is(&self, bytes: &[u8]) -> bool {
        let mut buffer = [0; 256];
        let mut rest = *self;
        self.len == bytes.len() as u64
            && bytes.chunks(buffer.len()).all(|part| {
                let buffer = &mut buffer[..part.len()];
                rest.fill(buffer);
                rest.offset += part.len() as u64;
                buffer == part
            })
    }
}

/// The data of a segment or of a write.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Bytes of an application.
    Bytes(Bytes),
    /// Bytes that are a function of their offset.
    Pattern(Pattern),
}

impl Default for Payload {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Payload {
    /// Nothing. Whatever is empty is this: a third kind would make each payload a word longer.
    pub const EMPTY: Self = Self::Pattern(Pattern { key: 0, offset: 0, len: 0 });

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(b) => b.len() as u64,
            Self::Pattern(p) => p.len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes `from..to` of this payload, clipped to its length; shares memory.
    #[must_use]
    pub fn slice(&self, from: u64, to: u64) -> Self {
        let to = to.min(self.len());
        let from = from.min(to);
        match self {
            _ if from == to => Self::EMPTY,
            Self::Bytes(b) => Self::Bytes(b.slice(from as usize..to as usize)),
            Self::Pattern(p) => Self::Pattern(Pattern { offset: p.offset + from, len: to - from, ..*p }),
        }
    }

    /// This payload and `next` in one, where they are bytes, which are copied, or ranges of a pattern that touch.
    #[must_use]
    pub fn join(&self, next: &Self) -> Option<Self> {
        match (self, next) {
            (Self::Bytes(a), Self::Bytes(b)) => Some(Self::Bytes([&a[..], b].concat().into())),
            (Self::Pattern(a), Self::Pattern(b)) if a.key == b.key && a.offset + a.len == b.offset => {
                Some(Self::Pattern(Pattern { len: a.len + b.len, ..*a }))
            }
            _ => None,
        }
    }

    /// Writes the bytes to the start of `out`, as many as fit; returns how many.
    pub fn copy_to(&self, out: &mut [u8]) -> usize {
        let n = usize::try_from(self.len()).unwrap_or(usize::MAX).min(out.len());
        match self {
            Self::Bytes(b) => out[..n].copy_from_slice(&b[..n]),
            Self::Pattern(p) => p.fill(&mut out[..n]),
        }
        n
    }

    /// The bytes themselves; copies if this is a pattern.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Bytes(b) => b.clone(),
            _ => {
                let mut out = vec![0; self.len() as usize];
                self.copy_to(&mut out);
                out.into()
            }
        }
    }

    /// Whether both hold the same bytes.
    #[inline]
    pub fn same_bytes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Pattern(a), Self::Pattern(b)) if a.key == b.key => a == b,
            (Self::Pattern(p), Self::Bytes(b)) | (Self::Bytes(b), Self::Pattern(p)) => p.is(b),
            _ => self.len() == other.len() && self.to_bytes() == other.to_bytes(),
        }
    }
}

impl From<Bytes> for Payload {
    fn from(b: Bytes) -> Self {
        if b.is_empty() { Self::EMPTY } else { Self::Bytes(b) }
    }
}

impl From<Pattern> for Payload {
    fn from(p: Pattern) -> Self {
        if p.len == 0 { Self::EMPTY } else { Self::Pattern(p) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_of_a_pattern_has_the_bytes_of_the_slice() {
        let p = Payload::from(Pattern { key: 7, offset: 1000, len: 100 });
        let s = p.slice(13, 50);
        assert_eq!(s.to_bytes(), p.to_bytes().slice(13..50));
        assert!(s.same_bytes(&Payload::from(p.to_bytes().slice(13..50))));
        assert!(!s.same_bytes(&p.slice(14, 51)));
    }

    #[test]
    fn bytes_by_words_are_the_bytes_one_by_one() {
        for (offset, len) in (0..9).flat_map(|offset| (0..20).chain([300]).map(move |len| (offset, len))) {
            let pattern = Payload::from(Pattern { key: u32::MAX, offset: (1 << 40) + offset, len });
            let bytes: Vec<_> = (0..len).map(|n| Pattern::byte(u32::MAX, (1 << 40) + offset + n)).collect();
            assert_eq!(pattern.to_bytes(), bytes, "{len} from {offset} on");
            let mut other = bytes.clone();
            assert!(pattern.same_bytes(&Bytes::from(bytes).into()));
            if let Some(last) = other.last_mut() {
                *last ^= 1;
                assert!(!Payload::from(Bytes::from(other)).same_bytes(&pattern));
            }
        }
    }

    #[test]
    fn a_pattern_stays_what_it_is() {
        let bytes: Vec<_> = (5..13).map(|offset| Pattern::byte(7, offset)).collect();
        assert_eq!(bytes, [0xf4, 0xe4, 0xf3, 0xf7, 0xee, 0xed, 0xf7, 0xec]);
    }
}
