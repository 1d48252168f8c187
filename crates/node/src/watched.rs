//! Descriptors that wake a task only for what it waits for. A UDP socket that is watched for everything wakes its task for
//! each packet that arrives, and for each that has left.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers an owned descriptor. Needs a tokio runtime.
pub(crate) fn watch<T: AsRawFd>(fd: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe, and an owned descriptor has what that asks for"
    )]
    AsyncFd::with_interest(fd, interest)
}

/// A non-blocking descriptor, and what it is watched for.
pub(crate) struct Watched<T: AsRawFd> {
    fd: Arc<T>,
    reads: bool,
    writes: bool,
    watch: Option<AsyncFd<Arc<T>>>,
}

impl<T: AsRawFd> Watched<T> {
    /// Not watched yet.
    pub fn new(fd: T) -> Self {
        Self { fd: Arc::new(fd), reads: false, writes: false, watch: None }
    }

    pub fn get(&self) -> &T {
        &self.fd
    }

    /// Whether tasks are woken when there is something to read. `true` if that is a change: who waits has to ask again.
    pub fn watch_reads(&mut self, reads: bool) -> io::Result<bool> {
        self.set(reads, self.writes)
    }

    /// The same when more can be written.
    pub fn watch_writes(&mut self, writes: bool) -> io::Result<bool> {
        self.set(self.reads, writes)
    }

    pub fn watches_reads(&self) -> bool {
        self.reads
    }

    fn set(&mut self, reads: bool, writes: bool) -> io::Result<bool> {
        if (reads, writes) == (self.reads, self.writes) {
            return Ok(false);
        }
        let interest = match (reads, writes) {
            (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
            (true, false) => Some(Interest::READABLE),
            (false, true) => Some(Interest::WRITABLE),
            (false, false) => None,
        };
        (self.reads, self.writes) = (reads, writes);
        self.watch = None; // a descriptor is registered once
        self.watch = interest.map(|interest| watch(self.fd.clone(), interest)).transpose()?;
        Ok(true)
    }

    /// Reads if there is something. Otherwise the task of `cx` is woken when there is, if reads are watched.
    pub fn poll_read<R>(
        &self,
        cx: &mut Context<'_>,
        mut read: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let Some(watch) = self.watch.as_ref().filter(|_| self.reads) else {
            return match read(&self.fd) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                done => Poll::Ready(done),
            };
        };
        loop {
            if let Ok(done) = ready!(watch.poll_read_ready(cx))?.try_io(|watch| read(watch.get_ref())) {
                return Poll::Ready(done);
            }
        }
    }

    /// Whether more can be written than when this was ready last. Otherwise the task of `cx` is woken when it is so, if writes
    /// are watched.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.watch.as_ref().filter(|_| self.writes) {
            Some(watch) => watch.poll_write_ready(cx).map_ok(|mut ready| ready.clear_ready()),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::*;

    /// Counts how often it was woken.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn pair() -> (Watched<UnixStream>, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_nonblocking(true).unwrap();
        (Watched::new(near), far)
    }

    fn read(io: &Watched<UnixStream>, cx: &mut Context<'_>) -> Poll<usize> {
        io.poll_read(cx, |mut io| io.read(&mut [0; 16])).map(Result::unwrap)
    }

    /// Lets the runtime see what happened to descriptors.
    async fn events() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }

    #[tokio::test]
    async fn what_is_not_watched_is_read_but_wakes_nobody() {
        let (mut near, mut far) = pair();
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let cx = &mut Context::from_waker(&waker);
        assert_eq!(read(&near, cx), Poll::Pending);
        far.write_all(b"one").unwrap();
        events().await;
        assert_eq!((count.0.load(Ordering::Relaxed), read(&near, cx)), (0, Poll::Ready(3)));
        assert!(near.watch_reads(true).unwrap(), "a change");
        assert!(!near.watch_reads(true).unwrap(), "none");
        events().await;
        assert_eq!(read(&near, cx), Poll::Pending);
        far.write_all(b"more").unwrap();
        events().await;
        assert_eq!((count.0.load(Ordering::Relaxed), read(&near, cx)), (1, Poll::Ready(4)));
        assert!(near.watch_reads(false).unwrap());
        assert_eq!(read(&near, cx), Poll::Pending);
        far.write_all(b"the rest").unwrap();
        events().await;
        assert_eq!((count.0.load(Ordering::Relaxed), read(&near, cx)), (1, Poll::Ready(8)));
    }

    #[tokio::test]
    async fn a_task_that_waits_for_space_is_woken_by_space_only() {
        let (mut near, mut far) = pair();
        while near.get().write(&[0; 4096]).is_ok() {}
        near.watch_writes(true).unwrap();
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let cx = &mut Context::from_waker(&waker);
        events().await;
        assert!(near.poll_writable(cx).is_pending());
        far.write_all(b"what arrives").unwrap();
        events().await;
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        while far.read(&mut [0; 4096]).is_ok() {}
        poll_fn(|cx| near.poll_writable(cx)).await.unwrap();
        near.get().write_all(&[0; 16]).unwrap();
    }
}
