//! The set-up of an experiment, drawn: hosts and routers by their distance from the first sender, numbered links, and the paths of
//! flows in their colours.

use maud::{Markup, PreEscaped, html};

use crate::report::colours::COLOURS;
use crate::spec::{Flow, Link, LinkRate, Spec, Traffic};

/// Distance of columns and of rows, size of a node's box, distance of lines beside one another.
const COLUMN: f64 = 150.0;
const ROW: f64 = 64.0;
const NODE: (f64, f64) = (46.0, 26.0);
const BESIDE: f64 = 4.0;
/// No more lines than this beside one another at a link.
const LINES: usize = 6;

/// A node and its middle.
struct Node<'a> {
    name: &'a str,
    at: (f64, f64),
}

/// The drawing of `spec`, and below it its links and flows in words.
pub fn drawn(spec: &Spec) -> Markup {
    let nodes = nodes(spec);
    let edge = |of: fn(&Node<'_>) -> f64| nodes.iter().map(of).fold(0.0, f64::max);
    let (width, height) = (edge(|n| n.at.0) + NODE.0, edge(|n| n.at.1) + NODE.1);
    let links: String = spec.link.iter().map(|link| wire(link, &nodes)).collect();
    let badges: String = spec.link.iter().enumerate().map(|(n, link)| badge(n, link, &nodes)).collect();
    let boxes: String = nodes.iter().map(node).collect();
    let inner = [links, flows(spec, &nodes), badges, boxes].concat();
    html! {
        div.scroll {
            svg.topology viewBox={ "0 0 " (width) " " (height) } style={ "max-width:" (width * 1.2) "px" } role="img"
                aria-label={ "Topology of " (nodes.len()) " nodes and " (spec.link.len()) " links" } { (PreEscaped(inner)) }
        }
        ol.links { @for link in &spec.link { li { (said(link)) } } }
        ul.legend {
            @for (n, flow) in spec.flow.iter().enumerate() {
                li { span.swatch style={ "background:var(--c" (n % COLOURS) ")" } {} b { (flow.name) } " " (way(flow)) }
            }
        }
        @if !spec.grid.is_empty() { p.how { "Before the values of its grid are set." } }
    }
}

/// All nodes, in columns by their distance from the first sender.
fn nodes(spec: &Spec) -> Vec<Node<'_>> {
    let mut names: Vec<&str> = Vec::new();
    for name in spec.link.iter().flat_map(|l| [l.from.as_str(), l.to.as_str()]) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let columns = distances(spec, &names);
    let most = (0..names.len()).map(|c| columns.iter().filter(|d| **d == c).count()).max().unwrap_or(1);
    let mut taken = vec![0; names.len() + 1];
    let place = |(n, name): (usize, &&'_ str)| {
        let column = columns[n];
        let rows = columns.iter().filter(|d| **d == column).count();
        let row = taken[column];
        taken[column] += 1;
        let down = (most - rows) as f64 / 2.0 + row as f64;
        (n, (NODE.0 + column as f64 * COLUMN, NODE.1 + down * ROW), name.len())
    };
    let places: Vec<_> = names.iter().enumerate().map(place).collect();
    places.into_iter().map(|(n, at, _)| Node { name: names[n], at }).collect()
}

/// How many links lie between each of `names` and the first sender; what no link leads to stands behind all others.
fn distances(spec: &Spec, names: &[&str]) -> Vec<usize> {
    let first = spec.flow.first().map_or("", |f| f.from.as_str());
    let mut distance: Vec<Option<usize>> = names.iter().map(|n| (*n == first).then_some(0)).collect();
    let of = |name: &str| names.iter().position(|n| *n == name);
    for step in 1..names.len() {
        for link in &spec.link {
            let (Some(a), Some(b)) = (of(&link.from), of(&link.to)) else { continue };
            for (near, far) in [(a, b), (b, a)] {
                if distance[near] == Some(step - 1) && distance[far].is_none() {
                    distance[far] = Some(step);
                }
            }
        }
    }
    let last = distance.iter().flatten().max().map_or(0, |d| d + 1);
    distance.into_iter().map(|d| d.unwrap_or(last)).collect()
}

fn at(nodes: &[Node<'_>], name: &str) -> (f64, f64) {
    nodes.iter().find(|n| n.name == name).map_or((0.0, 0.0), |n| n.at)
}

fn wire(link: &Link, nodes: &[Node<'_>]) -> String {
    let ((x1, y1), (x2, y2)) = (at(nodes, &link.from), at(nodes, &link.to));
    format!("<line class=\"wire\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>")
}

/// The number of a link, in its middle.
fn badge(n: usize, link: &Link, nodes: &[Node<'_>]) -> String {
    let ((x1, y1), (x2, y2)) = (at(nodes, &link.from), at(nodes, &link.to));
    let (x, y) = ((x1 + x2) / 2.0, (y1 + y2) / 2.0);
    format!(
        "<g class=\"badge\"><circle cx=\"{x}\" cy=\"{y}\" r=\"9\"/><text x=\"{x}\" y=\"{:.1}\">{}</text></g>",
        y + 4.0,
        n + 1
    )
}

fn node(node: &Node<'_>) -> String {
    let (x, y) = node.at;
    let wide = (node.name.chars().count() as f64 * 8.0 + 12.0).clamp(26.0, NODE.0 * 2.0);
    let name = html! { (node.name) }.into_string();
    format!(
        "<g class=\"node\"><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{}\" rx=\"6\"/>\
         <text x=\"{x}\" y=\"{:.1}\">{name}</text></g>",
        x - wide / 2.0,
        y - NODE.1 / 2.0,
        NODE.1,
        y + 4.5
    )
}

/// Every path of every flow, beside those that share its links.
fn flows(spec: &Spec, nodes: &[Node<'_>]) -> String {
    let mut used: Vec<((f64, f64), (f64, f64))> = Vec::new();
    let mut text = String::new();
    for (n, flow) in spec.flow.iter().enumerate() {
        for via in &flow.paths {
            let stations: Vec<(f64, f64)> = spec.stations(flow, via).iter().map(|s| at(nodes, s)).collect();
            let mut points = Vec::new();
            for pair in stations.windows(2) {
                let (a, b) = if pair[0] <= pair[1] { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
                let before = used.iter().filter(|link| **link == (a, b)).count() % LINES;
                used.push((a, b));
                let aside = beside(a, b, before);
                points.extend(pair.iter().map(|p| format!("{:.1},{:.1}", p.0 + aside.0, p.1 + aside.1)));
            }
            text += &format!(
                "<polyline class=\"flow\" style=\"stroke:var(--c{})\" points=\"{}\"/>",
                n % COLOURS,
                points.join(" ")
            );
        }
    }
    text
}

/// How far from the link between `a` and `b` its line number `n` runs: the first on it, the others by turns to either side.
fn beside(a: (f64, f64), b: (f64, f64), n: usize) -> (f64, f64) {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = dx.hypot(dy).max(1.0);
    let side = if n.is_multiple_of(2) { 1.0 } else { -1.0 };
    let far = side * BESIDE * n.div_ceil(2) as f64;
    (-dy / length * far, dx / length * far)
}

/// A link in words.
fn said(link: &Link) -> String {
    let rate = |rate: &LinkRate| match rate {
        LinkRate::Constant(rate) => rate.to_string(),
        LinkRate::Trace(file) => format!("trace {}", file.trace),
    };
    let back = [
        link.back.rate.as_ref().map(|r| format!("back {}", rate(r))),
        link.back.delay.map(|d| format!("back {d}")),
        (link.loss > 0.0).then(|| format!("loss {}", link.loss)),
        (!link.change.is_empty()).then(|| format!("{} changes", link.change.len())),
    ];
    let more: String = back.into_iter().flatten().map(|text| format!(", {text}")).collect();
    format!("{}–{}: {}, {}, queue {}{more}", link.from, link.to, rate(&link.rate), link.delay, link.queue)
}

/// Where a flow goes, and what it is.
fn way(flow: &Flow) -> String {
    let path = |via: &Vec<String>| if via.is_empty() { "directly".to_owned() } else { via.join("–") };
    let paths: Vec<String> = flow.paths.iter().map(path).collect();
    let kind = match flow.traffic {
        Traffic::Tcp if flow.secure => ", secure",
        Traffic::Tcp => "",
        Traffic::Cbr { .. } | Traffic::OnOff { .. } => ", UDP",
    };
    format!("{} → {} by {}{kind}", flow.from, flow.to, paths.join(" and "))
}
