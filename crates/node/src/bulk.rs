//! Files beside a connection: one thread reads ahead, another writes behind, so that neither the file nor a digest of it
//! ([`Hashed`](crate::Hashed)) delays the task that drives the connection.

use std::io::{self, Read, Write};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::pool::Pool;

/// What is read from a file or a stream at a time, bytes.
pub const CHUNK: usize = 256 << 10;
/// What is written to a file at a time, bytes: it stays in the cache of the processor that gathers it.
const BLOCK: usize = 64 << 10;
/// Chunks that wait between a file and a stream.
const AHEAD: usize = 4;
/// Chunks whose memory is used again.
const KEPT: usize = 64;

/// A file that is read ahead.
pub struct Source<R> {
    chunks: mpsc::Receiver<Bytes>,
    thread: Thread<R>,
}

impl<R: Read + Send + 'static> Source<R> {
    /// Reads `len` bytes from the position of `file`, or up to its end.
    pub fn start(file: R, len: u64) -> Self {
        let (full, chunks) = mpsc::channel(AHEAD);
        Self { chunks, thread: Thread::start(move || read(file, len, &full)) }
    }

    /// The next chunk; none at the end. Cancelled, it has taken nothing.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        match self.chunks.recv().await {
            Some(chunk) => Ok(Some(chunk)),
            None => self.thread.check().await.map(|()| None),
        }
    }

    /// Stops reading: the file.
    pub async fn finish(mut self) -> io::Result<R> {
        self.chunks.close();
        while self.chunks.recv().await.is_some() {}
        self.thread.end().await
    }
}

fn read<R: Read>(mut file: R, len: u64, full: &mpsc::Sender<Bytes>) -> io::Result<R> {
    let pool = Pool::new(CHUNK, KEPT);
    let mut left = len;
    while left > 0 {
        let mut buffer = pool.take();
        let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let read = match file.read(&mut buffer[..most]) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 || full.blocking_send(pool.share(buffer, read)).is_err() {
            break;
        }
        left -= read as u64;
    }
    Ok(file)
}

/// A file that is written behind.
pub struct Sink<W> {
    chunks: mpsc::Sender<Vec<Bytes>>,
    thread: Thread<W>,
}

impl<W: Write + Send + 'static> Sink<W> {
    /// Writes from the position of `file`.
    pub fn start(file: W) -> Self {
        let (chunks, full) = mpsc::channel(AHEAD);
        Self { chunks, thread: Thread::start(move || write(file, full)) }
    }

    /// Queues `chunks` to be written, once the queue has room. The error of an earlier write.
    pub async fn write(&mut self, chunks: Vec<Bytes>) -> io::Result<()> {
        match self.chunks.send(chunks).await {
            Ok(()) => Ok(()),
            Err(_) => self.thread.check().await,
        }
    }

    /// Waits until everything is written: the file.
    pub async fn finish(self) -> io::Result<W> {
        let Self { chunks, thread } = self;
        drop(chunks);
        thread.end().await
    }
}

fn write<W: Write>(mut file: W, mut full: mpsc::Receiver<Vec<Bytes>>) -> io::Result<W> {
    let mut block = Vec::with_capacity(BLOCK);
    while let Some(chunks) = full.blocking_recv() {
        for chunk in chunks {
            gather(&mut file, &mut block, &chunk)?;
        }
        if full.is_empty() {
            file.write_all(&block)?;
            block.clear();
        }
    }
    file.write_all(&block)?;
    file.flush()?;
    Ok(file)
}

/// Adds `bytes` to `block`, which is written when it is full: few large writes cost less than a write of many small pieces,
/// and a digest of them as well.
fn gather(file: &mut impl Write, block: &mut Vec<u8>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let (now, rest) = bytes.split_at(bytes.len().min(BLOCK - block.len()));
        block.extend_from_slice(now);
        if block.len() == BLOCK {
            file.write_all(block)?;
            block.clear();
        }
        bytes = rest;
    }
    Ok(())
}

/// Work on a file on a thread of its own: under way, done, or failed and reported.
struct Thread<F> {
    work: Option<JoinHandle<io::Result<F>>>,
    done: Option<F>,
}

impl<F: Send + 'static> Thread<F> {
    fn start(work: impl FnOnce() -> io::Result<F> + Send + 'static) -> Self {
        Self { work: Some(spawn_blocking(work)), done: None }
    }

    /// Waits for its end; its error if it failed.
    async fn check(&mut self) -> io::Result<()> {
        if let Some(work) = &mut self.work {
            let result = work.await;
            self.work = None;
            self.done = Some(result.map_err(io::Error::other)??);
        }
        self.done.as_ref().map(drop).ok_or_else(failed_before)
    }

    async fn end(mut self) -> io::Result<F> {
        self.check().await?;
        self.done.ok_or_else(failed_before)
    }
}

fn failed_before() -> io::Error {
    io::Error::other("the file failed before")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hashed, Sha256};

    fn some_bytes(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
    }

    #[tokio::test]
    async fn a_source_gives_a_file_in_order_with_its_digest() {
        let all = some_bytes(3 * CHUNK + 1000);
        let file = Hashed { file: io::Cursor::new(all.clone()), hash: Sha256::new() };
        let (mut source, mut got) = (Source::start(file, u64::MAX), Vec::new());
        while let Some(chunk) = source.next().await.unwrap() {
            got.extend_from_slice(&chunk);
        }
        assert!(got == all);
        assert_eq!(source.finish().await.unwrap().hash.finalize(), Sha256::digest(&all));
    }

    #[tokio::test]
    async fn a_source_stops_where_it_is_told() {
        let file = Hashed { file: io::Cursor::new(some_bytes(1000)), hash: Sha256::new() };
        let mut source = Source::start(file, 300);
        assert_eq!(source.next().await.unwrap().unwrap(), some_bytes(300));
        assert_eq!(source.next().await.unwrap(), None);
        assert_eq!(source.finish().await.unwrap().hash.finalize(), Sha256::digest(some_bytes(300)));
    }

    #[tokio::test]
    async fn a_source_that_is_left_early_gives_its_file_back() {
        let mut source = Source::start(io::repeat(1), u64::MAX);
        assert!(source.next().await.unwrap().is_some());
        assert!(source.finish().await.is_ok());
    }

    #[tokio::test]
    async fn chunks_keep_their_bytes_while_later_ones_are_read() {
        let all = some_bytes(20 * CHUNK);
        let mut source = Source::start(io::Cursor::new(all.clone()), u64::MAX);
        let mut held = Vec::new();
        while let Some(chunk) = source.next().await.unwrap() {
            held.push(chunk);
            if held.len() % 3 == 0 {
                held[0] = Bytes::new(); // its memory is used again
            }
        }
        assert!(held.iter().zip(all.chunks(CHUNK)).skip(1).all(|(chunk, bytes)| chunk == bytes));
    }

    #[tokio::test]
    async fn a_sink_writes_pieces_of_any_size_in_order() {
        let all = some_bytes(2 * CHUNK + 77);
        let mut sink = Sink::start(Hashed { file: Vec::new(), hash: Sha256::new() });
        let pieces: Vec<Bytes> = all.chunks(1406).map(Bytes::copy_from_slice).collect();
        for some in pieces.chunks(100) {
            sink.write(some.to_vec()).await.unwrap();
        }
        let Hashed { file, hash } = sink.finish().await.unwrap();
        assert!(file == all);
        assert_eq!(hash.finalize(), Sha256::digest(&all));
    }

    /// A file that tells what is written to it.
    struct Told(std::sync::mpsc::Sender<Vec<u8>>);

    impl Write for Told {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn little_is_written_at_once_when_nothing_follows() {
        let (tell, told) = std::sync::mpsc::channel();
        let mut sink = Sink::start(Told(tell));
        sink.write(vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")]).await.unwrap();
        assert_eq!(told.recv().unwrap(), b"ab");
    }

    #[tokio::test]
    async fn a_sink_that_is_full_says_so_and_ends() {
        let room: Box<[u8]> = vec![0; 10].into();
        let mut sink = Sink::start(io::Cursor::new(room));
        let mut result = Ok(());
        for _ in 0..AHEAD + 3 {
            result = result.and(sink.write(vec![Bytes::from_static(&[1; BLOCK])]).await);
        }
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::WriteZero);
        assert!(sink.finish().await.is_err());
    }
}
