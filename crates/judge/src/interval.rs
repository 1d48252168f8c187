//! Intervals, and where a value lies beside one.

use serde::Serialize;

use super::Answer;

/// An interval, ends included.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A side of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Greater.
    Above,
    /// Smaller.
    Below,
}

impl Interval {
    /// Whether `value` lies in it.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Half of its width.
    pub fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether it, a confidence interval, says that what it is of lies in `band`.
    pub fn is_in(self, band: Self) -> Answer {
        let overlaps = self.low <= band.high && band.low <= self.high;
        match band.contains(self.low) && band.contains(self.high) {
            true => Answer::Yes,
            false if overlaps => Answer::Open,
            false => Answer::No,
        }
    }

    /// Whether it, a confidence interval, says that what it is of lies on `side` of `value`.
    pub fn is_beside(self, side: Side, value: f64) -> Answer {
        let (surely, surely_not) = match side {
            Side::Above => (self.low > value, self.high < value),
            Side::Below => (self.high < value, self.low > value),
        };
        match () {
            () if surely => Answer::Yes,
            () if surely_not => Answer::No,
            () => Answer::Open,
        }
    }

    pub(super) fn around(centre: f64, half: f64) -> Self {
        Self { low: centre - half, high: centre + half }
    }

    pub(super) fn exp(self) -> Self {
        Self { low: self.low.exp(), high: self.high.exp() }
    }
}

impl Side {
    /// On which side of `of` `value` lies, by more than `margin`.
    pub fn of(value: f64, of: f64, margin: f64) -> Option<Self> {
        match () {
            () if value > of + margin => Some(Self::Above),
            () if value < of - margin => Some(Self::Below),
            () => None,
        }
    }

    /// `of` moved by `margin` to this side.
    pub fn beyond(self, of: f64, margin: f64) -> f64 {
        match self {
            Self::Above => of + margin,
            Self::Below => of - margin,
        }
    }
}
