//! The digest that decides whether a file is whole: BLAKE3, as `b3sum` prints it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use polypath_node::Hashed;

/// A BLAKE3 of 256 bits.
pub type Digest = [u8; 32];
/// One that grows: 2 kB, so it is passed on as a pointer.
pub(crate) type Hasher = Box<blake3::Hasher>;

/// The digest of some bytes.
pub(crate) fn digest_of(bytes: &[u8]) -> Digest {
    blake3::hash(bytes).into()
}

/// The digest of what a hasher was given.
pub(crate) fn digest(hasher: &Hasher) -> Digest {
    hasher.finalize().into()
}

/// A file whose bytes are hashed from here on.
pub(crate) fn hashed<F>(file: F) -> Hashed<F, Hasher> {
    Hashed { file, hash: Hasher::default() }
}

/// Hashes the first `len` bytes, or as many as there are; how many.
pub(crate) fn hash_front(file: &mut File, len: u64, hash: &mut Hasher) -> io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let mut rest = file.take(len);
    hash.update_reader(&mut rest)?;
    Ok(len - rest.limit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of the reference implementation: bytes 0 to 250, repeated.
    #[test]
    fn the_published_vectors() {
        let input: Vec<u8> = (0..=250).cycle().take(2048).collect();
        let hex = |len| polypath_node::hex(&digest_of(&input[..len]));
        assert_eq!(hex(0), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
        assert_eq!(hex(1), "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213");
        assert_eq!(hex(2048), "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a");
    }
}
