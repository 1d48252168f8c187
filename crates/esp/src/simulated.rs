//! The ICV of simulations: notices what a hop corrupts, costs little, keeps no secret.

/// 16 bytes, of which 8 are a checksum of `covered` and `seq` and 8 are zero. Every step is a
/// bijection of the state and of the word, so a change within one word always shows.
pub(crate) fn icv(covered: &[u8], seq: u64) -> [u8; 16] {
    let (words, tail) = covered.as_chunks::<8>();
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    let start = step(covered.len() as u64, seq);
    let sum = words.iter().chain([&last]).fold(start, |sum, word| step(sum, u64::from_le_bytes(*word)));
    let mut out = [0; 16];
    out[..8].copy_from_slice(&sum.to_le_bytes());
    out
}

fn step(sum: u64, word: u64) -> u64 {
    let mixed = (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}
