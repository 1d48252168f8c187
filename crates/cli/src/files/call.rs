//! What is asked for: a transfer with a host that we call.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use polypath_files::{Entry, Store};
use polypath_transport::ConnectionConfig;

use crate::args::LinkArgs;
use crate::target::Target;

/// A transfer as the arguments ask for it.
pub struct Call<'a> {
    pub to: &'a Target,
    pub identity: Option<&'a Path>,
    pub native: bool,
    pub links: &'a LinkArgs,
    pub wait: Option<Duration>,
    pub json: bool,
    pub connection: ConnectionConfig,
    pub way: Way,
}

/// The direction, and what is transferred.
pub enum Way {
    /// Sends these entries: those that are left.
    Send(Vec<Entry>),
    /// Fetches what the peer offers into this directory.
    Fetch(Arc<Store>),
}

impl Way {
    /// Number of entries and sum of their lengths; 0 and `None` where they are not known.
    pub fn extent(&self) -> (usize, Option<u64>) {
        match self {
            Self::Send(entries) => (entries.len(), entries.iter().map(|entry| entry.size).sum()),
            Self::Fetch(_) => (0, None),
        }
    }
}
