//! Messages, and files that two hosts send each other.

mod messages;
mod transfer;
