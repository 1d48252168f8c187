//! What is done to a file whose bytes are here, while the next one arrives.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use polypath_node::bulk::Sink;
use polypath_node::{Hashed, hex};
use polypath_wire::hip::Hit;
use tokio::task::JoinError;
use tokio::time::timeout;

use super::{Receiving, blocking};
use crate::digest::{Digest, Hasher, digest, digest_of};
use crate::error::FileError;
use crate::message::{Offer, Reply, Verdict, Work};
use crate::name::SafePath;
use crate::peer::BEAT;
use crate::step::{Step, Transferred};
use crate::store::{Part, Store, Stored};

/// A file whose bytes are here.
pub(super) struct File {
    pub number: u32,
    pub name: String,
    pub offer: Offer,
    pub resumed_at: u64,
    /// Digest, as the sender says.
    pub sum: Digest,
}

/// What became of it.
pub(super) enum Job {
    /// It has its name; `None` if it is not what was sent.
    Settled(File, io::Result<Option<(Stored, u64)>>),
    /// And this is where it stays.
    Placed(File, PathBuf, u64),
}

impl File {
    /// Stores what is written behind the connection.
    pub async fn store(self, store: Arc<Store>, writer: Sink<Hashed<Part, Hasher>>) -> Job {
        let (offer, wanted) = (self.offer.clone(), self.sum);
        let done = match writer.finish().await {
            Ok(Hashed { file, hash }) => {
                blocking(move || settle(&store, file, &offer, digest(&hash), wanted)).await
            }
            Err(error) => Err(error),
        };
        Job::Settled(self, done)
    }

    /// Stores a file that is in memory.
    pub async fn store_small(self, store: Arc<Store>, from: Hit, path: SafePath, all: Vec<u8>) -> Job {
        let (offer, wanted) = (self.offer.clone(), self.sum);
        let done = blocking(move || {
            let mut part = store.fresh(from, &path)?;
            part.file.write_all(&all)?;
            settle(&store, part, &offer, digest_of(&all), wanted)
        });
        let done = done.await;
        Job::Settled(self, done)
    }
}

/// Gives a whole file its name if `sum` is the `wanted` one; its length beside.
fn settle(
    store: &Store,
    part: Part,
    offer: &Offer,
    sum: Digest,
    wanted: Digest,
) -> io::Result<Option<(Stored, u64)>> {
    if sum != wanted {
        part.discard();
        return Ok(None);
    }
    let bytes = part.file.metadata()?.len();
    Ok(Some((store.settle(part, offer, sum)?, bytes)))
}

impl<F: FnMut(Step)> Receiving<'_, F> {
    /// Waits for a job and says what became of it; `false` if there is none.
    pub(super) async fn next_job(&mut self) -> Result<bool, FileError> {
        while !self.jobs.is_empty() {
            match timeout(BEAT, self.jobs.join_next()).await {
                Ok(Some(job)) => return self.finished(job).await.map(|()| true),
                Ok(None) => break,
                Err(_) => self.working(Work::Storing).await?,
            }
        }
        Ok(false)
    }

    /// Does `work`, and tells both sides of it at every [`BEAT`].
    pub(super) async fn meanwhile<T>(
        &mut self,
        kind: Work,
        work: impl Future<Output = T>,
    ) -> Result<T, FileError> {
        let mut work = std::pin::pin!(work);
        loop {
            match timeout(BEAT, &mut work).await {
                Ok(done) => return Ok(done),
                Err(_) => self.working(kind).await?,
            }
        }
    }

    pub(super) async fn working(&mut self, work: Work) -> Result<(), FileError> {
        (self.tell)(Step::Working(work));
        self.say(&Reply::Working(work)).await
    }

    /// Says what became of a file.
    pub(super) async fn finished(&mut self, job: Result<Job, JoinError>) -> Result<(), FileError> {
        match job {
            Ok(Job::Settled(file, Ok(Some((stored, bytes))))) => {
                let told = self.verdict(file.number, Verdict::Stored, String::new()).await;
                let store = self.store.clone();
                self.jobs.spawn(async move {
                    let there = stored.path.clone();
                    let placed = blocking(move || Ok(store.without_copies(stored))).await;
                    Job::Placed(file, placed.unwrap_or(there), bytes)
                });
                told?;
            }
            Ok(Job::Settled(file, Ok(None))) => {
                self.refuse(file.number, &file.name, Verdict::Changed, String::new()).await?;
            }
            Ok(Job::Settled(file, Err(error))) => self.refuse_for(file.number, &file.name, &error).await?,
            Ok(Job::Placed(file, path, bytes)) => {
                let File { number, name, resumed_at, sum, .. } = file;
                let (index, blake3, path) = (number as usize, hex(&sum), Some(path));
                (self.tell)(Step::Done(Transferred { index, name, bytes, resumed_at, blake3, path }));
            }
            Err(error) => {
                return Err(FileError::File { path: PathBuf::new(), source: io::Error::other(error) });
            }
        }
        Ok(())
    }
}
