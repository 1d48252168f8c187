//! The bytes of one file.

use std::io;

use bytes::Bytes;
use polypath_node::{Hashed, bulk, hex};

use super::jobs;
use super::{Open, Place, Receiving, blocking};
use crate::digest::{Digest, Hasher, hashed};
use crate::error::FileError;
use crate::message::{Frame, Offer, Verdict, Work};
use crate::name::SafePath;
use crate::send::SMALL;
use crate::step::{Step, Transferred};
use crate::store::Part;

/// Files that are being stored while the next one arrives.
const MOST_JOBS: usize = 16;

/// Where bytes go.
enum Sink {
    Nowhere,
    /// A small file is gathered, then written at once.
    Memory(Vec<u8>, SafePath),
    Disk(bulk::Sink<Hashed<Part, Hasher>>),
}

impl<F: FnMut(Step)> Receiving<'_, F> {
    /// The bytes of the first open file follow, from `at` on.
    pub(super) async fn started(&mut self, at: u64) -> Result<(), FileError> {
        while self.jobs.len() >= MOST_JOBS && self.next_job().await? {}
        let open = self.open.pop_front().ok_or(FileError::Protocol("a start of nothing"))?;
        let Open { number, name, offer, place } = open;
        let begin = Step::Begin { index: number as usize, name: name.clone(), size: offer.size, at };
        match place {
            Place::Refused => return self.refused(&offer, at).await,
            Place::Stored { at: there, digest, .. } if Some(at) == offer.size => {
                (self.tell)(begin);
                return self.stored_before(number, name, &offer, there, digest).await;
            }
            _ => {}
        }
        let mut sink = match self.sink(place, &offer, at).await? {
            Ok(sink) => sink,
            Err(error) => {
                self.refuse_for(number, &name, &error).await?;
                return self.refused(&offer, at).await;
            }
        };
        (self.tell)(begin);
        let left = offer.size.map(|size| size - at);
        match self.bytes(number, &name, left, &mut sink).await {
            Ok(end) => self.ended(number, name, offer, at, sink, end).await,
            Err(error) => {
                if let Sink::Disk(writer) = sink {
                    // What came is kept for the next attempt, as far as it can be written.
                    let _ = writer.finish().await;
                }
                Err(error)
            }
        }
    }

    /// Opens the place where bytes go from `at` on.
    async fn sink(&mut self, place: Place, offer: &Offer, at: u64) -> Result<io::Result<Sink>, FileError> {
        let wrong = FileError::Protocol("a start at the wrong place");
        let (store, from) = (self.store.clone(), self.from);
        let small = offer.size.is_some_and(|size| size <= SMALL);
        let part = match place {
            Place::Refused => return Ok(Ok(Sink::Nowhere)),
            Place::Part { part, have } if at == have => return Ok(Ok(Sink::Disk(bulk::Sink::start(part)))),
            _ if at != 0 => return Err(wrong),
            Place::New(path) if small => return Ok(Ok(Sink::Memory(Vec::new(), path))),
            Place::New(path) => self.storing(move || store.fresh(from, &path)).await?,
            Place::Part { part, .. } => self.storing(move || part.file.emptied()).await?,
            Place::Stored { path, .. } => {
                let part = self.part(&path).await?;
                part.and_then(Part::emptied)
            }
        };
        Ok(part.map(|part| Sink::Disk(bulk::Sink::start(hashed(part)))))
    }

    async fn storing<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<io::Result<T>, FileError> {
        self.meanwhile(Work::Storing, blocking(work)).await
    }

    /// Receives the bytes of a file to its end. If they cannot be stored, an error goes to the peer, and the rest is dropped.
    async fn bytes(
        &mut self,
        number: u32,
        name: &str,
        left: Option<u64>,
        sink: &mut Sink,
    ) -> Result<Frame, FileError> {
        let mut left = left.unwrap_or(u64::MAX);
        let sized = left != u64::MAX;
        loop {
            let mut frame = match self.incoming.expect::<Frame>().await? {
                Frame::Data(len) => len as usize,
                Frame::End(_) if sized && left > 0 => {
                    return Err(FileError::Protocol("an end before the end"));
                }
                Frame::Working => {
                    (self.tell)(Step::Working(Work::Reading));
                    continue;
                }
                end => return Ok(end),
            };
            let rest = left.checked_sub(frame as u64);
            left = rest.ok_or(FileError::Protocol("more bytes than were offered"))?;
            while frame > 0 {
                let pieces = self.incoming.some(frame).await?;
                let len: usize = pieces.iter().map(Bytes::len).sum();
                frame -= len;
                (self.tell)(Step::Bytes { bytes: len as u64, stream: self.incoming.read });
                self.keep(number, name, sink, pieces).await?;
            }
        }
    }

    async fn keep(
        &mut self,
        number: u32,
        name: &str,
        sink: &mut Sink,
        pieces: Vec<Bytes>,
    ) -> Result<(), FileError> {
        match sink {
            Sink::Nowhere => Ok(()),
            Sink::Memory(all, _) => {
                pieces.iter().for_each(|piece| all.extend_from_slice(piece));
                Ok(())
            }
            Sink::Disk(writer) => match self.meanwhile(Work::Storing, writer.write(pieces)).await? {
                Ok(()) => Ok(()),
                Err(error) => {
                    *sink = Sink::Nowhere;
                    self.refuse_for(number, name, &error).await
                }
            },
        }
    }

    /// Drops the bytes of a file that has its verdict.
    async fn refused(&mut self, offer: &Offer, at: u64) -> Result<(), FileError> {
        let left = offer.size.map(|size| size.saturating_sub(at));
        self.bytes(0, "", left, &mut Sink::Nowhere).await.map(drop)
    }

    /// The sender has found that its file is the one that was stored before.
    async fn stored_before(
        &mut self,
        number: u32,
        name: String,
        offer: &Offer,
        there: std::path::PathBuf,
        digest: Digest,
    ) -> Result<(), FileError> {
        let end = self.bytes(number, &name, Some(0), &mut Sink::Nowhere).await?;
        if end != Frame::End(digest) {
            return self.refuse(number, &name, Verdict::Changed, String::new()).await;
        }
        self.verdict(number, Verdict::Stored, String::new()).await?;
        let (index, bytes) = (number as usize, offer.size.unwrap_or_default());
        let (blake3, path) = (hex(&digest), Some(there));
        (self.tell)(Step::Done(Transferred { index, name, bytes, resumed_at: bytes, blake3, path }));
        Ok(())
    }

    async fn ended(
        &mut self,
        number: u32,
        name: String,
        offer: Offer,
        at: u64,
        sink: Sink,
        end: Frame,
    ) -> Result<(), FileError> {
        let sum = match (&sink, end) {
            (Sink::Nowhere, _) => return Ok(()),
            (_, Frame::End(sum)) => sum,
            _ => return self.refuse(number, &name, Verdict::Abandoned, "the sender gave it up".into()).await,
        };
        let (store, from) = (self.store.clone(), self.from);
        let job = jobs::File { number, name, offer, resumed_at: at, sum };
        match sink {
            Sink::Memory(all, path) => _ = self.jobs.spawn(job.store_small(store, from, path, all)),
            Sink::Disk(writer) => _ = self.jobs.spawn(job.store(store, writer)),
            Sink::Nowhere => {}
        }
        Ok(())
    }
}
