//! Rules of the whole repository that no compiler checks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{DependencyKind, MetadataCommand};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Floor of each crate (ARCHITECTURE.md); a new crate takes its place here.
fn floors() -> BTreeMap<&'static str, u32> {
    BTreeMap::from([
        ("polypath-testing", 0),
        ("polypath-wire", 0),
        ("polypath-hop", 1),
        ("polypath-transport", 1),
        ("polypath-hip", 1),
        ("polypath-esp", 1),
        ("polypath-endpoint", 2),
        ("polypath-sim", 3),
        ("polypath-node", 3),
        ("polypath-lab", 4),
        ("polypath-files", 5),
        ("polypath-cli", 6),
        ("polypath-py", 6),
    ])
}

#[test]
fn imports_go_down_only() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata answers");
    let floors = floors();
    let mut seen = 0;
    for package in &metadata.packages {
        let name = package.name.as_str();
        let floor =
            *floors.get(name).unwrap_or_else(|| panic!("{name} has no floor: give it one in {}", file!()));
        for dependency in package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development) {
            let Some(below) = floors.get(dependency.name.as_str()) else { continue };
            assert!(*below < floor, "{name} (floor {floor}) imports {} (floor {below})", dependency.name);
        }
        seen += 1;
    }
    assert!(seen >= 3, "only {seen} crates seen");
}

/// `make demo` is what a newcomer waits for: it compiles neither the laboratory nor what only that needs.
#[test]
fn the_demo_compiles_without_the_laboratory() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "-p", "polypath-cli", "--no-default-features"])
        .args(["-e", "normal,build", "--prefix", "none", "--format", "{p}"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let crates = String::from_utf8_lossy(&tree.stdout);
    assert!(crates.contains("polypath-node"), "{}", String::from_utf8_lossy(&tree.stderr));
    for heavy in ["arrow-", "parquet", "plotters", "maud", "schemars", "statrs", "rayon", "toml "] {
        assert!(!crates.lines().any(|name| name.starts_with(heavy)), "the demo compiles {heavy}");
    }
}

#[test]
fn no_file_names_this_machine() {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let Some(listed) = listed.ok().filter(|o| o.status.success()) else {
        polypath_testing::excuse("not a git checkout");
        return;
    };
    // Spelled in parts so that this file passes its own test.
    let forbidden =
        [["/wo", "rk/"], ["/ro", "ot/"], ["arti", "factory"], ["/tmp/", "bash_jobs"]].map(|p| p.concat());
    let files: Vec<_> = listed.stdout.split(|b| *b == 0).filter(|f| !f.is_empty()).collect();
    assert!(!files.is_empty());
    for file in files {
        let file = String::from_utf8_lossy(file).into_owned();
        // Deleted in the work tree, or not text: nothing to read.
        let Ok(text) = std::fs::read_to_string(root().join(&file)) else { continue };
        for (n, line) in text.lines().enumerate() {
            for word in &forbidden {
                assert!(!line.contains(word.as_str()), "{file}:{}: names {word}", n + 1);
            }
        }
    }
}
