//! Two kernels, two daemons and emulated links between them, in namespaces.
#![allow(clippy::unwrap_used)]

mod address;
mod common;
mod firewall;
mod fragments;
mod hostile;
mod keep_alive;
mod marks;
mod metrics;
mod moved;
mod nat;
mod packets;
mod page;
mod queues;
mod quic;
mod reload;
mod rm_tcp;
mod routes;
mod silent;
mod tcp;
mod underneath;
mod uplinks;
