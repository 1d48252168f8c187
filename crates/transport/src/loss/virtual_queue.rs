//! Selective acknowledgments, counted per path (RFC 6675 with one virtual queue per path).
//!
//! A segment is lost once `threshold` segments sent after it *on the same path* were delivered; what
//! overtook it on other paths says nothing. On one path, with nothing sent twice, this is IsLost() of
//! RFC 6675 §4; since retransmissions are numbered anew, a lost retransmission is noticed too, as in
//! RFC 8985.
//!
//! An episode lasts until everything sent on the path before it is accounted for and something sent
//! after it was delivered. Losses of what was sent after it began are a new episode.

use polypath_wire::PathId;

use super::counting::Counting;
use super::episodes::Episodes;
use super::policy::{Case, LossPolicy, Verdict};
use crate::about::About;
use crate::facts::{Episode, LossCause};

/// One virtual queue per path.
#[derive(Debug)]
pub(crate) struct VirtualQueue {
    threshold: u32,
    episodes: Episodes,
}

impl Counting for VirtualQueue {
    const ABOUT: About = About {
        name: "sack",
        help: "Selective acknowledgments counted per path: a virtual queue each (RFC 6675)",
    };

    /// `threshold` later packets delivered on a path mean a loss there.
    fn new(threshold: u32) -> Self {
        Self { threshold: threshold.max(1), episodes: Episodes::default() }
    }
}

impl LossPolicy for VirtualQueue {
    fn judge(&mut self, case: &Case<'_>, out: &mut Vec<Verdict>) {
        let (path, flight) = (case.path(), case.flight);
        for (number, sent) in flight.overtaken(self.threshold) {
            let present = self.episodes.present(path).filter(|begun| number < begun.until);
            let begun = present.unwrap_or_else(|| self.episodes.begin(path, flight.next_number()));
            let what = case.departure(number, sent.cargo.key);
            out.push(Verdict::Lost { what, cause: LossCause::LaterDelivered, episode: begun.episode });
        }
        if out.is_empty() {
            let over = self.episodes.end_if(path, |begun| begun.is_over(flight));
            out.extend(over.map(|begun| Verdict::Recovered(begun.episode)));
        }
    }

    fn on_timeout(&mut self, case: &Case<'_>) -> Episode {
        self.episodes.begin(case.path(), case.flight.next_number()).episode
    }

    fn on_undo(&mut self, path: PathId) {
        self.episodes.forget(path);
    }
}
