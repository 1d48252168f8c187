//! How the host at the other end is met, and what is said if it is not.

use std::net::SocketAddr;
use std::time::Duration;

use polypath_endpoint::{PeerFailure, Reach};
use polypath_node::AssociateError;

use super::diagnose::Diagnosis;
use super::transfer::{End, PAUSE, Transfer, WAIT, Way};
use crate::failure::Failure;

/// Without an answer for so long it is asked who is there.
const DOUBT: Duration = Duration::from_millis(1500);

impl Transfer<'_> {
    /// Associates with the peer, no longer than the user has patience.
    pub(super) async fn meet(&self) -> Result<(), End> {
        let wait = self.wait.map_or(WAIT, |wait| wait.saturating_sub(self.moved.elapsed()));
        match tokio::time::timeout(wait, self.associate()).await {
            Ok(met) => met,
            Err(_) if self.met => Err(End::Again("no answer".into())),
            Err(_) => {
                Err(End::Final(Diagnosis::silence(self.to.hit, self.addresses()).failure(&self.there())))
            }
        }
    }

    /// The same; meanwhile, if nobody answers at first, finds out why.
    async fn associate(&self) -> Result<(), End> {
        let mut associate = std::pin::pin!(self.node.associate(self.to.hit, self.reach.clone()));
        let diagnose = async {
            tokio::time::sleep(DOUBT).await;
            let ours = self.node.hit().unwrap_or(polypath_wire::hip::Hit::NULL);
            Diagnosis::make(ours, self.to.hit, self.addresses()).await
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

    fn addresses(&self) -> &[SocketAddr] {
        match &self.reach {
            Reach::Addresses(addresses) => addresses,
            Reach::Pairs(_) => &[],
        }
    }

    /// What should run on the other host.
    fn there(&self) -> String {
        let ours = self.node.hit().map(|hit| hit.to_string()).unwrap_or_default();
        match self.way {
            Way::Send(_) => format!("polypath receive --allow {ours}"),
            Way::Fetch(_) => format!("polypath send FILE --allow {ours}"),
        }
    }

    /// Nobody has ever answered. That is the end unless the user said how long to try.
    fn nobody(&self, diagnosis: &Diagnosis) -> End {
        let failure = diagnosis.failure(&self.there());
        match self.wait {
            Some(wait) if self.moved.elapsed() + PAUSE < wait => End::Again(failure.to_string()),
            _ => End::Final(failure),
        }
    }

    fn no_association(&self, error: AssociateError, diagnosis: Option<Diagnosis>) -> End {
        let hit = self.to.hit;
        match error {
            AssociateError::Failed(PeerFailure::Refused) => End::Final(
                Failure::system(format!("{hit} does not let us in"), "we are strangers to it")
                    .help(format!("on that host: {}", self.there())),
            ),
            AssociateError::Failed(PeerFailure::Timeout) if !self.met => {
                self.nobody(&diagnosis.unwrap_or_else(|| Diagnosis::silence(hit, self.addresses())))
            }
            AssociateError::Begin(polypath_hip::ConnectError::NoRoute) if !self.met => End::Final(
                Failure::system("no way to that address", "no local address of its family is usable")
                    .help("see `ip address`"),
            ),
            error @ AssociateError::Begin(polypath_hip::ConnectError::Hit(_)) => {
                End::Final(Failure::usage(error.to_string()))
            }
            error => End::Again(error.to_string()),
        }
    }
}
