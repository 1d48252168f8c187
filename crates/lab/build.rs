//! Puts the experiments, the templates, the schema and what pages consist of into the library, and a hash of the sources that decide a run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Crates that no run depends on.
const ABOVE: [&str; 5] = ["cli", "files", "node", "py", "testing"];

fn main() -> io::Result<()> {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let root = here.join("../..");
    let list = [
        ("EXPERIMENTS", files(&root.join("experiments"), &["toml", "csv", "trace"])?),
        ("TEMPLATES", files(&here.join("templates"), &["toml"])?),
        ("REPORT", files(&here.join("src/report"), &["css", "js", "LICENSE"])?),
        ("SPEC", files(&here.join("src/spec"), &["json"])?),
    ];
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let packed = out.join("built_in.lz4");
    let mut code = format!("const PACKED: &[u8] = include_bytes!({packed:?});\n");
    let mut texts = String::new();
    for (name, files) in list {
        code += &table(name, &files, &mut texts)?;
    }
    fs::write(packed, lz4_flex::compress_prepend_size(texts.as_bytes()))?;
    fs::write(out.join("built_in.rs"), code)?;
    println!("cargo::rustc-env=POLYPATH_SOURCES={:08x}", sources(&root)? as u32);
    Ok(())
}

/// All files below `dir` with one of these endings, in order of their names relative to it; none where there is no such
/// directory, as in a source package.
fn files(dir: &Path, endings: &[&str]) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    if !dir.is_dir() {
        return Ok(found);
    }
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut below = vec![dir.to_owned()];
    while let Some(place) = below.pop() {
        for entry in fs::read_dir(place)? {
            let path = entry?.path();
            let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
            if path.is_dir() {
                below.push(path);
            } else if endings.contains(&ending) {
                let name = path.strip_prefix(dir).expect("it lies below").display().to_string();
                found.push((name, path.canonicalize()?));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A constant with the name of each of `files`, and where in `texts` its text is, which is added to them.
fn table(name: &str, files: &[(String, PathBuf)], texts: &mut String) -> io::Result<String> {
    let mut rows = String::new();
    for (name, path) in files {
        let start = texts.len();
        texts.push_str(&fs::read_to_string(path)?);
        rows += &format!("    ({name:?}, {start}..{}),\n", texts.len());
    }
    Ok(format!("const {name}: Files = &[\n{rows}];\n"))
}

/// Hash (FNV-1a) of everything that decides what a run gives beside its spec and its seed.
fn sources(root: &Path) -> io::Result<u64> {
    let mut crates: Vec<PathBuf> =
        fs::read_dir(root.join("crates"))?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    crates.retain(|c| c.file_name().is_some_and(|name| !ABOVE.iter().any(|above| name == *above)));
    crates.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for (name, path) in
        crates.iter().map(|c| files(&c.join("src"), &["rs"])).collect::<io::Result<Vec<_>>>()?.concat()
    {
        for byte in name.bytes().chain(fs::read(path)?) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    Ok(hash)
}
