//! Help for tests.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A writer, and what was written to it.
pub(crate) fn shared_buffer() -> (SharedBuffer, Arc<Mutex<Vec<u8>>>) {
    let written = Arc::new(Mutex::new(Vec::new()));
    (SharedBuffer(written.clone()), written)
}

pub(crate) struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics while it writes").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
