//! What the store already has of an offered file.

use std::io;

use polypath_wire::hip::Hit;
use rustix::io::Errno;

use super::{Place, Receiving, blocking};
use crate::digest::{Digest, digest};
use crate::error::FileError;
use crate::message::{Offer, Reply};
use crate::name::SafePath;
use crate::step::Step;
use crate::store::Store;

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
        let found = blocking(move || find(&store, from, wanted, size)).await;
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
}

/// What is here of a file that this sender sent before, and where the rest goes.
fn find(store: &Store, from: Hit, path: SafePath, size: u64) -> io::Result<(u64, Digest, Place)> {
    if let Some((digest, at)) = store.receipt(from, &path, size) {
        return Ok((size, digest, Place::Stored { path, at, digest }));
    }
    let (part, have) = store.resume(from, &path)?.have(size)?;
    if !store.has_room(size - have) {
        return Err(Errno::NOSPC.into());
    }
    Ok((have, digest(&part.hash), Place::Part { part, have }))
}
