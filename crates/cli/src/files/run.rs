//! A call from its beginning to its report.

use polypath_hip::{Accept, HipConfig};
use polypath_node::LiveChoice;
use polypath_wire::hip::udp;

use super::call::{Call, Way};
use super::report::Report;
use super::transfer::Transfer;
use super::{GRACE, choice, known, node};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::keys;

impl Call<'_> {
    /// Carries it out and prints the report.
    pub fn run(self) -> Result<(), Failure> {
        let key = keys::ensure(self.identity)?;
        let (identity, paths) = (keys::file::load(&key)?, known::beside(&key));
        let (ours, peer) = (identity.hit(), self.to.hit);
        let default_port = if self.native { 0 } else { udp::PORT };
        let addresses = self.to.resolve(default_port).map_err(|e| Failure::system("no such address", e))?;
        let choice = LiveChoice::from(choice(self.links));
        let interrupt = Interrupt::listen_meanwhile()?;
        interrupt.block_on(async {
            let hip = HipConfig { accept: Accept::Nobody, ..HipConfig::of_today() };
            let node = node(identity, hip, (!self.native).then_some(0), choice.clone(), self.connection.ecn)?;
            known::recall(&node, &paths);
            let (sent, json) = (matches!(self.way, Way::Send(_)), self.json);
            let mut transfer = Transfer::new(&node, self, addresses, choice);
            let result = transfer.run(&interrupt).await;
            let (seconds, outcome, bars) = transfer.end();
            known::keep(&node, &paths);
            node.shutdown(GRACE).await;
            bars.clear();
            let (done, failed, carried) = (outcome.done, outcome.failed, bars.carried());
            let error = result.as_ref().err().map(|failure| failure.message().to_owned());
            let report = Report { sent, ours, peer, seconds, done, failed, carried, error };
            match result {
                Ok(()) => report.finish(json),
                Err(failure) => {
                    // Who interrupts it does not wait for a report.
                    if json && !failure.status.is_interruption() {
                        report.print(json)?;
                    }
                    Err(failure)
                }
            }
        })
    }
}
