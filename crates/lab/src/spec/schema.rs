//! The JSON Schema of spec files. What the transport reads is described from its own defaults, so a
//! new key or algorithm there appears here by itself.

use polypath_transport::ConnectionConfig;
use polypath_transport::cc::CcConfig;
use polypath_transport::loss::LossConfig;
use polypath_transport::sched::SchedulerConfig;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::Spec;
use super::load::BUFFERS;
use crate::registry::names;

/// The JSON Schema of spec files.
pub fn schema() -> Schema {
    schemars::schema_for!(Spec)
}

/// `[connection]`: every key of `ConnectionConfig`, with its type and default.
pub(super) fn connection(_: &mut SchemaGenerator) -> Schema {
    let defaults = json!(ConnectionConfig::default());
    let mut properties: Map<String, Value> = Map::new();
    for (key, default) in defaults.as_object().into_iter().flatten() {
        let kind = match default {
            Value::Bool(_) => "boolean",
            Value::Number(_) | Value::Null => "number",
            Value::String(_) => "string",
            _ => "object",
        };
        properties.insert(key.clone(), json!({ "type": kind, "default": default }));
    }
    let choices = [
        ("cc", "algorithm", names::<CcConfig>("algorithm")),
        ("scheduler", "policy", names::<SchedulerConfig>("policy")),
        ("loss", "policy", names::<LossConfig>("policy")),
    ];
    for (key, tag, names) in choices {
        properties[key]["properties"] = json!({ tag: { "enum": names } });
    }
    for key in BUFFERS {
        properties[key]["type"] = json!(["integer", "string"]);
    }
    json_schema!({
        "type": "object",
        "description": "Parameters of a TCP connection; times in ms, buffers in bytes, or packets: \"453p\".",
        "properties": properties,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_the_keys_and_algorithms_of_the_transport() {
        let schema = serde_json::to_value(schema()).unwrap();
        let connection = &schema["properties"]["connection"]["properties"];
        assert_eq!(connection["min_rto"]["default"], 200.0);
        let policies = connection["scheduler"]["properties"]["policy"]["enum"].as_array().unwrap();
        assert!(policies.contains(&json!("earliest_arrival")), "{policies:?}");
        assert_eq!(schema["properties"]["version"]["maximum"], 1);
        assert_eq!(schema["additionalProperties"], false);
    }
}
