//! The JSON Schema of the configuration: what its types say of each key, and the ranges that are checked. The program has the
//! file that this gives, `schema.json`.

use std::borrow::Cow;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::wording::RANGES;
use super::{Config, Ports};
use crate::rate::Limit;
use crate::volume::Volume;

/// Names the schema.
const TITLE: &str = "Polypath daemon";

#[test]
fn the_program_has_the_schema_that_is_derived() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/schema.json");
    polypath_testing::assert_kept(&file, &format!("{:#}\n", derived()));
}

/// The JSON Schema of a configuration.
fn derived() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
    leave_out_null(&mut schema);
    for (key, least, most) in RANGES {
        let number = key.split('.').fold(&mut schema, |table, key| {
            let of_list = table.get("items").is_some();
            let table = if of_list { &mut table["items"] } else { table };
            &mut table["properties"][key]
        });
        number["minimum"] = json!(least);
        if most < u64::MAX {
            number["maximum"] = json!(most);
        }
    }
    schema["title"] = TITLE.into();
    schema
}

/// A key without a value is left out of a file: TOML has no null.
fn leave_out_null(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            keys.retain(|_, value| !value.is_null());
            if let Some(Value::Array(types)) = keys.get_mut("type") {
                types.retain(|name| name != "null");
                if let [one] = &types[..] {
                    keys["type"] = one.clone();
                }
            }
            keys.values_mut().for_each(leave_out_null);
        }
        Value::Array(values) => values.iter_mut().for_each(leave_out_null),
        _ => {}
    }
}

/// What a text is, as far as a pattern can say it.
macro_rules! texts {
    ($($name:ident: $pattern:expr, $examples:expr;)+) => {
        $(impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "examples": $examples })
            }
        })+
    };
}

/// An address with the length of its network's prefix.
pub(super) struct HostAddress;
/// A network.
pub(super) struct Network;
/// A Host Identity Tag.
pub(super) struct Tag;

const PREFIX: &str = "^[0-9A-Fa-f:.]+/[0-9]{1,3}$";

texts! {
    HostAddress: PREFIX, ["10.99.0.1/24", "fd99::1/64"];
    Network: PREFIX, ["10.99.0.2/32", "192.168.7.0/24", "::/0"];
    Tag: "^2001:0{0,2}2[0-9A-Fa-f]:[0-9A-Fa-f:.]+$", ["2001:22:88e0:5362:e35e:1c8f:b38e:ef19"];
    Limit: "^\\s*[0-9.]+\\s*([kKMG]|[kKmMgG]?[bB]([iI][tT](/[sS])?|[pP][sS]))\\s*$", ["10M", "500k", "1.5G"];
    Volume: "^\\s*[0-9.eE+]+\\s*(k|M|G|T|Ki|Mi|Gi|Ti)B\\s*$", ["5 GB", "500 MB", "1.5 GiB"];
}

impl JsonSchema for Ports {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Ports".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": u16::MAX },
                { "type": "string", "pattern": "^\\s*[0-9]{1,5}\\s*(-\\s*[0-9]{1,5}\\s*)?$" },
            ],
            "examples": [5060, "10000-20000"],
        })
    }
}
