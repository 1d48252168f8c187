//! Which interfaces carry paths, and changes of that while the daemon runs.

use std::fmt;

use polypath_node::Choice;
use polypath_node::addresses::usable;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tracing::{info, warn};

use crate::config::{Config, Paths, similar};
use crate::daemon::Daemon;
use crate::device::Device;
use crate::interfaces::{InterfaceStatus, Use, devices};
use crate::kill_switch::MARK;
use crate::rate::Limit;
use crate::reload::ReloadError;

/// A change to which interfaces carry paths. It lasts until the configuration is read again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathsChange {
    /// These are used, whatever the configuration says.
    Add(Vec<String>),
    /// These are not.
    Remove(Vec<String>),
    /// No more is sent over one than this; without a limit: what it takes.
    Limit(String, Option<Limit>),
    /// All others are for what these have no room for; empty: all are alike.
    Prefer(Vec<String>),
}

/// Why nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PathsError {
    /// There is no such interface.
    #[error("no network interface is called {name}")]
    Unknown {
        /// What it was called.
        name: String,
        /// Those that there are.
        all: Vec<String>,
    },
    /// It is the loopback interface.
    #[error("{0} leads to no other host")]
    Loopback(String),
    /// It is the TUN device.
    #[error("{0} is the tunnel itself")]
    Tunnel(String),
    /// No other interface that can carry paths is left.
    #[error("no other interface would carry paths")]
    Last,
}

impl PathsError {
    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Unknown { all, .. } if all.is_empty() => {
                "none has a usable address: see `ip address`".into()
            }
            Self::Unknown { name, all } => {
                let usable = all.join(", ");
                match similar(name, all.iter().map(String::as_str)) {
                    Some(meant) => format!("did you mean {meant}? Those with a usable address: {usable}"),
                    None => format!("those with a usable address: {usable}"),
                }
            }
            Self::Loopback(_) | Self::Tunnel(_) => {
                "name an interface that leads to the Internet: `polypath paths` lists them".into()
            }
            Self::Last => {
                "`polypath paths add IFACE` another one first; `polypath down` ends the daemon".into()
            }
        }
    }
}

impl Config {
    /// What it says of interfaces, with `device`, the tunnel, left out, and of what leaves over them.
    pub(crate) fn choice(&self, device: &Device) -> Choice {
        Choice { mark: self.tunnel.kill_switch.then_some(MARK), ..self.paths.choice(Some(device.index)) }
    }

    /// What `[paths]` names in vain now, which may be a mistake, and whether none of `interfaces` carries paths.
    pub fn doubts(&self, interfaces: &[InterfaceStatus]) -> Vec<String> {
        let in_vain = |(key, one): (_, String)| {
            let meant = similar(&one, interfaces.iter().map(|one| one.name.as_str()));
            let meant = meant.map(|meant| format!(": did you mean {meant:?}?")).unwrap_or_default();
            format!("[paths] {key}: no interface fits {one:?} now{meant}")
        };
        let mut doubts: Vec<_> = self.paths.unmatched().into_iter().map(in_vain).collect();
        if interfaces.iter().all(|interface| interface.used == Use::Excluded) {
            let why =
                if interfaces.is_empty() { "none has a usable address" } else { "[paths] leaves out all" };
            doubts.push(format!("no interface carries paths: {why} (`polypath check` lists them)"));
        }
        doubts
    }
}

impl Paths {
    /// What `[paths]` names and no interface fits now: the key, and the name or pattern.
    fn unmatched(&self) -> Vec<(&'static str, String)> {
        let (limit, quota) = (self.limit.keys().cloned().collect(), self.quota.keys().cloned().collect());
        let lists = [
            ("include", self.include.clone()),
            ("exclude", self.exclude.clone()),
            ("prefer", self.prefer.clone()),
            ("backup", self.backup.clone()),
            ("limit", limit),
            ("quota", quota),
        ];
        let of_list = |(key, only)| {
            let missing = Choice { only, ..Choice::default() }.unmatched();
            missing.into_iter().map(move |one| (key, one))
        };
        lists.into_iter().flat_map(of_list).collect()
    }

    pub(crate) fn choice(&self, tunnel: Option<u32>) -> Choice {
        Choice {
            only: self.include.clone(),
            except: self.exclude.clone(),
            never: tunnel,
            backup: self.backup.clone(),
            prefer: self.prefer.clone(),
            rates: self.limit.iter().map(|(name, limit)| (name.clone(), limit.0)).collect(),
            ..Choice::default()
        }
    }
}

/// For the log.
impl fmt::Display for PathsChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(names) => write!(f, "paths add {}", names.join(" ")),
            Self::Remove(names) => write!(f, "paths remove {}", names.join(" ")),
            Self::Limit(name, Some(limit)) => write!(f, "paths limit {name} {limit}"),
            Self::Limit(name, None) => write!(f, "paths limit {name} none"),
            Self::Prefer(names) if names.is_empty() => write!(f, "paths prefer, no interface"),
            Self::Prefer(names) => write!(f, "paths prefer {}", names.join(" ")),
        }
    }
}

impl PathsChange {
    fn names(&self) -> Vec<String> {
        match self {
            Self::Add(names) | Self::Remove(names) | Self::Prefer(names) => names.clone(),
            Self::Limit(name, _) => vec![name.clone()],
        }
    }

    fn apply(&self, choice: &mut Choice) {
        match self {
            Self::Add(names) => {
                choice.except.retain(|name| !names.contains(name));
                choice.always.extend(names.iter().cloned());
            }
            Self::Remove(names) => {
                choice.always.retain(|name| !names.contains(name));
                choice.except.extend(names.iter().cloned());
            }
            Self::Limit(name, Some(limit)) => _ = choice.rates.insert(name.clone(), limit.0),
            Self::Limit(name, None) => _ = choice.rates.remove(name),
            Self::Prefer(names) => choice.prefer = names.clone(),
        }
    }
}

impl Daemon {
    /// Warns of what `[paths]` names in vain, which may be a mistake, and if nothing carries paths now.
    pub fn look_over_paths(&self) -> Vec<String> {
        let warnings = self.config().doubts(&self.view.interfaces());
        warnings.iter().for_each(|warning| warn!("{warning}"));
        warnings
    }

    /// Refuses `[paths]` that leaves out every interface that carries paths now, as a mistyped name does.
    pub(crate) fn keeps_paths(&self, paths: &Paths) -> Result<(), ReloadError> {
        let interfaces = self.status().interfaces;
        let names: Vec<_> =
            interfaces.iter().filter(|one| one.carries()).map(|one| one.name.clone()).collect();
        let key = if paths.include.is_empty() { "exclude" } else { "include" };
        match names.is_empty() || leaves_paths(&interfaces, &paths.choice(Some(self.view.device.index))) {
            true => Ok(()),
            false => Err(ReloadError::NoPaths { key, names }),
        }
    }

    /// Changes which interfaces carry paths. Connections stay: what was under way over one that goes is sent again over others.
    pub fn change_paths(&self, change: &PathsChange) -> Result<(), PathsError> {
        let all = usable().unwrap_or_default();
        let (devices, tunnel) = (devices(&all), self.view.device.name());
        for name in change.names() {
            if name == tunnel {
                return Err(PathsError::Tunnel(name));
            }
            if name == "lo" {
                return Err(PathsError::Loopback(name));
            }
            if !devices.contains_key(&name) && nix::net::if_::if_nametoindex(name.as_str()).is_err() {
                let all = devices.into_keys().filter(|other| *other != tunnel).collect();
                return Err(PathsError::Unknown { name, all });
            }
        }
        let mut then = self.view.choice.now();
        change.apply(&mut then);
        if matches!(change, PathsChange::Remove(_)) && !leaves_paths(&self.status().interfaces, &then) {
            return Err(PathsError::Last);
        }
        self.view.choice.change(|choice| change.apply(choice));
        info!("{change}");
        self.view.lane.outer.look();
        Ok(())
    }
}

/// Whether one of the interfaces that can carry paths now is left by `choice`. If none can, each counts.
fn leaves_paths(interfaces: &[InterfaceStatus], choice: &Choice) -> bool {
    let is_left = |one: &InterfaceStatus| choice.admits_device(&one.name);
    match interfaces.iter().any(InterfaceStatus::carries) {
        true => interfaces.iter().filter(|one| one.carries()).any(is_left),
        false => interfaces.iter().any(is_left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_interface_that_can_carry_paths_stays() {
        let one = |name: &str, used| InterfaceStatus {
            name: name.into(),
            addresses: Vec::new(),
            used,
            limit_mbps: None,
            quota: None,
            why: None,
        };
        let lan = || one("lan0", Use::NoPath);
        let without = |name: &str| Choice { except: vec![name.into()], ..Choice::default() };
        let (wan, spare) = (one("wan0", Use::Used), one("wan1", Use::Backup));
        assert!(!leaves_paths(&[lan(), wan.clone()], &without("wan0")));
        assert!(leaves_paths(&[lan(), wan.clone()], &without("lan0")));
        assert!(leaves_paths(&[lan(), wan, spare], &without("wan0")), "a backup has no path while others do");
        let other = one("lan1", Use::NoPath);
        assert!(leaves_paths(&[lan(), other], &without("lan1")), "neither carries anything yet");
        assert!(!leaves_paths(&[lan()], &without("lan0")));
    }

    #[test]
    fn what_is_added_is_used_though_excluded_and_what_is_removed_is_not_though_included() {
        let config = Paths { include: vec!["eth*".into()], exclude: vec!["eth1".into()], ..Paths::default() };
        let mut choice = config.choice(None);
        let change = |choice: &mut Choice, change: PathsChange| change.apply(choice);
        change(&mut choice, PathsChange::Add(vec!["eth1".into(), "wwan0".into()]));
        assert!(["eth0", "eth1", "wwan0"].iter().all(|name| choice.admits_device(name)));
        change(&mut choice, PathsChange::Remove(vec!["wwan0".into(), "eth0".into()]));
        assert!(
            choice.admits_device("eth1") && !choice.admits_device("eth0") && !choice.admits_device("wwan0")
        );
        change(&mut choice, PathsChange::Prefer(vec!["eth1".into()]));
        assert!(choice.spills("eth0") && !choice.spills("eth1") && !choice.is_backup("eth0"));
        let limit = "10M".parse().unwrap();
        change(&mut choice, PathsChange::Limit("eth1".into(), Some(limit)));
        assert_eq!(choice.rates.get("eth1"), Some(&limit.0));
        change(&mut choice, PathsChange::Limit("eth1".into(), None));
        assert!(choice.rates.is_empty() && !choice.admits_device("polypath0"));
    }
}
