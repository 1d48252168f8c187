//! Two connections and a network between them; what a peer must not do to one.

#[path = "../common/mod.rs"]
mod common;
mod hostile;
mod pair;
