//! Algorithms that a spec names and the program that runs it supplies.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use polypath_transport::cc::ControllerMaker;
use polypath_transport::sched::SchedulerMaker;
use polypath_transport::{CcConfig, ConnectionConfig, SchedulerConfig};

/// What makes the algorithms `external` of a spec, by their names. It is no part of what the spec says.
#[derive(Clone, Default)]
pub struct Supplied {
    /// Controllers.
    pub controllers: BTreeMap<String, Arc<ControllerMaker>>,
    /// Schedulers.
    pub schedulers: BTreeMap<String, Arc<SchedulerMaker>>,
}

impl Supplied {
    /// None.
    pub(super) const NONE: Self = Self { controllers: BTreeMap::new(), schedulers: BTreeMap::new() };

    /// `connection` with what it names.
    pub(super) fn to(&self, mut connection: ConnectionConfig) -> ConnectionConfig {
        if let CcConfig::External(external) = &mut connection.cc {
            external.maker = self.controllers.get(&external.name).cloned();
        }
        if let SchedulerConfig::External(external) = &mut connection.scheduler {
            external.maker = self.schedulers.get(&external.name).cloned();
        }
        connection
    }
}

impl PartialEq for Supplied {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Supplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.controllers.keys().chain(self.schedulers.keys())).finish()
    }
}
