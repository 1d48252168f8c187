//! The file to send: the user's own, or one made up.

use std::fmt;
use std::fs::{self, File};
#[cfg(feature = "curl")]
use std::io::Read;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use indicatif::BinaryBytes;
use polypath_node::{Sha256, hex};
use polypath_transport::{Pattern, Payload};

use crate::args::DemoArgs;
use crate::failure::Failure;

/// How much of a generated file is written at a time, bytes.
const CHUNK: u64 = 1 << 20;
/// Which pattern fills it.
const PATTERN: u32 = 2;

/// A file of known length.
#[derive(Debug)]
pub struct Content {
    pub path: PathBuf,
    pub name: String,
    pub len: u64,
    /// A generated file has no name: it is gone with this value, however the program ends.
    _made_up: Option<File>,
}

impl Content {
    /// The file of `--file`, or a temporary one of `--size`.
    pub fn open(args: &DemoArgs) -> Result<Self, Failure> {
        if let Some(path) = &args.file {
            return Self::existing(path);
        }
        let len = args.size.0.0;
        let file = made_up(len, &std::env::temp_dir())?;
        let name = format!("{} of generated data", args.size);
        let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        Ok(Self { path, name, len, _made_up: Some(file) })
    }

    fn existing(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let refused = |e| {
            Failure::system(format!("cannot read {name}"), e)
                .help("name an existing file, or leave --file out: then one is generated")
        };
        // To open a named pipe would wait for its writer.
        let metadata = fs::metadata(path).map_err(refused)?;
        if !metadata.is_file() {
            return Err(Failure::usage(format!("{name} is not a regular file"))
                .help("name one, or leave --file out: then one is generated"));
        }
        File::open(path).map_err(refused)?;
        Ok(Self { path: path.to_owned(), name, len: metadata.len(), _made_up: None })
    }

    /// Its SHA-256 in hexadecimal.
    #[cfg(feature = "curl")]
    pub fn sha256(&self) -> io::Result<String> {
        let (mut file, mut digest) = (File::open(&self.path)?, Digested::default());
        let mut buffer = vec![0; CHUNK as usize];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(digest.finish()),
                len => digest.update(&buffer[..len]),
            }
        }
    }

    /// The whole file.
    pub fn read(&self) -> Result<Bytes, Failure> {
        let read = fs::read(&self.path);
        read.map(Bytes::from).map_err(|e| Failure::system(format!("cannot read {}", self.name), e))
    }
}

/// A file of `len` bytes in `dir`.
fn made_up(len: u64, dir: &Path) -> Result<File, Failure> {
    let failed = |e: &dyn fmt::Display| {
        Failure::system(format!("cannot generate a file to send in {}", dir.display()), e)
            .help("choose a smaller --size, or another directory: TMPDIR=/var/tmp polypath demo")
    };
    let free = free(dir).map_err(|e| failed(&e))?;
    if len > free {
        return Err(failed(&format!("{} needed, {} free", BinaryBytes(len), BinaryBytes(free))));
    }
    write_made_up(len, dir).map_err(|e| failed(&e))
}

/// Bytes that may still be written to the file system of `dir`.
fn free(dir: &Path) -> io::Result<u64> {
    let fs = rustix::fs::statvfs(dir)?;
    Ok(fs.f_bavail.saturating_mul(fs.f_frsize))
}

fn write_made_up(len: u64, dir: &Path) -> io::Result<File> {
    let mut out = BufWriter::new(tempfile::tempfile_in(dir)?);
    for offset in (0..len).step_by(CHUNK as usize) {
        let piece = Pattern { key: PATTERN, offset, len: CHUNK.min(len - offset) };
        out.write_all(&Payload::from(piece).to_bytes())?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// A digest that grows, and its length.
#[derive(Clone, Default)]
pub struct Digested {
    hash: Sha256,
    pub len: u64,
}

impl Digested {
    pub fn update(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.len += bytes.len() as u64;
    }

    /// The SHA-256 in hexadecimal.
    pub fn finish(self) -> String {
        hex(&self.hash.finalize())
    }
}
