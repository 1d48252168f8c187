//! Transfers over emulated links.

mod cancel;
mod transfer;
