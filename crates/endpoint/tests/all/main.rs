//! Two endpoints and a network between them.

#[path = "../common/mod.rs"]
mod common;
mod intercept;
mod known;
mod pair;
mod replay;
mod secure;
