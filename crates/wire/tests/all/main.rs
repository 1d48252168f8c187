//! Packets as bytes, and back: what the RFCs and the kernel have them be.

mod hip;
mod ip;
mod linux;
mod tcp;
