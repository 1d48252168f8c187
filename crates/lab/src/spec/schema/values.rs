//! What the texts and tables are that values read by themselves.

use std::borrow::Cow;

use polypath_wire::Rate;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;

use crate::seeds::SeedRange;
use crate::spec::{Limit, LinkRate, Managed, Queue};
use crate::units::{Human, Measure};

impl<T: Measure> JsonSchema for Human<T> {
    fn schema_name() -> Cow<'static, str> {
        T::WHAT.into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let units: Vec<_> = T::UNITS.iter().map(|u| u.0.replace('/', "\\/")).collect();
        json_schema!({
            "type": "string",
            "description": format!("A {}: a number and its unit.", T::WHAT),
            "pattern": format!("^\\s*[0-9]+(\\.[0-9]*)?\\s*({})\\s*$", units.join("|")),
            "examples": [T::EXAMPLE],
        })
    }
}

impl JsonSchema for SeedRange {
    fn schema_name() -> Cow<'static, str> {
        "seeds".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "First and last seed, the last included.",
            "pattern": "^\\s*[0-9]+\\s*(\\.\\.=?\\s*[0-9]+\\s*)?$",
            "examples": ["1..20"],
        })
    }
}

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "limit".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Packets, a size, or a multiple of rate × 2 · delay.",
            "pattern": r"^\s*[0-9]+(\.[0-9]*)?\s*([pP]|[bB][dD][pP]|[kKmMgG]?i?[bB])\s*$",
            "examples": ["144p", "1.5bdp", "90kB"],
        })
    }
}

impl JsonSchema for Queue {
    fn schema_name() -> Cow<'static, str> {
        "queue".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let forms = [generator.subschema_for::<Limit>(), generator.subschema_for::<Managed>()];
        json_schema!({ "description": "A drop-tail limit, or a discipline with its parameters.", "anyOf": forms })
    }
}

impl JsonSchema for LinkRate {
    fn schema_name() -> Cow<'static, str> {
        "link rate".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let trace = json!({
            "type": "object",
            "properties": { "trace": {
                "type": "string",
                "description": "A file beside the spec, in mahimahi's format: on each line the millisecond at which \
                                1500 bytes may leave; it repeats.",
            } },
            "required": ["trace"],
            "additionalProperties": false,
        });
        json_schema!({
            "description": "A rate, or a file of delivery opportunities.",
            "anyOf": [generator.subschema_for::<Human<Rate>>(), trace],
        })
    }
}
