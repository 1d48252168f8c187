//! The Internet checksum (RFC 1071), its incremental update (RFC 1624), and what it covers beside
//! the message itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::WireError;

/// What the checksum of a transport message covers beside its own bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// The pseudo header of RFC 9293 §3.1.
    Ipv4 {
        /// Source address.
        src: Ipv4Addr,
        /// Destination address.
        dst: Ipv4Addr,
    },
    /// The pseudo header of RFC 8200 §8.1.
    Ipv6 {
        /// Source address.
        src: Ipv6Addr,
        /// Destination address.
        dst: Ipv6Addr,
    },
    /// A pseudo header of zeros: the bytes alone, where translators may change the addresses.
    ZeroPseudoHeader,
    /// None: something else protects the message. Emitted as 0, not verified.
    Unused,
}

impl Checksum {
    /// The context of a message between two addresses; `None` if their families differ.
    pub fn between(src: IpAddr, dst: IpAddr) -> Option<Self> {
        match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Some(Self::Ipv4 { src, dst }),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Some(Self::Ipv6 { src, dst }),
            _ => None,
        }
    }

    /// The checksum over pseudo header and `message`, whose own checksum field is 0 or (then a
    /// valid message gives 0) filled in. `None` if unused.
    pub fn compute(self, protocol: u8, message: &[u8]) -> Option<u16> {
        Some(self.pseudo(protocol, message.len() as u32)?.with(message).finish())
    }

    /// The sum over the pseudo header of a message of `length` bytes, not complemented: what stands in the field for
    /// whoever adds the message. 0 if unused.
    pub fn partial(self, protocol: u8, length: u32) -> u16 {
        self.pseudo(protocol, length).map_or(0, |sum| !sum.finish())
    }

    fn pseudo(self, protocol: u8, length: u32) -> Option<Sum> {
        let addresses = match self {
            Self::Ipv4 { src, dst } => Sum::default().with(&src.octets()).with(&dst.octets()),
            Self::Ipv6 { src, dst } => Sum::default().with(&src.octets()).with(&dst.octets()),
            Self::ZeroPseudoHeader => return Some(Sum::default()),
            Self::Unused => return None,
        };
        // Protocol and length stand in other places for the two families, but add up to the same.
        Some(addresses.with(&u32::from(protocol).to_be_bytes()).with(&length.to_be_bytes()))
    }

    /// Checks `message`, whose checksum field is filled in and stands at `at`.
    pub(crate) fn verify(
        self,
        what: &'static str,
        protocol: u8,
        message: &[u8],
        at: usize,
    ) -> Result<(), WireError> {
        match self.compute(protocol, message) {
            None | Some(0) => Ok(()),
            Some(rest) => {
                let got = crate::error::u16_at(message, at);
                Err(WireError::checksum(what, update(rest, got, 0), got))
            }
        }
    }
}

/// Partial sums kept side by side: vector units add several at once, and none waits for the one before.
const LANES: usize = 8;

fn number(word: &[u8; 4]) -> u64 {
    u64::from(u32::from_ne_bytes(*word))
}

/// A one's complement sum under way (RFC 1071 §1). It is kept in native byte order, which gives
/// the same sum with its bytes swapped (§2 B), and in 64 bits, which put off the carries (§2 C).
#[derive(Clone, Copy, Default, Debug)]
pub struct Sum(u64);

impl Sum {
    /// The sum with `bytes`, which begin at an even offset of the message and, unless they are its last,
    /// end at one.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        let (rows, rest) = bytes.as_chunks::<{ 4 * LANES }>();
        let mut lanes = [0; LANES];
        for row in rows {
            let (words, _) = row.as_chunks::<4>();
            lanes.iter_mut().zip(words).for_each(|(lane, word)| *lane += number(word));
        }
        let (words, tail) = rest.as_chunks::<4>();
        let sum = words.iter().map(number).sum::<u64>() + lanes.iter().sum::<u64>();
        let mut last = [0; 4];
        last[..tail.len()].copy_from_slice(tail);
        Self(fold(self.0) + sum + number(&last))
    }

    /// The checksum: the complement of the sum.
    pub fn finish(self) -> u16 {
        let sum = fold(self.0);
        let sum = fold(sum);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = (sum & 0xffff) + (sum >> 16);
        u16::from_be(!(sum as u16))
    }
}

/// The same one's complement sum in at most 33 bits.
const fn fold(sum: u64) -> u64 {
    (sum & 0xffff_ffff) + (sum >> 32)
}

/// The checksum of `bytes` alone.
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum::default().with(bytes).finish()
}

/// The checksum after one 16-bit field of the message changed from `old` to `new` (RFC 1624 eq. 3).
#[must_use]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = !checksum as u32 + !old as u32 + new as u32;
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071 §1 to the letter: add 16-bit words, bring the carries around, complement.
    fn by_definition(bytes: &[u8]) -> u16 {
        let words = bytes.chunks(2).map(|w| u64::from(w[0]) << 8 | w.get(1).map_or(0, |b| u64::from(*b)));
        let mut sum = words.sum::<u64>();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn example_of_rfc_1071() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn example_of_rfc_1624() {
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn the_partial_sum_and_the_message_give_the_checksum() {
        let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let mut message = *b"\x12\x34\0\0 and what follows";
        let pseudo = Checksum::between(src, dst).unwrap();
        let whole = pseudo.compute(6, &message).unwrap();
        let partial = pseudo.partial(6, message.len() as u32);
        message[2..4].copy_from_slice(&partial.to_be_bytes());
        assert_eq!(checksum(&message), whole);
        assert_eq!(Checksum::Unused.partial(6, 20), 0);
    }

    #[test]
    fn the_largest_sums_fold() {
        for len in [0, 1, 2, 3, 65_535, 1 << 20] {
            assert_eq!(checksum(&vec![0xff; len]), by_definition(&vec![0xff; len]), "{len}");
        }
        assert_eq!(Sum(u64::MAX).finish(), 0);
    }

    proptest! {
        #[test]
        fn the_fast_sum_is_the_defined_one(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(checksum(&bytes), by_definition(&bytes));
        }

        #[test]
        fn parts_add_up(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..100) {
            let (a, b) = bytes.split_at((cut * 2).min(bytes.len() / 2 * 2));
            prop_assert_eq!(Sum::default().with(a).with(b).finish(), checksum(&bytes));
        }

        #[test]
        fn an_update_equals_a_new_sum(mut words in proptest::collection::vec(any::<u16>(), 1..40), new: u16) {
            // A message of zeros only has two representations of its sum; no real message is one.
            words.push(1);
            let bytes = |w: &[u16]| w.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<_>>();
            let before = checksum(&bytes(&words));
            let old = std::mem::replace(&mut words[0], new);
            prop_assert_eq!(update(before, old, new), checksum(&bytes(&words)));
        }
    }
}
