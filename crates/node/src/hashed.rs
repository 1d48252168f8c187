//! A file together with a digest of the bytes that pass.

use std::io::{self, Read, Write};

/// A reader or a writer, and a digest of all that was read or written: any digest that is written to.
#[derive(Debug)]
pub struct Hashed<F, H> {
    /// The file.
    pub file: F,
    /// The digest. It may contain earlier bytes.
    pub hash: H,
}

impl<F, H: Write> Hashed<F, H> {
    /// Adds what was passed to the digest, which takes everything.
    fn passed(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hash.write_all(bytes)?;
        Ok(bytes.len())
    }
}

impl<F: Read, H: Write> Read for Hashed<F, H> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.passed(&buffer[..read])
    }
}

impl<F: Write, H: Write> Write for Hashed<F, H> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.passed(&bytes[..written])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sha256;

    #[test]
    fn the_digest_is_that_of_what_was_written_not_of_what_was_offered() {
        let mut small = Hashed { file: io::Cursor::new([0; 5]), hash: Sha256::new() };
        assert_eq!(small.write(b"hello, world").unwrap(), 5);
        assert_eq!(small.hash.finalize(), Sha256::digest("hello"));
    }

    #[test]
    fn the_digest_goes_on_from_earlier_bytes() {
        let mut rest = Hashed { file: &b"world"[..], hash: Sha256::new() };
        rest.hash.update("hello, ");
        rest.read_to_end(&mut Vec::new()).unwrap();
        assert_eq!(rest.hash.finalize(), Sha256::digest("hello, world"));
    }
}
