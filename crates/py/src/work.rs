//! Work that Python waits for: other threads of Python run meanwhile, and Ctrl-C stops it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polypath_lab::stop::Stop;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::own::Failure;

/// Time between two checks for signals of Python, each with a report of progress.
const LOOK: Duration = Duration::from_millis(50);

/// Asks work to stop, and counts what has ended.
#[derive(Default)]
pub struct Control {
    pub stop: Stop,
    ended: AtomicU64,
}

impl Control {
    /// One more run has ended.
    pub fn count(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Does `work` on a thread of its own. `told`, if there is one, hears how much has ended; what it raises stops the work, as a signal
/// does, and a `failure` of what the work calls.
pub fn wait<T: Send + 'static>(
    py: Python<'_>,
    told: Option<&Bound<'_, PyAny>>,
    failure: &Failure,
    work: impl FnOnce(&Control) -> T + Send + 'static,
) -> PyResult<T> {
    let control = Arc::new(Control::default());
    let (send, receive) = channel();
    let receive = Mutex::new(receive);
    let shared = Arc::clone(&control);
    let thread = std::thread::spawn(move || {
        let _ = send.send(work(&shared)); // who does not wait any more asked it to stop
    });
    let mut last = 0;
    let result = loop {
        match py.detach(|| receive.lock().expect("nobody else has it").recv_timeout(LOOK)) {
            Ok(result) => break Ok(result),
            Err(RecvTimeoutError::Disconnected) => break Err(PyRuntimeError::new_err("the work panicked")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let ended = control.ended.load(Ordering::Relaxed);
        let news = told.filter(|_| ended > last);
        last = ended;
        let heard = news.map_or(Ok(()), |told| told.call1((ended,)).map(drop));
        if let Err(error) = py.check_signals().and(heard) {
            control.stop.ask();
            break Err(error);
        }
        if failure.is_there() {
            control.stop.ask();
        }
    };
    py.detach(|| thread.join()).map_err(|_| PyRuntimeError::new_err("the work panicked"))?;
    failure.raise()?;
    result
}
