//! A QUIC server that sends and a client that receives, by somebody else's QUIC.

use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig,
};

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What the client lets a server have under way on a stream, bytes; quinn's own 1.25 MB are meant for 100 Mbit/s.
const WINDOW: u32 = 6 << 20;

const NAME: &str = "server.test";

/// A certificate of a server, and its key.
pub fn certificate() -> Result<(CertificateDer<'static>, PrivatePkcs8KeyDer<'static>)> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    Ok((made.cert.der().clone(), made.signing_key.serialize_der().into()))
}

/// Byte `at` of what the server sends.
pub fn byte(at: u64) -> u8 {
    (at % 251) as u8
}

/// Sends `len` bytes to each client that connects, until the server is dropped.
pub async fn serve(
    socket: UdpSocket,
    (certificate, key): (CertificateDer<'static>, PrivatePkcs8KeyDer<'static>),
    len: u64,
) -> Result<()> {
    let config = ServerConfig::with_single_cert(vec![certificate], key.into())?;
    let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, Arc::new(TokioRuntime))?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move { send(incoming.await?, len).await });
    }
    Ok(())
}

async fn send(connection: Connection, len: u64) -> Result<()> {
    // A multiple of the pattern's length: each piece begins where the pattern does.
    let piece: Vec<u8> = (0..251 * 256).map(byte).collect();
    let mut stream = connection.open_uni().await?;
    let mut left = len;
    while left > 0 {
        let part = left.min(piece.len() as u64);
        stream.write_all(&piece[..part as usize]).await?;
        left -= part;
    }
    stream.finish()?;
    connection.closed().await;
    Ok(())
}

/// Connects to a server, and gives what arrives to `take` until that says it is enough or all is there. Whether all was.
pub async fn receive(
    socket: UdpSocket,
    server: SocketAddr,
    certificate: CertificateDer<'static>,
    mut take: impl FnMut(&[u8]) -> bool,
) -> Result<bool> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let endpoint = Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(WINDOW.into());
    config.transport_config(Arc::new(transport));
    let connection = endpoint.connect_with(config, server, NAME)?.await?;
    let mut stream = connection.accept_uni().await?;
    let all = loop {
        match stream.read_chunk(1 << 20, true).await? {
            Some(chunk) if take(&chunk.bytes) => {}
            Some(_) => break false,
            None => break true,
        }
    };
    connection.close(0_u32.into(), b"done");
    endpoint.wait_idle().await;
    Ok(all)
}
