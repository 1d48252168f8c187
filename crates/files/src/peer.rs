//! The other end of a connection: messages out of bytes, and bytes out of messages.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use polypath_node::Stream;
use polypath_node::bulk::CHUNK;

use crate::error::FileError;
use crate::message::{Answer, Message, NotYet, Role};

/// How often an end that works without moving bytes says so.
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// What the peer sends.
pub(crate) struct Incoming<'a> {
    stream: &'a Stream,
    /// Read from the connection and not taken yet; no piece is empty.
    rest: VecDeque<Bytes>,
    /// Bytes read so far.
    pub read: u64,
}

impl<'a> Incoming<'a> {
    pub fn new(stream: &'a Stream) -> Self {
        Self { stream, rest: VecDeque::new(), read: 0 }
    }

    /// The next message; `None` if the peer has ended before it. Cancelled, nothing of it is lost.
    pub async fn next<M: Message>(&mut self) -> Result<Option<M>, FileError> {
        loop {
            let front: &[u8] = self.rest.front().map_or(&[], |piece| piece);
            match M::parse(front) {
                Ok((message, len)) => {
                    self.take(len);
                    return Ok(Some(message));
                }
                Err(NotYet::Malformed(what)) => return Err(FileError::Protocol(what)),
                Err(NotYet::Version(theirs)) => return Err(FileError::Version { theirs }),
                Err(NotYet::Short) if self.rest.len() > 1 || self.fill().await? => self.join(),
                Err(NotYet::Short) if self.rest.is_empty() => return Ok(None),
                Err(NotYet::Short) => return Err(FileError::Cut),
            }
        }
    }

    /// The next message; an error if there is none.
    pub async fn expect<M: Message>(&mut self) -> Result<M, FileError> {
        self.next().await?.ok_or(FileError::Cut)
    }

    /// The next bytes, at least one and at most `max`, as they came. Cancelled, nothing of them is lost.
    pub async fn some(&mut self, max: usize) -> Result<Vec<Bytes>, FileError> {
        if self.rest.is_empty() && !self.fill().await? {
            return Err(FileError::Cut);
        }
        let mut left = max;
        let pieces = std::iter::from_fn(|| {
            let piece = self.take(left)?;
            left -= piece.len();
            Some(piece)
        });
        Ok(pieces.collect())
    }

    /// At most `max` bytes of the first piece; `None` if that is none.
    fn take(&mut self, max: usize) -> Option<Bytes> {
        let first = self.rest.front_mut().filter(|_| max > 0)?;
        let piece = first.split_to(max.min(first.len()));
        if first.is_empty() {
            self.rest.pop_front();
        }
        Some(piece)
    }

    /// Joins the first two pieces, if there are two: a message spans them.
    fn join(&mut self) {
        if let Some(second) = self.rest.remove(1)
            && let Some(first) = self.rest.front_mut()
        {
            *first = [&first[..], &second].concat().into();
        }
    }

    /// Waits for more bytes; `false` at the end.
    async fn fill(&mut self) -> Result<bool, FileError> {
        let Some(pieces) = self.stream.read_chunks(CHUNK).await? else { return Ok(false) };
        self.read += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        self.rest.extend(pieces.into_iter().filter(|piece| !piece.is_empty()));
        Ok(true)
    }
}

/// What we send. Messages are gathered until [`flush`](Self::flush), so that a small file is written at once.
pub(crate) struct Outgoing<'a> {
    stream: &'a Stream,
    gathered: BytesMut,
    pub written: u64,
}

/// Most bytes that are gathered. Bytes of a file are copied to the gathered ones if they fit, else written by themselves.
const GATHERED: usize = 64 << 10;

impl<'a> Outgoing<'a> {
    pub fn new(stream: &'a Stream) -> Self {
        Self { stream, gathered: BytesMut::new(), written: 0 }
    }

    pub fn put(&mut self, message: &impl Message) {
        message.emit(&mut self.gathered);
    }

    /// Bytes of a file.
    pub async fn put_bytes(&mut self, bytes: Bytes) -> Result<(), FileError> {
        if self.gathered.len() + bytes.len() <= GATHERED {
            self.gathered.extend_from_slice(&bytes);
            return Ok(());
        }
        self.flush().await?;
        self.written += bytes.len() as u64;
        Ok(self.stream.write(bytes).await?)
    }

    /// Writes what was gathered. Cancelled, a part of it may have been written.
    pub async fn flush(&mut self) -> Result<(), FileError> {
        let bytes = self.gathered.split().freeze();
        self.written += bytes.len() as u64;
        Ok(self.stream.write(bytes).await?)
    }
}

/// How long a peer that was declined may take to read why.
const FAREWELL: Duration = Duration::from_secs(2);

/// Waits for the greeting of the peer, which opened the connection: it must have `role`. Another role or another version is declined.
pub(crate) async fn expect_role(
    stream: &Stream,
    incoming: &mut Incoming<'_>,
    role: Role,
) -> Result<(), FileError> {
    let declined = match incoming.expect::<Role>().await {
        Ok(theirs) if theirs == role => return Ok(()),
        Ok(_) => FileError::Direction { sends: role == Role::Fetch },
        Err(version @ FileError::Version { .. }) => version,
        Err(error) => return Err(error),
    };
    // The peer may have gone already: what it did wrong is the news.
    let _ = decline(stream).await;
    Err(declined)
}

/// Says that it does not go on, in our version, and waits until the peer has read that.
async fn decline(stream: &Stream) -> Result<(), FileError> {
    let mut out = Outgoing::new(stream);
    out.put(&Answer::No);
    out.flush().await?;
    stream.finish();
    let ended = async { while let Ok(Some(_)) = stream.read(CHUNK).await {} };
    // One that does not go is left.
    let _ = tokio::time::timeout(FAREWELL, ended).await;
    Ok(())
}
