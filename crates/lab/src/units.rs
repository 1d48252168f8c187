//! Rates, times and sizes as people write them, for spec files and the command line alike.
//!
//! A quantity is a number and its unit, in any case, with or without a space: `8Mbit/s`, `30ms`,
//! `64MiB`. A number without a unit is refused: it is the commonest mistake in such files.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use polypath_wire::{Duration, Rate};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Bytes(pub u64);

/// What is wrong with a quantity, and how one is written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text:?} is not a {what}: {reason}; write for example \"{example}\"")]
pub struct UnitError {
    /// What was expected: a rate, a time, a size.
    pub what: &'static str,
    /// What was found.
    pub text: String,
    /// Why it is none.
    pub reason: String,
    /// One that is.
    pub example: &'static str,
}

/// Something that is measured in whole base units and written in larger ones.
pub trait Measure: Copy + Sized {
    /// Its name in errors.
    const WHAT: &'static str;
    /// One, as it is written.
    const EXAMPLE: &'static str;
    /// The unit that nothing is written in.
    const OF_ZERO: &'static str;
    /// Names of units and how many base units each is; per factor the first is the one we write.
    const UNITS: &'static [(&'static str, u64)];
    /// From base units.
    fn from_base(n: u64) -> Self;
    /// In base units.
    fn base(self) -> u64;
}

impl Measure for Rate {
    const WHAT: &'static str = "rate";
    const EXAMPLE: &'static str = "8Mbit/s";
    const OF_ZERO: &'static str = "bit/s";
    const UNITS: &'static [(&'static str, u64)] = &[
        ("Gbit/s", 1_000_000_000),
        ("Gbit", 1_000_000_000),
        ("Gbps", 1_000_000_000),
        ("Mbit/s", 1_000_000),
        ("Mbit", 1_000_000),
        ("Mbps", 1_000_000),
        ("kbit/s", 1_000),
        ("kbit", 1_000),
        ("kbps", 1_000),
        ("bit/s", 1),
        ("bit", 1),
        ("bps", 1),
    ];
    fn from_base(n: u64) -> Self {
        Self(n)
    }
    fn base(self) -> u64 {
        self.0
    }
}

impl Measure for Duration {
    const WHAT: &'static str = "time";
    const EXAMPLE: &'static str = "30ms";
    const OF_ZERO: &'static str = "s";
    const UNITS: &'static [(&'static str, u64)] = &[
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("µs", 1_000),
        ("ns", 1),
    ];
    fn from_base(n: u64) -> Self {
        Self(n)
    }
    fn base(self) -> u64 {
        self.0
    }
}

impl Measure for Bytes {
    const WHAT: &'static str = "size";
    const EXAMPLE: &'static str = "64MiB";
    const OF_ZERO: &'static str = "B";
    const UNITS: &'static [(&'static str, u64)] = &[
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("kB", 1_000),
        ("B", 1),
    ];
    fn from_base(n: u64) -> Self {
        Self(n)
    }
    fn base(self) -> u64 {
        self.0
    }
}

/// A [`Measure`] that reads and writes itself the way people do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Human<T>(pub T);

impl<T> Deref for Human<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Measure> FromStr for Human<T> {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong =
            |reason: String| UnitError { what: T::WHAT, text: text.to_owned(), reason, example: T::EXAMPLE };
        let (number, unit) = split_number(text.trim());
        let number: f64 = number.parse().map_err(|_| wrong("it does not begin with a number".into()))?;
        if unit.is_empty() {
            return Err(wrong("it has no unit".into()));
        }
        let Some((_, factor)) = T::UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) else {
            let names: Vec<_> = T::UNITS.iter().map(|u| u.0).collect();
            return Err(wrong(format!("its unit is none of {}", names.join(", "))));
        };
        let base = number * *factor as f64;
        if base > u64::MAX as f64 / 2.0 {
            return Err(wrong("it is too large".into()));
        }
        Ok(Self(T::from_base(base.round() as u64)))
    }
}

/// A rate whose unit may be one letter: `10M` is `10Mbit/s`.
pub fn short_rate(text: &str) -> Result<Rate, UnitError> {
    let unit = if text.trim_end().ends_with(['k', 'K', 'M', 'G']) { "bit" } else { "" };
    let Human(rate) = format!("{}{unit}", text.trim_end()).parse()?;
    Ok(rate)
}

/// Splits `12.5 ms` into `12.5` and `ms`.
pub(crate) fn split_number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

impl<T: Measure> fmt::Display for Human<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = self.0.base();
        // The largest unit that needs no more than three digits after the point.
        let unit = T::UNITS.iter().find(|u| base >= u.1 && ((base % u.1) * 1000).is_multiple_of(u.1));
        match unit {
            Some((name, factor)) => write!(f, "{}{name}", base as f64 / *factor as f64),
            None => write!(f, "0{}", T::OF_ZERO),
        }
    }
}

impl<T: Measure> Serialize for Human<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de, T: Measure> Deserialize<'de> for Human<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Text(std::marker::PhantomData))
    }
}

/// Reads a quantity from a string and says of a bare number that it has no unit.
struct Text<T>(std::marker::PhantomData<T>);

impl<T: Measure> Visitor<'_> for Text<T> {
    type Value = Human<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} such as \"{}\"", T::WHAT, T::EXAMPLE)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        text.parse().map_err(E::custom)
    }
    fn visit_i64<E: de::Error>(self, n: i64) -> Result<Self::Value, E> {
        self.visit_str(&n.to_string())
    }
    fn visit_u64<E: de::Error>(self, n: u64) -> Result<Self::Value, E> {
        self.visit_str(&n.to_string())
    }
    fn visit_f64<E: de::Error>(self, n: f64) -> Result<Self::Value, E> {
        self.visit_str(&n.to_string())
    }
}

/// One emulated path as the command line names it: `RATE/DELAY`, for example `80mbit/20ms`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Rate of the bottleneck.
    pub rate: Rate,
    /// One-way propagation delay.
    pub delay: Duration,
}

impl FromStr for Link {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = |reason: &str| UnitError {
            what: "path",
            text: text.to_owned(),
            reason: reason.to_owned(),
            example: "80mbit/20ms",
        };
        let (rate, delay) =
            text.rsplit_once('/').ok_or_else(|| wrong("it has no \"/\" between rate and delay"))?;
        let rate: Rate = rate.parse::<Human<Rate>>()?.0;
        if rate.0 == 0 {
            return Err(wrong("its rate is zero"));
        }
        Ok(Self { rate, delay: delay.parse::<Human<Duration>>()?.0 })
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Human(self.rate), Human(self.delay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(text: &str) -> Result<u64, String> {
        text.parse::<Human<Rate>>().map(|r| r.0.0).map_err(|e| e.to_string())
    }

    #[test]
    fn quantities_read_as_written() {
        assert_eq!(rate("8Mbit/s"), Ok(8_000_000));
        assert_eq!(rate(" 1.5 gbps "), Ok(1_500_000_000));
        assert_eq!(rate("80mbit"), Ok(80_000_000));
        assert_eq!("12.5ms".parse::<Human<Duration>>().unwrap().0, Duration::from_micros(12_500));
        assert_eq!("64MiB".parse::<Human<Bytes>>().unwrap().0, Bytes(64 << 20));
    }

    #[test]
    fn errors_tell_what_and_how() {
        assert_eq!(
            rate("8").unwrap_err(),
            "\"8\" is not a rate: it has no unit; write for example \"8Mbit/s\""
        );
        assert!(rate("8 Mbyte").unwrap_err().contains("none of Gbit/s"));
        assert!(rate("fast").unwrap_err().contains("begin with a number"));
        assert!(rate("-3Mbit").unwrap_err().contains("begin with a number"));
        assert!(rate("99999999999999Gbit").unwrap_err().contains("too large"));
    }

    #[test]
    fn a_path_is_rate_and_delay() {
        let link: Link = "8Mbit/s/30ms".parse().unwrap();
        assert_eq!(link, Link { rate: Rate::from_mbps(8), delay: Duration::from_millis(30) });
        assert_eq!(link.to_string(), "8Mbit/s 30ms");
        assert!("8mbit".parse::<Link>().unwrap_err().to_string().contains("between rate and delay"));
        assert!("0mbit/3ms".parse::<Link>().is_err());
    }

    #[test]
    fn the_unit_chosen_is_the_largest_that_is_short() {
        for text in ["8Mbit/s", "1.5Gbit/s", "64MiB", "0B", "0bit/s", "0s", "1ns", "30ms", "90s"] {
            let shown = match text.chars().last() {
                Some('B') => text.parse::<Human<Bytes>>().unwrap().to_string(),
                _ if text.contains("bit") => text.parse::<Human<Rate>>().unwrap().to_string(),
                _ => text.parse::<Human<Duration>>().unwrap().to_string(),
            };
            assert_eq!(shown.replace("1.5min", "90s"), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(n in 0u64..(1 << 50)) {
            prop_assert_eq!(Human(Rate(n)).to_string().parse::<Human<Rate>>(), Ok(Human(Rate(n))));
            prop_assert_eq!(Human(Duration(n)).to_string().parse::<Human<Duration>>(), Ok(Human(Duration(n))));
            prop_assert_eq!(Human(Bytes(n)).to_string().parse::<Human<Bytes>>(), Ok(Human(Bytes(n))));
        }

        #[test]
        fn nothing_panics(text in "\\PC*") {
            let _ = text.parse::<Human<Rate>>();
            let _ = text.parse::<Link>();
        }
    }
}
