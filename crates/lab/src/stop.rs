//! Asking runs to stop.

use std::sync::atomic::{AtomicBool, Ordering};

/// Asks runs to stop, from any thread. Runs that have not ended by then have no results.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Nothing that has been given this goes on for long.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
