//! The connections of an endpoint, by handle.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use polypath_transport::{Connection, Ports};
use polypath_wire::Seq;
use polypath_wire::hip::Hit;
use serde::{Deserialize, Serialize};

use crate::looks::Looks;
use crate::paths::PathTable;

/// What a connection may hold in each direction however little memory is left, bytes.
const LEAST: u64 = 16 << 10;

/// Names one connection of one endpoint. It is never given to another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ConnectionHandle {
    index: u32,
    generation: u32,
}

impl ConnectionHandle {
    /// A small number, for tables beside the endpoint; another connection may have it after this one.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

impl fmt::Display for ConnectionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

/// A connection and what the endpoint knows of it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Slot {
    /// In the queue of connections that may have something to say.
    pub queued: bool,
    /// Accepted, and its handshake is not complete.
    pub half_open: bool,
    /// The application holds the handle, so it gets all events, also those before the handshake is complete.
    pub held: bool,
    /// The application has no more interest in it.
    pub released: bool,
    /// Closed, and no segment can reach it any more.
    pub retired: bool,
    /// It sent or received since it was last found quiet. Always set for a connection without an association, which has no news.
    pub restless: bool,
    /// The peer that opened it, until the application takes it up.
    pub unserved: Option<IpAddr>,
    pub ports: Ports,
    pub handle: ConnectionHandle,
    pub paths: PathTable,
    pub connection: Connection,
    /// The peer's address: of its first path, or the name of its association.
    pub remote: Option<IpAddr>,
    /// The peer's HIT, if the connection is secure.
    pub peer: Option<Hit>,
    /// How it takes new paths, if it does.
    pub join: Option<Join>,
    /// Number of the latest news that it knows.
    pub known_news: u64,
    /// Bytes that it held when they were last counted.
    pub memory: u64,
}

impl Slot {
    /// The name of its association, if it is secure.
    fn association(&self) -> Option<IpAddr> {
        self.remote.filter(|_| self.peer.is_some())
    }
}

/// What a segment is compared with that would add a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Join {
    /// The peer's initial sequence number.
    pub isn: Seq,
    /// Parameters of the new path.
    pub path: polypath_transport::PathConfig,
}

/// Slots by index; an index is used again under a new generation.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Slots {
    free: Vec<u32>,
    /// Secure connections by the name of their association.
    of_peers: BTreeSet<(IpAddr, u32)>,
    /// The restless ones among `of_peers`.
    restless: BTreeSet<(IpAddr, u32)>,
    /// Bytes that all of them hold.
    memory: u64,
    /// How many were looked at.
    pub looks: Looks,
    entries: Vec<Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    generation: u32,
    slot: Option<Slot>,
}

impl Slots {
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Takes what `make` builds for its handle; returns the index.
    pub fn insert(&mut self, make: impl FnOnce(ConnectionHandle) -> Slot) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            u32::try_from(self.entries.len() - 1).expect("max_connections is a u32")
        });
        let entry = &mut self.entries[index as usize];
        let slot = make(ConnectionHandle { index, generation: entry.generation });
        self.of_peers.extend(slot.association().map(|name| (name, index)));
        entry.slot = Some(slot);
        index
    }

    pub fn remove(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        if let Some(slot) = entry.slot.take() {
            self.memory -= slot.memory;
            if let Some(name) = slot.association() {
                self.of_peers.remove(&(name, index));
                self.restless.remove(&(name, index));
            }
            entry.generation = entry.generation.wrapping_add(1);
            self.free.push(index);
        }
    }

    /// Bytes that all connections held when they were last counted.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Counts what the connection at `index` holds, and limits it to half of what is left of `most` bytes.
    pub fn share_memory(&mut self, index: u32, most: u64) {
        let Some(slot) = self.entries.get_mut(index as usize).and_then(|e| e.slot.as_mut()) else { return };
        let held = slot.connection.held();
        self.memory = self.memory - std::mem::replace(&mut slot.memory, held) + held;
        slot.connection.limit_memory((most.saturating_sub(self.memory) / 2).max(LEAST));
    }

    /// The slot at `index`, if it is in use.
    pub fn get(&self, index: u32) -> Option<&Slot> {
        self.looks.count();
        self.entries.get(index as usize)?.slot.as_ref()
    }

    /// The same to change it.
    pub fn at(&mut self, index: u32) -> Option<&mut Slot> {
        self.looks.count();
        self.entries.get_mut(index as usize)?.slot.as_mut()
    }

    pub fn find(&self, handle: ConnectionHandle) -> Option<&Slot> {
        self.get(handle.index).filter(|s| s.handle == handle)
    }

    /// The index of a handle that is still valid.
    pub fn index(&self, handle: ConnectionHandle) -> Option<u32> {
        self.find(handle).map(|_| handle.index)
    }

    /// The indices of secure connections over the association of that name.
    pub fn with_peer(&self, name: IpAddr) -> Vec<u32> {
        self.open(&self.of_peers, name)
    }

    /// The indices of the restless ones over that association.
    pub fn restless(&self, name: IpAddr) -> Vec<u32> {
        self.open(&self.restless, name)
    }

    fn open(&self, of: &BTreeSet<(IpAddr, u32)>, name: IpAddr) -> Vec<u32> {
        let indices = of.range((name, 0)..=(name, u32::MAX)).map(|(_, index)| *index);
        indices.filter(|index| self.get(*index).is_some_and(|slot| !slot.retired)).collect()
    }

    /// The connection at `index` sent or received: from now on it hears at once of changes of its paths.
    #[inline]
    pub fn rouse(&mut self, index: u32) {
        let slot = self.entries.get_mut(index as usize).and_then(|e| e.slot.as_mut());
        let Some(slot) = slot.filter(|slot| !slot.restless) else { return };
        slot.restless = true;
        self.restless.extend(slot.association().map(|name| (name, index)));
    }

    /// The connection at `index` is no longer restless, if it is quiet.
    pub fn calm(&mut self, index: u32) {
        let Some(slot) = self.at(index).filter(|slot| slot.connection.is_quiet()) else { return };
        slot.restless = false;
        let name = slot.association();
        name.into_iter().for_each(|name| _ = self.restless.remove(&(name, index)));
    }

    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.entries.iter().inspect(|_| self.looks.count()).filter_map(|e| e.slot.as_ref())
    }
}
