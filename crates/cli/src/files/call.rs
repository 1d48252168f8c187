//! A host that we call, to send to it or to fetch from it.

use std::path::Path;
use std::time::Duration;

use polypath_endpoint::Reach;
use polypath_hip::{Accept, HipConfig};
use polypath_transport::ConnectionConfig;
use polypath_wire::hip::udp;

use super::bars::Bars;
use super::report::Report;
use super::transfer::{Transfer, Way};
use super::{GRACE, Target, choice, identity, known, node};
use crate::args::LinkArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::keys::file::path_or_default;

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

impl Call<'_> {
    /// Carries it out, and says how it went.
    pub fn run(self) -> Result<(), Failure> {
        let paths = known::beside(&path_or_default(self.identity)?);
        let identity = identity(self.identity)?;
        let (ours, peer) = (identity.hit(), self.to.hit);
        let default_port = if self.native { 0 } else { udp::PORT };
        let reach = self.to.resolve(default_port).map_err(|e| Failure::system("no such address", e))?;
        let choice = choice(self.links);
        let interrupt = Interrupt::listen()?;
        interrupt.block_on(async {
            let hip = HipConfig { accept: Accept::Nobody, ..HipConfig::default() };
            let node = node(identity, hip, (!self.native).then_some(0), choice.clone())?;
            known::recall(&node, &paths);
            let (sent, count, total) = match &self.way {
                Way::Send(entries) => (true, entries.len(), entries.iter().map(|entry| entry.size).sum()),
                Way::Fetch(_) => (false, 0, None),
            };
            let (reach, bars) = (Reach::Addresses(reach), Bars::new(self.json, count, total));
            let mut transfer = Transfer::new(&node, self.to, reach, self.connection, self.way, bars);
            (transfer.wait, transfer.choice) = (self.wait, choice);
            let result = transfer.run(&interrupt).await;
            let (seconds, outcome, bars) = transfer.end();
            known::keep(&node, &paths);
            node.shutdown(GRACE).await;
            bars.clear();
            result?;
            let (done, failed, carried) = (outcome.done, outcome.failed, bars.carried());
            Report { sent, ours, peer, seconds, done, failed, carried }.finish(self.json)
        })
    }
}
