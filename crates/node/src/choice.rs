//! Which interfaces of this host are used.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use glob::Pattern;
use polypath_wire::Rate;

use crate::addresses::{Address, index, usable};

/// A choice among the interfaces of this host, by their names or by patterns with `*` and `?`. Loopback, which reaches this host itself, is always used.
/// Clones share whether the backups are called up.
#[derive(Clone, Default, Debug)]
pub struct Choice {
    /// The interfaces that may be used; empty: all.
    pub only: Vec<String>,
    /// The interfaces that are not used.
    pub except: Vec<String>,
    /// The interfaces that are used only while no other one has an address, or while they are called up.
    pub backup: Vec<String>,
    /// What data sent over an interface on one path never exceed.
    pub limits: BTreeMap<String, Rate>,
    called_up: Arc<AtomicBool>,
}

impl Choice {
    /// An error names a chosen interface that does not exist.
    pub fn check(&self) -> Result<(), String> {
        match self
            .only
            .iter()
            .chain(&self.backup)
            .chain(self.limits.keys())
            .find(|name| index(name).is_none())
        {
            Some(name) => Err(format!("no network interface is called {name}")),
            None => Ok(()),
        }
    }

    /// Whether an address may be used at all.
    pub fn admits(&self, address: &Address) -> bool {
        let Some(device) = &address.device else { return true };
        let admitted = self.only.is_empty() || contains(&self.only, device) || self.backup.contains(device);
        admitted && !contains(&self.except, device)
    }

    /// Uses `only`, or all interfaces if it is empty, and `backup` for backup, none beyond its limit.
    pub fn new(only: Vec<String>, backup: Vec<String>, limits: BTreeMap<String, Rate>) -> Self {
        Self { only, backup, limits, ..Self::default() }
    }

    /// Has the backups used though others have addresses, or not any more. [`HostSockets`](crate::HostSockets) notices
    /// when the driver next runs, 2 s later at most.
    pub fn call_up(&self, backups: bool) {
        self.called_up.store(backups, Ordering::Relaxed);
    }

    /// The limit of the interface that has an address.
    pub fn limit(&self, address: &Address) -> Option<Rate> {
        address.device.as_ref().and_then(|device| self.limits.get(device)).copied()
    }

    pub(crate) fn is_called_up(&self) -> bool {
        self.called_up.load(Ordering::Relaxed)
    }

    /// All usable addresses of the backups.
    pub fn backups(&self) -> io::Result<Vec<IpAddr>> {
        let mut addresses = usable()?;
        addresses.retain(|address| self.is_backup(address));
        Ok(addresses.into_iter().map(|address| address.ip).collect())
    }

    fn is_backup(&self, address: &Address) -> bool {
        address.device.as_ref().is_some_and(|device| self.backup.contains(device))
    }

    /// Those of `addresses` that are used now.
    pub fn of(&self, mut addresses: Vec<Address>) -> Vec<Address> {
        addresses.retain(|address| self.admits(address));
        let has_other = addresses.iter().any(|address| address.device.is_some() && !self.is_backup(address));
        let all = !has_other || self.is_called_up();
        addresses.retain(|address| all || !self.is_backup(address));
        addresses
    }
}

/// Whether one of `patterns` matches `device`; a text that is no pattern matches itself.
fn contains(patterns: &[String], device: &str) -> bool {
    patterns.iter().any(|one| one == device || Pattern::new(one).is_ok_and(|p| p.matches(device)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8, device: &str) -> Address {
        let device = Some(device.to_owned()).filter(|device| device != "lo");
        Address { ip: [10, 0, 0, last].into(), device, mtu: None }
    }

    #[test]
    fn a_backup_is_used_while_nothing_else_is_there() {
        let all = vec![address(1, "lo"), address(2, "eth0"), address(3, "wlan0"), address(4, "wwan0")];
        let names = |choice: &Choice, all: &[Address]| {
            let used = choice.of(all.to_vec());
            used.iter().map(|a| a.device.clone().unwrap_or("lo".into())).collect::<Vec<_>>()
        };
        let text = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let backup = Choice::new(Vec::new(), text(&["wwan0"]), BTreeMap::new());
        assert_eq!(names(&backup, &all), ["lo", "eth0", "wlan0"]);
        backup.clone().call_up(true);
        assert_eq!(names(&backup, &all), ["lo", "eth0", "wlan0", "wwan0"]);
        backup.call_up(false);
        assert_eq!(names(&backup, &all), ["lo", "eth0", "wlan0"]);
        assert_eq!(names(&backup, &[all[0].clone(), all[3].clone()]), ["lo", "wwan0"]);
        let only = Choice::new(text(&["eth0"]), text(&["wwan0"]), BTreeMap::new());
        assert_eq!(names(&only, &all), ["lo", "eth0"]);
        assert_eq!(names(&only, &all[2..]), ["wwan0"]);
        assert_eq!(names(&Choice::default(), &all).len(), 4);
    }

    #[test]
    fn patterns_choose_and_exclude() {
        let text = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let admits = |choice: &Choice, device: &str| choice.admits(&address(1, device));
        let some = Choice { only: text(&["eth*", "wwan0"]), except: text(&["eth1?"]), ..Choice::default() };
        let used = ["eth0", "eth1", "eth10", "wwan0", "wwan1", "lo"].map(|device| admits(&some, device));
        assert_eq!(used, [true, true, false, true, false, true]);
        let most = Choice { except: text(&["polypath0"]), ..Choice::default() };
        assert!(admits(&most, "eth0") && !admits(&most, "polypath0"));
    }
}
