//! What a key takes: ranges, examples, and what is wrong with an address.

use std::net::IpAddr;

use ipnet::IpNet;

/// The least and the most of whole numbers. All of these are taken where there is no IPv6.
pub(in crate::config) const RANGES: [(&str, u64, u64); 9] = [
    ("tunnel.mtu", 576, u16::MAX as u64),
    ("tunnel.queues", 1, 16),
    ("listen.port", 0, u16::MAX as u64),
    ("lane.connections", 1, u32::MAX as u64),
    ("lane.spare", 0, 256),
    ("lane.buffer_mib", 1, 1024),
    ("lane.memory_mib", 16, u64::MAX),
    ("lane.keep_alive", 1, 86_400),
    ("lane.duplicate.dscp", 0, 63),
];

/// Whether `number` is in the range of `key`.
pub(in crate::config) fn takes(key: &str, number: u64) -> bool {
    RANGES.iter().any(|(name, least, most)| *name == key && (*least..=*most).contains(&number))
}

/// Which number to write at `key`, if not every one of its type is taken.
pub(super) fn range(key: &str) -> Option<String> {
    let (_, least, most) = RANGES.iter().find(|(name, ..)| *name == key)?;
    Some(match *most {
        u64::MAX => format!("a whole number, {least} or more"),
        most => format!("a whole number from {least} to {most}"),
    })
}

/// A value of the list at `key`.
pub(super) fn example(key: &str) -> &'static str {
    match key {
        "tunnel.addresses" => "\"10.99.0.1/24\"",
        "tunnel.assign" | "peer.prefixes" => "\"10.99.0.0/24\"",
        "lane.exclude" => "\"192.168.7.0/24\"",
        "lane.exclude_ports" => "179",
        "lane.duplicate" => "{ dscp = 46 }",
        "lane.duplicate.ports" => "5060",
        "peer.addresses" => "\"203.0.113.5\"",
        _ => "\"eth0\"",
    }
}

/// What is wrong with `written` at `key`, which takes an address and the length of a prefix, and what to write.
pub(super) fn network(key: &str, written: &str) -> (String, String) {
    let written = written.trim_matches(['"', '\'']);
    let (address, length) = written.split_once('/').unzip();
    let address = address.unwrap_or(written);
    let help = format!("write an address and the length of its prefix, for example {}", example(key));
    match address.parse::<IpAddr>() {
        Err(_) => (format!("\"{address}\" is no IP address"), help),
        Ok(ip) if length.is_some() => {
            let most = IpNet::from(ip).max_prefix_len();
            (format!("the length of the prefix is not from 0 to {most}"), help)
        }
        Ok(ip) => {
            let alone = match key {
                "peer.prefixes" | "lane.exclude" => format!("; \"{}\" is this one alone", IpNet::from(ip)),
                _ => String::new(),
            };
            ("the length of the prefix is missing".to_owned(), help + &alone)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::tests::{GOOD, error};

    /// A configuration in which `key` has that value.
    fn with(key: &str, value: &str) -> String {
        match key.split('.').collect::<Vec<_>>()[..] {
            ["tunnel", "addresses"] => GOOD.replace("[\"10.99.0.1/24\"]", value),
            ["tunnel", key] => GOOD.replace("[tunnel]", &format!("[tunnel]\n{key} = {value}")),
            ["peer", "prefixes"] => GOOD.replace("[\"10.99.0.2/32\", \"192.168.7.0/24\"]", value),
            ["peer", "addresses"] => GOOD.replace("[\"192.0.2.1\"]", value),
            ["lane", "duplicate", key] => format!("[lane]\nduplicate = [{{ {key} = {value} }}]\n{GOOD}"),
            [table, key] => format!("[{table}]\n{key} = {value}\n{GOOD}"),
            _ => unreachable!("{key}"),
        }
    }

    fn is_taken(text: &str) {
        let read = Config::parse("a", text);
        assert!(read.is_ok(), "{text}: {}", read.unwrap_err());
    }

    #[test]
    fn a_range_is_what_is_taken() {
        for (key, least, most) in RANGES {
            for number in [least, most.min(i64::MAX as u64)] {
                is_taken(&with(key, &number.to_string()));
            }
            let beyond = [least.checked_sub(1), most.checked_add(1)];
            for number in beyond.into_iter().flatten() {
                assert!(error(&with(key, &number.to_string())).contains(key.rsplit('.').next().unwrap()));
            }
            let said = error(&with(key, "\"x\""));
            assert!(said.contains(&format!("help: write {}", range(key).unwrap())), "{said}");
        }
    }

    #[test]
    fn what_an_error_says_to_write_is_taken() {
        for key in [
            "tunnel.addresses",
            "peer.prefixes",
            "peer.addresses",
            "lane.exclude",
            "lane.exclude_ports",
            "lane.duplicate",
            "lane.duplicate.ports",
            "paths.include",
        ] {
            let said = error(&with(key, "5"));
            let list = said.split("help: write a list, for example ").nth(1).expect(&said);
            is_taken(&with(key, list));
        }
        for (key, wrong, why) in [
            ("tunnel.addresses", "[\"10.99.0.1\"]", "is missing"),
            ("tunnel.addresses", "[\"10.99.0.1/33\"]", "not from 0 to 32"),
            ("peer.prefixes", "[\"10.99.0.3\"]", "is missing"),
            ("peer.prefixes", "[\"fd00::3/129\"]", "not from 0 to 128"),
            ("peer.prefixes", "[\"10.99.0/24\"]", "\"10.99.0\" is no IP address"),
            ("peer.prefixes", "[\"10.99.0.3/24\"]", "names a host"),
            ("lane.exclude", "[\"10.99.0.3\"]", "is missing"),
            ("lane.exclude", "[\"10.99.0.3/24\"]", "names a host"),
        ] {
            let said = error(&with(key, wrong));
            let (what, help) = said.split_once("\nhelp: ").expect(&said);
            assert!(what.contains(why), "{said}");
            let quoted: Vec<&str> = help.split('"').skip(1).step_by(2).collect();
            quoted.iter().for_each(|quoted| is_taken(&with(key, &format!("[\"{quoted}\"]"))));
            assert!(!quoted.is_empty(), "{said}");
        }
        let said = error(&with("tunnel.assign", "\"10.98.0.0\""));
        assert!(said.contains("is missing") && said.contains(example("tunnel.assign")), "{said}");
    }

    #[test]
    fn ports_are_written_alike_wherever_they_are() {
        for key in ["lane.exclude_ports", "lane.duplicate.ports"] {
            is_taken(&with(key, "[80, \"10000-20000\"]"));
            let said = error(&with(key, "[\"20-10\"]"));
            assert!(said.contains("is no range of ports"), "{said}");
        }
    }
}
