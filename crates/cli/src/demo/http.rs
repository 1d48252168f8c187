//! A server of one file over HTTP/1.1 (RFC 9112): whatever is asked for, that is the answer.

use std::io;
use std::net::{Ipv4Addr, TcpListener as Bound};
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Longest request, bytes.
const REQUEST: u64 = 1 << 14;

/// The port of HTTP, in the namespace of the calling thread.
pub fn listen() -> io::Result<Bound> {
    let listener = Bound::bind((Ipv4Addr::UNSPECIFIED, 80))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves the `len` bytes of `file` until the system fails.
pub async fn serve(listener: Bound, file: PathBuf, len: u64) -> io::Error {
    let accept = async {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            let file = file.clone();
            // Who asks may leave before the end.
            tokio::spawn(async move { answer(stream, &file, len).await });
        }
    };
    let ended: io::Result<std::convert::Infallible> = accept.await;
    match ended {
        Err(error) => error,
        Ok(never) => match never {},
    }
}

async fn answer(stream: TcpStream, file: &Path, len: u64) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut line, mut request) = (String::new(), (&mut stream).take(REQUEST));
    while request.read_line(&mut line).await? > 2 {
        line.clear(); // an empty line ends the request
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    tokio::io::copy(&mut File::open(file).await?.take(len), &mut stream).await?;
    stream.shutdown().await
}
