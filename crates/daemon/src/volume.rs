//! Volumes of data as people write them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bytes, above 0, written `5 GB`, `500MB` or `1.5 GiB`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Volume(pub u64);

/// A text that is no volume.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\"{0}\" is not a volume: write for example \"5 GB\", or \"500 MB\", or \"1.5 GiB\"")]
pub struct NoVolume(String);

const UNITS: [(&str, u64); 8] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];
/// The largest, bytes.
const MOST: f64 = 1e18;

impl FromStr for Volume {
    type Err = NoVolume;
    fn from_str(text: &str) -> Result<Self, NoVolume> {
        let of = |(unit, bytes): &(&str, u64)| {
            let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
            Some(number * *bytes as f64).filter(|bytes| (1.0..=MOST).contains(bytes))
        };
        let bytes = UNITS.iter().find_map(of).ok_or_else(|| NoVolume(text.to_owned()))?;
        Ok(Self(bytes as u64))
    }
}

impl TryFrom<String> for Volume {
    type Error = NoVolume;
    fn try_from(text: String) -> Result<Self, NoVolume> {
        text.parse()
    }
}

impl fmt::Display for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().filter(|(_, bytes)| self.0.is_multiple_of(*bytes));
        match whole.max_by_key(|(_, bytes)| *bytes) {
            Some((unit, bytes)) => write!(f, "{} {unit}", self.0 / bytes),
            None => write!(f, "{} kB", self.0 as f64 / 1e3),
        }
    }
}

impl From<Volume> for String {
    fn from(volume: Volume) -> Self {
        volume.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_read_as_people_write_them() {
        for (text, bytes, again) in [
            ("5 GB", 5_000_000_000, "5 GB"),
            ("500MB", 500_000_000, "500 MB"),
            ("1.5 GiB", 3 << 29, "1536 MiB"),
            ("0.0015 kB", 1, "0.001 kB"),
        ] {
            let volume: Volume = text.parse().unwrap();
            assert_eq!((volume.0, volume.to_string().as_str()), (bytes, again));
        }
        for wrong in ["", "5", "GB", "5 G", "-1 GB", "0 GB", "nan GB", "inf TB", "1e30 TB"] {
            assert!(wrong.parse::<Volume>().is_err(), "{wrong}");
        }
    }
}
