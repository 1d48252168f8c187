//! SACK with the SMART option, read to the letter of Polishchuk and Gurtov, §IV.E: the first missing packet is what
//! duplicates are about, and its path is charged with them.
//!
//! | text | here |
//! |---|---|
//! | "determines from which path the next expected packet is missing" | the path on which the first segment that is missing left last |
//! | "three consecutive acknowledgements about the missing packet" | duplicates since the cumulative acknowledgment moved, at least `threshold` |
//! | "does not retransmit the reordered packets, which are buffered" | only what is missing first is ever judged lost |
//!
//! The other reading, in which only packets of the same path count as evidence (a virtual queue per
//! path), is `virtual_queue.rs`. This one takes what overtook on another path for evidence too, so it
//! wants a `threshold` of the order of the reordering.
//!
//! Each path recovers on its own: a hole found on a path that is not recovering is a new episode there.
//! A partial acknowledgment retransmits nothing by itself, for what is missing next may be late only.

use polypath_wire::PathId;

use super::counting::Counting;
use super::episodes::Episodes;
use super::policy::{Case, LossPolicy, Verdict};
use crate::about::About;
use crate::facts::{Episode, LossCause};
use crate::path::transmission::Fate;

/// Duplicates about the first missing packet, per path.
#[derive(Debug)]
pub(crate) struct HeadDupacks {
    threshold: u32,
    /// Each lasts until everything below the offset that was next when it began has arrived.
    episodes: Episodes,
}

impl Counting for HeadDupacks {
    const ABOUT: About = About {
        name: "head_dupacks",
        help: "Selective acknowledgments; duplicates on any path count for the first missing packet: a reading of mHIP",
    };

    /// `threshold` duplicates about a packet mean that it is lost.
    fn new(threshold: u32) -> Self {
        Self { threshold: threshold.max(1), episodes: Episodes::default() }
    }
}

impl LossPolicy for HeadDupacks {
    fn judge(&mut self, case: &Case<'_>, out: &mut Vec<Verdict>) {
        let (path, order) = (case.path(), case.order);
        let over = self.episodes.end_if(path, |begun| order.una() >= begun.until);
        out.extend(over.map(|begun| Verdict::Recovered(begun.episode)));
        let Some(head) = order.head().filter(|head| head.path == path) else { return };
        let sent = case.flight.get(head.number);
        let first_time = sent.is_some_and(|sent| sent.fate == Fate::InFlight && !sent.retransmitted());
        if order.duplicates() < self.threshold || !first_time {
            return;
        }
        let present = self.episodes.present(path);
        let begun = present.unwrap_or_else(|| self.episodes.begin(path, order.nxt()));
        out.push(Verdict::Lost { what: head, cause: LossCause::DupAck, episode: begun.episode });
    }

    fn on_timeout(&mut self, case: &Case<'_>) -> Episode {
        self.episodes.begin(case.path(), case.order.nxt()).episode
    }

    fn on_undo(&mut self, path: PathId) {
        self.episodes.forget(path);
    }
}

#[cfg(test)]
mod tests {
    use polypath_wire::Instant;

    use super::*;
    use crate::loss::policy::bench::Stream;

    /// Of both paths: segments of 10 bytes are sent in turn on them, even numbers on the first.
    fn judge(policy: &mut HeadDupacks, stream: &Stream) -> Vec<Verdict> {
        [PathId(0), PathId(1)].iter().flat_map(|path| stream.judge(policy, Instant::ZERO, *path)).collect()
    }

    fn lost(stream: &Stream, n: usize, episode: u32) -> Verdict {
        Verdict::Lost { what: stream.departure(n), cause: LossCause::DupAck, episode: Episode(episode) }
    }

    #[test]
    fn the_path_of_the_first_missing_packet_is_charged() {
        let (mut policy, mut stream) = (HeadDupacks::new(3), Stream::new(2, 10));
        stream.ack_up_to(10); // 1 is missing, on the second path; 2, 4 and 6 arrive on the first
        for n in 0..3 {
            assert_eq!(judge(&mut policy, &stream), [], "after {n} duplicates");
            stream.duplicates += 1;
        }
        assert_eq!(judge(&mut policy, &stream), [lost(&stream, 1, 1)]);
        stream.lose(1);
        assert_eq!(judge(&mut policy, &stream), [], "once");
    }

    #[test]
    fn a_hole_on_another_path_is_another_episode() {
        let (mut policy, mut stream) = (HeadDupacks::new(1), Stream::new(2, 10));
        stream.duplicates = 1;
        assert_eq!(judge(&mut policy, &stream), [lost(&stream, 0, 1)]);
        stream.lose(0);
        stream.ack_up_to(10); // partial: nothing goes again on its word
        assert_eq!(judge(&mut policy, &stream), []);
        stream.duplicates = 1;
        assert_eq!(judge(&mut policy, &stream), [lost(&stream, 1, 2)]);
        stream.lose(1);
        stream.ack_up_to(20);
        stream.duplicates = 1;
        assert_eq!(judge(&mut policy, &stream), [lost(&stream, 2, 1)], "the first path still recovers");
        stream.lose(2);
        stream.ack_up_to(100);
        assert_eq!(
            judge(&mut policy, &stream),
            [Verdict::Recovered(Episode(1)), Verdict::Recovered(Episode(2))]
        );
    }
}
