//! The program as its users run it.

mod demo;
mod files;
mod keys;
mod lab;
mod namespaces;
mod printed;
mod tunnel;
