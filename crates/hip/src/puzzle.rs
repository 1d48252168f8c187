//! The puzzle: work for the Initiator, cheap to check for the Responder (RFC 7401 §4.1.2, §5.2.4,
//! appendix A).

use polypath_wire::hip::{Hit, Puzzle, Solution};

use crate::random::Random;
use crate::suite::Hash;

/// Whether `solution` solves its puzzle: the lowest K bits of RHASH(I | HIT-I | HIT-R | J) are zero.
pub fn is_solved(hash: Hash, solution: &Solution, initiator: Hit, responder: Hit) -> bool {
    let (random, answer) = (&solution.random, &solution.answer);
    random.len() == hash.len()
        && answer.len() == hash.len()
        && ends_in_zeros(&digest(hash, random, initiator, responder, answer), solution.difficulty)
}

/// The digest that a solution is judged by.
pub fn digest(hash: Hash, random: &[u8], initiator: Hit, responder: Hit, answer: &[u8]) -> Vec<u8> {
    hash.digest(&[random, &initiator.0, &responder.0, answer]).as_ref().to_vec()
}

/// Whether the lowest `bits` bits of the big-endian number `digest` are zero.
fn ends_in_zeros(digest: &[u8], bits: u8) -> bool {
    let (whole, rest) = (usize::from(bits / 8), u32::from(bits % 8));
    let Some(split) = digest.len().checked_sub(whole) else { return false };
    let (upper, lower) = digest.split_at(split);
    lower.iter().all(|b| *b == 0) && (rest == 0 || upper.last().is_some_and(|b| b.trailing_zeros() >= rest))
}

/// A search for a solution that can be done in slices, since 2^K hashes may take long.
pub struct Search {
    hash: Hash,
    puzzle: Puzzle,
    initiator: Hit,
    responder: Hit,
    next: Vec<u8>,
}

impl Search {
    /// A search that starts at a random J.
    pub fn new(hash: Hash, puzzle: Puzzle, initiator: Hit, responder: Hit, random: &mut Random) -> Self {
        Self { hash, puzzle, initiator, responder, next: random.vec(hash.len()) }
    }

    /// Tries up to `tries` values of J.
    pub fn run(&mut self, tries: u64) -> Option<Solution> {
        for _ in 0..tries {
            let digest = digest(self.hash, &self.puzzle.random, self.initiator, self.responder, &self.next);
            if ends_in_zeros(&digest, self.puzzle.difficulty) {
                return Some(self.solution());
            }
            increment(&mut self.next);
        }
        None
    }

    fn solution(&self) -> Solution {
        Solution {
            difficulty: self.puzzle.difficulty,
            reserved: 0,
            opaque: self.puzzle.opaque,
            random: self.puzzle.random.clone(),
            answer: self.next.clone(),
        }
    }
}

fn increment(number: &mut [u8]) {
    for byte in number.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_bits() {
        assert!(ends_in_zeros(&[1, 0], 8));
        assert!(!ends_in_zeros(&[1, 0], 9));
        assert!(ends_in_zeros(&[2, 0], 9));
        assert!(ends_in_zeros(&[0xff], 0));
        assert!(!ends_in_zeros(&[0, 0], 17), "more bits than the digest has");
    }

    #[test]
    fn found_solutions_solve() {
        let (i, r) = (Hit([1; 16]), Hit([2; 16]));
        let puzzle = Puzzle { difficulty: 9, lifetime: 37, opaque: [1, 2], random: vec![5; 32] };
        let mut search = Search::new(Hash::Sha256, puzzle, i, r, &mut Random::from_seed([0; 32]));
        let solution = (0..100).find_map(|_| search.run(100)).unwrap();
        assert!(is_solved(Hash::Sha256, &solution, i, r));
        assert!(!is_solved(Hash::Sha256, &solution, r, i), "the order of the HITs matters");
        assert!(!is_solved(Hash::Sha384, &solution, i, r), "I and J are as long as the hash");
    }
}
