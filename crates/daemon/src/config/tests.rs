use std::path::Path;

use super::*;

pub(crate) const GOOD: &str = r#"
[tunnel]
addresses = ["10.99.0.1/24"]

[[peer]]
hit = "2001:22:88e0:5362:e35e:1c8f:b38e:ef19"
addresses = ["192.0.2.1"]
prefixes = ["10.99.0.2/32", "192.168.7.0/24"]
"#;

pub(crate) fn error(text: &str) -> String {
    Config::parse("polypath.toml", text).unwrap_err().to_string()
}

#[test]
fn a_short_configuration_has_defaults_for_the_rest() {
    let config = Config::parse("polypath.toml", GOOD).unwrap();
    assert_eq!((config.listen.port, config.tunnel.mtu), (10_500, 1400));
    assert_eq!(config.identity.key, Path::new("/etc/polypath/identity.pem"));
    let queue_target = Duration::from_millis(10);
    assert_eq!(config.lane.cc, CcConfig::Polypath(PolypathConfig { queue_target, ..Default::default() }));
    let again = toml::to_string(&config).unwrap();
    assert_eq!(Config::parse("again.toml", &again).unwrap(), config);
}

#[test]
fn an_error_names_line_key_and_remedy() {
    let misspelt = error(&GOOD.replace("prefixes", "prefixs"));
    let expected = "peer[0].prefixs: unknown key `prefixs`
 --> polypath.toml:8:1
  |
8 | prefixs = [\"10.99.0.2/32\", \"192.168.7.0/24\"]
  | ^^^^^^^
help: did you mean `prefixes`? It is one of: name, hit, addresses, prefixes";
    assert_eq!(misspelt, expected);
    for (from, to, parts) in [
        ("10.99.0.1/24", "10.99.0.1/240", ["polypath.toml:3:", "tunnel.addresses[0]", "prefix"]),
        ("2001:22:", "2001:db8:", [":6:", "peer[0].hit", "`polypath hit /etc/"]),
        ("10.99.0.2/32", "10.99.0.1/32", [":8:", "peer[0].prefixes", "own address"]),
        ("[tunnel]", "[tunnel]\ntransport = \"rmtcp\"", [":3:", "tunnel.transport", "`rm_tcp`"]),
        ("[tunnel]", "[tunnel]\nmtu = 100", [":3:", "tunnel.mtu", "1400 is the default"]),
        ("[tunnel]", "[tunnel]\nqueues = 17", [":3:", "tunnel.queues", "1 is the default"]),
        ("[tunnel]", "[lane]\ncc = { algorithm = \"newrino\" }\n[tunnel]", [":3:", "lane.cc", "newreno"]),
        (
            "[tunnel]",
            "[lane]\ncc = { algorithm = \"polypath\", initial_window = 0 }\n[tunnel]\ntransport = \"rm_tcp\"",
            [":3:", "lane.cc", "sends nothing"],
        ),
        ("[tunnel]", "[lane]\nbuffer_mib = 0\n[tunnel]", [":3:", "lane.buffer_mib", "16 is the default"]),
        (
            "[tunnel]",
            "[lane]\nduplicate = [{ dscp = 64 }]\n[tunnel]",
            [":3:", "lane.duplicate[0].dscp", "46"],
        ),
        (
            "[tunnel]",
            "[lane]\nduplicate = [{ ports = [5060, \"9-7\"] }]\n[tunnel]",
            [":3:", "lane.duplicate[0].ports[1]", "\"9-7\" is no range"],
        ),
        ("[tunnel]", "[lane]\nduplicate = [{ ports = [true] }]\n[tunnel]", [":3:", "ports[0]", "65535"]),
        ("[tunnel]", "[paths]\nquota = { wwan0 = \"5 G\" }\n[tunnel]", [":3:", "paths.quota", "5 GB"]),
        ("[tunnel]", "[lane]\nduplicate = [{}]\n[tunnel]", [":3:", "lane.duplicate[0]", "name a dscp"]),
        ("addresses = [\"10.99.0.1/24\"]", "", [":2:", "tunnel", "10.99.0.1/24"]),
        (
            "prefixes = [\"10.99.0.2/32\", \"192.168.7.0/24\"]",
            "",
            [":5:", "peer[0].prefixes", "[tunnel] assign"],
        ),
        (
            "[tunnel]",
            "[tunnel]\naddresses_from = \"2001:22:a7c6:c53:8d7b:5b0a:a1cf:a9c8\"",
            [":3:", "tunnel.addresses_from", "no peer"],
        ),
        (
            "[tunnel]",
            "[metrics]\nlisten = \"0.0.0.0:9510\"\n[tunnel]",
            [":3:", "metrics.listen", "127.0.0.1:9510"],
        ),
        (
            "[tunnel]",
            "[metrics]\nlisten = \"127.0.0.1\"\n[tunnel]",
            [":3:", "metrics.listen", "127.0.0.1:9510"],
        ),
        ("[tunnel]", "[tunnel]\nmtu = 70000", [":3:", "tunnel.mtu: integer 70000", "from 576 to 65535"]),
        ("[tunnel]", "[lane]\nspare = \"8\"\n[tunnel]", [":3:", "lane.spare: string", "without quotes"]),
        ("[tunnel]", "[lane]\nspare = -8\n[tunnel]", [":3:", "lane.spare: integer -8", "from 0 to 256"]),
        ("[tunnel]", "[lane]\nkeep_alive = 0\n[tunnel]", [":3:", "lane.keep_alive", "60 is the default"]),
        ("[tunnel]", "[lane]\ncc = \"cubic\"\n[tunnel]", [":3:", "lane.cc", "{ algorithm = \"cubic\" }"]),
        ("[tunnel]", "[tunnel]\nname = \"lo\"", [":3:", "tunnel.name", "polypath0"]),
        ("[tunnel]", "[tunnel]\nname = \"a\\u0000\"", [":3:", "tunnel.name", "polypath0"]),
        ("10.99.0.1/24", "127.0.0.1/8", [":3:", "tunnel.addresses[0]: 127.0.0.1 cannot be", "10.99.0.1/24"]),
        ("192.168.7.0/24", "224.0.0.0/4", [":8:", "peer[0].prefixes: 224.0.0.0/4", "leave it out"]),
        ("192.168.7.0/24", "127.0.0.0/8", [":8:", "peer[0].prefixes: 127.0.0.0/8", "leave it out"]),
        ("192.168.7.0/24", "10.99.0.3/24", [":8:", "10.99.0.3/24", "\"10.99.0.0/24\" or \"10.99.0.3/32\""]),
        ("192.0.2.1", "ADDRESS", [":7:", "peer[0].addresses", "203.0.113.5"]),
        ("[tunnel]", "[tunnel", [":2:", "not TOML", "tunnel"]),
    ] {
        let said = error(&GOOD.replacen(from, to, 1));
        assert!(parts.iter().all(|part| said.contains(part)), "{parts:?}: {said}");
    }
}

#[test]
fn of_a_list_the_value_that_is_wrong_is_marked() {
    let said = error(&format!("[lane]\nexclude_ports = [80, \"20-10\"]\n{GOOD}"));
    assert!(said.contains(":2:22\n") && said.contains(" ^^^^^^^"), "{said}");
}

#[test]
fn what_carries_ipv6_has_the_size_that_ipv6_needs() {
    let small = GOOD.replace("[tunnel]", "[tunnel]\nmtu = 600");
    assert!(Config::parse("a", &small).is_ok());
    let said = error(&small.replace("192.168.7.0/24", "fd99::2/128"));
    assert!(said.contains("tunnel.mtu: below 1280"), "{said}");
}

#[test]
fn a_socket_whose_path_is_too_long_is_refused() {
    let said = error(&format!("[control]\nsocket = \"/{}\"\n{GOOD}", "x".repeat(107)));
    let parts = [":2:", "control.socket: longer than 107 bytes", "/run/polypath/control.sock"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
}

#[test]
fn what_is_no_toml_is_answered_with_the_line_and_what_to_write() {
    for (text, place, parts) in [
        ("mtu = 1\nmtu = 2", "2:1", ["duplicate key", "leave one of the two out"]),
        ("[tunnel]\n[tunnel]", "2:2", ["duplicate key", "leave one of the two out"]),
        ("include = [\"a\", \"b\"\n\n[lane]", "1:20", ["missing comma", "] at its end"]),
        ("include = [\"a\"\n", "1:15", ["unclosed array", "] at its end"]),
        ("include = [\n\"a\"\n\"b\"\n]", "2:4", ["missing comma", ", between the values"]),
        ("cc = { algorithm = \"a\"\nmtu = 3", "1:23", ["missing comma", "} at its end"]),
        ("name = \"a\nmtu = 3", "1:10", ["invalid basic string", "the second quote"]),
        ("name = 'a\nmtu = 3", "1:10", ["invalid literal string", "the second quote"]),
        ("name = polypath0", "1:8", ["must be quoted", "text in quotes"]),
        ("mtu = \n", "1:7", ["must be quoted", "a value after ="]),
        ("listen = 127.0.0.1:9510", "1:15", ["invalid float", "address in quotes"]),
        ("kill_switch = True", "1:15", ["invalid boolean", "true or false"]),
        ("[[peer]\nmtu = 3", "1:8", ["unclosed array table", "[[peer]]"]),
        ("[tunnel]]", "1:9", ["unexpected key or value", "one key = value in a line"]),
        ("mtu: 3", "1:6", ["key with no value", "key = value"]),
    ] {
        let said = error(text);
        let is_said = parts.iter().all(|part| said.contains(part)) && said.contains("not TOML: ");
        assert!(is_said && said.contains(&format!("polypath.toml:{place}\n")), "{text}: {said}");
    }
}
