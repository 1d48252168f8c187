//! A file from one endpoint to another over emulated paths: both with the real driver, each with
//! its own sockets and clock, in one process.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use polypath_endpoint::{EndpointConfig, ListenConfig, Locators, PathReport, Reach, SecurityConfig};
use polypath_hip::Identity;
use polypath_hop::HopConfig;
use polypath_node::bulk::{CHUNK, Sink, Source};
use polypath_node::{AssociateError, Clock, Hashed, Node, Sha256, Stream, StreamError, UdpSockets, hex};
use polypath_transport::{ConnectionConfig, ConnectionStats, PathConfig, PathStats};
use polypath_wire::hip::Hit;
use polypath_wire::{PathId, Rate, Seed};
use serde::Serialize;
use thiserror::Error;
use tokio::fs::File;

use crate::bed::{Testbed, TestbedError};
use crate::emulated_link::LinkStats;

/// What to transfer over what.
#[derive(Clone, Debug)]
pub struct TransferConfig {
    /// The file to send.
    pub source: PathBuf,
    /// Where to write what arrived; it is hashed in any case.
    pub sink: Option<PathBuf>,
    /// Parameters of both sides of the connection.
    pub connection: ConnectionConfig,
    /// The paths: each with the hop there and the hop back.
    pub paths: Vec<TransferPath>,
    /// Real network namespaces instead of loopback sockets (needs privileges).
    pub namespaces: bool,
    /// Seed of the losses on the emulated paths.
    pub seed: Seed,
    /// Time between two calls of the progress callback.
    pub interval: Duration,
    /// HIP and ESP below the connection, with these identities of the sender and of the receiver;
    /// without, segments travel as they are.
    pub security: Option<(SecurityConfig, [Identity; 2])>,
}

/// One emulated path.
#[derive(Clone, PartialEq, Debug)]
pub struct TransferPath {
    /// From the sender to the receiver, and back.
    pub hops: [HopConfig; 2],
    /// What the connection knows of it. Sizes count without IP and UDP headers.
    pub config: PathConfig,
}

/// How far a transfer is.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Progress {
    /// Time since it began.
    pub elapsed: Duration,
    /// Bytes the peer has acknowledged.
    pub bytes: u64,
    /// Bytes of the file.
    pub total: u64,
    /// The paths, as the sender sees them.
    pub paths: Vec<PathProgress>,
}

/// One path of a transfer, as its sender sees it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathProgress {
    /// Which.
    pub id: PathId,
    /// Which of the transfer's paths it is, from 0.
    pub pair: usize,
    /// Its counters.
    #[serde(flatten)]
    pub stats: PathStats,
    /// What is below it, if it is secure.
    #[serde(skip)]
    pub secure: Option<PathReport>,
}

/// What a transfer came to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TransferReport {
    /// Bytes that arrived.
    pub bytes: u64,
    /// From the first packet, of the base exchange or of the connection, until the receiver had the last byte.
    pub seconds: f64,
    /// Bytes that arrived over that time, bit/s.
    pub goodput: Rate,
    /// SHA-256 of the file, hexadecimal.
    pub sha256_sent: String,
    /// SHA-256 of what arrived.
    pub sha256_received: String,
    /// The sender's connection.
    pub sender: ConnectionStats,
    /// The receiver's connection.
    pub receiver: ConnectionStats,
    /// The paths, as the sender saw them.
    pub paths: Vec<PathProgress>,
    /// The emulated links.
    pub links: Vec<LinkStats>,
}

impl TransferReport {
    /// Whether what arrived is what was sent.
    pub fn sha256_match(&self) -> bool {
        self.sha256_sent == self.sha256_received
    }
}

/// Why a transfer failed.
#[derive(Debug, Error)]
pub enum TransferError {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No emulated paths.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// No node.
    #[error("UDP sockets: {0}")]
    Sockets(io::Error),
    /// No association.
    #[error("base exchange: {0}")]
    Associate(#[from] AssociateError),
    /// The connection failed.
    #[error("{side}: {source}")]
    Stream {
        /// On which side.
        side: &'static str,
        /// Why.
        source: StreamError,
    },
}

/// Moves a file, telling `progress` how far it is. Cancelled, it ends everything it started.
pub async fn transfer(
    config: &TransferConfig,
    mut progress: impl FnMut(&Progress),
) -> Result<TransferReport, TransferError> {
    let bed = testbed(config)?;
    let (client, server) = (node(&bed, config, 0)?, node(&bed, config, 1)?);
    let listener = ListenConfig {
        connection: config.connection.clone(),
        path: PathConfig { mss: least_mss(config), ..PathConfig::default() },
        accept_paths: true,
    };
    let listener = server.listen(PORT, listener).map_err(|e| failed("receiver")(e.into()))?;

    let total = file_size(&config.source).await?;
    let pairs: Vec<Locators> = bed.locators(0).collect();
    let began = Instant::now();
    let sending = async {
        let stream = open(config, &bed, &client, server.hit()).await?;
        let sent = tokio::select! {
            sent = send_file(&stream, &config.source) => sent?,
            never = watch(&stream, &pairs, config.interval, began, total, &mut progress) => match never {},
        };
        Ok::<_, TransferError>((stream, sent))
    };
    let receiving = async {
        let stream = listener.accept().await.map_err(failed("receiver"))?;
        let received = receive_file(&stream, config.sink.as_deref(), began).await?;
        Ok((stream, received))
    };
    let ((outgoing, sent), (incoming, received)) = tokio::try_join!(sending, receiving)?;
    let last = snapshot(&outgoing, &pairs, began, total);
    progress(&last);
    Ok(TransferReport {
        bytes: received.bytes,
        seconds: received.took.as_secs_f64(),
        goodput: Rate::from_bytes_per(received.bytes, received.took.into()),
        sha256_sent: sent,
        sha256_received: received.sha256,
        sender: outgoing.stats().connection,
        receiver: incoming.stats().connection,
        paths: last.paths,
        links: bed.paths.iter().map(|p| p.link.stats()).collect(),
    })
}

/// The port the receiver listens on. Only its own sockets can reach it.
const PORT: u16 = 1;
/// Opens the connection, after a base exchange if it is secure.
async fn open(
    config: &TransferConfig,
    bed: &Testbed,
    client: &Node,
    peer: Option<Hit>,
) -> Result<Stream, TransferError> {
    let Some(peer) = peer else {
        let paths: Vec<_> = bed.locators(0).zip(config.paths.iter().map(|p| p.config)).collect();
        return client.connect(config.connection.clone(), PORT, &paths).await.map_err(failed("sender"));
    };
    client.associate(peer, Reach::Pairs(bed.locators(0).collect())).await?;
    client.open_peer(config.connection.clone(), peer, PORT).map_err(failed("sender"))
}

/// The receiver knows nothing of its paths but that no segment may exceed what all of them carry.
fn least_mss(config: &TransferConfig) -> u32 {
    config.paths.iter().map(|p| p.config.mss).min().unwrap_or(PathConfig::default().mss)
}

fn testbed(config: &TransferConfig) -> Result<Testbed, TestbedError> {
    let hops: Vec<_> = config.paths.iter().map(|p| p.hops.clone()).collect();
    if config.namespaces {
        Testbed::namespaces(&hops, config.seed, Clock::start())
    } else {
        Testbed::loopback(&hops, config.seed, Clock::start())
    }
}

fn node(bed: &Testbed, config: &TransferConfig, side: usize) -> Result<Node, TransferError> {
    let start = |sockets| match &config.security {
        None => Node::on_sockets(EndpointConfig::default(), sockets),
        Some((security, identities)) => {
            let identity = identities[side].clone();
            Node::secure(EndpointConfig::default(), security.clone(), identity, sockets)
        }
    };
    bed.sockets(side).and_then(UdpSockets::new).and_then(start).map_err(TransferError::Sockets)
}

/// Sends the whole file and its end; its SHA-256.
async fn send_file(stream: &Stream, path: &Path) -> Result<String, TransferError> {
    let file = File::open(path).await.map_err(file_error(path))?.into_std().await;
    let mut source = Source::start(Hashed { file, hash: Sha256::new() }, u64::MAX);
    while let Some(chunk) = source.next().await.map_err(file_error(path))? {
        stream.write(chunk).await.map_err(failed("sender"))?;
    }
    stream.finish();
    stream.finished().await.map_err(failed("sender"))?;
    let read = source.finish().await.map_err(file_error(path))?;
    Ok(hex(&read.hash.finalize()))
}

struct Received {
    bytes: u64,
    sha256: String,
    took: Duration,
}

/// Receives to the end and answers with our end.
async fn receive_file(
    stream: &Stream,
    path: Option<&Path>,
    began: Instant,
) -> Result<Received, TransferError> {
    let file: Box<dyn Write + Send> = match path {
        Some(path) => Box::new(std::fs::File::create(path).map_err(file_error(path))?),
        None => Box::new(io::sink()),
    };
    let of_file = || file_error(path.unwrap_or(Path::new("")));
    let (mut sink, mut bytes) = (Sink::start(Hashed { file, hash: Sha256::new() }), 0);
    while let Some(chunks) = stream.read_chunks(CHUNK).await.map_err(failed("receiver"))? {
        bytes += chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
        sink.write(chunks).await.map_err(of_file())?;
    }
    let took = began.elapsed();
    stream.finish();
    let written = sink.finish().await.map_err(of_file())?;
    stream.finished().await.map_err(failed("receiver"))?;
    Ok(Received { bytes, sha256: hex(&written.hash.finalize()), took })
}

/// Calls `progress` at every interval, for ever.
async fn watch(
    stream: &Stream,
    pairs: &[Locators],
    interval: Duration,
    began: Instant,
    total: u64,
    progress: &mut impl FnMut(&Progress),
) -> std::convert::Infallible {
    let mut ticks = tokio::time::interval(interval.max(Duration::from_millis(1)));
    loop {
        ticks.tick().await;
        progress(&snapshot(stream, pairs, began, total));
    }
}

fn snapshot(stream: &Stream, pairs: &[Locators], began: Instant, total: u64) -> Progress {
    let stats = stream.stats();
    let path = |((id, inner, stats), secure): (_, Option<PathReport>)| {
        let outer = secure.as_ref().map_or(inner, |path| path.locators);
        let pair = pairs.iter().position(|p| *p == outer).unwrap_or(usize::MAX);
        PathProgress { id, pair, stats, secure }
    };
    let paths = stats.paths.into_iter().zip(stats.secure).map(path);
    Progress { elapsed: began.elapsed(), bytes: stats.connection.bytes_acked, total, paths: paths.collect() }
}

async fn file_size(path: &Path) -> Result<u64, TransferError> {
    Ok(tokio::fs::metadata(path).await.map_err(file_error(path))?.len())
}

fn failed(side: &'static str) -> impl Fn(StreamError) -> TransferError {
    move |source| TransferError::Stream { side, source }
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> TransferError {
    move |source| TransferError::File { path: path.to_owned(), source }
}
