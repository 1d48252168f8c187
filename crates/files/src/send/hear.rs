//! What the receiver answers.

use std::sync::atomic::Ordering;

use polypath_node::hex;

use super::Sending;
use crate::digest::Digest;
use crate::error::FileError;
use crate::message::{Answer, Reply, Verdict};
use crate::name::shown;
use crate::peer::Incoming;
use crate::step::{Step, Transferred};

/// A file that the peer knows of.
pub(super) struct Offered {
    /// Its number among all.
    pub entry: usize,
    pub bytes: u64,
    pub resumed_at: u64,
    pub digest: Option<Digest>,
    /// What of it the peer has.
    pub want: Option<(u64, Digest)>,
    /// What becomes of it is known: the peer has said so, or we gave it up.
    pub decided: bool,
    /// The peer has said so.
    answered: bool,
}

impl Offered {
    pub fn new(entry: usize, size: Option<u64>) -> Self {
        let bytes = size.unwrap_or_default();
        Self { entry, bytes, resumed_at: 0, digest: None, want: None, decided: false, answered: false }
    }
}

impl<F: FnMut(Step)> Sending<'_, F> {
    /// Reads replies until the peer ends. `asks`: we opened the connection, so an [`Answer`] comes first.
    pub(super) async fn hear(&self, mut incoming: Incoming<'_>, asks: bool) -> Result<(), FileError> {
        if asks && incoming.expect::<Answer>().await? == Answer::No {
            return Err(FileError::Direction { sends: true });
        }
        while let Some(reply) = incoming.next::<Reply>().await? {
            match reply {
                Reply::Want { index, have, digest } => self.want(index, have, digest)?,
                Reply::Verdict { index, verdict, reason } => self.verdict(index, verdict, &reason)?,
                Reply::Working(work) => self.tell(Step::Working(work)),
            }
            self.replied.notify_waiters();
        }
        let complete =
            self.all_written.load(Ordering::Relaxed) && self.offered().iter().all(|offered| offered.answered);
        if complete { Ok(()) } else { Err(FileError::Cut) }
    }

    /// Waits for what the peer has of a file; none if it does not want it.
    pub(super) async fn wanted(&self, number: usize) -> Option<(u64, Digest)> {
        loop {
            let replied = self.replied.notified();
            {
                let offered = &self.offered()[number];
                if offered.decided || offered.want.is_some() {
                    return offered.want;
                }
            }
            replied.await;
        }
    }

    fn want(&self, index: u32, have: u64, digest: Digest) -> Result<(), FileError> {
        let mut offered = self.offered();
        let offered = offered.get_mut(index as usize).filter(|offered| offered.want.is_none());
        offered.ok_or(FileError::Protocol("a wish for nothing"))?.want = Some((have, digest));
        Ok(())
    }

    fn verdict(&self, index: u32, verdict: Verdict, reason: &str) -> Result<(), FileError> {
        let mut all = self.offered();
        let offered = all.get_mut(index as usize).filter(|offered| !offered.answered);
        let offered = offered.ok_or(FileError::Protocol("a verdict on nothing"))?;
        offered.answered = true;
        if std::mem::replace(&mut offered.decided, true) {
            return Ok(()); // we gave it up, and have said why
        }
        let (entry, bytes, resumed_at) = (offered.entry, offered.bytes, offered.resumed_at);
        let digest = offered.digest;
        drop(all);
        if verdict != Verdict::Stored {
            self.failed(entry, verdict, explain(verdict, reason));
            return Ok(());
        }
        let is_directory = self.entries[entry].is_directory();
        if digest.is_none() && !is_directory {
            return Err(FileError::Protocol("stored before it was sent"));
        }
        let (name, blake3) =
            (shown(&self.entries[entry].name), digest.map(|sum| hex(&sum)).unwrap_or_default());
        self.tell(Step::Done(Transferred { index: entry, name, bytes, resumed_at, blake3, path: None }));
        Ok(())
    }
}

fn explain(verdict: Verdict, reason: &str) -> String {
    let words = match verdict {
        Verdict::Stored => "stored",
        Verdict::Changed => "arrived changed",
        Verdict::NoSpace => "the receiver's disk is full",
        Verdict::Name => "the receiver does not take the name",
        Verdict::Refused => "the receiver could not store it",
        Verdict::Abandoned => "given up",
    };
    if reason.is_empty() { words.to_owned() } else { format!("{words}: {}", shown(reason)) }
}
