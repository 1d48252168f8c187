//! Transfers over emulated links.

mod transfer;
