//! The end that stores the files.

mod body;
mod directories;
mod jobs;
mod wish;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::BytesMut;
use polypath_node::{Hashed, Stream};
use polypath_wire::hip::Hit;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

use crate::digest::{Digest, Hasher};
use crate::error::FileError;
use crate::message::{Answer, Message, Offer, Reply, Role, Said, Verdict, Work};
use crate::name::{SafePath, shown};
use crate::peer::{BEAT, Incoming, expect_role};
use crate::step::{Failed, Step};
use crate::store::{Part, Store};
use directories::Directories;
use jobs::Job;

/// Most offers that wait for their bytes.
const MOST_OPEN: usize = 64;

/// Receives what the peer, which opened the connection, sends.
pub async fn receive(
    stream: &Stream,
    from: Hit,
    store: &Arc<Store>,
    tell: impl FnMut(Step),
) -> Result<(), FileError> {
    let mut receiving = Receiving::new(stream, from, store, tell);
    expect_role(stream, &mut receiving.incoming, Role::Send).await?;
    receiving.say(&Answer::Yes).await?;
    receiving.run().await
}

/// Receives what the peer, to which we opened the connection, offers.
pub async fn fetch(
    stream: &Stream,
    from: Hit,
    store: &Arc<Store>,
    tell: impl FnMut(Step),
) -> Result<(), FileError> {
    let mut receiving = Receiving::new(stream, from, store, tell);
    receiving.say(&Role::Fetch).await?;
    if receiving.incoming.expect::<Answer>().await? == Answer::No {
        return Err(FileError::Direction { sends: false });
    }
    receiving.run().await
}

struct Receiving<'a, F> {
    stream: &'a Stream,
    incoming: Incoming<'a>,
    from: Hit,
    store: Arc<Store>,
    tell: F,
    /// Offers so far.
    offers: u32,
    /// Offers whose bytes have not come.
    open: VecDeque<Open>,
    jobs: JoinSet<Job>,
    directories: Directories,
}

/// A file whose bytes are to come.
struct Open {
    number: u32,
    name: String,
    offer: Offer,
    place: Place,
}

/// Where they go.
enum Place {
    /// Nowhere: it has its verdict.
    Refused,
    /// To a new file.
    New(SafePath),
    /// Behind what is there.
    Part { part: Hashed<Part, Hasher>, have: u64 },
    /// Nowhere, if the sender's file is still the one that was stored.
    Stored { path: SafePath, at: PathBuf, digest: Digest },
}

impl<'a, F: FnMut(Step)> Receiving<'a, F> {
    fn new(stream: &'a Stream, from: Hit, store: &Arc<Store>, tell: F) -> Self {
        let (open, jobs) = (VecDeque::new(), JoinSet::new());
        let incoming = Incoming::new(stream);
        let directories = Directories::default();
        Self { stream, incoming, from, store: store.clone(), tell, offers: 0, open, jobs, directories }
    }

    async fn run(mut self) -> Result<(), FileError> {
        let result = self.all().await;
        // Files that are whole are stored, even if the peer does not hear of it.
        while let Some(job) = self.jobs.join_next().await {
            let _ = self.finished(job).await;
        }
        self.date_directories().await;
        result
    }

    async fn all(&mut self) -> Result<(), FileError> {
        loop {
            let said = tokio::select! {
                said = self.incoming.next::<Said>() => said?,
                Some(job) = self.jobs.join_next() => {
                    self.finished(job).await?;
                    continue;
                }
                () = sleep(BEAT), if !self.jobs.is_empty() => {
                    self.working(Work::Storing).await?;
                    continue;
                }
            };
            match said {
                Some(Said::Offer(offer)) => self.offered(offer).await?,
                Some(Said::Start(at)) => self.started(at).await?,
                Some(Said::Working) => (self.tell)(Step::Working(Work::Checking)),
                None => break,
            }
        }
        while self.next_job().await? {}
        if !self.open.is_empty() {
            return Err(FileError::Cut);
        }
        self.date_directories().await;
        self.stream.finish();
        // The peer has a verdict on each file: nothing is lost if it ends the association before its acknowledgment of
        // our end arrives (its CLOSE may take a faster path).
        let _ = self.stream.finished().await;
        Ok(())
    }

    async fn say(&self, message: &impl Message) -> Result<(), FileError> {
        let mut bytes = BytesMut::new();
        message.emit(&mut bytes);
        Ok(self.stream.write(bytes.freeze()).await?)
    }

    async fn offered(&mut self, offer: Offer) -> Result<(), FileError> {
        let number = self.offers;
        self.offers = number.checked_add(1).ok_or(FileError::Protocol("too many offers"))?;
        if self.open.len() >= MOST_OPEN {
            return Err(FileError::Protocol("too many offers at once"));
        }
        let name = shown(&offer.path);
        let path = match self.store.path(&offer) {
            Ok(path) => path,
            Err(bad) => {
                self.refuse(number, &name, Verdict::Name, bad.to_string()).await?;
                if !offer.directory {
                    self.open.push_back(Open { number, name, offer, place: Place::Refused });
                }
                return Ok(());
            }
        };
        if offer.directory {
            return self.directory(number, name, path, &offer).await;
        }
        let place =
            if offer.asks { self.wish(number, &name, &path, &offer).await? } else { Place::New(path) };
        self.open.push_back(Open { number, name, offer, place });
        Ok(())
    }

    async fn verdict(&mut self, index: u32, verdict: Verdict, reason: String) -> Result<(), FileError> {
        self.say(&Reply::Verdict { index, verdict, reason }).await
    }

    /// Tells the peer and our side that a file is not stored.
    async fn refuse(
        &mut self,
        number: u32,
        name: &str,
        verdict: Verdict,
        why: String,
    ) -> Result<(), FileError> {
        let (index, name) = (number as usize, name.to_owned());
        (self.tell)(Step::Failed(Failed { index, name, verdict, why: why.clone() }));
        self.verdict(number, verdict, why).await
    }

    async fn refuse_for(&mut self, number: u32, name: &str, error: &io::Error) -> Result<(), FileError> {
        self.refuse(number, name, verdict_of(error), error.to_string()).await
    }
}

fn verdict_of(error: &io::Error) -> Verdict {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Verdict::NoSpace,
        _ => Verdict::Refused,
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}
