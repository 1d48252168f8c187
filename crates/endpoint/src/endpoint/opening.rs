//! How connections come into being: ours, and those that were accepted.

use polypath_transport::{Connection, ConnectionConfig, PathConfig, Ports};
use polypath_wire::Instant;

use super::Endpoint;
use crate::cover::Cover;
use crate::demux::Route;
use crate::error::OpenError;
use crate::paths::{Locators, PathTable};
use crate::slots::{ConnectionHandle, Join, Slot};

pub(super) const FIRST_EPHEMERAL_PORT: u16 = 49_152;

impl Endpoint {
    /// Opens a connection to the peer's port `remote_port`: the SYN leaves on the first path, and the
    /// others join when it is answered. The peer must [accept paths](ListenConfig::accept_paths) if
    /// there are several; an ordinary TCP resets the connection. Data is [early](ConnectionConfig::early_data) only if the peer takes it:
    /// others reset the connection when data overtakes the SYN.
    pub fn connect(
        &mut self,
        now: Instant,
        mut config: ConnectionConfig,
        remote_port: u16,
        paths: &[(Locators, PathConfig)],
    ) -> Result<ConnectionHandle, OpenError> {
        let (first, _) = paths.first().ok_or(OpenError::NoPath)?;
        let ports = self.free_ports(remote_port, paths).ok_or(OpenError::InUse(*first))?;
        config.early_data &= self.cover.takes_early_data(first.remote.ip());
        self.open(now, config, ports, paths)
    }

    pub(super) fn open(
        &mut self,
        now: Instant,
        config: ConnectionConfig,
        ports: Ports,
        paths: &[(Locators, PathConfig)],
    ) -> Result<ConnectionHandle, OpenError> {
        let (first, _) = paths.first().ok_or(OpenError::NoPath)?;
        if paths.len() > self.max_paths() {
            return Err(OpenError::TooManyPaths { max: self.config.max_paths });
        }
        if self.slots.len() >= self.config.max_connections as usize {
            return Err(OpenError::TooManyConnections { max: self.config.max_connections });
        }
        config.check_on(&paths.iter().map(|(_, config)| *config).collect::<Vec<_>>())?;
        let path_configs: Vec<_> =
            paths.iter().map(|(locators, config)| self.recalled(now, locators, *config)).collect();
        let isn = self.isn.at(now, first, ports);
        let connection = Connection::connect(now, config, ports, isn, &path_configs);
        self.stats.connected += 1;
        let table = PathTable::new(paths.iter().map(|(locators, _)| *locators));
        Ok(self.install(connection, ports, table, None))
    }

    /// Our next ephemeral port that no connection between these locators has.
    fn free_ports(&mut self, remote: u16, paths: &[(Locators, PathConfig)]) -> Option<Ports> {
        for _ in FIRST_EPHEMERAL_PORT..=u16::MAX {
            let ports = Ports { local: self.next_port, remote };
            self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_EPHEMERAL_PORT);
            let taken = self.listeners.contains_key(&ports.local)
                || paths.iter().any(|(locators, _)| self.demux.find(locators, ports).is_some());
            if !taken {
                return Some(ports);
            }
        }
        None
    }

    pub(super) fn max_paths(&self) -> usize {
        usize::from(self.config.max_paths.clamp(1, 64))
    }

    pub(super) fn install(
        &mut self,
        mut connection: Connection,
        ports: Ports,
        paths: PathTable,
        join: Option<Join>,
    ) -> ConnectionHandle {
        if self.config.record != Default::default() {
            connection.record(self.config.record);
        }
        let remote = paths.iter().next().map(|(_, locators)| locators.remote.ip());
        let peer = remote.and_then(|remote| self.cover.peer_at(remote));
        let index = self.slots.insert(|handle| Slot {
            handle,
            connection,
            ports,
            remote,
            peer,
            paths,
            join,
            half_open: false,
            held: true,
            unserved: None,
            queued: false,
            restless: peer.is_none(),
            known_news: self.news.number(),
            retired: false,
            released: false,
            memory: 0,
        });
        let slot = self.slots.at(index).expect("it was inserted just now");
        for (path, locators) in slot.paths.iter() {
            self.demux.insert(&locators, ports, Route { index, path });
        }
        if join.is_some() {
            self.demux.open(ports, index);
        }
        let handle = slot.handle;
        self.mark(index);
        handle
    }
}
