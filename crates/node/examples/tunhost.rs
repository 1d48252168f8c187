//! A host on a TUN device that opens or accepts one TCP connection, sends a pattern, receives to
//! the end and prints one JSON object. The kernel tests talk to it; so may you, as root:
//!
//! ```text
//! tunhost --name pp0 --kernel 10.9.0.1/24 --host 10.9.0.2 listen 5001 --send 100000000
//! ```

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use polypath_endpoint::{EndpointConfig, ListenConfig, Locators};
use polypath_node::{Node, Sha256, Stream, StreamError, Tun, TunConfig, hex};
use polypath_transport::{ConnectionConfig, PathConfig, Pattern, Payload};
use serde_json::{Value, json};

#[derive(Parser)]
struct Args {
    /// Name of the TUN device to create.
    #[arg(long, default_value = "pp0")]
    name: String,
    /// The kernel's address on the device, with the length of the prefix.
    #[arg(long, value_parser = network)]
    kernel: (IpAddr, u8),
    /// The address of the host behind the device.
    #[arg(long)]
    host: IpAddr,
    /// Largest packet, bytes.
    #[arg(long, default_value_t = 1500)]
    mtu: u16,
    /// A JSON file with the connection's parameters.
    #[arg(long)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Accept a connection. Prints `{"listening":PORT}` first.
    Listen {
        port: u16,
        #[command(flatten)]
        work: Work,
    },
    /// Open a connection.
    Connect {
        peer: SocketAddr,
        #[command(flatten)]
        work: Work,
    },
}

#[derive(clap::Args)]
struct Work {
    /// Bytes of the pattern to send.
    #[arg(long, default_value_t = 0)]
    send: u64,
    /// Which pattern: the key of `Pattern`.
    #[arg(long, default_value_t = 1)]
    key: u32,
    /// What ends our direction.
    #[arg(long, value_enum, default_value_t = End::Close)]
    end: End,
    /// Pause before each read, ms: a slow reader.
    #[arg(long, default_value_t = 0)]
    read_pause: u64,
    /// Most seconds until everything is over.
    #[arg(long, default_value_t = 60)]
    timeout: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum End {
    /// FIN after the last byte, while still receiving: a half-close until the peer finishes.
    Close,
    /// FIN only after the peer's FIN.
    CloseLast,
    /// RST after the last byte was written.
    Abort,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let connection: ConnectionConfig = match &args.config {
        Some(path) => serde_json::from_slice(&std::fs::read(path)?)?,
        None => ConnectionConfig::default(),
    };
    let tun = TunConfig { name: args.name, kernel: args.kernel, host: args.host, mtu: args.mtu };
    let node = Node::start(EndpointConfig::default(), Tun::open(&[tun])?)?;
    let headers = if args.host.is_ipv4() { 40 } else { 60 };
    let path = PathConfig { mss: u32::from(args.mtu) - headers, ..PathConfig::default() };

    let (work, stream) = match args.role {
        Role::Listen { port, work } => {
            let listener = node.listen(port, ListenConfig { connection, path, accept_paths: false })?;
            println!("{}", json!({ "listening": port }));
            let accepted = tokio::time::timeout(Duration::from_secs(work.timeout), listener.accept()).await?;
            (work, accepted?)
        }
        Role::Connect { peer, work } => {
            let local = SocketAddr::new(args.host, 0);
            let locators = Locators { local, remote: SocketAddr::new(peer.ip(), 0) };
            let opened = node.connect(connection, peer.port(), &[(locators, path)]).await;
            (work, opened?)
        }
    };
    let limit = Duration::from_secs(work.timeout);
    let outcome = tokio::time::timeout(limit, exchange(&stream, &work)).await;
    let mut report = match outcome {
        Ok(Ok(report)) => report,
        Ok(Err(error)) => json!({ "error": error.to_string() }),
        Err(_) => json!({ "error": "timed out" }),
    };
    report["state"] = format!("{:?}", stream.state()).into();
    report["stats"] = stats(&stream);
    println!("{report}");
    drop(stream);
    node.shutdown(Duration::from_secs(2)).await;
    Ok(())
}

/// Sends and receives at the same time until both directions have ended.
async fn exchange(stream: &Stream, work: &Work) -> Result<Value, StreamError> {
    let sending = async {
        let sha256 = send(stream, work).await?;
        match work.end {
            End::Close => stream.finish(),
            End::CloseLast => {}
            End::Abort => stream.abort(),
        }
        Ok(sha256)
    };
    let receiving = receive(stream, work);
    if matches!(work.end, End::Abort) {
        return Ok(json!({ "sent": work.send, "sha256_sent": sending.await? }));
    }
    let (sent, (received, sha256)) = tokio::try_join!(sending, receiving)?;
    stream.finish();
    stream.finished().await?;
    Ok(json!({ "sent": work.send, "sha256_sent": sent, "received": received, "sha256_received": sha256 }))
}

async fn send(stream: &Stream, work: &Work) -> Result<String, StreamError> {
    let mut hash = Sha256::new();
    let mut offset = 0;
    while offset < work.send {
        let len = (work.send - offset).min(256 << 10);
        let chunk = Payload::from(Pattern { key: work.key, offset, len }).to_bytes();
        hash.update(&chunk);
        stream.write(chunk).await?;
        offset += len;
    }
    Ok(hex(&hash.finalize()))
}

async fn receive(stream: &Stream, work: &Work) -> Result<(u64, String), StreamError> {
    let (mut hash, mut received) = (Sha256::new(), 0);
    loop {
        if work.read_pause > 0 {
            tokio::time::sleep(Duration::from_millis(work.read_pause)).await;
        }
        let Some(chunk) = stream.read(256 << 10).await? else { break };
        hash.update(&chunk);
        received += chunk.len() as u64;
    }
    Ok((received, hex(&hash.finalize())))
}

fn stats(stream: &Stream) -> Value {
    let stats = stream.stats();
    let paths: Vec<_> = stats.paths.iter().map(|(_, _, stats)| json!(stats)).collect();
    json!({ "connection": stats.connection, "paths": paths })
}

fn network(text: &str) -> Result<(IpAddr, u8), String> {
    let (address, prefix) = text.split_once('/').ok_or("ADDRESS/PREFIX, e.g. 10.9.0.1/24")?;
    let address = address.parse().map_err(|e| format!("{address}: {e}"))?;
    let prefix = prefix.parse().map_err(|e| format!("/{prefix}: {e}"))?;
    Ok((address, prefix))
}
