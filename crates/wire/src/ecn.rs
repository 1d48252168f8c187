//! The ECN field of an IP header (RFC 3168 §5).

/// The ECN field that a packet leaves or came with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Not-ECT: a queue drops it where it would mark another, or nobody looked.
    #[default]
    None,
    /// ECT(0), or of what came ECT(1): queues may mark it.
    Capable,
    /// CE: a queue marked it.
    Marked,
}
