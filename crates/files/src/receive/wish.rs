//! What the store already has of an offered file.

use std::io;
use std::time::Duration;

use polypath_node::Hashed;
use polypath_wire::hip::Hit;
use rustix::io::Errno;
use tokio::time::{Instant, sleep};

use super::{Place, Receiving, blocking};
use crate::digest::{Digest, digest};
use crate::error::FileError;
use crate::message::{Offer, Reply, Work};
use crate::name::SafePath;
use crate::step::Step;
use crate::store::{Part, Store};

/// How often the lock of an unfinished file is tried.
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// How long a part is waited for that another transfer stores: after that the sender that held it is taken to be gone.
const STORING: Duration = Duration::from_secs(60);
/// How long a transfer that holds the locks of other files waits for one: another may hold it and wait for ours.
const HOLDING: Duration = Duration::from_secs(10);

impl<F: FnMut(Step)> Receiving<'_, F> {
    /// Tells the sender how much of a file is here from an earlier transfer of its own.
    pub(super) async fn wish(
        &mut self,
        number: u32,
        name: &str,
        path: &SafePath,
        offer: &Offer,
    ) -> Result<Place, FileError> {
        let size = offer.size.ok_or(FileError::Protocol("a question about a file without end"))?;
        let (store, from, wanted) = (self.store.clone(), self.from, path.clone());
        let found = match self.part(path).await? {
            Ok(part) => {
                let find = blocking(move || find(&store, from, wanted, size, part));
                self.meanwhile(Work::Checking, find).await?
            }
            Err(error) => Err(error),
        };
        let (have, digest, place) = match found {
            Ok(found) => found,
            Err(error) => {
                self.refuse_for(number, name, &error).await?;
                return Ok(Place::Refused);
            }
        };
        self.say(&Reply::Want { index: number, have, digest }).await?;
        Ok(place)
    }

    /// The unfinished file `path`. Waits while an earlier transfer has it, which may be storing it.
    pub(super) async fn part(&mut self, path: &SafePath) -> Result<io::Result<Part>, FileError> {
        let (store, from, patience) = (self.store.clone(), self.from, self.patience(path));
        let (began, path) = (Instant::now(), path.clone());
        let free = async {
            loop {
                let (store, path, patient) = (store.clone(), path.clone(), began.elapsed() < patience);
                match blocking(move || store.resume(from, &path, patient)).await {
                    Ok(None) => sleep(LOCK_PAUSE).await,
                    Ok(Some(part)) => return Ok(part),
                    Err(error) => return Err(error),
                }
            }
        };
        self.meanwhile(Work::Waiting, free).await
    }

    /// How long to wait for the lock of `path`.
    fn patience(&self, path: &SafePath) -> Duration {
        let parts = || self.open.iter().filter_map(|open| open.place.part());
        match parts().any(|part| part.is_for(path)) {
            true => Duration::ZERO,
            false if parts().next().is_some() => HOLDING,
            false => STORING,
        }
    }
}

impl Place {
    fn part(&self) -> Option<&Part> {
        match self {
            Self::Part { part: Hashed { file, .. }, .. } => Some(file),
            _ => None,
        }
    }
}

/// What is here of a file that this sender sent before, and where the rest goes. A transfer that had `part` may have stored
/// it meanwhile.
fn find(store: &Store, from: Hit, path: SafePath, size: u64, part: Part) -> io::Result<(u64, Digest, Place)> {
    if let Some((digest, at)) = store.receipt(from, &path, size) {
        return Ok((size, digest, Place::Stored { path, at, digest }));
    }
    let (part, have) = part.have(size)?;
    if !store.has_room(size - have) {
        return Err(Errno::NOSPC.into());
    }
    Ok((have, digest(&part.hash), Place::Part { part, have }))
}
