//! Hosts that call: they send to us, or fetch from us.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use polypath_endpoint::{ListenConfig, PeerEvent};
use polypath_files::{Entry, FileError, Step, Store, Transferred};
use polypath_hip::{Accept, HipConfig};
use polypath_node::{Choice, Node, Stream, addresses};
use polypath_transport::ConnectionConfig;
use polypath_wire::hip::{Hit, udp};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};

use super::{GRACE, choice, node};
use crate::args::{Allow, LinkArgs};
use crate::failure::{Failure, printed};
use crate::interrupt::Interrupt;
use crate::keys;

/// Associations that strangers can make us look after, each with a heartbeat: beyond it the least used gives way.
const MOST_PEERS: usize = 256;
/// Connections of one host that are served at once; more wait.
const AT_ONCE: usize = 8;

/// A host that waits for others.
pub struct Serve<'a> {
    pub allow: &'a [Allow],
    pub identity: Option<&'a Path>,
    pub port: u16,
    pub native: bool,
    pub links: &'a LinkArgs,
    /// End when one peer has everything, or has sent everything.
    pub once: bool,
    pub json: bool,
    pub connection: ConnectionConfig,
    pub work: Work,
}

/// What is done for a host that calls.
#[derive(Clone)]
pub enum Work {
    Receive(Arc<Store>),
    Send(Arc<Vec<Entry>>),
}

impl Serve<'_> {
    /// Serves until it is interrupted, or has served one peer if that is all that is asked.
    pub fn run(&self) -> Result<(), Failure> {
        let identity = keys::file::load(&keys::ensure(self.identity)?)?;
        let choice = choice(self.links);
        let interrupt = Interrupt::listen_meanwhile()?;
        interrupt.block_on(async {
            let ours = identity.hit();
            // Opportunistic I1s are answered: a sender that was given a wrong HIT learns the right one.
            let hip = HipConfig {
                accept: accept(self.allow),
                tell_refused: true,
                opportunistic: true,
                max_associations: MOST_PEERS,
                ..HipConfig::of_today()
            };
            let port = if self.native { None } else { Some(definite(self.port)?) };
            let node = node(identity, hip, port, choice.clone(), self.connection.ecn)?;
            let config = ListenConfig { connection: self.connection.clone(), ..ListenConfig::default() };
            let listener = node.listen(polypath_files::PORT, config);
            let listener = listener.map_err(|e| Failure::system("cannot listen", e))?;
            self.greet(ours, port.unwrap_or(udp::PORT), &choice);
            let result = interrupt.or(self.serve(&node, &listener)).await;
            drop(listener);
            node.shutdown(GRACE).await;
            result
        })
    }

    async fn serve(&self, node: &Node, listener: &polypath_node::Listener) -> Result<(), Failure> {
        let (served, mut ended) = mpsc::unbounded_channel();
        let desk = Desk { work: self.work.clone(), json: self.json, served, turns: Arc::default() };
        loop {
            tokio::select! {
                stream = listener.accept() => match stream {
                    Ok(stream) => desk.serve(stream),
                    Err(error) => return Err(Failure::system("stopped after an error", error)),
                },
                event = node.peer_event() => match event {
                    Some((peer, event)) => tell(self.json, peer, &event),
                    None => return Err(Failure::system("stopped after an error", "the sockets failed")),
                },
                Some(complete) = ended.recv() => if self.once && complete {
                    return Ok(());
                },
            }
        }
    }

    fn greet(&self, ours: Hit, port: u16, choice: &Choice) {
        let native = if self.native { " --native" } else { "" };
        greet(port, choice, |there| match self.work {
            Work::Receive(_) => format!("ready; to send here: polypath send{native} FILE {ours}@{there}"),
            Work::Send(_) => {
                format!("ready; to fetch from here: polypath receive{native} --from {ours}@{there}")
            }
        });
        if self.allow.is_empty() {
            eprintln!(
                "every peer is refused: name the senders with --allow HIT, or accept any with --allow any"
            );
        }
    }
}

/// `port`, or for 0 one that is free: the same on all addresses, so that it can be named.
pub fn definite(port: u16) -> Result<u16, Failure> {
    let free = |ip: IpAddr| UdpSocket::bind((ip, 0)).and_then(|socket| socket.local_addr());
    let found = match port {
        0 => free(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| free(Ipv4Addr::UNSPECIFIED.into())),
        port => return Ok(port),
    };
    found.map(|there| there.port()).map_err(|e| Failure::system("no UDP port is free", e))
}

/// Prints what reaches us, which `command` says for our addresses.
pub fn greet(port: u16, choice: &Choice, command: impl FnOnce(&str) -> String) {
    let port = if port == udp::PORT { String::new() } else { format!(":{port}") };
    let usable = addresses::advertised().unwrap_or_default().into_iter().filter(|a| !a.ip.is_loopback());
    let usable = usable.filter(|a| choice.admits(a));
    let show = |a: addresses::Address| match a.ip {
        IpAddr::V6(ip) if !port.is_empty() => format!("[{ip}]{port}"),
        ip => format!("{ip}{port}"),
    };
    let all: Vec<String> = usable.map(show).collect();
    let all = if all.is_empty() { "127.0.0.1".to_owned() + &port } else { all.join(",") };
    eprintln!("{}", command(&all));
}

/// Those that are named, or everybody.
pub fn accept(allow: &[Allow]) -> Accept {
    let mut peers = BTreeSet::new();
    for allow in allow {
        match allow {
            Allow::Any => return Accept::Everybody,
            Allow::Peer(hit) => _ = peers.insert(*hit),
        }
    }
    Accept::Only(peers)
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

/// Serves connections, up to [`AT_ONCE`] of each peer at once.
struct Desk {
    work: Work,
    json: bool,
    /// Gets one message for each connection that ends: whether all its files were stored.
    served: mpsc::UnboundedSender<bool>,
    turns: Arc<Mutex<BTreeMap<Hit, Arc<Semaphore>>>>,
}

impl Desk {
    fn serve(&self, stream: Stream) {
        let Some(peer) = stream.peer() else { return };
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        let turn = turns.entry(peer).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))).clone();
        let (work, json, served) = (self.work.clone(), self.json, self.served.clone());
        let receives = matches!(work, Work::Receive(_));
        tokio::spawn(async move {
            let _turn = turn.acquire().await;
            let (mut complete, mut kept) = (true, false);
            let tell = |step: Step| {
                complete &= !matches!(step, Step::Failed(_));
                if let Step::Begin { size, .. } = &step {
                    kept = receives && size.is_some_and(|size| size > polypath_files::SMALL);
                }
                show(json, peer, &step);
            };
            let result = match work {
                Work::Receive(store) => polypath_files::receive(&stream, peer, &store, tell).await,
                Work::Send(entries) => polypath_files::serve(&stream, &entries, tell).await,
            };
            if let Err(error) = &result {
                complain(peer, error, kept);
                stream.abort();
            }
            // Nobody listens at the very end.
            let _ = served.send(result.is_ok() && complete);
        });
    }
}

fn show(json: bool, peer: Hit, step: &Step) {
    match step {
        Step::Done(file) => stored(json, peer, file),
        Step::Grew { name, bytes } => eprintln!("{peer}: {}", super::report::grew(name, *bytes)),
        Step::Changed { name } => eprintln!("{peer}: {}", super::report::changed(name)),
        Step::Failed(file) => eprintln!("{peer}: {}: {}", file.name, file.why),
        Step::Begin { name, size, at, .. } if !json => {
            let size = size.map_or("of unknown length".to_owned(), |size| format!("{size} bytes"));
            eprintln!("{peer}: {name}, {size}{}", resumed(*at));
        }
        _ => {}
    }
}

fn resumed(at: u64) -> String {
    if at == 0 { String::new() } else { format!(", of which {at} are there already") }
}

/// `kept`: what came of the last file is kept.
fn complain(peer: Hit, error: &FileError, kept: bool) {
    match error.is_interruption() {
        true if kept => eprintln!("{peer}: interrupted; the received part is kept for the next attempt"),
        true => eprintln!("{peer}: interrupted"),
        false => eprintln!("{peer}: {error}"),
    }
}

fn stored(json: bool, peer: Hit, file: &Transferred) {
    let whom = if file.path.is_some() { "from" } else { "to" };
    let line = match json {
        true => json!({ whom: peer, "file": file }).to_string(),
        false => super::report::line(file).trim_end().to_owned(),
    };
    if let Err(failure) = printed(writeln!(std::io::stdout(), "{line}")) {
        eprintln!("{failure}");
    }
}
