//! Another configuration while the daemon runs: what may change changes, and no connection is lost.

use std::path::{Path, PathBuf};
use std::{fs, io};

use ipnet::IpNet;
use polypath_hip::Accept;
use polypath_node::Choice;
use thiserror::Error;
use tracing::info;

use crate::associations::name;
use crate::config::{Config, Place};
use crate::daemon::{Daemon, outer_connections};
use crate::leases::{self, LeaseError};
use crate::netlink::RouteError;
use crate::peers::Changed;

/// Why nothing was changed.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// What it changes is settled when the daemon starts.
    #[error("{} cannot change while the daemon runs", keys.join(", "))]
    Fixed {
        /// Where it is in the configuration.
        keys: Vec<&'static str>,
    },
    /// None of the interfaces that carry paths now would carry one.
    #[error("it would take the paths off all interfaces that carry them now: {}", names.join(", "))]
    NoPaths {
        /// The key that leaves them out.
        key: &'static str,
        /// These interfaces.
        names: Vec<String>,
    },
    /// The use of the first quota cannot be stored.
    #[error("{}: {source}", dir.display())]
    State {
        /// The directory of state.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no address for a peer.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// A route or a rule was refused.
    #[error(transparent)]
    Route(#[from] RouteError),
}

impl ReloadError {
    /// What in the configuration it is about, if it is about one value.
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Fixed { .. } => None,
            Self::NoPaths { key, .. } => Some(Place::Value(["paths", key])),
            Self::State { .. } => Some(Place::Value(["daemon", "state"])),
            Self::Lease(error) => Some(error.place()),
            Self::Route(error) => error.place(),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Fixed { keys } => format!(
                "nothing was changed: put {} back, or restart the daemon, which resets all connections: \
                 `polypath check && systemctl restart polypath`, or `polypath down` and `polypath up`",
                keys.join(", ")
            ),
            Self::NoPaths { .. } => {
                "nothing was changed: let one of them carry paths, or connect another one first; \
                 `polypath down` and `polypath up` read the configuration without this check"
                    .to_owned()
            }
            Self::State { .. } => {
                "nothing was changed: make it a directory of the daemon's user, which has the use of quotas stored there"
                    .to_owned()
            }
            Self::Lease(error) => format!("nothing was changed: {}", error.help()),
            Self::Route(error) => format!("nothing was changed: {}", error.help()),
        }
    }
}

impl Config {
    /// The keys that cannot change at run time and are others in `other`.
    pub(crate) fn fixed_differences(&self, other: &Self) -> Vec<&'static str> {
        let (tunnel, lane) = ((&self.tunnel, &other.tunnel), (&self.lane, &other.lane));
        let keys = [
            ("identity.key", self.identity != other.identity),
            ("tunnel.name", tunnel.0.name != tunnel.1.name),
            ("tunnel.addresses", tunnel.0.addresses != tunnel.1.addresses),
            ("tunnel.addresses_from", tunnel.0.addresses_from != tunnel.1.addresses_from),
            ("tunnel.assign", tunnel.0.assign != tunnel.1.assign),
            ("tunnel.mtu", tunnel.0.mtu != tunnel.1.mtu),
            ("tunnel.queues", tunnel.0.queues != tunnel.1.queues),
            ("tunnel.kill_switch", tunnel.0.kill_switch != tunnel.1.kill_switch),
            ("tunnel.transport", tunnel.0.transport != tunnel.1.transport),
            ("tunnel.ecn", tunnel.0.ecn != tunnel.1.ecn),
            ("listen.port", self.listen != other.listen),
            ("lane.connections", lane.0.connections != lane.1.connections),
            ("lane.spare", lane.0.spare != lane.1.spare),
            ("lane.buffer_mib", lane.0.buffer_mib != lane.1.buffer_mib),
            ("lane.memory_mib", lane.0.memory_mib != lane.1.memory_mib),
            ("lane.keep_alive", lane.0.keep_alive != lane.1.keep_alive),
            ("lane.cc", lane.0.cc != lane.1.cc),
            ("control.socket", self.control.socket != other.control.socket),
            ("control.group", self.control.group != other.control.group),
            ("daemon.user", self.daemon.user != other.daemon.user),
            ("daemon.state", self.daemon.state != other.daemon.state),
            ("metrics.listen", self.metrics.listen != other.metrics.listen),
            ("metrics.allow_remote", self.metrics.allow_remote != other.metrics.allow_remote),
        ];
        keys.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
    }

    /// The prefixes behind all peers.
    pub(crate) fn prefixes(&self) -> Vec<IpNet> {
        self.peers.iter().flat_map(|peer| peer.prefixes.clone()).collect()
    }

    /// The peers, and nobody else.
    pub(crate) fn accept(&self) -> Accept {
        Accept::Only(self.peers.iter().map(|peer| peer.hit).collect())
    }
}

impl Daemon {
    /// Goes on with another configuration, and warns of what may be a mistake. An error leaves everything as it was.
    pub async fn reload(&self, config: &Config) -> Result<Vec<String>, ReloadError> {
        let _alone = self.changing.lock().await;
        let before = self.config();
        let keys = before.fixed_differences(config);
        if !keys.is_empty() {
            return Err(ReloadError::Fixed { keys });
        }
        self.keeps_paths(&config.paths)?;
        if before.paths.quota.is_empty() && !config.paths.quota.is_empty() {
            may_store(&config.daemon.state)?;
        }
        let config = &leases::assign(config)?;
        self.rules.arm(&config.protected()).await?;
        if let Err(error) = self.routes.add(config).await {
            self.settle(&before).await;
            return Err(error.into());
        }
        self.exclusion.replace(&config.lane);
        self.view.lane.packets.peers.send_twice(config.lane.twice());
        self.view.quotas.replace(&config.paths.quota);
        let choice = Choice { spent: self.view.quotas.spent(), ..config.choice(&self.view.device) };
        self.view.choice.change(|now| *now = Choice { called_up: now.called_up, ..choice });
        self.view.lane.outer.accept_peers(config.accept());
        self.view.lane.outer.limit_connections(outer_connections(config));
        let changed = self.view.lane.peers.replace(&config.peers);
        self.follow(&changed);
        self.set_config(config);
        self.routes.settle(config).await;
        if before.protected() != config.protected() {
            self.settle(config).await;
        }
        info!("configuration read again");
        Ok(self.look_over_paths())
    }

    fn follow(&self, changed: &Changed) {
        for peer in &changed.removed {
            info!(peer = %name(peer), "no peer any more");
            self.view.lane.outer.dissociate(peer.config.hit);
        }
        changed.altered.iter().for_each(|peer| peer.link.changed.notify_waiters());
        changed.added.iter().for_each(|hit| self.serve(*hit));
    }
}

/// An error if nothing can be stored in `dir`, which is made.
fn may_store(dir: &Path) -> Result<(), ReloadError> {
    let stored = fs::create_dir_all(dir).and_then(|()| tempfile::tempfile_in(dir));
    stored.map(drop).map_err(|source| ReloadError::State { dir: dir.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::GOOD;

    #[test]
    fn what_is_settled_at_the_start_is_named_and_the_rest_may_change() {
        let before = Config::parse("a", GOOD).unwrap();
        for (change, fixed) in [
            ("[identity]\nkey = \"/k\"\n", Some("identity.key")),
            ("[listen]\nport = 7\n", Some("listen.port")),
            ("transport = \"rm_tcp\"\n", Some("tunnel.transport")),
            ("ecn = false\n", Some("tunnel.ecn")),
            ("[lane]\nspare = 3\n", Some("lane.spare")),
            ("[lane]\nkeep_alive = 5\n", Some("lane.keep_alive")),
            ("[lane]\ncc = { algorithm = \"cubic\" }\n", Some("lane.cc")),
            ("[control]\nsocket = \"/s\"\n", Some("control.socket")),
            ("[metrics]\nlisten = \"127.0.0.1:9510\"\n", Some("metrics.listen")),
            ("[lane]\nexclude = [\"10.1.0.0/16\"]\nexclude_ports = [5]\nduplicate = [{ dscp = 46 }]\n", None),
            (
                "[paths]\nexclude = [\"eth*\"]\nlimit = { wwan0 = \"10M\" }\nquota = { wwan0 = \"5 GB\" }\nprefer = [\"wlan0\"]\n",
                None,
            ),
        ] {
            let after = Config::parse("b", &GOOD.replace("[[peer]]", &format!("{change}[[peer]]"))).unwrap();
            assert_eq!(before.fixed_differences(&after), fixed.as_slice());
        }
        let after = Config::parse(
            "b",
            &GOOD.replace("[tunnel]", "[lane]\nspare = 3\n[tunnel]\nmtu = 1300\nqueues = 4"),
        )
        .unwrap();
        assert_eq!(before.fixed_differences(&after), ["tunnel.mtu", "tunnel.queues", "lane.spare"]);
        let after = Config::parse("b", &GOOD.replace("10.99.0.2", "10.99.0.3")).unwrap();
        assert!(before.fixed_differences(&after).is_empty());
    }
}
