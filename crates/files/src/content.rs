//! The bytes that are sent.

use std::fs::File;
use std::io::{self, Read, Stdin};

use bytes::Bytes;

/// What a large file or one without a known length is read from.
pub(crate) enum Input {
    File(File),
    Stdin(Stdin),
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Stdin(stdin) => stdin.read(buffer),
        }
    }
}

/// Reads a small file whole.
pub(crate) fn read_all(file: &mut File, size: u64) -> io::Result<Bytes> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(size).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == size { Ok(bytes.into()) } else { Err(shorter()) }
}

pub(crate) fn shorter() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "became shorter while it was sent")
}
