//! Rows as they are kept: most have few numbers, so only those that are there take space.

use polypath_wire::Instant;

use super::{ABSENT, Detail, Kind, NUMBERS, Row};

/// Rows, in order.
#[derive(Debug, Default)]
pub(super) struct Rows {
    heads: Vec<Head>,
    /// The numbers of all rows, one row's after the other's.
    numbers: Vec<u64>,
}

/// A row without its numbers. What is absent of `flow` and `path` is `u32::MAX`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub time: Instant,
    pub source: u32,
    pub flow: u32,
    pub path: u32,
    pub event: Kind,
    pub detail: Option<Detail>,
    /// Which columns of [`NUMBERS`] it has, the first in the lowest bit.
    pub present: u16,
}

impl Rows {
    pub const NONE: Self = Self { heads: Vec::new(), numbers: Vec::new() };

    #[cfg(feature = "columns")]
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    pub fn push(&mut self, row: &Row) {
        let mut present = 0;
        for (column, number) in row.numbers.into_iter().enumerate().filter(|(_, n)| *n != ABSENT) {
            present |= 1 << column;
            self.numbers.push(number);
        }
        let Row { time, source, event, detail, .. } = *row;
        let [flow, path] = [row.flow, row.path].map(|v| v.unwrap_or(u32::MAX));
        self.heads.push(Head { time, source, flow, path, event, detail, present });
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Row> {
        self.chunks(usize::MAX)
            .flat_map(|(heads, mut numbers)| heads.iter().map(move |head| head.row(&mut numbers)))
    }

    /// Heads by `len`, the last ones maybe fewer, and where their numbers begin.
    pub fn chunks(&self, len: usize) -> impl Iterator<Item = (&[Head], &[u64])> {
        let mut numbers = &self.numbers[..];
        self.heads.chunks(len).map(move |heads| {
            let count = heads.iter().map(|head| head.present.count_ones() as usize).sum();
            let (ours, rest) = numbers.split_at(count);
            numbers = rest;
            (heads, ours)
        })
    }
}

impl Head {
    /// The columns that have a number, first to last.
    pub fn columns(&self) -> impl Iterator<Item = usize> + use<> {
        let mut present = self.present;
        std::iter::from_fn(move || {
            let column = (present != 0).then(|| present.trailing_zeros() as usize)?;
            present &= present - 1;
            Some(column)
        })
    }

    /// The row, with as many of `numbers` as it has; the rest stays there.
    fn row(&self, numbers: &mut &[u64]) -> Row {
        let mut row = Row {
            time: self.time,
            source: self.source,
            flow: Some(self.flow).filter(|v| *v != u32::MAX),
            path: Some(self.path).filter(|v| *v != u32::MAX),
            event: self.event,
            detail: self.detail,
            numbers: [ABSENT; NUMBERS.len()],
        };
        for column in self.columns() {
            if let Some((number, rest)) = numbers.split_first() {
                (row.numbers[column], *numbers) = (*number, rest);
            }
        }
        row
    }
}
