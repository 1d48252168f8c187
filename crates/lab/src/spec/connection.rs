//! What is said of connections: read, completed, its buffers in bytes.

use polypath_transport::ConnectionConfig;
use toml::{Table, Value};

use super::error::Problem;
use super::limit::is_whole;
use super::read::read;
use crate::document::Key;
use crate::units::{Bytes, Human};

/// Keys of a connection that count bytes, or packets.
pub(super) const BUFFERS: [&str; 4] = ["send_buffer", "receive_buffer", "unread_window", "reorder_store"];

/// What is said of more packets than there can be.
const MOST_PACKETS: &str = "at most 4294967295p";

/// Buffers as sizes, `"64MiB"`, and in packets, `"453p"`, which hold that many full segments of the flow.
pub(super) fn in_bytes(connection: &mut Table, mss: Option<u32>, at: Vec<Key>) -> Result<(), Problem> {
    for key in BUFFERS {
        let Some(Value::String(text)) = connection.get(key) else { continue };
        let problem = |message: String| Problem::new([&at[..], &[Key::from(key)]].concat(), message);
        let bytes = match text.strip_suffix('p').map(str::trim).filter(|n| is_whole(n)) {
            Some(packets) => {
                let packets: u32 = packets
                    .parse()
                    .map_err(|_| problem(format!("\"{text}\" is too large")).help(MOST_PACKETS))?;
                let mss = mss.ok_or_else(|| {
                    problem("packets of which size?".into()).help("give the flow an mss, or write bytes")
                })?;
                i64::from(packets) * i64::from(mss)
            }
            None => size(text).ok_or_else(|| {
                problem(format!("\"{text}\" is no buffer"))
                    .help("write bytes, \"64MiB\", or packets as in \"453p\"")
            })?,
        };
        connection.insert(key.to_owned(), Value::Integer(bytes));
    }
    Ok(())
}

/// `text` as a size, in bytes.
fn size(text: &str) -> Option<i64> {
    let Human(Bytes(bytes)) = text.parse().ok()?;
    i64::try_from(bytes).ok()
}

/// The connection of `table`, which stands at `at`.
pub(super) fn read_connection(table: &Table, at: Vec<Key>) -> Result<ConnectionConfig, Problem> {
    read(Value::Table(table.clone()), at)
}

/// `base` with the keys of `over`; a table with another tag (`algorithm`, `policy`) replaces its base.
pub(super) fn merge(mut base: Table, over: Table) -> Table {
    for (key, value) in over {
        let merged = match (base.remove(&key), value) {
            (Some(Value::Table(old)), Value::Table(new)) if same_tag(&old, &new) => {
                Value::Table(merge(old, new))
            }
            (_, new) => new,
        };
        base.insert(key, merged);
    }
    base
}

fn same_tag(old: &Table, new: &Table) -> bool {
    ["algorithm", "policy"].iter().all(|tag| match (old.get(*tag), new.get(*tag)) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    })
}
