//! The files that are inside the program.

use std::ops::Range;
use std::sync::LazyLock;

// `EXPERIMENTS`, `TEMPLATES`, `REPORT`, `SPEC`: the names of files, and where their texts are in `PACKED`, which holds all of them, compressed.
include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// Files of one kind.
type Files = &'static [(&'static str, Range<usize>)];

/// The experiments, `group/name.toml`, and what they name.
pub(crate) fn experiments() -> impl Iterator<Item = (&'static str, &'static str)> {
    texts(EXPERIMENTS)
}

/// The templates of new experiments, `name.toml`.
pub(crate) fn templates() -> impl Iterator<Item = (&'static str, &'static str)> {
    texts(TEMPLATES)
}

/// The text of a file of the experiments.
pub(crate) fn experiment(file: &str) -> Option<&'static str> {
    text(EXPERIMENTS, file)
}

/// A file of `src/report`: a part of a page.
pub(crate) fn report(file: &str) -> &'static str {
    text(REPORT, file).expect("build.rs put it in")
}

/// The JSON Schema of spec files.
pub(crate) fn schema() -> &'static str {
    text(SPEC, "schema.json").expect("build.rs put it in")
}

fn text(of: Files, file: &str) -> Option<&'static str> {
    texts(of).find(|(name, _)| *name == file).map(|(_, text)| text)
}

fn texts(of: Files) -> impl Iterator<Item = (&'static str, &'static str)> {
    static ALL: LazyLock<String> = LazyLock::new(|| {
        let bytes = lz4_flex::decompress_size_prepended(PACKED).expect("build.rs compressed it");
        String::from_utf8(bytes).expect("it is of texts")
    });
    of.iter().map(|(name, range)| (*name, &ALL[range.clone()]))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn what_is_inside_is_what_the_files_hold() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (dir, files) in [
            ("../../experiments", EXPERIMENTS),
            ("templates", TEMPLATES),
            ("src/report", REPORT),
            ("src/spec", SPEC),
        ] {
            assert!(!files.is_empty());
            for (name, text) in texts(files) {
                assert_eq!(text, fs::read_to_string(root.join(dir).join(name)).unwrap(), "{name}");
            }
        }
    }
}
