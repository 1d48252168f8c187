//! Work of the sender that takes long on a slow disk.

use std::io;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::Sending;
use crate::error::FileError;
use crate::message::{Said, Work};
use crate::name::shown;
use crate::peer::{BEAT, Outgoing};
use crate::step::Step;

impl<F: FnMut(Step)> Sending<'_, F> {
    /// Looks at a file on a thread of its own; the peer hears of it if that takes long.
    pub(super) async fn looking<T: Send + 'static>(
        &self,
        out: &mut Outgoing<'_>,
        look: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<io::Result<T>, FileError> {
        let look = self.shown(Work::Checking, spawn_blocking(look));
        let looked = out.meanwhile(&Said::Working, look).await?;
        Ok(looked.map_err(io::Error::other).and_then(|looked| looked))
    }

    /// Does `work`, and tells our side of it at every beat.
    pub(super) async fn shown<T>(&self, kind: Work, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            match timeout(BEAT, &mut work).await {
                Ok(done) => return done,
                Err(_) => self.tell(Step::Working(kind)),
            }
        }
    }

    /// Tells our side that there is more of a file than was offered.
    pub(super) fn grew(&self, number: usize) {
        let (index, bytes) = {
            let offered = &self.offered()[number];
            (offered.entry, offered.bytes)
        };
        self.tell(Step::Grew { name: shown(&self.entries[index].name), bytes });
    }
}
