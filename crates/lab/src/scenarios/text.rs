//! A scenario as a spec file: what `polypath lab run frontier/N` runs.

use std::fmt::{self, Display, Write};

use super::drawn::{Bottleneck, Path, Scenario};
use super::{ALONE, BUNDLE, CONTROLLERS, NULL, VARIANTS};

/// The spec of `scenario`.
pub fn text(scenario: &Scenario) -> String {
    let mut out = String::new();
    write(scenario, &mut out).expect("a string takes whatever is written");
    out
}

/// The name of rival `n` at bottleneck `at`.
pub fn rival(at: usize, n: u64) -> String {
    format!("rival{at}_{n}")
}

/// The name of the TCP that stands for the connection at bottleneck `at`.
pub fn twin(at: usize) -> String {
    format!("twin{at}")
}

fn write(s: &Scenario, out: &mut String) -> fmt::Result {
    let (number, seconds, buffer) = (s.number, s.seconds(), s.buffer());
    write!(
        out,
        "version = 1
title = \"Frontier, scenario {number}\"
description = \"\"\"
A random scenario: `{BUNDLE}` under each controller; `{NULL}`: a {} in its place at each bottleneck; `{ALONE}`: nothing in its place.
\"\"\"
duration = \"{seconds}s\"
measure_from = \"{}s\"

[connection]
send_buffer = {buffer}
receive_buffer = {buffer}
segmentation = \"offload\"
",
        s.rival.base(),
        seconds / 2
    )?;
    s.bottlenecks.iter().enumerate().try_for_each(|(n, b)| narrow(out, n, b, seconds))?;
    s.paths.iter().enumerate().try_for_each(|(n, p)| access(out, s, n, p))?;
    host(out, "a", s.bottlenecks.iter().map(|b| b.rate.0).min().unwrap_or(1))?;
    let all: Vec<usize> = (0..s.paths.len()).collect();
    flow(out, s, BUNDLE, &all)?;
    for (n, b) in s.bottlenecks.iter().enumerate() {
        flow(out, s, &twin(n), &[s.quickest(n)])?;
        writeln!(out, "size = \"0B\"")?;
        for j in 0..b.rivals {
            beside(out, s, n, j)?;
        }
        if b.bursts {
            bursts(out, n, b)?;
        }
    }
    if s.reverse {
        let (k, p) = (s.paths[0].bottleneck, 0);
        write!(
            out,
            "\n[[flow]]\nname = \"reverse\"\nfrom = \"b\"\nto = \"a\"\npaths = [[\"k{k}\", \"p{p}\"]]\n"
        )?;
    }
    grid(out, s)
}

/// The link that is the bottleneck `n`.
fn narrow(out: &mut String, n: usize, b: &Bottleneck, seconds: u64) -> fmt::Result {
    let (rate, queue) = (b.rate.0, b.queue);
    let queue: &dyn Display = match b.codel {
        true => &format!("{{ discipline = \"codel\", limit = \"{queue}B\" }}"),
        false => &format!("\"{queue}B\""),
    };
    write!(
        out,
        "\n[[link]]\nfrom = \"k{n}\"\nto = \"b\"\nrate = \"{rate}bit/s\"\ndelay = \"0ms\"\nqueue = {queue}\n"
    )?;
    let at =
        |(s, percent): (u64, &u64)| format!("{{ at = \"{s}s\", rate = \"{}bit/s\" }}", rate * percent / 100);
    let changes: Vec<String> = (1..seconds).zip(&b.rates).map(at).collect();
    if changes.is_empty() { Ok(()) } else { writeln!(out, "change = [{}]", changes.join(", ")) }
}

/// The way of path `n` to its bottleneck.
fn access(out: &mut String, s: &Scenario, n: usize, path: &Path) -> fmt::Result {
    let (k, delay) = (path.bottleneck, path.delay.0 / 1000);
    let rate = s.bottlenecks[k].rate.0 * 10;
    wide(out, "a", &format!("p{n}"), rate, delay)?;
    if path.lost > 0 {
        writeln!(out, "loss = {}", path.lost as f64 / 10_000.0)?;
        writeln!(out, "back = {{ loss = 0.0 }}")?;
    }
    if path.reorders {
        writeln!(out, "reordering = {{ probability = 0.01, delay = \"{}us\" }}", (delay / 4).max(1))?;
    }
    wide(out, &format!("p{n}"), &format!("k{k}"), rate, 0)
}

/// A link that is no bottleneck, with a one-way delay in µs.
fn wide(out: &mut String, from: &str, to: &str, rate: u64, delay: u64) -> fmt::Result {
    write!(
        out,
        "\n[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}bit/s\"\ndelay = \"{delay}us\"\nqueue = \"100000p\"\n"
    )
}

/// Breaks the phase lock of packets that all take equally long: by up to a packet on the slowest link.
fn host(out: &mut String, name: &str, rate: u64) -> fmt::Result {
    let jitter = (12_000_000_000 / rate).clamp(1, 1000);
    write!(out, "\n[[host]]\nname = \"{name}\"\njitter = \"{jitter}us\"\n")
}

/// A TCP from a to b over these paths, as the base law has it.
fn flow(out: &mut String, s: &Scenario, name: &str, paths: &[usize]) -> fmt::Result {
    let way = |n: &usize| format!("[\"p{n}\", \"k{}\"]", s.paths[*n].bottleneck);
    let paths: Vec<String> = paths.iter().map(way).collect();
    write!(
        out,
        "\n[[flow]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\npaths = [{}]\nstart = [\"0s\", \"1s\"]\nconnection = {{ cc = {} }}\n",
        paths.join(", "),
        law(s.rival.base())
    )
}

/// A TCP of a host of its own through bottleneck `n`, with the round trip of the connection's quickest path there.
fn beside(out: &mut String, s: &Scenario, n: usize, j: u64) -> fmt::Result {
    let (name, host_name) = (rival(n, j), format!("t{n}_{j}"));
    let rate = s.bottlenecks[n].rate.0;
    wide(out, &host_name, &format!("k{n}"), rate * 10, s.paths[s.quickest(n)].delay.0 / 1000)?;
    host(out, &host_name, rate)?;
    write!(
        out,
        "\n[[flow]]\nname = \"{name}\"\nfrom = \"{host_name}\"\nto = \"b\"\npaths = [[\"k{n}\"]]\nstart = [\"0s\", \"3s\"]\nconnection = {{ cc = {}, segmentation = \"{}\" }}\n",
        law(s.rival.law()),
        segmentation(s.rival.law())
    )?;
    write!(
        out,
        "\n[[measure]]\nclaim = \"round trip of {name}\"\nmetric = \"mean_srtt\"\nflow = \"{name}\"\n"
    )
}

/// UDP that takes a twentieth of the bottleneck `n`, in bursts of three tenths of it.
fn bursts(out: &mut String, n: usize, b: &Bottleneck) -> fmt::Result {
    wide(out, &format!("u{n}"), &format!("k{n}"), b.rate.0 * 10, 1000)?;
    let rate = b.rate.0 * 3 / 10;
    write!(
        out,
        "\n[[flow]]\nname = \"bursts{n}\"\nfrom = \"u{n}\"\nto = \"b\"\npaths = [[\"k{n}\"]]\n\
         traffic = {{ on_off = {{ rate = \"{rate}bit/s\", packet = \"1000B\", on = \"200ms\", off = \"1s\" }} }}\n"
    )
}

/// What leaves together: of BBR and of `polypath` a quantum of their pacing, of other TCPs as much as of a kernel's.
fn segmentation(controller: &str) -> &'static str {
    if controller == "bbr" || controller.starts_with("polypath") { "standard" } else { "offload" }
}

fn law(name: &str) -> String {
    match name {
        "newreno" | "cubic" | "lia" | "olia" | "balia" => {
            format!("{{ algorithm = \"{name}\", slow_start = \"paced\" }}")
        }
        _ => format!("{{ algorithm = \"{name}\" }}"),
    }
}

fn grid(out: &mut String, s: &Scenario) -> fmt::Result {
    writeln!(out, "\n[[grid]]\nname = \"controller\"\nvalues = [")?;
    let fits = |name: &str| s.paths.len() > 1 || !COUPLED.contains(&name);
    for name in CONTROLLERS.iter().filter(|name| fits(name)) {
        let cc = match *name {
            "polypath" => polypath(s, ""),
            name => law(name),
        };
        cell(out, name, &cc, &[])?;
    }
    for (name, keys, policies) in VARIANTS.iter().filter(|(name, ..)| fits(name)) {
        cell(out, name, &polypath(s, keys), policies)?;
    }
    let twins: Vec<String> =
        (0..s.bottlenecks.len()).map(|n| format!(", \"flow.{}.size\" = \"1000GB\"", twin(n))).collect();
    writeln!(
        out,
        "    {{ label = \"{NULL}\", set = {{ \"flow.{BUNDLE}.size\" = \"0B\"{} }} }},",
        twins.join("")
    )?;
    writeln!(out, "    {{ label = \"{ALONE}\", set = {{ \"flow.{BUNDLE}.size\" = \"0B\" }} }},\n]")
}

/// A cell in which the connection has this controller and these other policies.
fn cell(out: &mut String, name: &str, cc: &str, policies: &[(&str, &str)]) -> fmt::Result {
    let segmentation = segmentation(name);
    write!(
        out,
        "    {{ label = \"{name}\", set = {{ \"flow.{BUNDLE}.connection.cc\" = {cc}, \
         \"flow.{BUNDLE}.connection.segmentation\" = \"{segmentation}\""
    )?;
    for (key, policy) in policies {
        write!(out, ", \"flow.{BUNDLE}.connection.{key}\" = {{ policy = \"{policy}\" }}")?;
    }
    writeln!(out, " }} }},")
}

/// `polypath` with these keys, and the base law of the scenario if they name none.
fn polypath(s: &Scenario, keys: &str) -> String {
    let base = if keys.contains("base") { "" } else { &format!(", base = \"{}\"", s.rival.base()) };
    let keys = if keys.is_empty() { "" } else { &format!(", {keys}") };
    format!("{{ algorithm = \"polypath\"{base}{keys} }}")
}

/// What couples paths: of one path it is refused.
const COUPLED: [&str; 5] = ["lia", "olia", "balia", "wvegas", "polypath_shared"];

#[cfg(test)]
mod tests {
    use polypath_transport::Segmentation;

    use super::*;
    use crate::scenarios::experiment;

    #[test]
    fn the_text_of_every_scenario_is_an_experiment() {
        for number in 1..=300 {
            let experiment = experiment(number);
            let scenario = Scenario::draw(number);
            let refused = if scenario.paths.len() > 1 { 0 } else { COUPLED.len() };
            let cells = CONTROLLERS.len() - refused + VARIANTS.len();
            assert_eq!(experiment.cells.len(), cells + 2, "{number}");
        }
    }

    #[test]
    fn what_is_compared_with_a_kernels_leaves_like_it() {
        for cell in (1..=20).flat_map(|number| experiment(number).cells) {
            for flow in &cell.spec.flow {
                let connection = cell.spec.connection_of(flow);
                let paced = ["bbr", "polypath"].contains(&connection.cc.about().name);
                let expected = if paced { Segmentation::Standard } else { Segmentation::Offload };
                assert_eq!(connection.segmentation, expected, "{} in {}", flow.name, cell.label);
            }
        }
    }
}
