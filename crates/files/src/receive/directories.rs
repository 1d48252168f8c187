//! Directories, which have no bytes.

use super::{Receiving, blocking};
use crate::error::FileError;
use crate::message::{Modified, Offer, Verdict, Work};
use crate::name::SafePath;
use crate::step::{Step, Transferred};

/// Bytes of paths of directories whose times are kept to the end.
const MOST_DATED: usize = 8 << 20;

/// Directories that get their times when everything is in them.
#[derive(Default)]
pub(super) struct Directories {
    all: Vec<(SafePath, Modified)>,
    bytes: usize,
}

impl Directories {
    fn add(&mut self, path: SafePath, modified: Modified) {
        self.bytes += path.as_str().len() + size_of::<(SafePath, Modified)>();
        if self.bytes <= MOST_DATED {
            self.all.push((path, modified));
        }
    }
}

impl<F: FnMut(Step)> Receiving<'_, F> {
    /// Makes a directory.
    pub(super) async fn directory(
        &mut self,
        number: u32,
        name: String,
        path: SafePath,
        offer: &Offer,
    ) -> Result<(), FileError> {
        let (store, asked, mode) = (self.store.clone(), path.clone(), offer.mode);
        let made = blocking(move || store.make_directory(&asked, mode));
        match self.meanwhile(Work::Storing, made).await? {
            Ok(at) => {
                self.directories.add(path, offer.modified);
                self.verdict(number, Verdict::Stored, String::new()).await?;
                let (index, blake3) = (number as usize, String::new());
                let path = Some(at);
                (self.tell)(Step::Done(Transferred { index, name, bytes: 0, resumed_at: 0, blake3, path }));
                Ok(())
            }
            Err(error) => self.refuse_for(number, &name, &error).await,
        }
    }

    /// Gives directories their times, now that everything is in them.
    pub(super) async fn date_directories(&mut self) {
        let (store, directories) = (self.store.clone(), std::mem::take(&mut self.directories));
        let dated = blocking(move || {
            directories.all.iter().for_each(|(path, modified)| store.date_directory(path, *modified));
            Ok(())
        });
        let _ = dated.await; // they are there all the same
    }
}
