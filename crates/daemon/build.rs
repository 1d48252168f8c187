//! Puts the JSON Schema of the configuration into the library, compressed.

#[cfg(not(feature = "schema"))]
fn main() {}

#[cfg(feature = "schema")]
fn main() -> std::io::Result<()> {
    let schema = "src/config/schema.json";
    println!("cargo::rerun-if-changed={schema}");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(out + "/schema.lz4", lz4_flex::compress_prepend_size(&std::fs::read(schema)?))
}
