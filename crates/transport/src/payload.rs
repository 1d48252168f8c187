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
        let word = (offset >> 3).wrapping_add(u64::from(key)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        0xe0 | ((word ^ (word >> 29)) >> ((offset & 7) * 8)) as u8
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
            Self::Pattern(p) => {
                for (i, byte) in out[..n].iter_mut().enumerate() {
                    *byte = Pattern::byte(p.key, p.offset + i as u64);
                }
            }
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
    pub fn same_bytes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Pattern(a), Self::Pattern(b)) if a.key == b.key => a == b,
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
}
