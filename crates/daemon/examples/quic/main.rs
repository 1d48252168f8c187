//! A QUIC server and client, for benches. The client prints, as JSON, times (s) and the bytes that it had received by then.
//!
//! ```text
//! quic serve 10.99.0.2:443 --certificate server.der
//! quic get 10.99.0.2:443 --certificate server.der --seconds 20
//! ```
#![allow(clippy::disallowed_methods)]

mod transfer;

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;

/// Of the client's socket, bytes, as browsers have it: the kernel's default, 208 KiB, holds 90 packets, which is less than comes while
/// the client waits for a core.
const RECEIVE_BUFFER: usize = 1 << 20;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    role: Role,
    /// The server's address.
    #[arg(global = true, default_value = "127.0.0.1:443")]
    server: SocketAddr,
    /// Where the server leaves its certificate and the client finds it.
    #[arg(long, global = true, default_value = "server.der")]
    certificate: PathBuf,
}

#[derive(Subcommand)]
enum Role {
    /// Send without end to each client
    Serve,
    /// Receive
    Get {
        /// For how long, s
        #[arg(long, default_value_t = 10)]
        seconds: u64,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> transfer::Result<()> {
    let args = Args::parse();
    match args.role {
        Role::Serve => {
            let (certificate, key) = transfer::certificate()?;
            std::fs::write(&args.certificate, &certificate)?;
            transfer::serve(UdpSocket::bind(args.server)?, (certificate, key), u64::MAX).await
        }
        Role::Get { seconds } => {
            let certificate = std::fs::read(&args.certificate)?.into();
            let (began, mut samples, mut got) = (Instant::now(), vec![], 0);
            let take = |bytes: &[u8]| {
                got += bytes.len();
                samples.push((began.elapsed().as_secs_f64(), got));
                began.elapsed() < Duration::from_secs(seconds)
            };
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER)?;
            transfer::receive(socket, args.server, certificate, take).await?;
            println!("{}", serde_json::to_string(&samples)?);
            Ok(())
        }
    }
}
