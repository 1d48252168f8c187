//! What `[paths]` must satisfy: names that interfaces can have, and no two lists that contradict each other.

use polypath_node::Choice;

use super::is_interface;
use crate::config::Config;
use crate::config::error::Problem;

/// What to write where an interface is named.
const NAME: &str = "write each interface by its name, as `ip link` shows it, for example wwan0";
/// More than any name has: what fits that in place of `*` fits all.
const ANY: &str = "****************";

impl Config {
    pub(super) fn check_paths(&self) -> Result<(), Problem> {
        self.check_single()?;
        let paths = &self.paths;
        let lists = [
            ("include", &paths.include),
            ("exclude", &paths.exclude),
            ("prefer", &paths.prefer),
            ("backup", &paths.backup),
        ];
        for (key, list) in lists {
            for (n, entry) in list.iter().enumerate() {
                let wrong = self.wrong_entry(key, entry);
                if let Some((why, help)) = wrong {
                    return Err(Problem::item(&["paths", key], n).says(why).help(help));
                }
            }
        }
        Ok(())
    }

    /// A limit and a quota are of one interface each.
    fn check_single(&self) -> Result<(), Problem> {
        let limits = self.paths.limit.keys().map(|name| ("limit", name));
        let mut named = limits.chain(self.paths.quota.keys().map(|name| ("quota", name)));
        let wrong = named.find(|(_, name)| is_pattern(name) || !is_interface(name));
        let Some((key, name)) = wrong else { return Ok(()) };
        let what = if is_pattern(name) {
            "a pattern, and no interface's name"
        } else {
            "not a valid name of an interface"
        };
        Err(Problem::new(&["paths", key, name], format!("\"{name}\" is {what}")).help(NAME))
    }

    /// Why `entry` of the list `key` can have no effect, and what to do about it. What names fewer interfaces than the other list does is an
    /// exception from it, and not meant here.
    fn wrong_entry(&self, key: &str, entry: &str) -> Option<(String, &'static str)> {
        let paths = &self.paths;
        let says = |what: &str, help| Some((format!("\"{entry}\" is {what}"), help));
        if !(is_pattern(entry) || is_interface(entry)) {
            return says("not a valid name of an interface", NAME);
        }
        if key == "exclude" {
            return None;
        }
        if entry == self.tunnel.name {
            return says("the tunnel itself", NAME);
        }
        if takes(&paths.exclude, entry) {
            return says("in exclude too, and carries nothing", "leave it out of one of the two lists");
        }
        if key == "prefer" && takes(&paths.backup, entry) {
            return says(
                "in backup too, and carries nothing while others do",
                "leave it out of one of the two lists",
            );
        }
        let used = paths.include.is_empty() || takes(&paths.include, entry) || is_pattern(entry);
        if key == "prefer" && !used {
            return says("not in include, and carries nothing", "add it to include, or leave it out here");
        }
        None
    }
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?'])
}

/// Whether `list` names every interface that `entry` does.
fn takes(list: &[String], entry: &str) -> bool {
    let all = Choice { only: list.to_vec(), ..Choice::default() };
    !list.is_empty() && (list.iter().any(|one| one == entry) || all.admits_device(&entry.replace('*', ANY)))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::config::tests::{GOOD, error};

    fn with(paths: &str) -> String {
        format!("[paths]\n{paths}\n{GOOD}")
    }

    #[test]
    fn a_limit_or_a_quota_of_what_is_no_interface_is_refused() {
        for (key, value) in [("limit", "10Mbit/s"), ("quota", "5GB")] {
            for (name, why) in [("wwan*", "a pattern"), ("wwan0 wwan1", "not a valid name of an interface")] {
                let said = error(&with(&format!("{key} = {{ \"{name}\" = \"{value}\" }}")));
                let why = format!("\"{name}\" is {why}");
                let parts = [":2:", key, &why, "help: write each interface by its name"];
                assert!(parts.iter().all(|part| said.contains(part)), "{said}");
            }
        }
    }

    #[test]
    fn lists_that_contradict_each_other_are_refused_with_the_reason() {
        for (paths, parts) in [
            ("prefer = [\"eth0\"]\nexclude = [\"eth0\"]", [":2:", "paths.prefer[0]", "in exclude too"]),
            (
                "include = [\"eth0\", \"eth1\"]\nexclude = [\"eth1\"]",
                [":2:", "paths.include[1]", "in exclude too"],
            ),
            ("backup = [\"wwan0\"]\nexclude = [\"w*\"]", [":2:", "paths.backup[0]", "in exclude too"]),
            ("prefer = [\"wwan*\"]\nexclude = [\"w*\"]", [":2:", "paths.prefer[0]", "in exclude too"]),
            ("prefer = [\"eth0\"]\nbackup = [\"eth0\"]", [":2:", "paths.prefer[0]", "in backup too"]),
            ("prefer = [\"wlan0\"]\ninclude = [\"eth*\"]", [":2:", "paths.prefer[0]", "not in include"]),
            ("include = [\"polypath0\"]", [":2:", "paths.include[0]", "the tunnel itself"]),
            ("include = [\"eth0, eth1\"]", [":2:", "paths.include[0]", "not a valid name of an interface"]),
            ("exclude = [\"\"]", [":2:", "paths.exclude[0]", "not a valid name of an interface"]),
        ] {
            let said = error(&with(paths));
            let is_said = parts.iter().chain(&["help: "]).all(|part| said.contains(part));
            assert!(is_said, "{paths}: {said}");
        }
    }

    #[test]
    fn what_names_fewer_interfaces_is_an_exception_and_no_contradiction() {
        for paths in [
            "include = [\"eth*\"]\nexclude = [\"eth1\"]",
            "include = [\"eth0\", \"wwan0\"]\nbackup = [\"wwan0\"]",
            "include = [\"eth*\"]\nbackup = [\"wwan*\"]\nprefer = [\"eth0\"]",
            "prefer = [\"eth*\"]\nexclude = [\"eth?\"]",
            "prefer = [\"*\"]\nbackup = [\"wwan0\"]",
            "exclude = [\"polypath0\"]",
        ] {
            let read = Config::parse("a", &with(paths));
            assert!(read.is_ok(), "{paths}: {}", read.unwrap_err());
        }
    }
}
