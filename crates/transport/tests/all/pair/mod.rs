//! Two connections in virtual time with an editable wire between them: what RFC 9293 and its
//! companions ask for, one behaviour a test.

mod blocked;
mod closing;
mod data;
mod early;
mod ecn;
mod handshake;
mod hostile;
mod keep_alive;
mod mhip;
mod offload;
mod pacing;
mod paths;
mod places;
mod recovery;
mod routes;
mod silence;
mod thinned;
mod unread;
