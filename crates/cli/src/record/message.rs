//! What a caller asks of a listener: 24 bytes at the beginning of a connection.
//!
//! | bytes | |
//! |---|---|
//! | 0–6 | `PPREC1` and a zero |
//! | 7 | `p`: send back what comes; `d`: fill the path to me; `u`: note what I send, and send me the notes |
//! | 8–11 | milliseconds |
//! | 12–15 | zero |
//! | 16–23 | bytes at most |
//!
//! Numbers are big-endian. Notes are pairs of four bytes each: milliseconds from the first, and the bytes that arrived by then since
//! the note before, with their headers.

use std::time::Duration;

use super::LONGEST;

const MAGIC: &[u8; 7] = b"PPREC1\0";
/// Bytes of a request.
pub const LENGTH: usize = 24;

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Every byte is sent back, until the caller has finished.
    Echo,
    /// Data to the caller.
    Down,
    /// Data from the caller.
    Up,
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    pub what: What,
    /// How long data is sent.
    pub time: Duration,
    /// How much of it at most, bytes.
    pub most: u64,
}

impl Request {
    /// As it travels.
    pub fn bytes(&self) -> Vec<u8> {
        let what = match self.what {
            What::Echo => b'p',
            What::Down => b'd',
            What::Up => b'u',
        };
        let time = u32::try_from(self.time.as_millis()).unwrap_or(u32::MAX);
        [&MAGIC[..], &[what], &time.to_be_bytes(), &[0; 4], &self.most.to_be_bytes()].concat()
    }

    /// From what arrived; what is wrong with it otherwise.
    pub fn parse(bytes: &[u8; LENGTH]) -> Result<Self, &'static str> {
        let (head, rest) = bytes.split_at(8);
        let what = match head.strip_prefix(MAGIC) {
            Some(b"p") => What::Echo,
            Some(b"d") => What::Down,
            Some(b"u") => What::Up,
            _ => {
                return Err(
                    "it does not speak the language of recordings; are both programs of one version?",
                );
            }
        };
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |sum, b| sum << 8 | u64::from(*b));
        let time = Duration::from_millis(number(&rest[..4]));
        if time > Duration::from_secs(LONGEST.into()) * 2 {
            return Err("it asks for a longer recording than there may be");
        }
        Ok(Self { what, time, most: number(&rest[8..]) })
    }
}

/// Notes as they travel.
pub fn notes(notes: &[(u32, u32)]) -> Vec<u8> {
    notes.iter().flat_map(|(at, bytes)| [at.to_be_bytes(), bytes.to_be_bytes()].concat()).collect()
}

/// Notes from what arrived; `None` if they make no sense.
pub fn parse_notes(bytes: &[u8]) -> Option<Vec<(u32, u32)>> {
    let (pairs, []) = bytes.as_chunks::<8>() else { return None };
    let number = |b: &[u8]| b.iter().fold(0, |sum, b| sum << 8 | u32::from(*b));
    let notes: Vec<(u32, u32)> = pairs.iter().map(|pair| (number(&pair[..4]), number(&pair[4..]))).collect();
    notes.is_sorted_by_key(|(at, _)| *at).then_some(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_its_way_and_others_are_refused() {
        for what in [What::Echo, What::Down, What::Up] {
            let request = Request { what, time: Duration::from_secs(30), most: 1 << 40 };
            assert_eq!(Request::parse(&request.bytes().try_into().unwrap()), Ok(request));
        }
        assert!(Request::parse(b"GET / HTTP/1.1\r\nHost: x ").is_err());
        let long = Request { what: What::Down, time: Duration::from_secs(1300), most: 1 };
        assert!(Request::parse(&long.bytes().try_into().unwrap()).is_err());
    }

    #[test]
    fn notes_survive_their_way_and_go_forward_in_time() {
        let told = vec![(0, 1500), (3, 3000), (3, 1)];
        assert_eq!(parse_notes(&notes(&told)), Some(told));
        assert_eq!(parse_notes(&notes(&[(3, 1), (2, 1)])), None);
        assert_eq!(parse_notes(&[0; 9]), None);
    }
}
