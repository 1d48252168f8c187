//! The anti-replay window (RFC 4303 §3.4.3) over 64-bit numbers, as a ring of words of which
//! advancing clears whole ones instead of shifting bits (the idea of RFC 6479).

/// Which numbers of the last ones have been seen.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    /// Bit `n % 64` of word `n / 64 % words.len()` stands for number `n`. One word more than the
    /// window has, because the window begins and ends within words.
    words: Box<[u64]>,
    /// The largest number accepted; 0 before the first, which is 1.
    top: u64,
}

/// Why a number is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Replay {
    /// It was accepted before.
    #[error("sequence number {0} was seen before")]
    Seen(u64),
    /// It lies before the window.
    #[error("sequence number {0} is older than the replay window")]
    TooOld(u64),
}

impl ReplayWindow {
    /// A window of `packets` numbers, rounded up to a multiple of 64.
    pub fn new(packets: u32) -> Self {
        let words = packets.div_ceil(64).max(1) as usize + 1;
        Self { words: vec![0; words].into(), top: 0 }
    }

    /// Numbers it holds.
    pub fn len(&self) -> u64 {
        (self.words.len() as u64 - 1) * 64
    }

    /// Whether nothing was accepted yet.
    pub fn is_empty(&self) -> bool {
        self.top == 0
    }

    /// The largest number accepted.
    pub fn top(&self) -> u64 {
        self.top
    }

    /// The number whose low half is `low`: the first of that kind not before the window (RFC 4303
    /// §A2.2, both cases at once). `None` if 64 bits do not hold it.
    pub fn infer(&self, low: u32) -> Option<u64> {
        let first = self.first();
        let candidate = (first & !u64::from(u32::MAX)) | u64::from(low);
        if candidate < first { candidate.checked_add(1 << 32) } else { Some(candidate) }
    }

    /// Whether `number` is new. Ask before the packet is authenticated.
    pub fn check(&self, number: u64) -> Result<(), Replay> {
        if number > self.top {
            Ok(())
        } else if number < self.first() || number == 0 {
            Err(Replay::TooOld(number))
        } else if self.words[self.index(number)] & bit(number) != 0 {
            Err(Replay::Seen(number))
        } else {
            Ok(())
        }
    }

    /// Notes `number`, which [`check`](Self::check) let pass and whose packet is authentic.
    pub fn accept(&mut self, number: u64) {
        if number > self.top {
            let newer = (number / 64 - self.top / 64).min(self.words.len() as u64);
            for n in 1..=newer {
                let index = ((self.top / 64 + n) % self.words.len() as u64) as usize;
                self.words[index] = 0;
            }
            self.top = number;
        }
        let index = self.index(number);
        self.words[index] |= bit(number);
    }

    fn first(&self) -> u64 {
        self.top.saturating_sub(self.len() - 1)
    }

    fn index(&self, number: u64) -> usize {
        (number / 64 % self.words.len() as u64) as usize
    }
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edges_of_the_window() {
        let mut w = ReplayWindow::new(64);
        assert_eq!(w.check(0), Err(Replay::TooOld(0)));
        w.accept(100);
        assert_eq!(w.check(100), Err(Replay::Seen(100)));
        assert_eq!(w.check(37), Ok(()));
        assert_eq!(w.check(36), Err(Replay::TooOld(36)));
        w.accept(100 + (1 << 40));
        assert_eq!(w.check(99 + (1 << 40)), Ok(()), "a far jump clears the ring");
        assert_eq!(w.check(100), Err(Replay::TooOld(100)));
    }

    /// RFC 4303 §A2.2 with W = 64, written out as it stands there.
    fn as_the_rfc_has_it(top: u64, low: u32) -> Option<u64> {
        const W: u32 = 64;
        let (th, tl) = ((top >> 32) as u32, top as u32);
        let bottom = tl.wrapping_sub(W - 1);
        let high = match (tl >= W - 1, low >= bottom) {
            (true, true) => Some(th),
            (true, false) => th.checked_add(1),
            (false, true) => th.checked_sub(1),
            (false, false) => Some(th),
        };
        high.map(|h| u64::from(h) << 32 | u64::from(low))
    }

    fn near_a_wrap() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            (1u64..1 << 31, -100i64..100).prop_map(|(h, d)| (h << 32).wrapping_add_signed(d))
        ]
    }

    proptest! {
        #[test]
        fn inference_agrees_with_the_rfc(top in near_a_wrap(), low in near_a_wrap()) {
            prop_assume!((64..u64::MAX - (1 << 33)).contains(&top));
            let mut w = ReplayWindow::new(64);
            w.accept(top);
            prop_assert_eq!(w.infer(low as u32), as_the_rfc_has_it(top, low as u32));
        }

        #[test]
        fn it_behaves_as_a_set(start in near_a_wrap(), steps in prop::collection::vec(-400i64..400, 1..300)) {
            prop_assume!((2_000..u64::MAX - 200_000).contains(&start));
            let mut w = ReplayWindow::new(128);
            w.accept(start);
            let mut seen = BTreeSet::from([start]);
            for step in steps {
                let top = *seen.last().expect("it began with one");
                let n = top.wrapping_add_signed(step);
                let expected = if seen.contains(&n) && top - n < 128 {
                    Err(Replay::Seen(n))
                } else if n + 128 <= top {
                    Err(Replay::TooOld(n))
                } else {
                    Ok(())
                };
                prop_assert_eq!(w.check(n), expected);
                if expected.is_ok() {
                    w.accept(n);
                    seen.insert(n);
                }
            }
        }
    }
}
