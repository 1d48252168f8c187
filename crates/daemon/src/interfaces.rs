//! The interfaces of this host, and what each is for.

use std::collections::BTreeMap;
use std::net::IpAddr;

use polypath_node::Choice;
use polypath_node::addresses::{Address, usable};
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::quota::QuotaStatus;
use crate::view::View;

/// What an interface is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// It carries paths.
    Used,
    /// It carries what the others have no room for.
    Spill,
    /// It carries paths when the others carry nothing.
    Backup,
    /// It carries none.
    Excluded,
    /// It may carry paths, and has none.
    NoPath,
}

/// An interface with a usable address.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// What it is for.
    pub used: Use,
    /// The most that is sent over it, Mbit/s.
    pub limit_mbps: Option<f64>,
    /// What it may carry in this month.
    #[serde(default)]
    pub quota: Option<QuotaStatus>,
    /// Why no path leads over it although one may, as far as this host knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl InterfaceStatus {
    /// Whether it carries paths, or would if the others carried nothing.
    pub(crate) fn carries(&self) -> bool {
        !matches!(self.used, Use::Excluded | Use::NoPath)
    }
}

impl View {
    /// The interfaces with usable addresses, but for the tunnel.
    pub(crate) fn interfaces(&self) -> Vec<InterfaceStatus> {
        let all = by_choice(&self.choice.now(), &self.device.name());
        all.into_iter().map(|one| InterfaceStatus { quota: self.quotas.of(&one.name), ..one }).collect()
    }
}

impl Config {
    /// The interfaces with usable addresses, but for the tunnel, and what each would be for.
    pub fn interfaces(&self) -> Vec<InterfaceStatus> {
        by_choice(&self.paths.choice(None), &self.tunnel.name)
    }
}

fn by_choice(choice: &Choice, tunnel: &str) -> Vec<InterfaceStatus> {
    let all = usable().unwrap_or_default();
    let of = |(name, addresses): (String, Vec<IpAddr>)| InterfaceStatus {
        used: match () {
            () if !choice.admits_device(&name) => Use::Excluded,
            () if choice.is_backup(&name) => Use::Backup,
            () if choice.spills(&name) => Use::Spill,
            () => Use::Used,
        },
        limit_mbps: choice.rates.get(&name).map(|rate| rate.0 as f64 / 1e6),
        quota: None,
        why: None,
        name,
        addresses,
    };
    devices(&all).into_iter().filter(|(name, _)| name != tunnel).map(of).collect()
}

/// The addresses of each interface but loopback.
pub(crate) fn devices(all: &[Address]) -> BTreeMap<String, Vec<IpAddr>> {
    let mut devices: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for address in all {
        let device = address.device.iter().cloned();
        device.for_each(|device| devices.entry(device).or_default().push(address.ip));
    }
    devices
}
