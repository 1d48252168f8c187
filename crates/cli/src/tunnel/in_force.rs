//! What is in force after `polypath reload` and the changes of `polypath paths`, in a line for each interface.

use polypath_daemon::{InterfaceStatus, PathsChange, Status, Use};

/// What became of a change of paths.
pub fn of_change(change: &PathsChange, interfaces: &[InterfaceStatus]) -> String {
    let line = |name: &String| format!("{name}: {}", of_interface(change, of(name, interfaces)));
    match change {
        PathsChange::Add(names) | PathsChange::Remove(names) => {
            names.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        PathsChange::Limit(name, _) => line(name),
        PathsChange::Prefer(names) if names.is_empty() => "no interface is preferred".to_owned(),
        PathsChange::Prefer(names) => {
            let preferred = format!("{}: preferred", names.join(", "));
            match listed(interfaces, &[Use::Spill]) {
                none if none.is_empty() => preferred,
                others => format!("{preferred}; {others}: for overflow only"),
            }
        }
    }
}

fn of<'a>(name: &str, interfaces: &'a [InterfaceStatus]) -> Option<&'a InterfaceStatus> {
    interfaces.iter().find(|one| one.name == *name)
}

fn of_interface(change: &PathsChange, one: Option<&InterfaceStatus>) -> String {
    if let PathsChange::Limit(_, asked) = change {
        let now = one.map_or(asked.map(|limit| limit.0.0 as f64 / 1e6), |one| one.limit_mbps);
        return now.map_or("no limit".to_owned(), |rate| format!("limited to {rate} Mbit/s"));
    }
    let now = match one.map(|one| one.used) {
        _ if matches!(change, PathsChange::Remove(_)) => "not used",
        None => "used once it has a usable address",
        Some(Use::Excluded) => "not used",
        Some(Use::NoPath) => "used, no path yet",
        Some(Use::Spill) => "used for overflow only",
        Some(Use::Backup) => "used as a backup",
        Some(Use::Used) => "used",
    };
    now.to_owned()
}

/// What a configuration that was read again has to do with now.
pub fn of_configuration(status: &Status) -> String {
    let peers = match status.peers.len() {
        1 => "1 peer".to_owned(),
        n => format!("{n} peers"),
    };
    let over = match listed(&status.interfaces, &[Use::Used, Use::Spill, Use::Backup]) {
        none if none.is_empty() => "no path yet".to_owned(),
        names => format!("paths over {names}"),
    };
    format!("configuration read again: {peers}, {over}")
}

/// The names of the interfaces that are for one of `uses`.
fn listed(interfaces: &[InterfaceStatus], uses: &[Use]) -> String {
    let names = interfaces.iter().filter(|one| uses.contains(&one.used)).map(|one| one.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, used: Use, limit_mbps: Option<f64>) -> InterfaceStatus {
        InterfaceStatus { name: name.into(), addresses: vec![], used, limit_mbps, quota: None, why: None }
    }

    #[test]
    fn a_change_is_told_as_the_daemon_has_it() {
        let now = [
            one("eth0", Use::Used, None),
            one("wlan0", Use::Spill, Some(0.5)),
            one("wwan0", Use::NoPath, None),
            one("wwan1", Use::Backup, None),
            one("lan0", Use::Excluded, None),
        ];
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let limit = Some("10M".parse().unwrap());
        for (change, told) in [
            (PathsChange::Add(names(&["eth0", "wwan0"])), "eth0: used\nwwan0: used, no path yet"),
            (PathsChange::Add(names(&["wwan1"])), "wwan1: used as a backup"),
            (PathsChange::Add(names(&["usb0"])), "usb0: used once it has a usable address"),
            (PathsChange::Remove(names(&["lan0", "usb0"])), "lan0: not used\nusb0: not used"),
            (PathsChange::Limit("wlan0".into(), limit), "wlan0: limited to 0.5 Mbit/s"),
            (PathsChange::Limit("usb0".into(), limit), "usb0: limited to 10 Mbit/s"),
            (PathsChange::Limit("eth0".into(), None), "eth0: no limit"),
            (PathsChange::Prefer(names(&["eth0"])), "eth0: preferred; wlan0: for overflow only"),
            (PathsChange::Prefer(vec![]), "no interface is preferred"),
        ] {
            assert_eq!(of_change(&change, &now), told);
        }
        assert_eq!(of_change(&PathsChange::Prefer(names(&["eth0"])), &now[..1]), "eth0: preferred");
    }
}
