//! The end that has the files.
//!
//! One half writes offers and bytes, the other reads wants and verdicts. Several files are offered before their bytes are
//! sent, so that not each waits a round trip for its want. A small file follows its offer at once.

mod hear;
mod look;
mod open;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use polypath_node::bulk::Source;
use polypath_node::{Hashed, Stream};
use tokio::sync::Notify;

use crate::content::{Became, Input, shorter};
use crate::digest::{Digest, Hasher, digest, digest_of, hashed};
use crate::error::FileError;
use crate::message::{Answer, Frame, Modified, Offer, Role, Said, Verdict, Work};
use crate::name::shown;
use crate::peer::{Incoming, Outgoing, expect_role};
use crate::source::Entry;
use crate::step::{Failed, Step};
use hear::Offered;
pub use open::SMALL;
use open::{Content, open, resume};

/// Most files that are offered before the bytes of the first of them are sent.
const AHEAD: usize = 16;

/// Sends `entries` over a connection that we opened.
pub async fn send(stream: &Stream, entries: &[Entry], tell: impl FnMut(Step)) -> Result<(), FileError> {
    let mut out = Outgoing::new(stream);
    out.put(&Role::Send);
    Sending::new(stream, entries, tell).run(out, Incoming::new(stream), true).await
}

/// Sends `entries` over a connection that the peer opened to fetch them.
pub async fn serve(stream: &Stream, entries: &[Entry], tell: impl FnMut(Step)) -> Result<(), FileError> {
    let (mut out, mut incoming) = (Outgoing::new(stream), Incoming::new(stream));
    expect_role(stream, &mut incoming, Role::Fetch).await?;
    out.put(&Answer::Yes);
    Sending::new(stream, entries, tell).run(out, incoming, false).await
}

struct Sending<'a, F> {
    stream: &'a Stream,
    entries: &'a [Entry],
    tell: Mutex<F>,
    /// By the numbers of the offers.
    offered: Mutex<Vec<Offered>>,
    /// A reply came.
    replied: Notify,
    all_written: AtomicBool,
}

/// What is open and waits for its turn.
struct Waiting {
    number: usize,
    offer: Offer,
    content: Content,
}

impl<'a, F: FnMut(Step)> Sending<'a, F> {
    fn new(stream: &'a Stream, entries: &'a [Entry], tell: F) -> Self {
        Self {
            stream,
            entries,
            tell: Mutex::new(tell),
            offered: Mutex::default(),
            replied: Notify::new(),
            all_written: AtomicBool::new(false),
        }
    }

    async fn run(&self, out: Outgoing<'_>, incoming: Incoming<'_>, asks: bool) -> Result<(), FileError> {
        tokio::try_join!(self.write(out), self.hear(incoming, asks))?;
        Ok(self.stream.finished().await?)
    }

    fn offered(&self) -> MutexGuard<'_, Vec<Offered>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, step: Step) {
        (self.tell.lock().unwrap_or_else(PoisonError::into_inner))(step);
    }

    async fn write(&self, mut out: Outgoing<'_>) -> Result<(), FileError> {
        let mut entries = self.entries.iter().enumerate();
        let mut waiting = VecDeque::new();
        loop {
            while waiting.len() < AHEAD
                && let Some((index, entry)) = entries.next()
            {
                waiting.extend(self.offer(&mut out, index, entry).await?);
            }
            let Some(next) = waiting.pop_front() else { break };
            self.content(&mut out, next).await?;
        }
        out.flush().await?;
        self.all_written.store(true, Ordering::Relaxed);
        self.stream.finish();
        Ok(())
    }

    /// Offers an entry; what is to follow, if anything is.
    async fn offer(
        &self,
        out: &mut Outgoing<'_>,
        index: usize,
        entry: &Entry,
    ) -> Result<Option<Waiting>, FileError> {
        let wanted = entry.clone();
        let (content, offer) = match self.looking(out, &Said::Working, move || open(&wanted)).await? {
            Ok(opened) => opened,
            Err(error) => {
                let misnamed = error.kind() == io::ErrorKind::InvalidFilename;
                let verdict = if misnamed { Verdict::Name } else { Verdict::Abandoned };
                self.failed(index, verdict, error.to_string());
                return Ok(None);
            }
        };
        out.put(&Said::Offer(offer.clone()));
        let mut offered = self.offered();
        offered.push(Offered::new(index, offer.size));
        let number = offered.len() - 1;
        Ok(content.map(|content| Waiting { number, offer, content }))
    }

    async fn content(&self, out: &mut Outgoing<'_>, waiting: Waiting) -> Result<(), FileError> {
        let Waiting { number, offer, content } = waiting;
        let opened = match content {
            Content::Small(bytes) => return self.small(out, number, bytes).await,
            Content::Endless(input) => Ok((0, Source::start(hashed(input), u64::MAX))),
            Content::Large(file) => {
                out.flush().await?;
                let want = self.wanted(number).await;
                let size = offer.size.unwrap_or_default();
                self.looking(out, &Said::Working, move || resume(file, size, want)).await?
            }
        };
        let (at, reader) = match opened {
            Ok((at, reader)) => (at, Ok(reader)),
            Err(error) => (0, Err(error)),
        };
        out.put(&Said::Start(at));
        self.begin(number, at, offer.size);
        let sent = match reader {
            Ok(reader) => {
                let known = offer.size.map(|size| (size - at, offer.modified));
                self.bytes(out, number, reader, known).await?
            }
            Err(error) => Err(error),
        };
        self.end(out, number, sent);
        Ok(())
    }

    async fn small(&self, out: &mut Outgoing<'_>, number: usize, bytes: Bytes) -> Result<(), FileError> {
        let len = bytes.len() as u64;
        out.put(&Said::Start(0));
        self.begin(number, 0, Some(len));
        let sum = digest_of(&bytes);
        if len > 0 {
            out.put(&Frame::Data(len as u32));
            out.put_bytes(bytes).await?;
            self.tell(Step::Bytes { bytes: len, stream: out.written });
        }
        self.end(out, number, Ok(Some(sum)));
        Ok(())
    }

    /// Sends what `source` reads: as many bytes as are `known` to be left of a file of that time, or whatever comes. Their digest, or
    /// none if the peer has decided before.
    async fn bytes(
        &self,
        out: &mut Outgoing<'_>,
        number: usize,
        mut source: Source<Hashed<Input, Hasher>>,
        known: Option<(u64, Modified)>,
    ) -> Result<io::Result<Option<Digest>>, FileError> {
        let mut sent = 0;
        loop {
            if self.offered()[number].decided {
                return Ok(Ok(None));
            }
            if known.is_none() {
                out.flush().await?; // more may be long in coming
            }
            let next = self.meanwhile(out, &Frame::Working, Work::Reading, source.next());
            let bytes = match next.await? {
                Ok(Some(bytes)) => bytes,
                Ok(None) if known.is_some_and(|(left, _)| sent < left) => return Ok(Err(shorter())),
                Ok(None) => {
                    let read = match source.finish().await {
                        Ok(read) => read,
                        Err(error) => return Ok(Err(error)),
                    };
                    let sum = digest(&read.hash);
                    if let Some((_, modified)) = known {
                        let became = move || Became::of(read.file, modified);
                        let became = self.looking(out, &Frame::Working, became).await?;
                        became.into_iter().for_each(|became| self.became(number, became));
                    }
                    return Ok(Ok(Some(sum)));
                }
                Err(error) => return Ok(Err(error)),
            };
            let len = bytes.len() as u64;
            sent += len;
            out.put(&Frame::Data(len as u32));
            out.put_bytes(bytes).await?;
            if known.is_none() {
                self.offered()[number].bytes = sent;
            }
            self.tell(Step::Bytes { bytes: len, stream: out.written });
        }
    }

    fn begin(&self, number: usize, at: u64, size: Option<u64>) {
        let mut offered = self.offered();
        offered[number].resumed_at = at;
        let index = offered[number].entry;
        drop(offered);
        self.tell(Step::Begin { index, name: shown(&self.entries[index].name), size, at });
    }

    fn end(&self, out: &mut Outgoing<'_>, number: usize, sent: io::Result<Option<Digest>>) {
        match sent {
            Ok(Some(sum)) => {
                self.offered()[number].digest = Some(sum);
                out.put(&Frame::End(sum));
            }
            Ok(None) => out.put(&Frame::Abandoned),
            Err(error) => {
                out.put(&Frame::Abandoned);
                let (index, known) = {
                    let offered = &mut self.offered()[number];
                    (offered.entry, std::mem::replace(&mut offered.decided, true))
                };
                if !known {
                    self.failed(index, Verdict::Abandoned, error.to_string());
                }
            }
        }
    }

    fn failed(&self, index: usize, verdict: Verdict, why: String) {
        let name = shown(&self.entries[index].name);
        self.tell(Step::Failed(Failed { index, name, verdict, why }));
    }
}
