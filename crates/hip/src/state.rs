//! The states of an association.

/// The states of RFC 7401 §4.4.2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// The beginning, and the end.
    Unassociated,
    /// We asked.
    I1Sent,
    /// We solved the puzzle and chose.
    I2Sent,
    /// We concluded, and the peer may not know yet.
    R2Sent,
    /// User data flows.
    Established,
    /// We want to end it.
    Closing,
    /// The peer wanted to end it.
    Closed,
    /// It came to nothing.
    EFailed,
}
