//! A null differs from the cell of its claim in one thing: plain TCP stands in the place of the multipath
//! connection's path. What else differs would show in the number, and be taken for an effect.

mod plain;

use serde::Serialize;
use serde_json::{Map, Value, json};
use toml::Table;

use super::error::{Problem, at};
use super::{Cell, Expect, Flow, Selector, Spec, Statistic, What};

/// Keys of a connection that say how it uses its paths; the others, its windows and timers, stay.
const OF_PATHS: [&str; 13] = [
    "cc",
    "loss",
    "sack",
    "scheduler",
    "knowledge",
    "reorder_store",
    "ack_return",
    "divide_window",
    "multi_route",
    "path_fail_timeouts",
    "timeout_takes",
    "repair_elsewhere",
    "fail_silent",
];
/// Keys of a connection that bound what is on its way, over all its paths together.
const WINDOWS: [&str; 4] = ["send_buffer", "send_ahead", "receive_buffer", "unread_window"];

/// What differs, by its key, and both values.
type Difference = (String, Value, Value);

/// The null of expectation `n` of a claim in `cell` is `null`, which the file calls `name`; the file's connections are `shared`.
pub(super) fn matched(
    (expect, n): (&Expect, usize),
    shared: &Table,
    cell: &Cell,
    null: &Cell,
    name: &str,
) -> Result<(), Problem> {
    let selector = expect.selector();
    let refused =
        |message: String, help: String| Err(Problem::new(at!["expect", n, "null"], message).help(help));
    if selector.over_cell.is_some() {
        return refused(
            "what is paired with another cell has no null".into(),
            "leave out null: the ratio of two equal cells is 1".into(),
        );
    }
    if let Some((key, there, here)) = difference(&selector, &cell.spec, &null.spec) {
        let label = if cell.label.is_empty() { "the claim" } else { &cell.label };
        let set = match &here {
            Value::Null => format!("leave {key} out of the null"),
            here => format!("set {key} = {here} in the null"),
        };
        let shown = |value: &Value| if value.is_null() { "nothing".to_owned() } else { value.to_string() };
        return refused(
            format!(
                "the null \"{name}\" differs in {key}: {} there, {} in {label}",
                shown(&there),
                shown(&here)
            ),
            format!("only plain TCP may stand in the place of the path: {set}"),
        );
    }
    let of_all = expect.of.statistic == Statistic::ShareAllWithin;
    match plain::plain(&selector, of_all, shared, cell, &null.spec) {
        Ok(()) => Ok(()),
        Err((wrong, help)) => refused(format!("the null \"{name}\" is no plain TCP: {wrong}"), help),
    }
}

/// The first thing that differs but for how the replaced flows use their paths.
fn difference(selector: &Selector, here: &Spec, there: &Spec) -> Option<Difference> {
    let (mine, other) = (document(here), document(there));
    for what in selector.whats() {
        let ((from, to), (other_from, other_to)) = (what.window(here), what.window(there));
        let differing = [("measure_from", from != other_from), ("duration", to != other_to)];
        if let Some((key, _)) = differing.into_iter().find(|(_, differs)| *differs) {
            return Some(pair(key.to_owned(), &other[key], &mine[key]));
        }
    }
    let places = ["link", "host"].into_iter().find_map(|key| between_places(key, here, there));
    places.or_else(|| between_flows(selector, here, there))
}

/// Between the links, or the hosts, of two specs.
fn between_places(key: &str, here: &Spec, there: &Spec) -> Option<Difference> {
    let all = |spec: &Spec| document(spec)[key].as_array().cloned().unwrap_or_default();
    let (here, there) = (all(here), all(there));
    if here.len() != there.len() {
        return Some((key.to_owned(), json!(there.len()), json!(here.len())));
    }
    here.iter().zip(&there).find_map(|(mine, other)| {
        let ends = || format!("{}->{}", text(mine, "from"), text(mine, "to"));
        let name = mine["name"].as_str().map_or_else(ends, str::to_owned);
        first(&format!("{key}.{name}"), mine, other, &[])
    })
}

/// The flows in whose place the null has plain TCP: the claimed ones, or, if each of these has one path, those beside them that
/// have several.
fn replaced<'a>(selector: &Selector, spec: &'a Spec) -> Vec<&'a str> {
    let is_claimed = |f: &&Flow| selector.what.flows.contains(&f.name);
    let (claimed, beside): (Vec<&Flow>, Vec<&Flow>) = spec.flow.iter().partition(is_claimed);
    let names = |flows: Vec<&'a Flow>| flows.into_iter().map(|f| &f.name[..]).collect();
    if claimed.iter().any(|f| f.paths.len() > 1) {
        return names(claimed);
    }
    let several: Vec<&Flow> = beside.into_iter().filter(|f| f.paths.len() > 1).collect();
    names(if several.is_empty() { claimed } else { several })
}

fn between_flows(selector: &Selector, here: &Spec, there: &Spec) -> Option<Difference> {
    let replaced = replaced(selector, here);
    if here.flow.len() != there.flow.len() {
        return Some(("flow".to_owned(), json!(there.flow.len()), json!(here.flow.len())));
    }
    here.flow.iter().zip(&there.flow).find_map(|(mine, other)| {
        let at = format!("flow.{}", mine.name);
        let (of_flow, of_connection): (&[&str], &[&str]) = match replaced.contains(&&mine.name[..]) {
            true => (&["paths", "configured", "oracle", "apart", "connection"], &OF_PATHS[..]),
            false => (&["connection"], &[]),
        };
        let divided: &[&str] = if other.apart && !mine.apart { &WINDOWS } else { &[] };
        let of_connection = [of_connection, divided].concat();
        first(&at, &json!(mine), &json!(other), of_flow).or_else(|| {
            let connection = |spec: &Spec, flow: &Flow| json!(spec.connection_of(flow));
            let (mine, other) = (connection(here, mine), connection(there, other));
            first(&format!("{at}.connection"), &mine, &other, &of_connection)
                .or_else(|| in_common(&format!("{at}.connection.cc"), &mine["cc"], &other["cc"]))
        })
    })
}

/// The first key of two tables, `free` ones apart, whose values differ.
fn first(at: &str, here: &Value, there: &Value, free: &[&str]) -> Option<Difference> {
    let empty = Map::new();
    let (here, there) = (here.as_object().unwrap_or(&empty), there.as_object().unwrap_or(&empty));
    let keys = here.keys().chain(there.keys()).filter(|key| !free.contains(&key.as_str()));
    let value = |table: &Map<String, Value>, key: &String| table.get(key).cloned().unwrap_or_default();
    keys.map(|key| (key, value(there, key), value(here, key)))
        .find(|(_, there, here)| there != here)
        .map(|(key, there, here)| (format!("{at}.{key}"), there, here))
}

/// Parameters that two algorithms share, as the initial window, have one value.
fn in_common(at: &str, here: &Value, there: &Value) -> Option<Difference> {
    let (here, there) = (here.as_object()?, there.as_object()?);
    let shared = here.iter().filter(|(key, _)| key.as_str() != "algorithm");
    shared
        .filter_map(|(key, mine)| Some((key, mine, there.get(key)?)))
        .find(|(_, mine, other)| mine != other)
        .map(|(key, mine, other)| pair(format!("{at}.{key}"), other, mine))
}

fn pair(key: String, there: &Value, here: &Value) -> Difference {
    (key, there.clone(), here.clone())
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn document(value: &impl Serialize) -> Value {
    json!(value)
}

/// The same number in the null: its flow has only one of the paths.
pub fn in_null(selector: &Selector, cell: &Cell, null: &Cell) -> Selector {
    let path = |what: &What| {
        let route = |c: &Cell, path: usize| {
            c.spec.flow.iter().find(|f| what.flows.contains(&f.name))?.paths.get(path).cloned()
        };
        let route = route(cell, what.path?)?;
        let flow = null.spec.flow.iter().find(|f| what.flows.contains(&f.name))?;
        flow.paths.iter().position(|p| *p == route)
    };
    let of = |what: &What| What { path: path(what).or(what.path), ..what.clone() };
    Selector { what: of(&selector.what), over: selector.over.as_ref().map(of), ..selector.clone() }
}
