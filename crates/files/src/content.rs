//! The bytes that are sent.

use std::fs::File;
use std::io::{self, Read, Stdin};

use bytes::Bytes;

use crate::message::Modified;

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

/// What became of a file while it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Became {
    Same,
    /// Something is behind what was read.
    Larger,
    /// Its last change is another one.
    Another,
}

impl Became {
    /// `input` is read up to the length that was offered; `modified` is the time of its last change then.
    pub fn of(mut input: Input, modified: Modified) -> io::Result<Self> {
        if input.read(&mut [0])? > 0 {
            return Ok(Self::Larger);
        }
        Ok(match input {
            Input::File(file) if crate::source::modified(&file.metadata()?) != modified => Self::Another,
            _ => Self::Same,
        })
    }
}

pub(crate) fn shorter() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "became shorter while it was sent")
}
