//! The JSON Schema of spec files, derived from the types that read them. What the transport reads is described by its own
//! types, so a new key or algorithm there appears here by itself. The program has the file that this gives, `schema.json`.

mod values;

use std::path::Path;

use polypath_transport::{CcConfig, ConnectionConfig, LossConfig, Registry, SchedulerConfig};
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::Spec;
use super::connection::BUFFERS;

/// The JSON Schema of spec files.
fn derived() -> Schema {
    schemars::schema_for!(Spec)
}

/// `[connection]`: every key of `ConnectionConfig`. What a flow says of its algorithms may leave out what
/// the experiment says already, so nothing is required.
pub(super) fn connection(_: &mut SchemaGenerator) -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    let derived = settings.into_generator().into_root_schema_for::<ConnectionConfig>().to_value();
    let mut properties = derived["properties"].as_object().cloned().unwrap_or_default();
    let (cc, scheduler, loss) = (helps::<CcConfig>(), helps::<SchedulerConfig>(), helps::<LossConfig>());
    let which = "Which one.";
    for (key, tag, helps) in [
        ("cc", CcConfig::TAG, &*cc),
        ("scheduler", SchedulerConfig::TAG, &*scheduler),
        ("loss", LossConfig::TAG, &*loss),
        ("acks", "policy", which),
    ] {
        let description = properties[key]["description"].clone();
        properties[key] = json!({
            "type": "object",
            "description": description,
            "properties": choices(&properties[key], tag, helps),
            "additionalProperties": false,
        });
    }
    for key in BUFFERS {
        properties[key]["type"] = json!(["integer", "string"]);
    }
    json_schema!({
        "type": "object",
        "description": "Parameters of a TCP connection; times in ms, buffers in bytes, \"64MiB\", or packets, \"453p\".",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// What each algorithm says of itself.
fn helps<T: Registry>() -> String {
    T::ALL.iter().map(|about| format!("{}: {}.", about.name, about.help)).collect::<Vec<_>>().join("\n")
}

/// What is said of a variant is said of its key, too, which editors show.
pub(super) fn describe_variants(schema: &mut Schema) {
    for variant in schema.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        let description = variant["description"].clone();
        for (_, key) in variant.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            key["description"] = description.clone();
        }
    }
}

/// The keys of all variants of an enum with the tag `tag`, and its names, which `helps` describes.
fn choices(derived: &Value, tag: &str, helps: &str) -> Map<String, Value> {
    let mut names = Vec::new();
    let mut keys = Map::new();
    for variant in derived["oneOf"].as_array().into_iter().flatten() {
        for (key, value) in variant["properties"].as_object().into_iter().flatten() {
            match key == tag {
                true => names.push(value["const"].clone()),
                // The policy within another is one of the same, and what it has is checked when it is read.
                false if value.get("$ref").is_some() => {
                    keys.insert(
                        key.clone(),
                        json!({ "type": "object", "description": value["description"] }),
                    );
                }
                false => {
                    keys.entry(key).or_insert_with(|| value.clone());
                }
            }
        }
    }
    keys.insert(tag.to_owned(), json!({ "description": helps, "enum": names }));
    keys
}

#[test]
fn the_program_has_the_schema_that_is_derived() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/spec/schema.json");
    let derived = serde_json::to_string_pretty(&derived()).unwrap();
    polypath_testing::assert_kept(&file, &(derived + "\n"));
}

#[test]
fn it_knows_the_keys_and_algorithms_of_the_transport() {
    let schema: Value = serde_json::from_str(super::schema()).unwrap();
    let connection = &schema["properties"]["connection"]["properties"];
    assert_eq!(connection["min_rto"]["default"], 200.0);
    let policies = connection["scheduler"]["properties"]["policy"]["enum"].as_array().unwrap();
    assert!(policies.contains(&json!("earliest_arrival")), "{policies:?}");
    let cc = &connection["cc"];
    let names: Vec<_> = CcConfig::ALL.iter().map(|about| about.name).collect();
    let algorithm = &cc["properties"]["algorithm"];
    assert_eq!(algorithm["enum"], json!(names));
    assert!(algorithm["description"].as_str().unwrap().contains("fast: A FAST window per path"));
    assert_eq!(
        (&cc["properties"]["alpha"]["type"], &cc["additionalProperties"]),
        (&json!("integer"), &json!(false))
    );
    assert_eq!(connection["loss"]["properties"]["allowance"]["type"], "number");
    assert_eq!(connection["loss"]["properties"]["inner"]["type"], "object");
    assert_eq!(schema["properties"]["version"]["maximum"], 1);
    assert_eq!(schema["$defs"]["Link"]["properties"]["loss"]["maximum"], 1);
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn every_key_is_described() {
    let (mut nameless, mut seen) = (Vec::new(), 0);
    look(&serde_json::from_str(super::schema()).unwrap(), "", &mut |key, value| {
        seen += 1;
        nameless.extend(value.get("description").is_none().then(|| key.to_owned()));
    });
    assert!(seen > 200 && nameless.is_empty(), "{seen} keys, none said of {nameless:?}");
}

/// Calls `see` with every key of `schema`.
fn look(schema: &Value, path: &str, see: &mut impl FnMut(&str, &Value)) {
    for (key, value) in schema.as_object().into_iter().flatten() {
        let inner = value.as_object().filter(|_| key == "properties");
        for (name, of) in inner.into_iter().flatten() {
            see(&format!("{path}.{name}"), of);
        }
        look(value, &format!("{path}/{key}"), see);
    }
    schema.as_array().into_iter().flatten().for_each(|value| look(value, path, see));
}
