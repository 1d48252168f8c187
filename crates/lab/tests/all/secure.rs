//! A secure flow: base exchanges, and one SPI for each path, seen in a capture of the hops.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;

use polypath_lab::run::{Capture, Keep, run};
use polypath_lab::spec::{self, Metric, What};

/// Two paths of two links each. The slow link of the second is the receiver's.
const SPEC: &str = r#"
version = 1
title = "x"
duration = "5s"
measure_from = "2s"

[[link]]
from = "a"
to = "x"
rate = "8Mbit/s"
delay = "10ms"

[[link]]
from = "x"
to = "b"
rate = "20Mbit/s"
delay = "30ms"

[[link]]
from = "a"
to = "y"
rate = "20Mbit/s"
delay = "10ms"

[[link]]
from = "y"
to = "b"
rate = "4Mbit/s"
delay = "5ms"

[[flow]]
name = "bulk"
from = "a"
to = "b"
paths = [["x"], ["y"]]
mss = 1250
configured = true
secure = true
connection = { timestamps = false, scheduler = { policy = "earliest_arrival" }, receive_buffer = 200000 }
"#;

/// What a capture holds: per interface's name the packets.
fn packets(capture: &[u8]) -> BTreeMap<String, Vec<&[u8]>> {
    let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().expect("four bytes"));
    let (mut names, mut found, mut at) = (Vec::new(), BTreeMap::<String, Vec<&[u8]>>::new(), 0);
    while at < capture.len() {
        let (kind, len) = (word(at), word(at + 4) as usize);
        match kind {
            1 => {
                let name = &capture[at + 20..at + 20 + usize::from(capture[at + 18])];
                names.push(String::from_utf8_lossy(name).into_owned());
            }
            6 => {
                let name = names[word(at + 8) as usize].clone();
                found.entry(name).or_default().push(&capture[at + 28..at + 28 + word(at + 20) as usize]);
            }
            _ => {}
        }
        at += len;
    }
    found
}

/// SPI of an ESP packet in UDP; none for HIP, whose packets begin with four zero bytes.
fn spi(packet: &[u8]) -> Option<u32> {
    let spi = packet.get(28..32).map(|b| u32::from_be_bytes(b.try_into().expect("four bytes")))?;
    (packet[9] == 17 && spi != 0).then_some(spi)
}

#[test]
fn each_path_has_an_spi_of_its_own() {
    let experiment = spec::parse(SPEC, "secure.toml").unwrap_or_else(|e| panic!("{e}"));
    let dir = tempfile::tempdir().unwrap();
    let keep = Keep { dir: dir.path().to_owned(), capture: Some(Capture::default()), ..Keep::default() };
    let result = run(&experiment.cells[0], 1, &keep).expect("it runs");
    let flow = &result.flows[0];
    assert!(flow.intact && flow.failed.is_none(), "{flow:?}");
    // 1,250 of 1,332 bytes are payload.
    assert!(flow.utilisation > 0.99 * 1250.0 / 1332.0, "{flow:?}");

    let capture = std::fs::read(dir.path().join(format!("{}.pcapng", result.id))).unwrap();
    let packets = packets(&capture);
    let data = |hop: &str| packets[hop].iter().filter(|p| p.len() > 1000).copied().collect::<Vec<_>>();
    let spis = |hop: &str| data(hop).iter().filter_map(|p| spi(p)).collect::<BTreeSet<_>>();
    for (hop, path) in [("a→x", 0), ("x→b", 0), ("a→y", 1), ("y→b", 1)] {
        assert!(data(hop).len() > 1000, "{hop} carried {}", data(hop).len());
        assert_eq!(spis(hop).into_iter().collect::<Vec<_>>(), [flow.paths[path].spi.unwrap()], "{hop}");
    }
    assert_ne!(flow.paths[0].spi, flow.paths[1].spi);
}

#[test]
fn a_capture_of_named_links_has_the_heads_of_their_packets_only() {
    let experiment = spec::parse(SPEC, "secure.toml").unwrap_or_else(|e| panic!("{e}"));
    let dir = tempfile::tempdir().unwrap();
    let captured = |links: &[&str], snap| {
        let links = links.iter().map(ToString::to_string).collect();
        let capture = Some(Capture { links, snap: NonZero::new(snap) });
        let keep = Keep { dir: dir.path().to_owned(), capture, ..Keep::default() };
        let result = run(&experiment.cells[0], 1, &keep).expect("it runs");
        std::fs::read(dir.path().join(format!("{}.pcapng", result.id))).unwrap()
    };
    let (whole, heads) = (captured(&[], 0), captured(&["a -> x", "b->y"], 96));
    let (whole, heads) = (packets(&whole), packets(&heads));
    assert_eq!(heads.keys().collect::<Vec<_>>(), ["a→x", "b→y"]);
    assert!(whole.len() == 8 && heads["a→x"].len() > 1000);
    for (hop, heads) in heads {
        assert_eq!(heads.len(), whole[&hop].len());
        assert!(
            heads.iter().zip(&whole[&hop]).all(|(head, packet)| *head == &packet[..packet.len().min(96)])
        );
    }
    let unknown = Capture { links: vec!["a->z".into()], snap: None }.check(&experiment.spec).unwrap_err();
    assert!(unknown.to_string().contains("no link is named \"a->z\""), "{unknown}");
}

#[test]
fn all_paths_are_used_however_many() {
    let link = |n: usize| {
        ["a", "b"].map(|end| {
            format!("[[link]]\nfrom = \"{end}\"\nto = \"x{n}\"\nrate = \"4Mbit/s\"\ndelay = \"5ms\"\n\n")
        })
    };
    let paths: Vec<String> = (0..12).map(|n| format!("[\"x{n}\"]")).collect();
    let head = "version = 1\ntitle = \"x\"\nduration = \"5s\"\nmeasure_from = \"2s\"\n\n";
    let flow = "[[flow]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nsecure = true\n";
    let spec = format!(
        "{head}{}{flow}paths = [{}]\nconnection = {{ receive_buffer = 1000000 }}\n",
        (0..12).flat_map(link).collect::<String>(),
        paths.join(", ")
    );
    let experiment = spec::parse(&spec, "many.toml").unwrap_or_else(|e| panic!("{e}"));
    let result = run(&experiment.cells[0], 1, &Keep::default()).expect("it runs");
    let flow = &result.flows[0];
    assert_eq!(flow.paths.iter().filter(|path| path.spi.is_some()).count(), 12, "{flow:?}");
    assert!(flow.utilisation > 0.8, "{flow:?}");
}

#[test]
fn the_base_exchange_tells_of_both_ends_of_a_path() {
    let rates = |spec: &str| {
        let experiment = spec::parse(spec, "secure.toml").unwrap_or_else(|e| panic!("{e}"));
        let rate = |path| What {
            metric: Metric::EstimatedRate,
            flows: vec!["bulk".into()],
            path: Some(path),
            link: None,
            solo: None,
            from: None,
            to: None,
        };
        let run = run(&experiment.cells[0], 1, &Keep::default()).expect("it runs");
        [0, 1].map(|path| run.value(&rate(path)).unwrap())
    };
    assert_eq!(rates(SPEC), [8e6, 4e6], "the slower link counts, whoever told of it");
    let measured = rates(&SPEC.replace("configured = true", "configured = false"));
    assert!(measured != [8e6, 4e6], "untold rates are measured: {measured:?}");
}
