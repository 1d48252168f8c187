//! Which interfaces of this host are used.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::slice::from_ref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glob::Pattern;
use nix::net::if_::if_nameindex;
use polypath_wire::Rate;

use crate::addresses::{Address, index, usable};

/// How the names of tunnels of a daemon begin, unless its configuration has another one.
const TUNNELS: &str = "polypath";

/// A choice among the interfaces of this host, by their names or by patterns with `*` and `?`. Loopback, which reaches this host itself, is always used.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Choice {
    /// The interfaces that may be used; empty: all.
    pub only: Vec<String>,
    /// The interfaces that are not used.
    pub except: Vec<String>,
    /// The number of an interface that is not used, whatever its name and the lists say: the tunnel itself.
    pub never: Option<u32>,
    /// The interfaces that are used whatever `only` and `except` say.
    pub always: Vec<String>,
    /// The interfaces that are used only while no other one has an address, or while they are called up.
    pub backup: Vec<String>,
    /// If there are any, all others are for what these have no room for.
    pub prefer: Vec<String>,
    /// The interfaces whose quota is used up: backups too.
    pub spent: Vec<String>,
    /// What data sent over an interface on one path never exceed.
    pub limits: BTreeMap<String, Rate>,
    /// What all that is sent over an interface together never exceeds.
    pub rates: BTreeMap<String, Rate>,
    /// The mark of what is sent in UDP (`SO_MARK`, which takes `CAP_NET_ADMIN`), by which rules of routing know it.
    pub mark: Option<u32>,
    /// Whether backups are used though others have addresses.
    pub called_up: bool,
}

/// A choice that may change while it is in use. Clones share it.
#[derive(Clone, Default, Debug)]
pub struct LiveChoice(Arc<Live>);

#[derive(Default, Debug)]
struct Live {
    choice: Mutex<Choice>,
    /// How often it changed.
    version: AtomicU64,
}

impl Choice {
    /// Uses `only`, or all interfaces if it is empty, and `backup` for backup, none beyond its limit.
    pub fn new(only: Vec<String>, backup: Vec<String>, limits: BTreeMap<String, Rate>) -> Self {
        Self { only, backup, limits, ..Self::default() }
    }

    /// An error names a chosen interface that does not exist.
    pub fn check(&self) -> Result<(), String> {
        let mut named = self.only.iter().chain(&self.backup).chain(self.limits.keys());
        match named.find(|name| index(name).is_none()) {
            Some(name) => Err(format!("no network interface is called {name}")),
            None => Ok(()),
        }
    }

    /// Those of `only` that fit no interface of this host now.
    pub fn unmatched(&self) -> Vec<String> {
        let Ok(interfaces) = if_nameindex() else { return Vec::new() };
        let names: Vec<&str> = interfaces.iter().filter_map(|one| one.name().to_str().ok()).collect();
        let fits = |pattern| names.iter().any(|name| contains(from_ref(pattern), name));
        self.only.iter().filter(|pattern| !fits(pattern)).cloned().collect()
    }

    /// Whether an address may be used at all.
    pub fn admits(&self, address: &Address) -> bool {
        address.device.as_ref().is_none_or(|device| self.admits_device(device))
    }

    /// Whether the addresses of an interface may be used at all. Tunnels of ours only if they are named.
    pub fn admits_device(&self, device: &str) -> bool {
        let any = self.only.is_empty() && !device.starts_with(TUNNELS);
        let chosen = any || contains(&self.only, device) || contains(&self.backup, device);
        let admitted = contains(&self.always, device) || chosen && !contains(&self.except, device);
        admitted && self.never.is_none_or(|never| index(device) != Some(never))
    }

    /// The limit of the interface that has an address.
    pub fn limit(&self, address: &Address) -> Option<Rate> {
        address.device.as_ref().and_then(|device| self.limits.get(device)).copied()
    }

    /// Whether any interface may be a backup.
    pub fn has_backups(&self) -> bool {
        !self.backup.is_empty() || !self.spent.is_empty()
    }

    /// All usable addresses of the backups.
    pub fn backups(&self) -> io::Result<Vec<IpAddr>> {
        let mut addresses = usable()?;
        addresses.retain(|address| address.device.as_ref().is_some_and(|device| self.is_backup(device)));
        Ok(addresses.into_iter().map(|address| address.ip).collect())
    }

    /// Whether an interface is a backup.
    pub fn is_backup(&self, device: &str) -> bool {
        contains(&self.backup, device) || self.spent.iter().any(|spent| spent == device)
    }

    /// Whether an interface is for what others have no room for.
    pub fn spills(&self, device: &str) -> bool {
        !self.prefer.is_empty() && !contains(&self.prefer, device)
    }

    /// Those of `addresses` that are used now.
    pub fn of(&self, mut addresses: Vec<Address>) -> Vec<Address> {
        addresses.retain(|address| self.admits(address));
        let is_first = |address: &Address| address.device.as_ref().map(|device| !self.is_backup(device));
        let has_first = addresses.iter().any(|address| is_first(address) == Some(true));
        let all = !has_first || self.called_up;
        addresses.retain(|address| all || is_first(address) != Some(false));
        addresses
    }
}

impl From<Choice> for LiveChoice {
    fn from(choice: Choice) -> Self {
        Self(Arc::new(Live { choice: Mutex::new(choice), version: AtomicU64::new(0) }))
    }
}

impl LiveChoice {
    /// The choice as it is now.
    pub fn now(&self) -> Choice {
        self.lock().clone()
    }

    /// Changes it. [`HostSockets`](crate::HostSockets) notices when the driver next runs, 2 s later at most.
    pub fn change(&self, change: impl FnOnce(&mut Choice)) {
        let mut choice = self.lock();
        let before = choice.clone();
        change(&mut choice);
        if *choice != before {
            self.0.version.fetch_add(1, Ordering::Release);
        }
    }

    /// Has the backups used though others have addresses, or not any more.
    pub fn call_up(&self, backups: bool) {
        self.change(|choice| choice.called_up = backups);
    }

    /// How often it changed.
    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Choice> {
        self.0.choice.lock().unwrap_or_else(PoisonError::into_inner)
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
        Address { ip: [10, 0, 0, last].into(), device, index: None, mtu: None }
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
        let live = LiveChoice::from(backup.clone());
        live.clone().call_up(true);
        assert_eq!(names(&live.now(), &all), ["lo", "eth0", "wlan0", "wwan0"]);
        live.call_up(false);
        assert_eq!((live.now(), live.version()), (backup.clone(), 2));
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
        let most = Choice { except: text(&["eth1"]), ..Choice::default() };
        assert!(admits(&most, "eth0") && !admits(&most, "eth1"));
    }

    #[test]
    fn a_tunnel_is_no_uplink_unless_it_is_named() {
        let tunnel = address(1, "polypath0");
        let named = || vec!["polypath0".to_owned()];
        assert!(!Choice::default().admits(&tunnel));
        assert!(Choice { only: named(), ..Choice::default() }.admits(&tunnel));
        assert!(Choice { always: named(), ..Choice::default() }.admits(&tunnel));
    }

    #[test]
    fn what_has_the_number_that_is_never_used_has_no_name_that_helps() {
        let lo = || vec!["lo".to_owned()];
        let chosen = Choice { only: lo(), always: lo(), ..Choice::default() };
        assert!(chosen.admits_device("lo"));
        assert!(!Choice { never: index("lo"), ..chosen }.admits_device("lo"));
    }

    #[test]
    fn what_fits_no_interface_is_named() {
        let only = ["lo", "l?", "nope*"].map(str::to_owned).into();
        assert_eq!(Choice { only, ..Choice::default() }.unmatched(), ["nope*"]);
        assert!(Choice::default().unmatched().is_empty());
    }

    #[test]
    fn all_but_the_preferred_spill_and_what_is_always_used_overrules_the_lists() {
        let all = vec![address(2, "eth0"), address(3, "wlan0"), address(4, "wwan0")];
        let prefer = Choice { prefer: vec!["eth*".into()], ..Choice::default() };
        let used =
            |choice: &Choice| choice.of(all.clone()).into_iter().filter_map(|a| a.device).collect::<Vec<_>>();
        assert_eq!(used(&prefer), ["eth0", "wlan0", "wwan0"]);
        assert_eq!(["eth0", "wlan0", "wwan0"].map(|device| prefer.spills(device)), [false, true, true]);
        assert!(!Choice::default().spills("eth0") && !prefer.has_backups());
        let spent = Choice { spent: vec!["wwan0".into()], ..Choice::default() };
        assert_eq!(used(&spent), ["eth0", "wlan0"]);
        let all_spent = Choice { spent: ["eth0", "wlan0", "wwan0"].map(Into::into).into(), ..spent };
        assert_eq!(used(&all_spent).len(), 3, "nobody is cut off");
        let (only, except) = (vec!["eth0".into()], vec!["w*".into()]);
        let always = Choice { only, except, always: vec!["wwan0".into()], ..Choice::default() };
        assert_eq!(used(&always), ["eth0", "wwan0"]);
    }
}
