//! Rules of the whole repository that no compiler checks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{DependencyKind, MetadataCommand};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Floor of each crate (ARCHITECTURE.md); a new crate takes its place here.
fn floors() -> BTreeMap<&'static str, u32> {
    BTreeMap::from([
        ("polypath-crypto", 0),
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

/// What is compiled for the package and the features in `args`: a line each, the name first.
fn compiled(args: &[&str]) -> String {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline"])
        .args(args)
        .args(["-e", "normal,build", "--prefix", "none", "--format", "{p}"])
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

/// `make demo` is what a newcomer waits for: it compiles neither the laboratory nor what only that needs.
#[test]
fn the_demo_compiles_without_the_laboratory() {
    let crates = compiled(&["-p", "polypath-cli", "--no-default-features"]);
    assert!(crates.contains("polypath-node"));
    for heavy in ["arrow-", "parquet", "plotters", "maud", "schemars", "statrs", "rayon", "toml "] {
        assert!(!crates.lines().any(|name| name.starts_with(heavy)), "the demo compiles {heavy}");
    }
}

/// Which other modules each module at the top of a crate names: in code, and in strings that serde reads as code.
fn modules(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut modules = BTreeMap::<_, BTreeSet<_>>::new();
    for entry in std::fs::read_dir(source).expect("a crate has sources").flatten() {
        let name = entry.file_name().to_string_lossy().trim_end_matches(".rs").to_owned();
        if matches!(name.as_str(), "lib" | "main") {
            continue;
        }
        let mut text = String::new();
        read(&entry.path(), &mut text);
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let named = code.flat_map(|line| line.split("crate::").skip(1)).map(|rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            rest[..end].to_owned()
        });
        let others = named.filter(|other| *other != name).collect::<Vec<_>>();
        modules.entry(name).or_default().extend(others);
    }
    modules
}

/// Appends all Rust below `path` to `text`.
fn read(path: &Path, text: &mut String) {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).expect("it is a directory").flatten();
        entries.for_each(|entry| read(&entry.path(), text));
    } else if path.extension().is_some_and(|e| e == "rs") {
        text.push_str(&std::fs::read_to_string(path).expect("sources are text"));
    }
}

#[test]
fn modules_import_one_another_in_no_circle() {
    for entry in std::fs::read_dir(root().join("crates")).expect("there are crates").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !entry.path().join("src").is_dir() {
            continue;
        }
        let mut left = modules(&entry.path().join("src"));
        // Whoever names nobody that is left is below all others.
        while let Some(lowest) = left.iter().find(|(_, named)| !named.iter().any(|n| left.contains_key(n))) {
            let lowest = lowest.0.clone();
            left.remove(&lowest);
        }
        assert!(left.is_empty(), "{name}: in a circle or above one: {left:#?}");
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
