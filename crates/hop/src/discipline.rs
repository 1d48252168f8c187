//! The list of queue disciplines. Each stands in its own file with its parameters; what a hop wants of one is in `aqm.rs`.

use std::fmt::Debug;

use polypath_wire::Seed;
use serde::{Deserialize, Serialize};

use crate::aqm::Judge;
use crate::codel::{CodelConfig, CodelQueue};
use crate::error::HopError;
use crate::fq_codel::{FqCodel, FqCodelConfig};
use crate::limit::QueueLimit;
use crate::red::{Red, RedConfig};
use crate::store::Store;

/// What becomes of packets that wait.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "discipline", rename_all = "snake_case")]
pub enum Discipline {
    /// First in, first out; a packet that finds the queue full is dropped.
    #[default]
    #[serde(deserialize_with = "polypath_wire::no_keys::deserialize")]
    DropTail,
    /// Random Early Detection: a packet is judged when it comes.
    Red(RedConfig),
    /// Controlled Delay (RFC 8289): a packet is judged when it leaves.
    Codel(CodelConfig),
    /// Flows in turns, each under CoDel (RFC 8290).
    FqCodel(FqCodelConfig),
}

impl Discipline {
    /// Checks the ranges of its parameters.
    pub fn check(&self) -> Result<(), HopError> {
        match self {
            Self::DropTail => Ok(()),
            Self::Red(config) => config.check(),
            Self::Codel(config) => config.check(),
            Self::FqCodel(config) => config.check(),
        }
    }

    /// Its state for one queue; none is drop-tail.
    pub(crate) fn build<T: Debug + Send + 'static>(&self, limit: QueueLimit, seed: Seed) -> Option<Aqm<T>> {
        let store = |queue| Aqm::Store(Store::new(queue, limit));
        match *self {
            Self::DropTail => None,
            Self::Red(config) => Some(Aqm::Judge(Box::new(Red::new(config, seed)))),
            Self::Codel(config) => Some(store(Box::new(CodelQueue::new(config)))),
            Self::FqCodel(config) => Some(store(Box::new(FqCodel::new(config, seed)))),
        }
    }
}

/// Active queue management (RFC 7567): the state of a discipline.
#[derive(Debug)]
pub(crate) enum Aqm<T> {
    /// Judges a packet when it comes; it waits as under drop-tail.
    Judge(Box<dyn Judge>),
    /// Keeps a packet until the server takes it, and decides then.
    Store(Store<T>),
}
