//! What is carried: a stream of bytes that we number, or packets of somebody else's transport.

pub(crate) mod packet;
pub(crate) mod stream;

pub use packet::{
    Leaving, Packet, PacketConfig, PacketFlow, PacketQueue, PacketStats, QueueStats, Refused, Tolerable,
};
