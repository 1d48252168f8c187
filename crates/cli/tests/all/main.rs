//! The program as its users run it.

mod demo;
mod files;
mod lab;
mod namespaces;
mod tunnel;
