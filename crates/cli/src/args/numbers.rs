//! Numbers on the command line, and what the error for anything else expects.

use std::str::FromStr;

/// What draws the chances of a run.
pub fn seed(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "not a seed: write for example 7")
}

/// A number that is not 0.
pub fn at_least_one<T: FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|_| "write a whole number, at least 1")
}

/// Simulated time.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("write seconds, above 0 and up to 1000000".into()),
    }
}
