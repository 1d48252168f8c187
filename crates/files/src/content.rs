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

/// Reads a file of `size` bytes whole, or of as many as there are by now; `None` if they are more than `most`. The length of a
/// file that the system makes up (proc(5)) is 0.
pub(crate) fn read_all(file: &mut File, size: u64, most: u64) -> io::Result<Option<Bytes>> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        len if len < size => Err(shorter()),
        len if len > most => Ok(None),
        _ => Ok(Some(bytes.into())),
    }
}

/// Whether anything is behind what was read.
pub(crate) fn has_more(mut input: Input) -> io::Result<bool> {
    Ok(input.read(&mut [0])? > 0)
}

pub(crate) fn shorter() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "became shorter while it was sent")
}
