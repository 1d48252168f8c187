//! Known-answer vectors: captures of other implementations, recomputed independently.
#![allow(clippy::unwrap_used, dead_code, reason = "shared by several tests, which use parts of it")]

use polypath_hip::suite::{Hash, HitSuite};
use polypath_wire::hip::Hit;
use serde_json::Value;

pub fn read(name: &str) -> String {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

pub fn vectors(name: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(&read(name)).unwrap();
    let vectors = file["vectors"].as_array().unwrap().clone();
    assert_eq!(vectors.len() as u64, file["count"].as_u64().unwrap());
    vectors
}

pub fn text<'a>(v: &'a Value, key: &str) -> &'a str {
    v[key].as_str().unwrap_or_else(|| panic!("no text `{key}` in {v}"))
}

pub fn number(v: &Value, key: &str) -> u64 {
    v[key].as_u64().unwrap_or_else(|| panic!("no number `{key}` in {v}"))
}

pub fn bytes(v: &Value, key: &str) -> Vec<u8> {
    hex(text(v, key))
}

pub fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

pub fn hit(v: &Value, key: &str) -> Hit {
    Hit(bytes(v, key).try_into().unwrap())
}

pub fn suite(v: &Value, key: &str) -> HitSuite {
    HitSuite::from_id(number(v, key) as u8).unwrap()
}

pub fn hash(v: &Value, key: &str) -> Hash {
    suite(v, key).hash()
}
