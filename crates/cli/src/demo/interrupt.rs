//! Ctrl-C, from the first packet to the report.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Runtime;

use crate::failure::Failure;

/// Ends by itself what has to be taken down or removed. Until there is one, Ctrl-C ends the program at once.
pub struct Interrupt {
    runtime: Runtime,
    came: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens from now on.
    pub fn listen() -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Failure::system("no runtime", e))?;
        let came = Arc::new(AtomicBool::new(false));
        // Listening begins here, not when the task first runs.
        let signals = {
            let _entered = runtime.enter();
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
        };
        let mut signals = signals.map_err(|e| Failure::system("cannot listen for Ctrl-C", e))?;
        let seen = came.clone();
        runtime.spawn(async move {
            signals.recv().await;
            seen.store(true, Ordering::Relaxed);
        });
        Ok(Self { runtime, came })
    }

    /// Runs `work` to its end, or to Ctrl-C.
    pub fn run<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        self.runtime.block_on(async {
            tokio::select! {
                done = work => done,
                _ = tokio::signal::ctrl_c() => Err(Failure::interrupted()),
            }
        })
    }

    /// For work that does not wait: whether to go on.
    pub fn check(&self) -> Result<(), Failure> {
        if self.came.load(Ordering::Relaxed) { Err(Failure::interrupted()) } else { Ok(()) }
    }
}
