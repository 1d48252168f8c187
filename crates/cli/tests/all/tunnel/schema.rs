//! The JSON Schema of the configuration says what the daemon reads, what `polypath init` writes and what the docs show.

use std::collections::BTreeSet;
use std::process::Command;

use polypath_daemon::Config;
use regex::Regex;
use serde_json::{Value, json};

/// The page with every key.
const PAGE: &str = include_str!("../../../../../docs/daemon.md");
const HIT: &str = "2001:22:88e0:5362:e35e:1c8f:b38e:ef19";
const GOOD: &str = r#"
[tunnel]
addresses = ["10.99.0.1/24"]

[[peer]]
hit = "2001:22:88e0:5362:e35e:1c8f:b38e:ef19"
addresses = ["192.0.2.1"]
prefixes = ["10.99.0.2/32", "192.168.7.0/24"]
"#;

/// The first thing that `schema` refuses about `value`, at `place`. It knows the keywords that ours has, and no others.
fn refused(schema: &Value, value: &Value, place: &str) -> Option<String> {
    let keywords = schema.as_object().expect("a schema is an object");
    let properties = schema["properties"].as_object();
    let known = |key: &str| properties.is_some_and(|known| known.contains_key(key));
    let length = value.as_str().map(|text| text.chars().count() as u64);
    let is_refused = |(keyword, said): (&String, &Value)| match keyword.as_str() {
        "$schema" | "title" | "description" | "default" | "examples" | "format" => None,
        "properties" => said.as_object().unwrap().iter().find_map(|(key, schema)| {
            value.get(key).and_then(|value| refused(schema, value, &format!("{place}.{key}")))
        }),
        "additionalProperties" => value.as_object().and_then(|all| {
            let mut more = all.iter().filter(|(key, _)| !known(key));
            more.find_map(|(key, value)| match said {
                Value::Bool(admitted) => (!admitted).then(|| format!("{place}: unknown key {key}")),
                schema => refused(schema, value, &format!("{place}.{key}")),
            })
        }),
        "items" => value.as_array().and_then(|all| all.iter().find_map(|value| refused(said, value, place))),
        "anyOf" | "oneOf" => {
            let all: Vec<_> = said.as_array().unwrap().iter().map(|one| refused(one, value, place)).collect();
            let fitting = all.iter().filter(|one| one.is_none()).count();
            let right = if keyword == "oneOf" { fitting == 1 } else { fitting > 0 };
            (!right).then(|| format!("{place}: {fitting} of {all:?}"))
        }
        _ => {
            let right = match keyword.as_str() {
                "type" => is_of(said.as_str().unwrap(), value),
                "const" => said == value,
                "enum" => said.as_array().unwrap().contains(value),
                "required" => said.as_array().unwrap().iter().all(|key| {
                    value.as_object().is_none_or(|value| value.contains_key(key.as_str().unwrap()))
                }),
                "minimum" => value.as_f64().is_none_or(|number| number >= said.as_f64().unwrap()),
                "maximum" => value.as_f64().is_none_or(|number| number <= said.as_f64().unwrap()),
                "minLength" => length.is_none_or(|length| length >= said.as_u64().unwrap()),
                "maxLength" => length.is_none_or(|length| length <= said.as_u64().unwrap()),
                "pattern" => {
                    let pattern = Regex::new(&format!("(?-u){}", said.as_str().unwrap())).unwrap();
                    value.as_str().is_none_or(|text| pattern.is_match(text))
                }
                other => panic!("{place}: the keyword {other} is not checked here"),
            };
            (!right).then(|| format!("{place}: {value} is not of {keyword} {said}"))
        }
    };
    keywords.iter().find_map(is_refused)
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => panic!("the type {kind} is not checked here"),
    }
}

fn of_toml(text: &str) -> Value {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn is_taken(text: &str) {
    let why = refused(&schema(), &of_toml(text), "");
    assert_eq!(why, None, "{text}");
}

fn schema() -> Value {
    serde_json::from_str(&Config::schema()).unwrap()
}

/// What the schema says of a key, as in `[tunnel] mtu`.
fn key(schema: &Value, table: &str, key: &str) -> Value {
    let table = &schema["properties"][table.trim_matches(['[', ']'])];
    table.get("items").unwrap_or(table)["properties"][key].clone()
}

#[test]
fn init_prints_it_and_what_init_writes_fits_it() {
    let dir = tempfile::tempdir().unwrap();
    let init = |args: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_polypath"))
            .arg("init")
            .args(args)
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        done.stdout
    };
    let printed: Value = serde_json::from_slice(&init(&["--schema"])).unwrap();
    assert_eq!(printed, schema());
    assert_eq!(printed["title"], "Polypath daemon");
    assert_eq!(dir.path().read_dir().unwrap().count(), 0, "it writes nothing");
    let peer = format!("{HIT}@192.0.2.1,vpn.example.org");
    for (file, args) in [
        ("server.toml", &["--yes"][..]),
        ("giver.toml", &["--assign", "10.99.0.0/24"]),
        ("router.toml", &["--address", "10.99.0.2/24", "--peer", &peer, "--behind", "10.99.0.1/32"]),
        ("taker.toml", &["--assigned", "--peer", &peer, "--behind", "fd99::/64", "--only", "eth*"]),
    ] {
        init(&[&[file, "--identity", "identity.pem"], args].concat());
        let text = std::fs::read_to_string(dir.path().join(file)).unwrap();
        is_taken(&text);
        let commented = |line: &str| line.contains(" = ") && !line.contains("example");
        let whole = text.lines().map(|line| match line.strip_prefix("# ") {
            Some(key) if commented(line) => key.replace("2001:22:…", HIT),
            _ => line.to_owned(),
        });
        is_taken(&whole.collect::<Vec<_>>().join("\n"));
    }
}

#[test]
fn it_has_the_keys_defaults_and_examples_of_the_docs() {
    let schema = schema();
    let mut there = BTreeSet::new();
    for line in PAGE.lines().filter(|line| line.starts_with("| `[")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (table, name) = cells[0].trim_matches('`').split_once(' ').unwrap();
        there.insert(format!("{} {name}", table.trim_matches(['[', ']'])));
        let of = key(&schema, table, name);
        let value =
            |text: &str| toml::from_str::<Value>(&format!("x = {text}")).ok().map(|all| all["x"].clone());
        let default = cells[1].trim_matches('`');
        if let Some(default) = value(default).or((default != cells[1]).then(|| default.into())) {
            let said = &of["default"];
            let of_table = |(key, value): (&String, &Value)| said[key].as_f64() == value.as_f64();
            let same = default.as_object().map_or(*said == default, |table| table.iter().all(of_table));
            assert!(same, "{line}: {said}");
        }
        let (_, examples) = cells[2].split_once("for example").unwrap_or_default();
        for example in examples.split('`').skip(1).step_by(2).filter_map(value) {
            assert_eq!(refused(&of, &example, name), None, "{line}");
        }
    }
    let tables = schema["properties"].as_object().unwrap().iter();
    let keys = tables.flat_map(|(name, table)| {
        let table = table.get("items").unwrap_or(table);
        table["properties"].as_object().unwrap().keys().map(move |key| format!("{name} {key}"))
    });
    assert_eq!(keys.collect::<BTreeSet<_>>(), there);
    let written = Regex::new(r"`\[+([a-z]+)\]+ (([a-z_]+) = [^`…]+)`").unwrap();
    let examples = written.captures_iter(PAGE).map(|found| {
        let (value, of) = (of_toml(&found[2])[&found[3]].clone(), key(&schema, &found[1], &found[3]));
        assert_eq!(refused(&of, &value, &found[0]), None);
    });
    assert!(examples.count() > 5);
}

#[test]
fn what_it_refuses_the_daemon_refuses_too() {
    is_taken(GOOD);
    let schema = schema();
    for (from, to) in [
        ("[tunnel]", "[tunnel]\nmtu = 100"),
        ("[tunnel]", "[tunnel]\nmtu = 70000"),
        ("[tunnel]", "[tunnel]\nname = \"sixteen-bytes-is\""),
        ("[tunnel]", "[tunnel]\ntransport = \"rmtcp\""),
        ("[tunnel]", "[tunnel]\necn = \"no\""),
        ("[tunnel]", "[lane]\nbuffer_mib = 0\n[tunnel]"),
        ("[tunnel]", "[lane]\nspare = 257\n[tunnel]"),
        ("[tunnel]", "[lane]\nmemory_mib = 15\n[tunnel]"),
        ("[tunnel]", "[lane]\nexclude_ports = [65536]\n[tunnel]"),
        ("[tunnel]", "[lane]\nexclude_ports = [\"all\"]\n[tunnel]"),
        ("[tunnel]", "[lane]\nduplicate = [{ dscp = 64 }]\n[tunnel]"),
        ("[tunnel]", "[lane]\nduplicate = [{ protocol = \"sctp\" }]\n[tunnel]"),
        ("[tunnel]", "[lane]\ncc = { algorithm = \"newrino\" }\n[tunnel]"),
        ("[tunnel]", "[lane]\ncc = { queue_target = 10 }\n[tunnel]"),
        ("[tunnel]", "[lane]\ncc = { algorithm = \"cubic\", queue_target = 10 }\n[tunnel]"),
        ("[tunnel]", "[lane]\ncc = { algorithm = \"polypath\", queue_target = \"10\" }\n[tunnel]"),
        ("[tunnel]", "[paths]\ninclude = \"eth0\"\n[tunnel]"),
        ("[tunnel]", "[paths]\nbackup = [\"\"]\n[tunnel]"),
        ("[tunnel]", "[paths]\nlimit = { wwan0 = \"fast\" }\n[tunnel]"),
        ("[tunnel]", "[paths]\nquota = { wwan0 = \"5 G\" }\n[tunnel]"),
        ("10.99.0.2/32", "10.99.0.2"),
        ("2001:22:", "2001:db8:"),
        ("hit = \"2001:22:88e0:5362:e35e:1c8f:b38e:ef19\"", ""),
        ("[tunnel]\naddresses = [\"10.99.0.1/24\"]", ""),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert!(Config::parse("a", &text).is_err(), "{text}");
        assert!(refused(&schema, &of_toml(&text), "").is_some(), "{text}");
    }
    for table in schema["properties"].as_object().unwrap().keys().map(String::as_str).chain([""]) {
        let mut all = of_toml(GOOD);
        match table {
            "" => all["no_such_key"] = json!(1),
            "peer" => all["peer"][0]["no_such_key"] = json!(1),
            _ => all[table]["no_such_key"] = json!(1),
        }
        let why = refused(&schema, &all, "").expect(table);
        assert!(why.contains("unknown key no_such_key"), "{why}");
        let read = Config::parse("a", &toml::to_string(&all).unwrap()).unwrap_err().to_string();
        assert!(read.contains("unknown key `no_such_key`"), "{read}");
    }
}

#[test]
fn every_key_is_described_and_none_is_null() {
    let schema = schema();
    assert!(!schema.to_string().contains("null"), "TOML has no null: {schema:#}");
    let mut seen = 0;
    look(&schema, "", &mut |key, value| {
        seen += 1;
        let said = value["description"].as_str().unwrap_or_else(|| panic!("nothing is said of {key}"));
        assert!(!said.contains("[`"), "{key}: a link of rustdoc: {said}");
    });
    assert!(seen > 60, "{seen} keys");
}

/// Calls `see` with every key of `schema` but those that tell variants apart.
fn look(schema: &Value, path: &str, see: &mut impl FnMut(&str, &Value)) {
    for (key, value) in schema.as_object().into_iter().flatten() {
        let inner = value.as_object().filter(|_| key == "properties");
        for (name, of) in inner.into_iter().flatten().filter(|(_, of)| of.get("const").is_none()) {
            see(&format!("{path}.{name}"), of);
        }
        look(value, &format!("{path}/{key}"), see);
    }
    schema.as_array().into_iter().flatten().for_each(|value| look(value, path, see));
}
