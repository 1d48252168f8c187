//! Transfers over emulated links.

mod marks;
mod transfer;
