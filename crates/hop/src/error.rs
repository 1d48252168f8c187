//! Parameters that are no good.

/// A hop that cannot be.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("hop: {field} = {got}: {need}")]
pub struct HopError {
    /// The field.
    pub field: &'static str,
    /// What is allowed.
    pub need: &'static str,
    /// What was given.
    pub got: String,
}

/// An error about `field` unless it is `ok`.
pub(crate) fn check(
    ok: bool,
    field: &'static str,
    need: &'static str,
    got: impl ToString,
) -> Result<(), HopError> {
    if ok { Ok(()) } else { Err(HopError { field, need, got: got.to_string() }) }
}
