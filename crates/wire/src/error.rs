//! Why bytes are not a message, or a value has no bytes.

/// What was wrong where: `need` is the limit that `got` broke, both in the unit of the field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}: {field}: need {need}, got {got}")]
pub struct WireError {
    /// The format, e.g. `"TCP"`.
    pub what: &'static str,
    /// The field, e.g. `"data offset"`.
    pub field: &'static str,
    /// The value or the bound that the format asks for.
    pub need: u64,
    /// What was there.
    pub got: u64,
}

impl WireError {
    pub(crate) fn new(what: &'static str, field: &'static str, need: usize, got: usize) -> Self {
        Self { what, field, need: need as u64, got: got as u64 }
    }

    pub(crate) fn checksum(what: &'static str, need: u16, got: u16) -> Self {
        Self::new(what, CHECKSUM, need.into(), got.into())
    }

    /// Whether the bytes are a message that was damaged on its way, rather than none.
    pub fn is_checksum(&self) -> bool {
        self.field == CHECKSUM
    }
}

const CHECKSUM: &str = "checksum";

/// The first `N` bytes of `bytes` and the rest, or the error that `bytes` is shorter.
pub(crate) fn split<'a, const N: usize>(
    what: &'static str,
    bytes: &'a [u8],
) -> Result<(&'a [u8; N], &'a [u8]), WireError> {
    bytes.split_first_chunk().ok_or_else(|| WireError::new(what, "length", N, bytes.len()))
}

/// The first `len` bytes of `buf`, to be written, or the error that `buf` is shorter.
pub(crate) fn room<'a>(what: &'static str, buf: &'a mut [u8], len: usize) -> Result<&'a mut [u8], WireError> {
    let got = buf.len();
    buf.get_mut(..len).ok_or_else(|| WireError::new(what, "buffer", len, got))
}

/// The big-endian 16-bit number at `at`; the caller has checked the length.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The big-endian 32-bit number at `at`; the caller has checked the length.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
