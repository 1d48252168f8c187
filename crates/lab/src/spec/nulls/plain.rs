//! In a null the claimed flow is plain TCP: that beside it, or NewReno.

use serde_json::{Value, json};
use toml::{Table, toml};

use super::super::connection::{in_bytes, merge, read_connection};
use super::super::{Cell, Flow, Selector, Spec, Traffic};
use super::{OF_PATHS, WINDOWS, replaced};

/// What is wrong, and the remedy.
type Wrong = (String, String);

/// The flows in why place `null` has plain TCP have one of the claimed paths, or `of_all` of them on connections apart, and the
/// connection of the TCP beside them; if there is none, NewReno's with what the file says of all, `shared`.
pub(super) fn plain(
    selector: &Selector,
    of_all: bool,
    shared: &Table,
    cell: &Cell,
    null: &Spec,
) -> Result<(), Wrong> {
    let replaced = replaced(selector, &cell.spec);
    let subject = |flow: &&Flow| replaced.contains(&&flow.name[..]);
    let claimed = cell.spec.flow.iter().filter(subject);
    for (mine, flow) in claimed.zip(null.flow.iter().filter(subject)) {
        paths(selector, of_all, mine, flow)?;
        let connection = |spec: &Spec, flow: &Flow| json!(spec.connection_of(flow));
        let (mine_has, has) = (connection(&cell.spec, mine), connection(null, flow));
        if flow.apart && !mine.apart {
            windows(flow, &mine_has, &has)?;
        }
        let (tcp, why) = match beside(selector, &replaced, null) {
            Some(tcp) => {
                (connection(null, tcp), format!("it has the connection of \"{}\" beside it", tcp.name))
            }
            None => (
                newreno(shared, flow, &mine_has, &has),
                "with no TCP beside it, it is NewReno with what [connection] says".to_owned(),
            ),
        };
        same(&flow.name, &has, &tcp, &why)?;
    }
    Ok(())
}

fn paths(selector: &Selector, of_all: bool, mine: &Flow, flow: &Flow) -> Result<(), Wrong> {
    let one_of = match selector.what.path.filter(|_| selector.what.flows.contains(&flow.name)) {
        Some(path) => mine.paths.get(path).map(std::slice::from_ref).unwrap_or_default(),
        None => &mine.paths,
    };
    let (key, is) = match &flow.paths[..] {
        _ if flow.oracle => ("oracle", json!(true)),
        [path] if !of_all && one_of.contains(path) => return Ok(()),
        all if of_all && all == mine.paths && flow.apart => return Ok(()),
        all if of_all && all == mine.paths => ("apart", json!(false)),
        other => ("paths", json!(other)),
    };
    let has = match (of_all, key) {
        (_, "oracle") => "no TCP sees the queues: set oracle = false in the null",
        (true, _) => "a null of all has all paths, each with a TCP of its own (apart = true)",
        (false, _) => "a null has one of the paths",
    };
    Err((format!("flow.{}.{key} is {is}", flow.name), has.to_owned()))
}

/// TCPs apart have together the windows that the connection in their place has for all its paths.
fn windows(flow: &Flow, mine: &Value, has: &Value) -> Result<(), Wrong> {
    let (count, segment) = (flow.paths.len() as u64, u64::from(flow.mss.unwrap_or(1)));
    for key in WINDOWS {
        let at = format!("flow.{}.connection.{key}", flow.name);
        match (mine[key].as_u64(), has[key].as_u64()) {
            (Some(whole), Some(each)) if (each * count).abs_diff(whole) * 2 > count * segment => {
                let wrong =
                    format!("{at} is {each} in each of its {count} TCPs, {whole} in all of the claim's");
                let share = (whole + count * segment / 2) / (count * segment) * segment;
                return Err((wrong, format!("they divide it: set {at} = {share} in the null")));
            }
            (Some(_), Some(_)) | (None, None) => {}
            _ => return Err((format!("{at} is {}", has[key]), format!("the claim has {}", mine[key]))),
        }
    }
    Ok(())
}

/// The TCP that the claim compares with, or else another one.
fn beside<'a>(selector: &Selector, replaced: &[&str], null: &'a Spec) -> Option<&'a Flow> {
    let is_tcp = |f: &&Flow| f.traffic == Traffic::Tcp && f.paths.len() == 1;
    let others = || null.flow.iter().filter(|f| !replaced.contains(&&f.name[..])).filter(is_tcp);
    let is_named = |f: &&Flow| selector.whats().any(|what| what.flows.contains(&f.name));
    others().find(is_named).or_else(|| others().next())
}

/// NewReno without SACK, but for what the file says of all its connections; what is no matter of paths is as in the null, which has it
/// from the claim.
fn newreno(shared: &Table, flow: &Flow, mine: &Value, has: &Value) -> Value {
    let mut tcp = toml! {
        sack = false
        cc = { algorithm = "newreno" }
        loss = { policy = "dupack" }
    };
    for (key, said) in shared.iter().filter(|(key, _)| OF_PATHS.contains(&key.as_str())) {
        let tag = |of: Option<&toml::Value>| of?.get("algorithm").or(of?.get("policy")).cloned();
        if !["cc", "loss"].contains(&key.as_str()) || tag(Some(said)) == tag(tcp.get(key)) {
            tcp = merge(tcp, Table::from_iter([(key.clone(), said.clone())]));
        }
    }
    in_bytes(&mut tcp, flow.mss.or(Some(1)), vec![]).expect("it was read with the flow");
    let mut tcp = json!(read_connection(&tcp, vec![]).expect("it was read with the file"));
    for (key, value) in has.as_object().into_iter().flatten() {
        if !OF_PATHS.contains(&key.as_str()) {
            tcp[key] = value.clone();
        }
    }
    for (key, value) in tcp["cc"].as_object_mut().into_iter().flatten() {
        if let Some(mine) = mine["cc"].get(key).filter(|_| key != "algorithm") {
            value.clone_from(mine);
        }
    }
    tcp
}

/// All but the windows, which are the claim's, is as in `tcp`.
fn same(flow: &str, has: &Value, tcp: &Value, why: &str) -> Result<(), Wrong> {
    let at = format!("flow.{flow}.connection");
    let Some((key, is, should)) = super::first(&at, tcp, has, &WINDOWS) else { return Ok(()) };
    let (key, is, should) = inside(&key, &is, &should).unwrap_or((key, is, should));
    let remedy = match should {
        Value::Null => format!("leave {key} out of the null"),
        ref should => format!("set {key} = {should} in the null"),
    };
    let is = if is.is_null() { "nothing".to_owned() } else { is.to_string() };
    Err((format!("{key} is {is}"), format!("{why}: {remedy}")))
}

/// What differs between two tables: the algorithm that they name, if that does.
fn inside(at: &str, is: &Value, should: &Value) -> Option<super::Difference> {
    let tables = is.is_object() && should.is_object();
    let tag = ["algorithm", "policy"].into_iter().find(|tag| is[tag] != should[tag]);
    let named = tag.map(|tag| (format!("{at}.{tag}"), is[tag].clone(), should[tag].clone()));
    named.or_else(|| super::first(at, should, is, &[])).filter(|_| tables)
}
