//! Two nodes on loopback, and a connection between them for each transfer.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polypath_endpoint::{EndpointConfig, ListenConfig, Locators};
use polypath_files::message::Message;
use polypath_files::{FileError, PORT, Plan, Step, Store};
use polypath_node::{Listener, Node, Stream};
use polypath_transport::{ConnectionConfig, PathConfig};
use polypath_wire::hip::Hit;
use tempfile::TempDir;

/// A sender, as the receiver knows it.
pub const ALICE: Hit = Hit([7; 16]);
pub const BOB: Hit = Hit([8; 16]);

pub struct Bed {
    client: Node,
    server: Node,
    listener: Listener,
    dir: TempDir,
    pub store: Arc<Store>,
}

/// How both ends of a transfer ended, and what they told meanwhile.
#[derive(Debug)]
pub struct Ended {
    pub sent: Result<(), FileError>,
    pub received: Result<(), FileError>,
    pub sender: Vec<Step>,
    pub receiver: Vec<Step>,
}

fn node() -> Node {
    Node::udp(EndpointConfig::default(), &[std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()]).unwrap()
}

impl Bed {
    pub fn new() -> Self {
        let (client, server) = (node(), node());
        let listener = server.listen(PORT, ListenConfig::default()).unwrap();
        let dir = TempDir::new().unwrap();
        let store = Arc::new(Store::open(&dir.path().join("in"), false).unwrap());
        Self { client, server, listener, dir, store }
    }

    /// From now on `sync` brings files to the disk.
    pub fn synced_by(&mut self, sync: fn(&std::fs::File) -> std::io::Result<()>) {
        self.store = Arc::new(Store::open(&self.inbox(), false).unwrap().synced_by(sync));
    }

    /// The directory is opened anew, as after a restart, with what it remembers in a file.
    pub fn remember(&mut self) {
        let file = self.dir.path().join("config/received");
        self.store = Arc::new(Store::open(&self.inbox(), false).unwrap().remembering(&file));
    }

    /// The directory is opened anew, as after a restart.
    pub fn restart(&mut self, hidden: bool) {
        self.store = Arc::new(Store::open(&self.inbox(), hidden).unwrap());
    }

    pub fn inbox(&self) -> PathBuf {
        self.dir.path().join("in")
    }

    /// Writes a file to be sent.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join("out").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A connection: the end that opened it, and the other one.
    pub async fn connect(&self) -> (Stream, Stream) {
        let locators = Locators { local: self.client.locals()[0], remote: self.server.locals()[0] };
        let paths = [(locators, PathConfig::default())];
        let opened = self.client.connect(ConnectionConfig::default(), PORT, &paths);
        let (ours, theirs) = tokio::join!(opened, self.listener.accept());
        (ours.unwrap(), theirs.unwrap())
    }

    /// Sends `sources` from ALICE.
    pub async fn send(&self, sources: &[&Path]) -> Ended {
        let plan = plan(sources);
        self.send_plan(&plan, ALICE).await
    }

    pub async fn send_plan(&self, plan: &Plan, from: Hit) -> Ended {
        self.send_and(plan, from, |_, _| {}).await
    }

    /// Calls `look` at each step of the sender.
    pub async fn send_and(&self, plan: &Plan, from: Hit, mut look: impl FnMut(&Stream, &Step)) -> Ended {
        let (ours, theirs) = self.connect().await;
        let (mut sender, mut receiver) = (Vec::new(), Vec::new());
        let tell = |step| {
            look(&ours, &step);
            sender.push(step);
        };
        let (sent, received) = tokio::join!(
            polypath_files::send(&ours, &plan.entries, tell),
            polypath_files::receive(&theirs, from, &self.store, |step| receiver.push(step)),
        );
        Ended { sent, received, sender, receiver }
    }

    /// What is in the directory, hidden files too: paths, and bytes of files.
    pub fn found(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        let mut all = BTreeMap::new();
        look(&self.inbox(), "", &mut all);
        all
    }

    pub fn names(&self) -> Vec<String> {
        self.found().into_keys().collect()
    }
}

fn look(dir: &Path, above: &str, all: &mut BTreeMap<String, Option<Vec<u8>>>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let name = format!("{above}{}", entry.file_name().to_str().unwrap());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            look(&entry.path(), &format!("{name}/"), all);
        }
        all.insert(name, kind.is_file().then(|| std::fs::read(entry.path()).unwrap()));
    }
}

pub fn plan(sources: &[&Path]) -> Plan {
    let mut plan = Plan::default();
    sources.iter().for_each(|source| plan.add(source).unwrap());
    plan
}

impl Ended {
    pub fn ok(self) -> Self {
        assert!(self.sent.is_ok() && self.received.is_ok(), "{self:?}");
        self
    }

    /// Names and places of what was stored.
    pub fn stored(&self) -> Vec<(String, PathBuf)> {
        let done = self.receiver.iter().filter_map(|step| match step {
            Step::Done(file) => Some((file.name.clone(), file.path.clone().unwrap())),
            _ => None,
        });
        done.collect()
    }

    /// Names and reasons of what the sender was told is not stored.
    pub fn failed(&self) -> Vec<(String, String)> {
        failures(&self.sender)
    }

    /// Where the sender began with each file.
    pub fn began(&self) -> Vec<u64> {
        let begins = self.sender.iter().filter_map(|step| match step {
            Step::Begin { at, .. } => Some(*at),
            _ => None,
        });
        begins.collect()
    }
}

pub fn failures(steps: &[Step]) -> Vec<(String, String)> {
    let failed = steps.iter().filter_map(|step| match step {
        Step::Failed(file) => Some((file.name.clone(), file.why.clone())),
        _ => None,
    });
    failed.collect()
}

/// Bytes that do not repeat.
pub fn noise(len: u64) -> Vec<u8> {
    let pattern = polypath_transport::Pattern { key: 9, offset: 0, len };
    polypath_transport::Payload::from(pattern).to_bytes().to_vec()
}

pub fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Says `messages` as a peer of our own making.
pub fn bytes(messages: &[&dyn Say]) -> bytes::Bytes {
    let mut out = bytes::BytesMut::new();
    messages.iter().for_each(|message| message.say(&mut out));
    out.freeze()
}

/// Whatever a peer may say.
pub trait Say {
    fn say(&self, out: &mut bytes::BytesMut);
}

impl<M: Message> Say for M {
    fn say(&self, out: &mut bytes::BytesMut) {
        self.emit(out);
    }
}

/// Bytes of a file.
pub struct Raw(pub Vec<u8>);

impl Say for Raw {
    fn say(&self, out: &mut bytes::BytesMut) {
        out.extend_from_slice(&self.0);
    }
}
