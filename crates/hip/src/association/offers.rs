//! R1s that came while another one was being answered. Anybody can send us an R1 with a good signature, as it does not cover
//! the puzzle's I. So if the I2 for one is not answered, the next is taken.

use std::collections::VecDeque;

use polypath_wire::hip::{Kind, PacketView};

use crate::event::Route;

/// Most that wait, and most puzzles that are remembered.
const MOST: usize = 8;

/// R1s of one exchange.
#[derive(Default)]
pub(super) struct Offers {
    waiting: VecDeque<(Route, Vec<u8>)>,
    /// The puzzles of those that were answered.
    taken: Vec<Vec<u8>>,
}

impl Offers {
    /// Remembers that this one is being answered.
    pub fn take(&mut self, r1: &PacketView<'_>) {
        if self.taken.len() < MOST {
            self.taken.push(puzzle(r1).to_vec());
        }
    }

    /// Keeps one for later if its puzzle is new and there is room. Whether it was kept, or its puzzle is known.
    pub fn keep(&mut self, route: Route, r1: &PacketView<'_>) -> bool {
        let is_it = |bytes: &[u8]| PacketView::new(bytes).is_ok_and(|other| puzzle(&other) == puzzle(r1));
        let known = self.is_taken(r1) || self.waiting.iter().any(|(_, bytes)| is_it(bytes));
        if !known && self.waiting.len() < MOST {
            self.waiting.push_back((route, r1.bytes().to_vec()));
            return true;
        }
        known
    }

    /// Whether one with the same puzzle was answered.
    pub fn is_taken(&self, r1: &PacketView<'_>) -> bool {
        self.taken.iter().any(|taken| taken == puzzle(r1))
    }

    /// The next one.
    pub fn next(&mut self) -> Option<(Route, Vec<u8>)> {
        self.waiting.pop_front()
    }
}

fn puzzle<'a>(r1: &PacketView<'a>) -> &'a [u8] {
    r1.param(Kind::PUZZLE).map_or(&[], |p| p.contents)
}
