//! `polypath receive`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use polypath_endpoint::{ListenConfig, PeerEvent};
use polypath_hip::{Accept, HipConfig};
use polypath_node::files::{self, FileError, Step, Transferred};
use polypath_node::{Node, Stream, addresses};
use polypath_wire::hip::Hit;
use serde_json::json;
use tokio::sync::{Mutex, mpsc};

use super::{GRACE, connection, identity, node};
use crate::args::{Allow, ReceiveArgs};
use crate::failure::{Failure, printed};
use crate::interrupt::Interrupt;

/// Receives files until it is interrupted, or has those of one sender if that is all that is asked.
pub fn receive(args: &ReceiveArgs) -> Result<(), Failure> {
    if !args.dir.is_dir() {
        return Err(Failure::usage(format!("{} is not a directory", args.dir.display())));
    }
    let identity = identity(args.identity.as_deref())?;
    let interrupt = Interrupt::listen()?;
    interrupt.block_on(async {
        let ours = identity.hit();
        let hip = HipConfig { accept: accept(&args.allow), tell_refused: true, ..HipConfig::default() };
        let node = node(identity, hip, (!args.native).then_some(args.port))?;
        let config = ListenConfig { connection: connection(), ..ListenConfig::default() };
        let listener = node.listen(files::PORT, config).map_err(|e| Failure::system("cannot listen", e))?;
        greet(ours, args);
        let (senders, mut ended) = mpsc::unbounded_channel();
        let desk = Desk { dir: args.dir.clone(), json: args.json, senders, busy: Arc::default() };
        let work = async {
            loop {
                tokio::select! {
                    stream = listener.accept() => match stream {
                        Ok(stream) => desk.serve(stream),
                        Err(error) => return Err(Failure::system("cannot go on", error)),
                    },
                    event = node.peer_event() => match event {
                        Some((peer, event)) => tell(args.json, peer, &event),
                        None => return Err(Failure::system("cannot go on", "the sockets failed")),
                    },
                    Some(complete) = ended.recv() => if args.once && complete {
                        return Ok(());
                    },
                }
            }
        };
        let result = interrupt.or(work).await;
        drop(listener);
        quiet(node).await;
        result
    })
}

async fn quiet(node: Node) {
    node.shutdown(GRACE).await;
}

fn accept(allow: &[Allow]) -> Accept {
    let mut peers = BTreeSet::new();
    for allow in allow {
        match allow {
            Allow::Any => return Accept::Everybody,
            Allow::Peer(hit) => _ = peers.insert(*hit),
        }
    }
    Accept::Only(peers)
}

/// Says how to send to us.
fn greet(ours: Hit, args: &ReceiveArgs) {
    let port = if args.port == 10_500 { String::new() } else { format!(":{}", args.port) };
    let native = if args.native { " --native" } else { "" };
    let usable = addresses::usable().unwrap_or_default().into_iter().filter(|a| !a.ip.is_loopback());
    let show = |a: addresses::Address| match a.ip {
        std::net::IpAddr::V6(ip) if !port.is_empty() => format!("[{ip}]{port}"),
        ip => format!("{ip}{port}"),
    };
    let all: Vec<String> = usable.map(show).collect();
    let all = if all.is_empty() { "127.0.0.1".to_owned() + &port } else { all.join(",") };
    eprintln!("ready; to send here: polypath send{native} FILE {ours}@{all}");
    if args.allow.is_empty() {
        eprintln!(
            "nobody is let in yet: name the senders with --allow HIT, or let in anybody with --allow any"
        );
    }
}

fn tell(json: bool, peer: Hit, event: &PeerEvent) {
    let line = match event {
        PeerEvent::Stranger { from } => {
            format!("refused {peer} from {}: to let it in, --allow {peer}", from.remote)
        }
        PeerEvent::PathUp(locators) => format!("{peer}: path {locators}"),
        PeerEvent::PathDown(locators) => format!("{peer}: path {locators} is gone"),
        _ => return,
    };
    if !json {
        eprintln!("{line}");
    }
}

/// Where connections are served, those of one peer one after the other.
struct Desk {
    dir: PathBuf,
    json: bool,
    /// Told when a sender is through: whether it had nothing left.
    senders: mpsc::UnboundedSender<bool>,
    busy: Arc<std::sync::Mutex<BTreeMap<Hit, Arc<Mutex<()>>>>>,
}

impl Desk {
    fn serve(&self, stream: Stream) {
        let Some(peer) = stream.peer() else { return };
        let mut busy = self.busy.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let turn = busy.entry(peer).or_default().clone();
        let (dir, json, senders) = (self.dir.clone(), self.json, self.senders.clone());
        tokio::spawn(async move {
            let _turn = turn.lock().await;
            let tell = |step: Step| match step {
                Step::Done(file) => show(json, peer, &file),
                Step::Begin { name, size, at } if !json => {
                    eprintln!("{peer}: {name}, {size} bytes{}", resumed(at));
                }
                _ => {}
            };
            let result = files::receive(&stream, peer, &dir, tell).await;
            if let Err(error) = &result {
                complain(peer, error);
                stream.abort();
            }
            // Nobody listens at the very end.
            let _ = senders.send(result.is_ok());
        });
    }
}

fn resumed(at: u64) -> String {
    if at == 0 { String::new() } else { format!(", of which {at} are here already") }
}

fn complain(peer: Hit, error: &FileError) {
    match error.is_interruption() {
        true => eprintln!("{peer}: interrupted; what came is kept for the next attempt"),
        false => eprintln!("{peer}: {error}"),
    }
}

fn show(json: bool, peer: Hit, file: &Transferred) {
    let path = file.path.as_deref().unwrap_or(std::path::Path::new("")).display().to_string();
    let line = match json {
        true => json!({ "from": peer, "file": file }).to_string(),
        false => format!("{path}: {} bytes, SHA-256 {}", file.bytes, file.sha256),
    };
    if let Err(failure) = printed(writeln!(std::io::stdout(), "{line}")) {
        eprintln!("{failure}");
    }
}
