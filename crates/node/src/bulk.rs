//! Files beside a connection: one thread reads ahead and hashes, another writes behind and hashes, so that
//! neither the file nor the hash delays the task that drives the connection. Pieces are written from the memory
//! that holds them.

use std::io::{self, IoSlice, Read, Write};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::buffers::Buffers;
use crate::sha256::Sha256;

/// What is read from a file or a stream at a time, bytes.
pub const CHUNK: usize = 256 << 10;
/// Chunks that wait between a file and a stream.
const AHEAD: usize = 4;
/// Chunks whose memory is used again.
const KEPT: usize = 64;

/// A file that is read ahead and hashed.
pub struct Source<R> {
    chunks: mpsc::Receiver<Bytes>,
    thread: Thread<R>,
}

impl<R: Read + Send + 'static> Source<R> {
    /// Reads `len` bytes from the position of `file`, or up to its end. `hash` already contains the bytes before.
    pub fn start(file: R, len: u64, hash: Sha256) -> Self {
        let (full, chunks) = mpsc::channel(AHEAD);
        Self { chunks, thread: Thread::start(move || read(file, len, hash, &full)) }
    }

    /// The next chunk; none at the end. Cancelled, it has taken nothing.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        match self.chunks.recv().await {
            Some(chunk) => Ok(Some(chunk)),
            None => self.thread.check().await.map(|()| None),
        }
    }

    /// Stops reading: the file, and the hash with all that was read. After the last chunk that is all.
    pub async fn finish(mut self) -> io::Result<(R, Sha256)> {
        self.chunks.close();
        while self.chunks.recv().await.is_some() {}
        self.thread.end().await
    }
}

fn read<R: Read>(
    mut file: R,
    len: u64,
    mut hash: Sha256,
    full: &mpsc::Sender<Bytes>,
) -> io::Result<(R, Sha256)> {
    let mut buffers = Buffers::new(CHUNK, KEPT);
    let mut left = len;
    while left > 0 {
        let mut buffer = buffers.take();
        let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let read = match file.read(&mut buffer[..most]) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let chunk = buffer.split_to(read).freeze();
        buffers.give_back(buffer);
        hash.update(&chunk);
        if read == 0 || full.blocking_send(chunk).is_err() {
            break;
        }
        left -= read as u64;
    }
    Ok((file, hash))
}

/// A file that is written behind and hashed.
pub struct Sink<W> {
    chunks: mpsc::Sender<Vec<Bytes>>,
    thread: Thread<W>,
}

impl<W: Write + Send + 'static> Sink<W> {
    /// Writes from the position of `file`. `hash` already contains the bytes before.
    pub fn start(file: W, hash: Sha256) -> Self {
        let (chunks, full) = mpsc::channel(AHEAD);
        Self { chunks, thread: Thread::start(move || write(file, hash, full)) }
    }

    /// Queues `chunks` to be written, once the queue has room. The error of an earlier write.
    pub async fn write(&mut self, chunks: Vec<Bytes>) -> io::Result<()> {
        match self.chunks.send(chunks).await {
            Ok(()) => Ok(()),
            Err(_) => self.thread.check().await,
        }
    }

    /// Waits until everything is written: the file, and the hash with all of it.
    pub async fn finish(self) -> io::Result<(W, Sha256)> {
        let Self { chunks, thread } = self;
        drop(chunks);
        thread.end().await
    }
}

fn write<W: Write>(
    mut file: W,
    mut hash: Sha256,
    mut full: mpsc::Receiver<Vec<Bytes>>,
) -> io::Result<(W, Sha256)> {
    while let Some(chunks) = full.blocking_recv() {
        chunks.iter().for_each(|chunk| hash.update(chunk));
        write_all(&mut file, &chunks)?;
    }
    file.flush()?;
    Ok((file, hash))
}

/// Writes all of `chunks`, in as few calls as possible.
fn write_all(file: &mut impl Write, chunks: &[Bytes]) -> io::Result<()> {
    let mut slices: Vec<_> = chunks.iter().map(|chunk| IoSlice::new(chunk)).collect();
    let mut left = &mut slices[..];
    while !left.is_empty() {
        match file.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Work on a file on a thread of its own: under way, done, or failed and reported.
struct Thread<F> {
    work: Option<JoinHandle<io::Result<(F, Sha256)>>>,
    done: Option<(F, Sha256)>,
}

impl<F: Send + 'static> Thread<F> {
    fn start(work: impl FnOnce() -> io::Result<(F, Sha256)> + Send + 'static) -> Self {
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

    async fn end(mut self) -> io::Result<(F, Sha256)> {
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

    fn some_bytes(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
    }

    #[tokio::test]
    async fn a_source_gives_a_file_in_order_with_its_digest() {
        let all = some_bytes(3 * CHUNK + 1000);
        let mut source = Source::start(io::Cursor::new(all.clone()), u64::MAX, Sha256::new());
        let mut got = Vec::new();
        while let Some(chunk) = source.next().await.unwrap() {
            got.extend_from_slice(&chunk);
        }
        let (_, hash) = source.finish().await.unwrap();
        assert!(got == all);
        assert_eq!(hash.finalize(), Sha256::digest(&all));
    }

    #[tokio::test]
    async fn a_source_stops_where_it_is_told() {
        let mut source = Source::start(io::Cursor::new(some_bytes(1000)), 300, Sha256::new());
        assert_eq!(source.next().await.unwrap().unwrap(), some_bytes(300));
        assert_eq!(source.next().await.unwrap(), None);
        assert_eq!(source.finish().await.unwrap().1.finalize(), Sha256::digest(some_bytes(300)));
    }

    #[tokio::test]
    async fn a_source_that_is_left_early_gives_its_file_back() {
        let mut source = Source::start(io::repeat(1), u64::MAX, Sha256::new());
        assert!(source.next().await.unwrap().is_some());
        assert!(source.finish().await.is_ok());
    }

    #[tokio::test]
    async fn a_sink_writes_pieces_of_any_size_in_order() {
        let all = some_bytes(2 * CHUNK);
        let mut sink = Sink::start(Vec::new(), Sha256::new());
        let pieces: Vec<Bytes> = all.chunks(1406).map(Bytes::copy_from_slice).collect();
        for some in pieces.chunks(100) {
            sink.write(some.to_vec()).await.unwrap();
        }
        let (file, hash) = sink.finish().await.unwrap();
        assert!(file == all);
        assert_eq!(hash.finalize(), Sha256::digest(&all));
    }

    #[tokio::test]
    async fn a_sink_that_is_full_says_so_and_ends() {
        let room: Box<[u8]> = vec![0; 10].into();
        let mut sink = Sink::start(io::Cursor::new(room), Sha256::new());
        let mut result = Ok(());
        for _ in 0..AHEAD + 3 {
            result = result.and(sink.write(vec![Bytes::from_static(b"12345678")]).await);
        }
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::WriteZero);
        assert!(sink.finish().await.is_err());
    }
}
