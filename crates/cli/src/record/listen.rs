//! The host that is called.

use std::sync::Arc;
use std::time::Duration;

use polypath_endpoint::{ListenConfig, PeerEvent};
use polypath_hip::HipConfig;
use polypath_node::{Node, Stream, StreamError};
use tokio::sync::Semaphore;

use super::message::{self, LENGTH, Request, What};
use super::{PIECE, PORT, connection, fill, receive};
use crate::args::RecordArgs;
use crate::failure::Failure;
use crate::files::{GRACE, accept, choice, definite, greet, node};
use crate::interrupt::Interrupt;
use crate::keys;

/// How long a caller may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves callers until it is interrupted; one at a time, as recordings disturb one another.
pub fn listen(args: &RecordArgs) -> Result<(), Failure> {
    let identity = keys::file::load(&keys::ensure(args.identity.as_deref())?)?;
    let choice = choice(&args.links());
    let interrupt = Interrupt::listen_meanwhile()?;
    interrupt.block_on(async {
        let ours = identity.hit();
        let hip = HipConfig {
            accept: accept(&args.allow),
            tell_refused: true,
            opportunistic: true,
            ..HipConfig::default()
        };
        let port = definite(args.port)?;
        let node = node(identity, hip, Some(port), choice.clone(), connection().ecn)?;
        let config = ListenConfig { connection: connection(), ..ListenConfig::default() };
        let listener = node.listen(PORT, config).map_err(|e| Failure::system("cannot listen", e))?;
        greet(port, &choice, |there| {
            format!("ready; to record: polypath lab record {ours}@{there} --out NAME")
        });
        if args.allow.is_empty() {
            eprintln!(
                "every peer is refused: name the callers with --allow HIT, or accept any with --allow any"
            );
        }
        let result = interrupt.or(serve(&node, &listener)).await;
        drop(listener);
        node.shutdown(GRACE).await;
        result
    })
}

async fn serve(node: &Node, listener: &polypath_node::Listener) -> Result<(), Failure> {
    let turn = Arc::new(Semaphore::new(1));
    loop {
        tokio::select! {
            stream = listener.accept() => {
                let stream = stream.map_err(|e| Failure::system("stopped after an error", e))?;
                let turn = turn.clone();
                tokio::spawn(async move {
                    let _turn = turn.acquire().await;
                    let peer = stream.peer().map(|peer| peer.to_string()).unwrap_or_default();
                    if let Err(error) = answer(&stream, &peer).await {
                        eprintln!("{peer}: {error}");
                        stream.abort();
                    }
                });
            }
            event = node.peer_event() => match event {
                Some((peer, PeerEvent::Stranger { from })) => {
                    eprintln!("refused {peer} from {}: to let it in, --allow {peer}", from.remote);
                }
                Some(_) => {}
                None => return Err(Failure::system("stopped after an error", "the sockets failed")),
            },
        }
    }
}

/// Does what one connection asks for.
async fn answer(stream: &Stream, peer: &str) -> Result<(), StreamError> {
    let request = match tokio::time::timeout(PATIENCE, request(stream)).await {
        Ok(request) => request?,
        Err(_) => Err("it sent no request"),
    };
    let request = match request {
        Ok(request) => request,
        Err(why) => {
            eprintln!("{peer}: {why}");
            stream.abort();
            return Ok(());
        }
    };
    match request.what {
        What::Echo => echo(stream).await?,
        What::Down => {
            eprintln!("{peer}: sends to it for {} s", request.time.as_secs_f64());
            fill(stream, request.time, request.most, || false).await?;
        }
        What::Up => {
            eprintln!("{peer}: receives from it for {} s", request.time.as_secs_f64());
            let (began, limit) = (tokio::time::Instant::now(), request.time + PATIENCE);
            let arrivals = receive(stream, || began.elapsed() > limit).await?;
            stream.write(message::notes(&arrivals.notes).into()).await?;
            stream.finish();
        }
    }
    stream.finished().await
}

async fn request(stream: &Stream) -> Result<Result<Request, &'static str>, StreamError> {
    let mut bytes = Vec::new();
    while bytes.len() < LENGTH {
        match stream.read(LENGTH - bytes.len()).await? {
            Some(more) => bytes.extend_from_slice(&more),
            None => return Ok(Err("it ended before it sent a request")),
        }
    }
    Ok(Request::parse(&bytes.try_into().expect("the loop read LENGTH bytes")))
}

async fn echo(stream: &Stream) -> Result<(), StreamError> {
    while let Some(bytes) = stream.read(PIECE).await? {
        stream.write(bytes).await?;
    }
    stream.finish();
    Ok(())
}
