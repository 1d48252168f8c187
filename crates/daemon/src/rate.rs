//! Rates as people write them.

use std::fmt;
use std::str::FromStr;

use polypath_lab::units::short_rate;
use polypath_wire::Rate;
use serde::{Deserialize, Serialize};

/// The most that is sent over an interface: above 0, written `10M`, `500k` or `1.5G`, bit/s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Limit(pub Rate);

/// A text that is no rate.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\"{0}\" is not a rate: write for example \"10M\" for 10 Mbit/s, or \"500k\", or \"1.5G\"")]
pub struct NoRate(String);

/// The highest, bit/s.
const MOST: u64 = 1_000_000_000_000;

impl FromStr for Limit {
    type Err = NoRate;
    fn from_str(text: &str) -> Result<Self, NoRate> {
        let rate = short_rate(text).ok().filter(|rate| (1..=MOST).contains(&rate.0));
        rate.map(Self).ok_or_else(|| NoRate(text.to_owned()))
    }
}

impl TryFrom<String> for Limit {
    type Error = NoRate;
    fn try_from(text: String) -> Result<Self, NoRate> {
        text.parse()
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.0.0;
        match rate {
            _ if rate.is_multiple_of(1_000_000_000) => write!(f, "{}G", rate / 1_000_000_000),
            _ if rate.is_multiple_of(1_000_000) => write!(f, "{}M", rate / 1_000_000),
            _ => write!(f, "{}k", rate as f64 / 1e3),
        }
    }
}

impl From<Limit> for String {
    fn from(limit: Limit) -> Self {
        limit.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (text, rate, again) in [
            ("10M", 10_000_000, "10M"),
            ("500k", 500_000, "500k"),
            ("1.5G", 1_500_000_000, "1500M"),
            ("8 Mbit/s", 8_000_000, "8M"),
            ("2Gbit", 2_000_000_000, "2G"),
        ] {
            let limit: Limit = text.parse().unwrap();
            assert_eq!((limit.0.0, limit.to_string().as_str()), (rate, again));
        }
        for wrong in ["", "10", "fast", "-1M", "0M", "M", "nanM", "infG"] {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
    }
}
