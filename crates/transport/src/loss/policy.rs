//! The seam between the engine and what it takes for a loss.

use polypath_wire::{Duration, Instant, PathId};

use crate::facts::{Episode, LossCause, PathView};
use crate::path::flight::Flight;

/// A transmission, by what it carries and where it left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Departure {
    /// On which path.
    pub path: PathId,
    /// Its number there.
    pub number: u64,
    /// Key of its cargo.
    pub cargo: u64,
}

/// What the owner of the cargo knows of its order, which no lane shows. Keys of cargo grow.
pub(crate) trait Order: std::fmt::Debug {
    /// Everything below this key arrived.
    fn una(&self) -> u64;
    /// First key that was never sent.
    fn nxt(&self) -> u64;
    /// Acknowledgments since `una` moved that moved nothing.
    fn duplicates(&self) -> u32;
    /// The cargo at `una`, where it left last.
    fn head(&self) -> Option<Departure>;
    /// Whether the cargo `key` arrived.
    fn has_arrived(&self, key: u64) -> bool;
}

/// Cargo without an order: each transmission is acknowledged by its number, and nothing else is said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unordered;

impl Order for Unordered {
    fn una(&self) -> u64 {
        0
    }

    fn nxt(&self) -> u64 {
        0
    }

    fn duplicates(&self) -> u32 {
        0
    }

    fn head(&self) -> Option<Departure> {
        None
    }

    fn has_arrived(&self, _: u64) -> bool {
        false
    }
}

/// What a policy judges: one path, after an acknowledgment or when it asked for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'a> {
    /// The present.
    pub now: Instant,
    /// The path, as its controller sees it.
    pub view: &'a PathView,
    /// What left there.
    pub flight: &'a Flight,
    /// What the owner of the cargo knows.
    pub order: &'a dyn Order,
}

impl Case<'_> {
    /// Which path.
    #[inline]
    pub(crate) fn path(&self) -> PathId {
        self.view.id
    }

    /// The transmission `number` of the path, which carries the cargo `key`.
    pub(crate) fn departure(&self, number: u64, key: u64) -> Departure {
        Departure { path: self.path(), number, cargo: key }
    }
}

/// A judgement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Verdict {
    /// The transmission is lost. A new episode costs the path a reduction.
    Lost {
        /// Which.
        what: Departure,
        /// Why.
        cause: LossCause,
        /// In which episode.
        episode: Episode,
    },
    /// A tail probe brought what had been lost: nothing is missing, but the path owes a reduction.
    Repaired(Episode),
    /// The episode is over: the path's window may grow again.
    Recovered(Episode),
    /// The episode was reordering.
    Undo(Episode),
    /// Ask again at this instant, whatever arrives.
    RecheckAt(Instant),
}

/// Judges losses after every acknowledgment. The retransmission timer stands behind every policy.
pub(crate) trait LossPolicy: std::fmt::Debug + Send {
    /// Judges a path; called for every path after every acknowledgment, and at the instants asked for.
    fn judge(&mut self, case: &Case<'_>, out: &mut Vec<Verdict>);

    /// Whether what was just acknowledged ends the present episode of the path: [`judge`](Self::judge) is about
    /// to say so, and the window may grow by this acknowledgment already.
    fn recovers(&self, _case: &Case<'_>) -> bool {
        false
    }

    /// The retransmission timer of the path expired and all that was in flight there counts as lost, in
    /// the episode returned.
    fn on_timeout(&mut self, case: &Case<'_>) -> Episode;

    /// Whether it ever probes tails.
    fn probes(&self) -> bool {
        false
    }

    /// After how long without news of a path its tail is probed (RFC 8985 §7.2), if at all.
    fn probe_after(&self, _view: &PathView, _flight: &Flight) -> Option<Duration> {
        None
    }

    /// The tail of `path` is probed by what will be its next transmission.
    fn on_probe(&mut self, _path: PathId, _flight: &Flight) {}

    /// The present episode of `path` proved to be reordering: it is over.
    fn on_undo(&mut self, _path: PathId) {}

    /// `path` is no more, and what was in flight there is lost.
    fn on_path_removed(&mut self, _path: PathId) {}

    /// Whether a timeout is undone that turns out to have been for nothing (RFC 4015).
    fn undoes_timeouts(&self) -> bool {
        false
    }

    /// How many duplicates let a new segment leave each before they mean a loss, without SACK: limited
    /// transmit (RFC 3042), extended to larger thresholds (RFC 4653 §3.2).
    fn limited_transmit(&self) -> u32 {
        2
    }

    /// Whether the timer goes on running through this acknowledgment (RFC 6582 §4, "impatient").
    fn holds_timer(&self, _path: PathId) -> bool {
        false
    }
}

#[cfg(test)]
pub(super) mod bench {
    //! A stream over several paths, for the tests of policies.

    use super::*;
    use crate::path::transmission::{Cargo, History, Transmission};

    /// Segments of ten bytes, each sent once.
    #[derive(Debug, Default)]
    pub(crate) struct Stream {
        pub una: u64,
        pub duplicates: u32,
        pub arrived: Vec<u64>,
        pub sent: Vec<(PathId, u64)>,
        pub flights: Vec<Flight>,
    }

    impl Order for Stream {
        fn una(&self) -> u64 {
            self.una
        }

        fn nxt(&self) -> u64 {
            10 * self.sent.len() as u64
        }

        fn duplicates(&self) -> u32 {
            self.duplicates
        }

        fn head(&self) -> Option<Departure> {
            let (path, number) = *self.sent.get((self.una / 10) as usize)?;
            Some(Departure { path, number, cargo: self.una })
        }

        fn has_arrived(&self, key: u64) -> bool {
            key < self.una || self.arrived.contains(&key)
        }
    }

    impl Stream {
        /// `n` segments in turn on `paths` paths.
        pub(crate) fn new(paths: usize, n: usize) -> Self {
            let mut stream = Self::default();
            stream.flights.extend((0..paths).map(|_| Flight::new(paths == 1)));
            for i in 0..n {
                let cargo = Cargo { key: 10 * i as u64, len: 10, history: History::Once };
                let transmission = Transmission::new(cargo, Instant::ZERO, Default::default());
                let number = stream.flights[i % paths].push(transmission);
                stream.sent.push((PathId((i % paths) as u16), number));
            }
            stream
        }

        /// Everything below `una` arrives.
        pub(crate) fn ack_up_to(&mut self, una: u64) {
            for segment in self.una / 10..una / 10 {
                let (path, number) = self.sent[segment as usize];
                self.flights[path.index()].deliver(number, false);
            }
            self.flights.iter_mut().for_each(Flight::trim);
            (self.una, self.duplicates) = (una, 0);
        }

        /// The segment `n` is judged lost.
        pub(crate) fn lose(&mut self, n: usize) {
            let (path, number) = self.sent[n];
            self.flights[path.index()].lose(number);
        }

        /// What `policy` says of `path`.
        pub(crate) fn judge(&self, policy: &mut dyn LossPolicy, now: Instant, path: PathId) -> Vec<Verdict> {
            let mut out = Vec::new();
            policy.judge(&Case { now, ..self.case(path, &PathView::new(path, 10)) }, &mut out);
            out
        }

        /// `path` as `view` shows it.
        pub(crate) fn case<'a>(&'a self, path: PathId, view: &'a PathView) -> Case<'a> {
            Case { now: Instant::ZERO, view, flight: &self.flights[path.index()], order: self }
        }

        /// The departure of the segment `n`.
        pub(crate) fn departure(&self, n: usize) -> Departure {
            let (path, number) = self.sent[n];
            Departure { path, number, cargo: 10 * n as u64 }
        }
    }
}
