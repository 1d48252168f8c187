//! Whether a path leaves the ECN field of IP headers alone (RFC 3168), after the example of QUIC (RFC 9000 §13.4.2).
//!
//! A heartbeat leaves as ECT(0), and its answer too if it came so. An answer with ECT or CE proves the path. Where a few
//! in a row are lost or come without, nothing leaves as ECT on the path for a while: something on the way clears or drops it.

use polypath_wire::Ecn;

/// Heartbeats in a row that tell against a path.
const FAILURES: u32 = 3;
/// Heartbeats until it is tried again.
const REST: u32 = 100;

/// What heartbeats tell of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marking {
    proved: bool,
    /// The last heartbeat left as ECT(0) and is not answered.
    asked: bool,
    failures: u32,
    rest: u32,
}

impl Marking {
    /// Whether data may leave as ECT(0).
    pub fn may_be(&self) -> bool {
        self.proved
    }

    /// What the next heartbeat leaves with; `silent`: the last was not answered, so that this one asks for no more than an answer.
    pub fn ask(&mut self, silent: bool) -> Ecn {
        if std::mem::take(&mut self.asked) {
            self.fail();
        }
        self.rest = self.rest.saturating_sub(1);
        self.asked = !silent && self.rest == 0;
        if self.asked { Ecn::Capable } else { Ecn::None }
    }

    /// A heartbeat was answered.
    pub fn on_answer(&mut self, ecn: Ecn) {
        if !std::mem::take(&mut self.asked) {
            return;
        }
        match ecn {
            Ecn::None => self.fail(),
            Ecn::Capable | Ecn::Marked => *self = Self { proved: true, ..Self::default() },
        }
    }

    fn fail(&mut self) {
        self.failures += 1;
        if self.failures >= FAILURES {
            *self = Self { rest: REST, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heartbeats whose answers come as `way` makes them of what they leave with, `None` if they do not come.
    fn beats(marking: &mut Marking, n: u32, way: impl Fn(Ecn) -> Option<Ecn>) -> Vec<Ecn> {
        let mut silent = false;
        let beat = |_| {
            let left = marking.ask(silent);
            let answer = way(left);
            silent = answer.is_none();
            answer.into_iter().for_each(|ecn| marking.on_answer(ecn));
            left
        };
        (0..n).map(beat).collect()
    }

    #[test]
    fn a_path_is_proved_by_an_answer_and_a_lost_heartbeat_or_two_do_not_matter() {
        let mut marking = Marking::default();
        assert!(!marking.may_be());
        assert_eq!(beats(&mut marking, 1, Some), [Ecn::Capable]);
        assert!(marking.may_be());
        assert_eq!(
            beats(&mut marking, 5, |_| None),
            [Ecn::Capable, Ecn::None, Ecn::None, Ecn::None, Ecn::None]
        );
        assert!(marking.may_be(), "the whole path is silent");
        beats(&mut marking, 1, |_| Some(Ecn::Marked));
        assert!(marking.may_be());
    }

    #[test]
    fn where_ect_is_cleared_or_dropped_it_is_given_up_and_tried_again_later() {
        for way in [(|_| Some(Ecn::None)) as fn(Ecn) -> Option<Ecn>, |left| {
            Some(left).filter(|left| *left == Ecn::None)
        }] {
            let mut marking = Marking::default();
            beats(&mut marking, 1, Some);
            beats(&mut marking, 6, way);
            assert!(!marking.may_be());
            let tries = beats(&mut marking, 2 * REST, way);
            let asked = tries.iter().filter(|ecn| **ecn == Ecn::Capable).count() as u32;
            assert!((FAILURES..3 * FAILURES).contains(&asked), "{asked}");
            beats(&mut marking, REST, Some);
            assert!(marking.may_be());
        }
    }
}
