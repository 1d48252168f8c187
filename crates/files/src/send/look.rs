//! Work of the sender that takes long on a slow disk.

use std::io;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::Sending;
use crate::content::Became;
use crate::error::FileError;
use crate::message::{Message, Work};
use crate::name::shown;
use crate::peer::{BEAT, Outgoing};
use crate::step::Step;

impl<F: FnMut(Step)> Sending<'_, F> {
    /// Looks at a file on a thread of its own, [meanwhile](Self::meanwhile) checking.
    pub(super) async fn looking<T: Send + 'static>(
        &self,
        out: &mut Outgoing<'_>,
        working: &impl Message,
        look: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<io::Result<T>, FileError> {
        let looked = self.meanwhile(out, working, Work::Checking, spawn_blocking(look)).await?;
        Ok(looked.map_err(io::Error::other).and_then(|looked| looked))
    }

    /// Does `work`, and tells both sides of it at every [`BEAT`]: the peer by `working`, which fits between the messages that
    /// it awaits.
    pub(super) async fn meanwhile<T>(
        &self,
        out: &mut Outgoing<'_>,
        working: &impl Message,
        kind: Work,
        work: impl Future<Output = T>,
    ) -> Result<T, FileError> {
        let mut work = std::pin::pin!(work);
        loop {
            match timeout(BEAT, &mut work).await {
                Ok(done) => return Ok(done),
                Err(_) => {
                    self.tell(Step::Working(kind));
                    out.put(working);
                    out.flush().await?;
                }
            }
        }
    }

    /// Tells our side what became of a file while it was sent.
    pub(super) fn became(&self, number: usize, became: Became) {
        let (index, bytes) = {
            let offered = &self.offered()[number];
            (offered.entry, offered.bytes)
        };
        let name = shown(&self.entries[index].name);
        match became {
            Became::Same => {}
            Became::Larger => self.tell(Step::Grew { name, bytes }),
            Became::Another => self.tell(Step::Changed { name }),
        }
    }
}
