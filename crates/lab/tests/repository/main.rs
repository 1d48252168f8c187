//! Rules of the whole repository that no compiler checks.

mod docs;
mod modules;
mod prose;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{DependencyKind, MetadataCommand};

use modules::Modules;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Floor of each crate (ARCHITECTURE.md); a new crate takes its place here.
fn floors() -> BTreeMap<&'static str, u32> {
    BTreeMap::from([
        ("polypath-crypto", 0),
        ("polypath-judge", 0),
        ("polypath-wire", 0),
        ("polypath-testing", 1),
        ("polypath-hop", 1),
        ("polypath-transport", 1),
        ("polypath-hip", 1),
        ("polypath-esp", 1),
        ("polypath-endpoint", 2),
        ("polypath-sim", 3),
        ("polypath-node", 3),
        ("polypath-bench", 4),
        ("polypath-lab", 4),
        ("polypath-testbed", 4),
        ("polypath-files", 5),
        ("polypath-daemon", 5),
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

/// What is compiled for the package and the features in `args`: a line each, the name first, its own features last.
fn compiled(args: &[&str]) -> String {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline"])
        .args(args)
        .args(["-e", "normal,build", "--prefix", "none", "--format", "{p} {f}"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    String::from_utf8_lossy(&tree.stdout).into_owned()
}

/// The crates up to the simulator, for a browser or a small router.
#[test]
fn the_simulator_compiles_without_a_c_compiler() {
    for features in ["pure", "pure,columns"] {
        let crates = compiled(&["-p", "polypath-sim", "--no-default-features", "--features", features]);
        let names: BTreeSet<&str> = crates.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(names.contains("polypath-hip") && names.contains("aes-gcm"), "{names:?}");
        let with_c = |name: &&&str| ["cc", "cmake"].contains(*name) || name.ends_with("-sys");
        assert_eq!(names.iter().find(with_c), None, "with the features {features}");
    }
}

/// `make static`, for architectures that this machine has no C compiler for. `blake3` calls one unless it is `pure`.
#[test]
fn the_program_for_a_router_compiles_without_a_c_compiler() {
    let program = ["-p", "polypath-cli", "--no-default-features", "--features", "pure,daemon"];
    let crates = compiled(&program);
    let in_rust = ["linux-raw-sys ", "netlink-sys "];
    let with_c = |line: &&str| ["cmake ", "-sys "].iter().any(|part| line.contains(part));
    let strange = |line: &&str| with_c(line) && !in_rust.iter().any(|name| line.starts_with(name));
    assert_eq!(crates.lines().find(strange), None);
    let callers = compiled(&[&program[..], &["-i", "cc", "--depth", "1"]].concat());
    let pure = |line: &str| line.starts_with("blake3 ") && line.contains("pure");
    assert!(callers.lines().skip(1).all(pure), "{callers}");
}

/// `make demo` is what a newcomer waits for: it compiles neither the laboratory nor what only that needs.
#[test]
fn the_demo_compiles_without_the_laboratory() {
    let crates = compiled(&["-p", "polypath-cli", "--no-default-features"]);
    assert!(crates.contains("polypath-node"));
    for heavy in ["arrow-", "parquet", "plotters", "maud", "schemars", "statrs", "rayon", "toml "] {
        assert!(!crates.lines().any(|name| name.starts_with(heavy)), "the demo compiles {heavy}");
    }
}

/// Schemas are derived in tests: the program has the files that this gave.
#[test]
fn the_program_derives_no_schema() {
    let crates = compiled(&["-p", "polypath-cli"]);
    assert!(crates.contains("parquet") && !crates.contains("schemars"), "{crates}");
}

/// At every level: the children of one parent, and what is below them.
#[test]
fn modules_use_one_another_in_no_circle() {
    let mut circles = vec![];
    for entry in std::fs::read_dir(root().join("crates")).expect("there are crates").flatten() {
        let (name, source) = (entry.file_name().to_string_lossy().into_owned(), entry.path().join("src"));
        let lines = if source.is_dir() { Modules::read(&source).circles() } else { Vec::new() };
        circles.extend(lines.into_iter().map(|line| format!("{name}: {line}")));
    }
    assert!(circles.is_empty(), "in a circle:\n{}", circles.join("\n"));
}

/// The text of every file that git knows, by its name.
fn files() -> Option<BTreeMap<String, String>> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let Some(listed) = listed.ok().filter(|o| o.status.success()) else {
        polypath_testing::excuse("not a git checkout");
        return None;
    };
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    // Deleted in the work tree, or not text: nothing to read.
    let read = |name: &str| Some((name.to_owned(), std::fs::read_to_string(root().join(name)).ok()?));
    let files: BTreeMap<_, _> = names.split('\0').filter(|name| !name.is_empty()).filter_map(read).collect();
    assert!(!files.is_empty());
    Some(files)
}

#[test]
fn no_source_file_is_longer_than_450_lines() {
    let files = files().unwrap_or_default();
    let lengths = files.iter().map(|(name, text)| (name, text.lines().count()));
    let long: Vec<_> = lengths.filter(|(name, lines)| name.ends_with(".rs") && *lines > 450).collect();
    assert!(long.is_empty(), "{long:?}");
}

/// `make test` runs no tests of documentation: there are none.
#[test]
fn documentation_has_no_code_that_a_test_would_run() {
    for (name, text) in files().unwrap_or_default() {
        let source = name.starts_with("crates/") && name.contains("/src/") && name.ends_with(".rs");
        let fences = text.lines().map(str::trim_start).filter_map(|line| line.strip_prefix("//"));
        let fences = fences.filter_map(|line| line.trim_start_matches(['/', '!', ' ']).strip_prefix("```"));
        let run = fences.step_by(2).find(|language| !["text", "toml", "sh", "json"].contains(language));
        assert!(!source || run.is_none(), "{name}: a block of {run:?}");
    }
}

#[test]
fn no_file_names_this_machine() {
    // Spelled in parts so that this file passes its own test.
    let forbidden =
        [["/wo", "rk/"], ["/ro", "ot/"], ["arti", "factory"], ["/tmp/", "bash_jobs"]].map(|p| p.concat());
    for (file, text) in files().unwrap_or_default() {
        for (n, line) in text.lines().enumerate() {
            for word in &forbidden {
                assert!(!line.contains(word.as_str()), "{file}:{}: names {word}", n + 1);
            }
        }
    }
}
