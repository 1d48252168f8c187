//! Which modules of a crate use which: in code, and in strings that serde reads as code. What modules named
//! `tests` use does not count: they may use all there is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::TokenTree::{self, Group, Ident, Literal, Punct};
use proc_macro2::{Spacing, TokenStream};

/// The names on the way to a module from the crate's root, or of a path as it is written.
type Names = Vec<String>;

/// Which module uses which of its siblings, and by what path.
type Used = BTreeMap<(String, String), String>;

#[derive(Default)]
struct Module {
    /// The paths that `use` brings in, by their names here.
    imports: BTreeMap<String, Names>,
    /// The modules of the crate of which `use` brings in all names.
    globs: Vec<Names>,
    /// All paths in its code, those of `use` included.
    paths: Vec<Names>,
}

/// The modules of a crate.
#[derive(Default)]
pub struct Modules(BTreeMap<Names, Module>);

impl Modules {
    /// Those with their sources in `directory`.
    pub fn read(directory: &Path) -> Self {
        let mut modules = Self::default();
        modules.read_directory(directory, &[]);
        modules
    }

    /// A line for each module that uses a sibling from which a way leads back, with the path that it names.
    pub fn circles(&self) -> Vec<String> {
        let mut lines = vec![];
        for (parent, used) in self.siblings() {
            let name = |module| child(&parent, module).join("::");
            for ((user, other), path) in &used {
                if leads(&used, other, user, &mut BTreeSet::new()) {
                    lines.push(format!("{} uses {} ({path})", name(user), name(other)));
                }
            }
        }
        lines
    }

    /// For each parent, which child uses which other: itself, or what is below it.
    fn siblings(&self) -> BTreeMap<Names, Used> {
        let mut parents = BTreeMap::<Names, Used>::new();
        let paths = self.0.iter().flat_map(|(at, module)| module.paths.iter().map(move |path| (at, path)));
        for (at, path) in paths {
            let owner = self.owner(at, path);
            let shared = at.iter().zip(&owner).take_while(|(a, b)| a == b).count();
            if let ([user, ..], [other, ..]) = (&at[shared..], &owner[shared..]) {
                let used = parents.entry(at[..shared].to_vec()).or_default();
                used.insert((user.clone(), other.clone()), path.join("::"));
            }
        }
        parents
    }

    /// The module that defines what `path` names in the module `at`; that module itself if the path leaves the crate.
    fn owner(&self, at: &[String], path: &[String]) -> Names {
        let source = path.first().and_then(|name| self.source(at, name));
        self.definition(source.as_deref().unwrap_or(at), path)
    }

    /// The same without what `use` brings in as `*`.
    fn definition(&self, at: &[String], path: &[String]) -> Names {
        let Some((first, rest)) = path.split_first() else { return at.to_vec() };
        let child = child(at, first);
        match (first.as_str(), self.0.get(at).and_then(|module| module.imports.get(first))) {
            ("crate", _) => self.definition(&[], rest),
            ("self", _) => self.definition(at, rest),
            ("super", _) => self.definition(&at[..at.len() - 1], rest),
            _ if self.0.contains_key(&child) => self.definition(&child, rest),
            (_, Some(import)) => self.definition(at, &[import, rest].concat()),
            _ => at.to_vec(),
        }
    }

    /// The module from which `at` has `name` by `use` of `*`.
    fn source(&self, at: &[String], name: &str) -> Option<Names> {
        let names = |module: &[String]| {
            let imports = self.0.get(module).is_some_and(|module| module.imports.contains_key(name));
            imports || self.0.contains_key(&child(module, name))
        };
        let globs = &self.0.get(at).filter(|_| !names(at))?.globs;
        globs.iter().map(|glob| self.definition(at, glob)).find(|source| names(source))
    }

    fn read_directory(&mut self, directory: &Path, at: &[String]) {
        for entry in std::fs::read_dir(directory).expect("it is a directory").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() {
                self.read_directory(&path, &child(at, &name));
            } else if let Some(name) = name.strip_suffix(".rs") {
                let text = std::fs::read_to_string(&path).expect("sources are text");
                let code = text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                let own = !["lib", "main", "mod"].contains(&name);
                self.read_code(code, &if own { child(at, name) } else { at.to_vec() });
            }
        }
    }

    fn read_code(&mut self, code: TokenStream, at: &[String]) {
        if at.iter().any(|name| name == "tests") {
            return;
        }
        let tokens: Vec<_> = code.into_iter().collect();
        let mut left = &tokens[..];
        while let [first, rest @ ..] = left {
            let module = self.0.entry(at.to_vec()).or_default();
            left = match (first, rest) {
                (Ident(word), [Ident(name), Group(body), rest @ ..]) if word == "mod" => {
                    self.read_code(body.stream(), &child(at, &name.to_string()));
                    rest
                }
                (Ident(word), rest) if word == "use" => module.read_paths(rest, true),
                (Ident(_), _) => module.read_paths(left, false),
                (Group(group), rest) => {
                    self.read_code(group.stream(), at);
                    rest
                }
                (Literal(literal), rest) => {
                    module.paths.extend(path_in(&literal.to_string()));
                    rest
                }
                (Punct(_), rest) => rest,
            };
        }
    }
}

impl Module {
    /// Reads one path, or in `use` one tree of paths; returns the tokens after it.
    fn read_paths<'a>(&mut self, tokens: &'a [TokenTree], in_use: bool) -> &'a [TokenTree] {
        let mut named = vec![];
        let rest = paths(tokens, &[], &mut named);
        self.paths.extend(named.iter().map(|(_, path)| path.clone()));
        if in_use {
            let (globs, imports): (Vec<_>, Vec<_>) = named.into_iter().partition(|(name, _)| name == "*");
            let of_crate = |path: &Names| ["crate", "self", "super"].contains(&path[0].as_str());
            self.globs.extend(globs.into_iter().map(|(_, path)| path).filter(of_crate));
            self.imports.extend(imports.into_iter().filter(|(name, path)| path.first() != Some(name)));
        }
        rest
    }
}

/// Appends to `named` the paths in the tree that `tokens` begin with, each with its name after `use`; returns the rest.
fn paths<'a>(
    tokens: &'a [TokenTree],
    before: &[String],
    named: &mut Vec<(String, Names)>,
) -> &'a [TokenTree] {
    let (name, path, rest) = match tokens {
        [Ident(name), Punct(colon), Punct(_), rest @ ..]
            if colon.as_char() == ':' && colon.spacing() == Spacing::Joint =>
        {
            return paths(rest, &child(before, &name.to_string()), named);
        }
        [Group(group), rest @ ..] => {
            let tokens: Vec<_> = group.stream().into_iter().collect();
            let mut left = &tokens[..];
            while !left.is_empty() {
                left = paths(left, before, named);
                left = left.get(1..).unwrap_or_default();
            }
            return rest;
        }
        [Ident(last), Ident(word), Ident(name), rest @ ..] if word == "as" => {
            (name.to_string(), below(before, &last.to_string()), rest)
        }
        [Ident(last), rest @ ..] => {
            let path = below(before, &last.to_string());
            (path[path.len() - 1].clone(), path, rest)
        }
        [Punct(star), rest @ ..] if star.as_char() == '*' && !before.is_empty() => {
            ("*".to_owned(), before.to_vec(), rest)
        }
        _ => (before.last().cloned().unwrap_or_default(), before.to_vec(), tokens),
    };
    if !path.is_empty() {
        named.push((name, path));
    }
    rest
}

/// The path that ends with `last` in a tree below `before`, which `self` there stands for.
fn below(before: &[String], last: &str) -> Names {
    if last == "self" && !before.is_empty() { before.to_vec() } else { child(before, last) }
}

/// The path that a string consists of.
fn path_in(literal: &str) -> Option<Names> {
    let text = literal.strip_prefix('"')?.strip_suffix('"')?;
    let path = text.contains("::") && text.chars().all(|c| c.is_alphanumeric() || "_:".contains(c));
    path.then(|| text.split("::").map(str::to_owned).collect())
}

fn child(at: &[String], name: &str) -> Names {
    [at, &[name.to_owned()]].concat()
}

/// Whether `from` uses `to`, itself or by others that are not in `seen`.
fn leads<'a>(used: &'a Used, from: &'a str, to: &str, seen: &mut BTreeSet<&'a str>) -> bool {
    from == to
        || seen.insert(from) && used.keys().any(|(user, other)| user == from && leads(used, other, to, seen))
}

#[test]
fn circles_are_found_at_every_level() {
    let source = tempfile::tempdir().unwrap();
    let files = [
        ("lib.rs", "mod a; mod b; pub use b::inner::B;"),
        ("a.rs", "mod tests { use crate::b::inner::B; }"),
        ("b/mod.rs", "mod inner; mod outer; pub use outer::{Outer as Name, other};"),
        (
            "b/inner.rs",
            "use crate::a::A; // and crate::b::outer\nstruct B { #[serde(with = \"super::other\")] c: C }",
        ),
        ("b/outer.rs", "fn other(b: vec![crate::B::new()]) -> super::Name {}"),
        ("c/mod.rs", "mod all; mod part; use part::Part; pub use all::{All, *};"),
        ("c/all.rs", "use rayon::prelude::*; use super::*; struct All(Part, Vec<u8>);"),
        ("c/part.rs", "struct Part; fn make() -> super::All {}"),
        ("d/mod.rs", "mod left; mod right;"),
        ("d/left.rs", "use super::{self as above}; struct Left(above::right::Right);"),
        ("d/right.rs", "use super::left::{self as other, Left}; struct Right(other::Left);"),
    ];
    ["b", "c", "d"].iter().for_each(|name| std::fs::create_dir(source.path().join(name)).unwrap());
    files.iter().for_each(|(name, text)| std::fs::write(source.path().join(name), text).unwrap());
    assert_eq!(
        Modules::read(source.path()).circles(),
        [
            "b::inner uses b::outer (super::other)",
            "b::outer uses b::inner (crate::B::new)",
            "c::all uses c::part (Part)",
            "c::part uses c::all (super::All)",
            "d::left uses d::right (above::right::Right)",
            "d::right uses d::left (other::Left)",
        ]
    );
}
