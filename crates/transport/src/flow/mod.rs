//! What is carried: a stream of bytes that we number, or packets of somebody else's transport.

pub mod packet;
pub mod stream;
