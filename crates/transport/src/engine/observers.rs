//! What watches what leaves and what is delivered beside the estimators, where an owner asks for it: the systems
//! of the papers.

use polypath_wire::PathId;

use crate::path::knowledge::KnowledgeConfig;
use crate::path::routes::Routes;
use crate::path::watch::Watch;

/// The observers of an engine.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Observers {
    /// mHIP's marks and heartbeats.
    pub watch: Watch,
    /// R-M/TCP's estimates, if both ends know of routes.
    pub routes: Option<Routes>,
}

impl Observers {
    /// Those that `config` asks for; the handshake has agreed on nothing yet.
    pub(crate) fn new(config: KnowledgeConfig) -> Self {
        Self { routes: None, watch: Watch::new(config) }
    }

    /// Whether none of them looks at each packet.
    #[inline]
    pub(crate) fn are_idle(&self) -> bool {
        self.routes.is_none() && !self.watch.marks_packets()
    }

    /// `path` has joined.
    pub(crate) fn add_path(&mut self, path: PathId) {
        self.routes.iter_mut().for_each(|routes| routes.add(path));
    }

    /// `path` is gone.
    pub(crate) fn remove_path(&mut self, path: PathId) {
        self.routes.iter_mut().for_each(|routes| routes.remove(path));
        self.watch.remove(path);
    }
}
