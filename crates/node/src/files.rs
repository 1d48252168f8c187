//! Files over a connection: what `polypath send` and `polypath receive` say to each other
//! (docs/protocol.md). An interrupted transfer goes on where it stopped, and nothing counts as received
//! whose SHA-256 is not that of what was sent.

use std::collections::VecDeque;
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use polypath_wire::hip::Hit;
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::fs::{self, File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::bulk::{CHUNK, Sink, Source};
use crate::stream::{Stream, StreamError};

/// The port of connections that carry files.
pub const PORT: u16 = 4826;
const MAGIC: &[u8; 8] = b"PPFILE1\n";
const OFFER: u8 = 1;
const WANT: u8 = 2;
const START: u8 = 3;
const VERDICT: u8 = 4;
const MAX_NAME: usize = 255;

/// Why files were not transferred.
#[derive(Debug, Error)]
pub enum FileError {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The connection failed.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The peer ended in the middle.
    #[error("the peer ended in the middle of it")]
    Cut,
    /// The peer says something else than it should.
    #[error("the peer does not speak our protocol: {0}")]
    Protocol(&'static str),
    /// The file is not what was sent.
    #[error("{0}: arrived changed")]
    Changed(String),
    /// The receiver could not store the file.
    #[error("{0}: the receiver could not store it")]
    NotStored(String),
    /// A file whose name cannot be told.
    #[error("{}: has no file name in UTF-8", .0.display())]
    Name(PathBuf),
}

impl FileError {
    /// Whether another attempt, over a new connection, may succeed.
    pub fn is_interruption(&self) -> bool {
        matches!(self, Self::Stream(_) | Self::Cut)
    }
}

/// What became of one file.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Transferred {
    /// Its name.
    pub name: String,
    /// Its length, bytes.
    pub bytes: u64,
    /// How much of it was there already.
    pub resumed_at: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
    /// Where it is now, at the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// Something to show while files go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A file begins: its name, its length, and where in it.
    Begin {
        /// Name.
        name: String,
        /// Bytes.
        size: u64,
        /// Offset.
        at: u64,
    },
    /// So many bytes of it went by.
    Bytes(u64),
    /// It is done.
    Done(Transferred),
}

/// Sends `files` one after the other.
pub async fn send(stream: &Stream, files: &[PathBuf], mut tell: impl FnMut(Step)) -> Result<(), FileError> {
    let mut peer = Peer::new(stream);
    stream.write(Bytes::from_static(MAGIC)).await?;
    for path in files {
        let done = send_one(&mut peer, path, &mut tell).await?;
        tell(Step::Done(done));
    }
    stream.finish();
    stream.finished().await?;
    Ok(())
}

async fn send_one(
    peer: &mut Peer<'_>,
    path: &Path,
    tell: &mut impl FnMut(Step),
) -> Result<Transferred, FileError> {
    let failed = |source| FileError::File { path: path.to_owned(), source };
    let name = path.file_name().and_then(|n| n.to_str()).filter(|n| is_safe(n));
    let name = name.ok_or_else(|| FileError::Name(path.to_owned()))?.to_owned();
    let mut file = File::open(path).await.map_err(failed)?;
    let size = file.metadata().await.map_err(failed)?.len();
    let mut offer = BytesMut::new();
    offer.put_u8(OFFER);
    offer.put_u16(name.len() as u16);
    offer.put_slice(name.as_bytes());
    offer.put_u64(size);
    peer.stream.write(offer.freeze()).await?;

    let mut want = match peer.exact(1).await?[0] {
        WANT => peer.exact(8 + 32).await?,
        VERDICT => return Err(refusal(peer.exact(1).await?[0], name)),
        _ => return Err(FileError::Protocol("expected a wish")),
    };
    let offset = want.get_u64();
    let (mut hash, mut at) = (Sha256::new(), 0);
    if offset > 0 && offset <= size {
        digest(&mut file, offset, &mut hash).await.map_err(failed)?;
        at = if hash.clone().finalize()[..] == want[..] { offset } else { 0 };
    }
    if at == 0 {
        hash = Sha256::new();
        file.seek(SeekFrom::Start(0)).await.map_err(failed)?;
    }
    let mut start = BytesMut::new();
    start.put_u8(START);
    start.put_u64(at);
    peer.stream.write(start.freeze()).await?;
    tell(Step::Begin { name: name.clone(), size, at });

    let mut left = size - at;
    let mut source = Source::start(file.into_std().await, left, hash);
    while left > 0 {
        let Some(chunk) = source.next().await.map_err(failed)? else {
            return Err(failed(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "became shorter while it was sent",
            )));
        };
        let read = chunk.len() as u64;
        left -= read;
        let stream = peer.stream;
        tokio::select! {
            written = stream.write(chunk) => written?,
            heard = peer.fill() => {
                // A verdict before its time: the receiver cannot go on.
                heard?;
                break;
            }
        }
        tell(Step::Bytes(read));
    }
    let sha256 = source.finish().await.map_err(failed)?.1.finalize();
    if left == 0 {
        peer.stream.write(Bytes::copy_from_slice(&sha256)).await?;
    }
    let mut verdict = peer.exact(2).await?;
    match (verdict.get_u8(), verdict.get_u8()) {
        (VERDICT, 0) if left == 0 => {}
        (VERDICT, code) => return Err(refusal(code, name)),
        _ => return Err(FileError::Protocol("expected a verdict")),
    }
    Ok(Transferred { name, bytes: size, resumed_at: at, sha256: hex(&sha256), path: None })
}

/// What a verdict other than "stored" says.
fn refusal(code: u8, name: String) -> FileError {
    match code {
        1 => FileError::Changed(name),
        2 => FileError::NotStored(name),
        _ => FileError::Protocol("an unknown verdict"),
    }
}

/// Receives files into `dir` until the peer has no more. What cannot be stored ends it, and the peer is told.
pub async fn receive(
    stream: &Stream,
    from: Hit,
    dir: &Path,
    mut tell: impl FnMut(Step),
) -> Result<(), FileError> {
    let mut peer = Peer::new(stream);
    if peer.exact(MAGIC.len()).await? != MAGIC[..] {
        return Err(FileError::Protocol("other magic number"));
    }
    while let Some(kind) = peer.one().await? {
        if kind != OFFER {
            return Err(FileError::Protocol("expected an offer"));
        }
        match receive_one(&mut peer, from, dir, &mut tell).await {
            Ok(done) => tell(Step::Done(done)),
            Err(error) => {
                if matches!(error, FileError::File { .. }) {
                    peer.verdict(2).await?;
                    stream.finish();
                    // Until the peer has it: then it may well reset the connection.
                    let _ = stream.finished().await;
                }
                return Err(error);
            }
        }
    }
    stream.finish();
    // The peer knows of each file: if it ends the association before we hear that it has our end too
    // (its CLOSE may take a faster path), nothing is lost.
    let _ = stream.finished().await;
    Ok(())
}

async fn receive_one(
    peer: &mut Peer<'_>,
    from: Hit,
    dir: &Path,
    tell: &mut impl FnMut(Step),
) -> Result<Transferred, FileError> {
    let name_len = usize::from(peer.exact(2).await?.get_u16());
    let name = peer.exact(name_len).await?;
    let name = std::str::from_utf8(&name).ok().filter(|n| is_safe(n));
    let name = name.ok_or(FileError::Protocol("a file name that is none"))?.to_owned();
    let size = peer.exact(8).await?.get_u64();

    let part = part_path(dir, &name, from);
    let failed = |source| FileError::File { path: part.clone(), source };
    let mut file = open_part(dir, &name, &part, size).await.map_err(failed)?;
    let have = file.metadata().await.map_err(failed)?.len().min(size);
    let mut hash = Sha256::new();
    digest(&mut file, have, &mut hash).await.map_err(failed)?;
    let mut want = BytesMut::new();
    want.put_u8(WANT);
    want.put_u64(have);
    want.put_slice(&hash.clone().finalize());
    peer.stream.write(want.freeze()).await?;

    let mut start = peer.exact(1 + 8).await?;
    let at = match (start.get_u8(), start.get_u64()) {
        (START, at) if at == have || at == 0 => at,
        _ => return Err(FileError::Protocol("expected a start")),
    };
    if at == 0 {
        hash = Sha256::new();
    }
    file.set_len(at).await.map_err(failed)?;
    file.seek(SeekFrom::Start(at)).await.map_err(failed)?;
    tell(Step::Begin { name: name.clone(), size, at });
    let mut sink = Sink::start(file.into_std().await, hash);
    let result = fill(peer, &mut sink, size - at, tell).await;
    // What came is kept for the next attempt.
    let written = sink.finish().await;
    match result {
        Err(Filling::File(error)) => return Err(failed(error)),
        Err(Filling::Peer(error)) => return Err(error),
        Ok(()) => {}
    }
    let (file, hash) = written.map_err(failed)?;
    File::from_std(file).sync_all().await.map_err(failed)?;
    let sha256 = hash.finalize();
    if peer.exact(32).await? != sha256[..] {
        fs::remove_file(&part).await.map_err(failed)?;
        peer.verdict(1).await?;
        return Err(FileError::Changed(name));
    }
    let path = free_path(dir, &name, &part, &sha256).await.map_err(failed)?;
    peer.verdict(0).await?;
    Ok(Transferred { name, bytes: size, resumed_at: at, sha256: hex(&sha256), path: Some(path) })
}

/// Why a file was not received to its end.
enum Filling {
    File(io::Error),
    Peer(FileError),
}

/// Has the next `left` bytes from the peer written.
async fn fill(
    peer: &mut Peer<'_>,
    sink: &mut Sink<std::fs::File>,
    mut left: u64,
    tell: &mut impl FnMut(Step),
) -> Result<(), Filling> {
    while left > 0 {
        let chunks = peer.chunks(left).await.map_err(Filling::Peer)?;
        let len = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        left -= len;
        sink.write(chunks).await.map_err(Filling::File)?;
        tell(Step::Bytes(len));
    }
    Ok(())
}

/// The unfinished file; a finished one of that name and size is looked at as if it were unfinished.
async fn open_part(dir: &Path, name: &str, part: &Path, size: u64) -> io::Result<File> {
    let finished = dir.join(name);
    let same = fs::metadata(&finished).await.is_ok_and(|m| m.is_file() && m.len() == size);
    if same && !fs::try_exists(part).await? {
        fs::copy(&finished, part).await?;
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(part).await
}

/// Gives the finished file its name, or one like it if there is another file of that name.
async fn free_path(dir: &Path, name: &str, part: &Path, sha256: &[u8]) -> io::Result<PathBuf> {
    for number in 0.. {
        let path = dir.join(if number == 0 { name.to_owned() } else { format!("{name}.{number}") });
        if !fs::try_exists(&path).await? {
            fs::rename(part, &path).await?;
            return Ok(path);
        }
        let mut hash = Sha256::new();
        let mut there = File::open(&path).await?;
        digest(&mut there, u64::MAX, &mut hash).await?;
        if hash.finalize()[..] == *sha256 {
            fs::remove_file(part).await?;
            return Ok(path);
        }
    }
    unreachable!("some number is free")
}

fn part_path(dir: &Path, name: &str, from: Hit) -> PathBuf {
    let tail: String = from.0[12..].iter().map(|b| format!("{b:02x}")).collect();
    let mut short = name;
    while short.len() > MAX_NAME - 24 {
        short = &short[..short.char_indices().next_back().map_or(0, |(i, _)| i)];
    }
    dir.join(format!(".{short}.{tail}.part"))
}

/// A name that stays within its directory.
fn is_safe(name: &str) -> bool {
    let odd = |c: char| c == '/' || c.is_control();
    !name.is_empty() && name.len() <= MAX_NAME && name != "." && name != ".." && !name.contains(odd)
}

/// Hashes the first `len` bytes, or as many as there are.
async fn digest(file: &mut File, len: u64, hash: &mut Sha256) -> io::Result<()> {
    let mut rest = file.take(len);
    let mut buffer = vec![0; CHUNK];
    loop {
        match rest.read(&mut buffer).await? {
            0 => return Ok(()),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// The other end of a connection, read by pieces of known length.
struct Peer<'a> {
    stream: &'a Stream,
    rest: VecDeque<Bytes>,
}

impl<'a> Peer<'a> {
    fn new(stream: &'a Stream) -> Self {
        Self { stream, rest: VecDeque::new() }
    }

    /// Waits until there is something to read. Cancelled, it has taken nothing.
    async fn fill(&mut self) -> Result<(), FileError> {
        if self.rest.is_empty() {
            self.rest = self.stream.read_chunks(CHUNK).await?.ok_or(FileError::Cut)?.into();
        }
        Ok(())
    }

    /// The next bytes, at least one and at most `max`.
    async fn some(&mut self, max: u64) -> Result<Bytes, FileError> {
        self.fill().await?;
        Ok(self.take(max))
    }

    /// The same, as many as there are at once.
    async fn chunks(&mut self, max: u64) -> Result<Vec<Bytes>, FileError> {
        self.fill().await?;
        if self.rest.iter().map(|chunk| chunk.len() as u64).sum::<u64>() <= max {
            return Ok(std::mem::take(&mut self.rest).into());
        }
        let mut left = max;
        let next = || {
            let chunk = (left > 0).then(|| self.take(left))?;
            left -= chunk.len() as u64;
            Some(chunk)
        };
        Ok(std::iter::from_fn(next).collect())
    }

    /// At most `max` bytes of the first piece.
    fn take(&mut self, max: u64) -> Bytes {
        let Some(first) = self.rest.front_mut() else { return Bytes::new() };
        let piece = first.split_to(usize::try_from(max).unwrap_or(usize::MAX).min(first.len()));
        if first.is_empty() {
            self.rest.pop_front();
        }
        piece
    }

    async fn exact(&mut self, len: usize) -> Result<Bytes, FileError> {
        let mut bytes = BytesMut::with_capacity(len);
        while bytes.len() < len {
            let more = self.some((len - bytes.len()) as u64).await?;
            bytes.put_slice(&more);
        }
        Ok(bytes.freeze())
    }

    /// The next byte; none at the end.
    async fn one(&mut self) -> Result<Option<u8>, FileError> {
        match self.some(1).await {
            Ok(byte) => Ok(Some(byte[0])),
            Err(FileError::Cut) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn verdict(&mut self, code: u8) -> Result<(), FileError> {
        Ok(self.stream.write(Bytes::copy_from_slice(&[VERDICT, code])).await?)
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_directory() {
        for bad in ["", ".", "..", "a/b", "/etc/passwd", "a\0b", "a\nb"] {
            assert!(!is_safe(bad), "{bad:?}");
        }
        assert!(is_safe("über file.iso") && is_safe(".hidden") && is_safe("..."));
        let long = "ü".repeat(127);
        let part = part_path(Path::new("d"), &long, Hit([7; 16]));
        assert!(part.file_name().unwrap().len() <= MAX_NAME);
    }
}
