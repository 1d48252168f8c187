//! An answer that runs may leave open.

use std::fmt;
use std::ops::Not;

use serde::Serialize;

/// What an ensemble answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Yes, with the error of one look.
    Yes,
    /// No, with the same.
    No,
    /// More runs are needed.
    Open,
}

impl Answer {
    /// Yes if one of them is, no if both are.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, Self::No) => Self::No,
            _ => Self::Open,
        }
    }

    /// Yes if both of them are, no if one is not.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        !((!self).or(!other))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Open => "open",
        })
    }
}

impl Not for Answer {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Open => Self::Open,
        }
    }
}

impl From<bool> for Answer {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

#[cfg(test)]
mod tests {
    use super::Answer::{No, Open, Yes};

    #[test]
    fn what_is_open_counts_only_where_it_decides() {
        assert_eq!((Yes.or(Open), No.or(Open), No.or(No)), (Yes, Open, No));
        assert_eq!((No.and(Open), Yes.and(Open), Yes.and(Yes)), (No, Open, Yes));
    }
}
