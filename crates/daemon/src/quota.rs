//! Quotas: what an interface may carry in a month before it is for backup.

mod counters;
mod ledger;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use polypath_node::LiveChoice;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::config::Config;
use crate::lane::Lane;
use crate::volume::Volume;
use ledger::Ledger;

/// How often counters are looked at.
const LOOK: Duration = Duration::from_secs(2);
/// How often what was counted is written, unless a quota is used up.
const KEEP: Duration = Duration::from_secs(60);
/// Its file in the directory of state.
const FILE: &str = "quota.json";

/// The quota of an interface in this month.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QuotaStatus {
    /// What it may carry, bytes.
    pub bytes: u64,
    /// What it carried, bytes, both directions together.
    pub used: u64,
    /// What is left, bytes.
    pub left: u64,
}

/// The quotas of a daemon. Clones share them.
#[derive(Clone)]
pub(crate) struct Quotas(Arc<Shared>);

struct Shared {
    dir: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    most: BTreeMap<String, Volume>,
    /// Read when the first quota is configured.
    ledger: Option<Ledger>,
    /// Why it could not be written the last time, which was said.
    unkept: Option<io::ErrorKind>,
}

impl Quotas {
    /// Those of `config`.
    pub fn new(config: &Config) -> Self {
        let quotas = Self(Arc::new(Shared { dir: config.daemon.state.clone(), state: Mutex::default() }));
        quotas.replace(&config.paths.quota);
        quotas
    }

    /// From now on these hold.
    pub fn replace(&self, most: &BTreeMap<String, Volume>) {
        let mut state = self.lock();
        if state.most.is_empty() {
            // Nobody has looked at the counters meanwhile.
            state.ledger.iter_mut().for_each(Ledger::pause);
        }
        if !most.is_empty() && state.ledger.is_none() {
            state.ledger = Some(Ledger::load(&self.file(), SystemTime::now()));
        }
        state.most = most.clone();
    }

    /// The quota of an interface, if it has one.
    pub fn of(&self, interface: &str) -> Option<QuotaStatus> {
        let state = self.lock();
        let bytes = state.most.get(interface)?.0;
        let used = state.used(interface);
        Some(QuotaStatus { bytes, used, left: bytes.saturating_sub(used) })
    }

    /// The interfaces whose quota is used up.
    pub fn spent(&self) -> Vec<String> {
        let state = self.lock();
        let spent = state.most.iter().filter(|(name, most)| state.used(name) >= most.0);
        spent.map(|(name, _)| name.clone()).collect()
    }

    /// Counts, and has interfaces be for backup while their quota is used up, for ever.
    pub async fn mind(self, lane: Arc<Lane>, choice: LiveChoice) {
        let (mut kept, mut said) = (Instant::now(), None);
        loop {
            sleep(LOOK).await;
            let failed = self.look().err();
            if let Some(why) = failed.as_ref().filter(|_| said != failed) {
                warn!("quotas are not counted: {why}; trying again");
            }
            said = failed;
            let (spent, before) = (self.spent(), choice.now().spent);
            if spent != before {
                spent.iter().filter(|name| !before.contains(name)).for_each(|name| {
                    info!("the quota of {name} is used up: it is a backup until the next month");
                });
                choice.change(|choice| choice.spent = spent);
                lane.outer.look();
            } else if kept.elapsed() < KEEP {
                continue;
            }
            kept = Instant::now();
            self.keep().await;
        }
    }

    fn look(&self) -> Result<(), String> {
        if self.lock().most.is_empty() {
            return Ok(());
        }
        let seen = counters::counters()?;
        let State { most, ledger, .. } = &mut *self.lock();
        if let Some(ledger) = ledger {
            ledger.count(SystemTime::now(), seen, |name| most.contains_key(name));
        }
        Ok(())
    }

    /// Writes what was counted.
    pub async fn keep(&self) {
        let Some(ledger) = self.lock().ledger.clone() else { return };
        let (dir, file) = (self.0.dir.clone(), self.file());
        let written = tokio::task::spawn_blocking(move || {
            fs::create_dir_all(dir)?;
            ledger.store(&file)
        });
        let failed = written.await.unwrap_or_else(|error| Err(io::Error::other(error))).err();
        let kind = failed.as_ref().map(io::Error::kind);
        let before = std::mem::replace(&mut self.lock().unkept, kind);
        let file = self.file();
        match failed {
            Some(error) if before != kind => {
                warn!("cannot write {}: {error}; a restart counts quotas from its contents", file.display());
            }
            None if before.is_some() => info!("{} is written again", file.display()),
            _ => {}
        }
    }

    fn file(&self) -> PathBuf {
        Path::new(&self.0.dir).join(FILE)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn used(&self, interface: &str) -> u64 {
        self.ledger.as_ref().and_then(|ledger| ledger.used.get(interface)).copied().unwrap_or(0)
    }
}
