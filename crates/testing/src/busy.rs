//! Whether the machine has time for a test that measures time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A machine that wakes a sleeper later than this cannot be measured on.
const BUSY: Duration = Duration::from_micros(700);

/// Measures how late this machine wakes a thread that asked to sleep a millisecond.
pub struct LatencyProbe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl LatencyProbe {
    /// Starts to measure.
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut overshoots = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let before = Instant::now();
                thread::sleep(Duration::from_millis(1));
                overshoots.push(before.elapsed().saturating_sub(Duration::from_millis(1)));
            }
            overshoots
        });
        Self { stop, thread }
    }

    /// The lateness that one wake-up in twenty exceeds, and whether that is too much to measure anything.
    pub fn finish(self) -> (Duration, bool) {
        self.stop.store(true, Ordering::Relaxed);
        let mut overshoots = self.thread.join().expect("it does not panic");
        overshoots.sort_unstable();
        let lateness = overshoots.get(overshoots.len() * 19 / 20).copied().unwrap_or_default();
        (lateness, lateness >= BUSY)
    }
}
