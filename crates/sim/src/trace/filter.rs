//! Which rows a trace has.

use polypath_wire::{Duration, Instant};

use super::write::EVENTS;
use super::{Kind, Row};

/// The rows of a trace that are wanted; by default all. An empty list does not restrict.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TraceFilter {
    flows: Option<Vec<u32>>,
    paths: Vec<u32>,
    events: Vec<u8>,
    from: Option<Instant>,
    to: Option<Instant>,
}

impl TraceFilter {
    /// Names of the events, as in the column `event`.
    pub const EVENTS: &[&str] = &EVENTS;

    /// Rows of these flows only, by their numbers in the world; `None`: of all, and of what is of no flow.
    #[must_use]
    pub fn flows(self, flows: Option<Vec<u32>>) -> Self {
        Self { flows, ..self }
    }

    /// Rows of these paths only.
    #[must_use]
    pub fn paths(self, paths: Vec<u32>) -> Self {
        Self { paths, ..self }
    }

    /// These events only; names that are none of [`EVENTS`](Self::EVENTS) are ignored.
    #[must_use]
    pub fn events(self, names: &[String]) -> Self {
        let number = |name: &String| EVENTS.iter().position(|event| event == name);
        Self { events: names.iter().filter_map(number).map(|n| n as u8).collect(), ..self }
    }

    /// From a time on and before another, since the start of the run.
    #[must_use]
    pub fn times(self, from: Option<Duration>, to: Option<Duration>) -> Self {
        let at = |time: Duration| Instant::ZERO + time;
        Self { from: from.map(at), to: to.map(at), ..self }
    }

    pub(super) fn admits(&self, row: &Row) -> bool {
        let among = |wanted: &[u32], of: Option<u32>| of.is_some_and(|n| wanted.contains(&n));
        let event = row.event as u8;
        self.from.is_none_or(|from| row.time >= from)
            && self.to.is_none_or(|to| row.time < to)
            && (self.events.is_empty() || self.events.contains(&event))
            && self.flows.as_ref().is_none_or(|flows| among(flows, row.flow))
            && (self.paths.is_empty() || among(&self.paths, row.path))
    }
}

const _: () = assert!(Kind::Bottleneck as usize + 1 == EVENTS.len());

#[cfg(test)]
mod tests {
    use super::super::{ABSENT, NUMBERS};
    use super::*;

    fn row(ms: u64, flow: Option<u32>, path: Option<u32>, event: Kind) -> Row {
        let time = Instant::ZERO + Duration::from_millis(ms);
        Row { time, source: 0, flow, path, event, detail: None, numbers: [ABSENT; NUMBERS.len()] }
    }

    #[test]
    fn a_row_is_admitted_if_it_is_all_that_is_wanted() {
        let lost = ["lost".to_owned(), "undone".to_owned()];
        let span = (Some(Duration::from_millis(5)), Some(Duration::from_millis(10)));
        let filter =
            TraceFilter::default().flows(Some(vec![1])).paths(vec![0, 2]).events(&lost).times(span.0, span.1);
        assert!(filter.admits(&row(5, Some(1), Some(2), Kind::Lost)));
        for other in [
            row(4, Some(1), Some(2), Kind::Lost),
            row(10, Some(1), Some(2), Kind::Lost),
            row(5, Some(2), Some(2), Kind::Lost),
            row(5, None, Some(2), Kind::Lost),
            row(5, Some(1), Some(1), Kind::Lost),
            row(5, Some(1), None, Kind::Lost),
            row(5, Some(1), Some(2), Kind::Sent),
        ] {
            assert!(!filter.admits(&other), "{other:?}");
        }
        assert!(TraceFilter::default().admits(&row(0, None, None, Kind::HopLeft)));
    }
}
