//! Sets up the association with the other host, or explains why it failed.

use std::time::Duration;

use polypath_endpoint::{PeerFailure, Reach};
use polypath_node::AssociateError;

use super::call::Way;
use super::diagnose::Diagnosis;
use super::transfer::{End, PAUSE, Transfer, WAIT};
use crate::failure::Failure;

/// After this long without an answer, its addresses are asked who is there.
const DOUBT: Duration = Duration::from_millis(1500);

impl Transfer<'_> {
    /// Associates with the peer, no longer than the user has patience.
    pub(super) async fn meet(&self) -> Result<(), End> {
        let wait = self.call.wait.map_or(WAIT, |wait| wait.saturating_sub(self.moved.elapsed()));
        match tokio::time::timeout(wait, self.associate()).await {
            Ok(met) => met,
            Err(_) if self.met => Err(End::Again("no answer".into())),
            Err(_) => {
                Err(End::Final(self.found.take().unwrap_or_else(|| self.silence().failure(&self.there()))))
            }
        }
    }

    /// The same without a limit. If nobody answers at first, finds out why meanwhile.
    async fn associate(&self) -> Result<(), End> {
        let reach = Reach::Addresses(self.addresses.clone());
        let mut associate = std::pin::pin!(self.node.associate(self.call.to.hit, reach));
        let diagnose = async {
            tokio::time::sleep(DOUBT).await;
            let ours = self.node.hit().unwrap_or(polypath_wire::hip::Hit::NULL);
            Diagnosis::make(ours, self.call.to.hit, &self.addresses).await
        };
        let diagnosis = tokio::select! {
            met = &mut associate => return met.map_err(|error| self.no_association(error, None)),
            diagnosis = diagnose, if !self.met => diagnosis,
        };
        if diagnosis.is_certain() {
            return Err(self.nobody(&diagnosis));
        }
        associate.await.map_err(|error| self.no_association(error, Some(diagnosis)))
    }

    fn silence(&self) -> Diagnosis {
        Diagnosis::silence(self.call.to.hit, &self.addresses)
    }

    /// The command that should run on the other host.
    fn there(&self) -> String {
        let ours = self.node.hit().map(|hit| hit.to_string()).unwrap_or_default();
        match self.call.way {
            Way::Send(_) => format!("polypath receive --allow {ours}"),
            Way::Fetch(_) => format!("polypath send FILE --allow {ours}"),
        }
    }

    /// Nobody has answered. That is final unless `--wait` leaves time for another attempt.
    fn nobody(&self, diagnosis: &Diagnosis) -> End {
        let failure = diagnosis.failure(&self.there());
        match self.call.wait {
            Some(wait) if self.moved.elapsed() + PAUSE < wait => {
                let why = failure.message().to_owned();
                self.found.replace(Some(failure));
                End::Again(why)
            }
            _ => End::Final(failure),
        }
    }

    fn no_association(&self, error: AssociateError, diagnosis: Option<Diagnosis>) -> End {
        let hit = self.call.to.hit;
        match error {
            AssociateError::Failed(PeerFailure::Refused) => End::Final(
                Failure::system(
                    format!("{hit} refused the association"),
                    "this host is not in its allow list",
                )
                .help(format!("on that host: {}", self.there())),
            ),
            AssociateError::Failed(PeerFailure::Timeout) if !self.met => {
                self.nobody(&diagnosis.unwrap_or_else(|| self.silence()))
            }
            AssociateError::Begin(polypath_hip::ConnectError::NoRoute) if !self.met => End::Final(
                Failure::system("no route to that address", "no local address of its family is usable")
                    .help("see `ip address`"),
            ),
            AssociateError::Begin(polypath_hip::ConnectError::Hit(_)) if self.node.hit() == Some(hit) => {
                End::Final(
                    Failure::usage(format!("{hit} is this host's own identity"))
                        .help("`polypath receive` prints the other's"),
                )
            }
            error @ AssociateError::Begin(polypath_hip::ConnectError::Hit(_)) => {
                End::Final(Failure::usage(error.to_string()))
            }
            error => End::Again(error.to_string()),
        }
    }
}
