//! Progress and rate of a transfer, by the bytes that the peer has acknowledged.

use std::collections::VecDeque;
use std::time::Duration;

use polypath_files::{Step, Work};

/// What is shown of a transfer at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct View {
    /// The current file: its number, from 1 on, and its name.
    pub file: Option<(usize, String)>,
    /// Its bytes that have arrived, and all, if they are known.
    pub of_file: (u64, Option<u64>),
    /// Bytes of all files that have arrived or were there.
    pub position: u64,
    /// Average rate of the last two seconds, bit/s; 0 if nothing moves.
    pub rate: f64,
    /// What an end does while no bytes of files move.
    pub work: Option<Work>,
    /// Time left at the average rate of the last 15 s; `None` if nothing moves or the length is not known.
    pub left: Option<Duration>,
}

/// Follows a transfer.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes of all files, if they are known.
    total: Option<u64>,
    /// Files that have begun and have not arrived as far as is known, the oldest first.
    spans: VecDeque<Span>,
    /// Bytes of all files begun that were written or skipped.
    written: u64,
    /// Bytes written to the connection, or read from it.
    stream: u64,
    /// The highest position shown.
    position: u64,
    /// Files finished on earlier connections.
    over: usize,
    work: Option<Work>,
    samples: Samples,
}

#[derive(Debug)]
struct Span {
    index: usize,
    name: String,
    size: Option<u64>,
    begin: u64,
}

impl Progress {
    pub fn new(total: Option<u64>) -> Self {
        Self { total, ..Self::default() }
    }

    /// A new connection begins; the first `files` files, of `done` bytes, are finished.
    pub fn restart(&mut self, done: u64, files: usize) {
        (self.written, self.position, self.stream) = (done, done, 0);
        self.over = files;
        self.spans.clear();
        self.work = None;
        self.samples = Samples::default();
    }

    pub fn step(&mut self, step: &Step) {
        self.work = match step {
            Step::Working(work) => Some(*work),
            _ => None,
        };
        match step {
            Step::Begin { index, name, size, at } => {
                let (index, name, size, begin) = (*index, name.clone(), *size, self.written);
                self.spans.push_back(Span { index, name, size, begin });
                self.written += at;
            }
            Step::Bytes { bytes, stream } => {
                self.written += bytes;
                self.stream = *stream;
            }
            Step::Working(_) | Step::Grew { .. } | Step::Changed { .. } | Step::Done(_) | Step::Failed(_) => {
            }
        }
    }

    /// At `now`, when the peer has acknowledged `acked` bytes of the connection: what is not acknowledged yet is at the
    /// end of what was written.
    pub fn look(&mut self, now: Duration, acked: u64) -> View {
        let under_way = self.stream.saturating_sub(acked);
        self.position = self.position.max(self.written.saturating_sub(under_way));
        while self.spans.get(1).is_some_and(|next| next.begin < self.position) {
            self.spans.pop_front();
        }
        self.samples.add(now, acked);
        let front = self.spans.front();
        let arrived = |span: &Span| {
            let arrived = self.position.saturating_sub(span.begin);
            span.size.map_or(arrived, |size| arrived.min(size))
        };
        let speed = self.samples.rate(AVERAGED);
        let left = self.total.map(|total| total.saturating_sub(self.position));
        let left = left.filter(|_| self.samples.rate(RECENT) > 0.0 && speed > 0.0);
        View {
            file: front.map(|span| (self.over + span.index + 1, span.name.clone())),
            of_file: front.map_or((0, None), |span| (arrived(span), span.size)),
            position: self.position,
            rate: self.samples.rate(RECENT) * 8.0,
            work: self.work,
            left: left.map(|left| Duration::from_secs_f64((left as f64 / speed).min(1e9))),
        }
    }
}

/// The rate shown is the average over this time.
const RECENT: Duration = Duration::from_secs(2);
/// The time left is computed from the average rate over this time.
const AVERAGED: Duration = Duration::from_secs(15);

/// Times and the bytes acknowledged by then.
#[derive(Debug, Default)]
struct Samples(VecDeque<(Duration, u64)>);

impl Samples {
    fn add(&mut self, now: Duration, acked: u64) {
        self.0.push_back((now, acked));
        while self.0.get(1).is_some_and(|(then, _)| *then + AVERAGED <= now) {
            self.0.pop_front();
        }
    }

    /// Bytes a second over the last `window`, or since the beginning.
    fn rate(&self, window: Duration) -> f64 {
        let Some((now, bytes)) = self.0.back() else { return 0.0 };
        let first = self.0.iter().rev().find(|(then, _)| *then + window <= *now).or(self.0.front());
        let Some((then, before)) = first.filter(|(then, _)| then < now) else { return 0.0 };
        bytes.saturating_sub(*before) as f64 / (*now - *then).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(index: usize, size: u64, at: u64) -> Step {
        Step::Begin { index, name: format!("f{index}"), size: Some(size), at }
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn what_was_written_counts_when_it_is_acknowledged() {
        let mut progress = Progress::new(Some(1000));
        progress.step(&begin(0, 1000, 0));
        progress.step(&Step::Bytes { bytes: 1000, stream: 1050 });
        assert_eq!(progress.look(seconds(0), 0).position, 0);
        let view = progress.look(seconds(1), 550);
        assert_eq!((view.position, view.of_file), (500, (500, Some(1000))));
        assert_eq!(progress.look(seconds(2), 1050).position, 1000);
    }

    #[test]
    fn the_file_that_is_shown_is_the_one_that_arrives() {
        let mut progress = Progress::new(Some(300));
        for index in 0..3 {
            progress.step(&begin(index, 100, 0));
            progress.step(&Step::Bytes { bytes: 100, stream: 100 * (index as u64 + 1) });
        }
        let shown = [0, 99, 150, 300].map(|acked| progress.look(seconds(acked), acked).file.unwrap().0);
        assert_eq!(shown, [1, 1, 2, 3]);
    }

    #[test]
    fn what_was_there_counts_at_once_but_not_for_the_rate() {
        let mut progress = Progress::new(Some(1000));
        progress.step(&begin(0, 1000, 900));
        progress.step(&Step::Bytes { bytes: 100, stream: 100 });
        progress.look(seconds(0), 0);
        let view = progress.look(seconds(1), 50);
        assert_eq!((view.position, view.rate), (950, 400.0));
    }

    #[test]
    fn nothing_that_moves_has_no_rate_and_no_end() {
        let mut progress = Progress::new(Some(10_000));
        progress.step(&begin(0, 10_000, 0));
        progress.step(&Step::Bytes { bytes: 10_000, stream: 10_000 });
        for second in 0..=4 {
            let view = progress.look(seconds(second), second * 1000);
            if second > 0 {
                assert_eq!((view.rate, view.left), (8000.0, Some(seconds(10 - second))));
            }
        }
        progress.look(seconds(5), 4000);
        let still = progress.look(seconds(6), 4000);
        assert_eq!((still.position, still.rate, still.left), (4000, 0.0, None));
    }

    #[test]
    fn what_an_end_does_is_shown_until_bytes_move() {
        let mut progress = Progress::new(Some(100));
        progress.step(&begin(0, 100, 0));
        progress.step(&Step::Working(Work::Storing));
        assert_eq!(progress.look(seconds(1), 0).work, Some(Work::Storing));
        progress.step(&Step::Bytes { bytes: 100, stream: 100 });
        assert_eq!(progress.look(seconds(2), 100).work, None);
    }

    #[test]
    fn a_new_connection_begins_where_the_whole_files_end() {
        let mut progress = Progress::new(Some(300));
        progress.step(&begin(0, 100, 0));
        progress.step(&Step::Bytes { bytes: 100, stream: 100 });
        progress.look(seconds(1), 100);
        progress.restart(100, 1);
        progress.step(&begin(0, 200, 50));
        let view = progress.look(seconds(2), 0);
        assert_eq!((view.position, view.file.unwrap().0), (150, 2));
    }
}
