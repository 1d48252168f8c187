//! A datagram to an address and what comes back, to find out why a peer does not answer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// Sends `payload` from a new socket and waits `patience` for an answer; then once more. Errors are those that a host or
/// a router reports or this host finds itself (no route), and `TimedOut` without any answer.
pub async fn inquire(to: SocketAddr, payload: &[u8], patience: Duration) -> io::Result<Vec<u8>> {
    let any = match to {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    // Without it a closed port would be reported, but not an unreachable host (ip(7)).
    match to {
        SocketAddr::V4(_) => setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?,
        SocketAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?,
    }
    socket.connect(to).await?;
    let mut answer = vec![0; 4096];
    for _ in 0..2 {
        socket.send(payload).await?;
        if let Ok(len) = timeout(patience, socket.recv(&mut answer)).await {
            answer.truncate(len?);
            return Ok(answer);
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_closed_port_an_answer_and_silence_are_told_apart() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let at = socket.local_addr().unwrap();
        let silent = inquire(at, b"?", Duration::from_millis(10)).await.unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
        let echo = async {
            let mut buffer = [0; 10];
            loop {
                let (len, from) = socket.recv_from(&mut buffer).await.unwrap();
                socket.send_to(&buffer[..len], from).await.unwrap();
            }
        };
        let answer = tokio::select! {
            answer = inquire(at, b"hello", Duration::from_secs(10)) => answer,
            () = echo => unreachable!(),
        };
        assert_eq!(answer.unwrap(), b"hello");
        drop(socket);
        let closed = inquire(at, b"?", Duration::from_secs(10)).await.unwrap_err();
        assert_eq!(closed.kind(), io::ErrorKind::ConnectionRefused);
    }
}
