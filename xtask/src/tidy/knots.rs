//! Import knots: top-level modules of one crate that all import each other, directly or through
//! others. A reader of a knot must read all of it; a small one is an idea in several files.

use std::collections::{BTreeMap, BTreeSet};

use super::code::code_of;
use super::{SourceFile, TidyFinding, Tree};

/// Modules in one knot.
const MODULES_MAX: usize = 6;

/// The top-level modules of a crate, each with those that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

pub(super) fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for package in tree.metadata.ours() {
        let folder = package.manifest.trim_end_matches("Cargo.toml");
        let root = format!("{folder}src/lib.rs");
        let Some(lib) = tree.file(&root) else {
            continue;
        };
        let imports = imports(tree, &format!("{folder}src/"), lib);
        for knot in knots(&imports) {
            if knot.len() > MODULES_MAX {
                let text = format!(
                    "{} modules import each other in a circle, {MODULES_MAX} at most: {}",
                    knot.len(),
                    knot.join(" ")
                );
                findings.push(TidyFinding::new(&root, 1, text));
            }
        }
    }
    findings
}

/// The imports between the top-level modules below `folder`, tests excluded.
fn imports(tree: &Tree, folder: &str, lib: &SourceFile) -> Imports {
    let root = code_of(&lib.text);
    let reexports = reexports(&root);
    let mut imports = Imports::new();
    for file in tree.rust().filter(|file| file.path.starts_with(folder)) {
        let path = file.path[folder.len()..].trim_end_matches(".rs");
        let parts: Vec<&str> = path.split('/').collect();
        if path == "lib" || path == "main" || parts.iter().any(|part| is_test_module(part)) {
            continue;
        }
        let code = code_of(&file.text);
        let code = code.split("#[cfg(test)]").next().unwrap_or(&code);
        let targets = imports.entry(parts[0].to_owned()).or_default();
        for name in names_at_root(code, parts.len()) {
            let module = reexports.get(name).map_or(name, String::as_str);
            if module != parts[0] {
                targets.insert(module.to_owned());
            }
        }
    }
    let modules: BTreeSet<_> = imports.keys().cloned().collect();
    for targets in imports.values_mut() {
        targets.retain(|target| modules.contains(target));
    }
    imports
}

fn is_test_module(name: &str) -> bool {
    matches!(name, "tests" | "testing" | "model" | "fixture")
}

/// The names that follow `crate::`, and `super::` where that leads to the crate's root.
fn names_at_root(code: &str, depth: usize) -> Vec<&str> {
    let supers = "super::".repeat(depth);
    let mut names = Vec::new();
    for prefix in ["crate::", supers.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            let before = &code[..at];
            if before.ends_with("super::") || before.ends_with("$") {
                continue;
            }
            names.extend(first_names(&code[at + prefix.len()..]));
        }
    }
    names
}

/// The first names of a path or of each branch of a group: `a::b` or `{a::b, c}`.
fn first_names(tree: &str) -> Vec<&str> {
    let Some(group) = tree.strip_prefix('{') else {
        return vec![word(tree)];
    };
    let mut names = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(word(group[start..at].trim_start()));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(word(group[start..at].trim_start()));
                start = at + 1;
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The identifier at the start of `text`.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The names that the crate's root re-exports, with their modules.
fn reexports(code: &str) -> BTreeMap<&str, String> {
    let mut names = BTreeMap::new();
    for (at, _) in code.match_indices("use ") {
        let statement = code[at + 4..].split(';').next().unwrap_or_default();
        let statement = statement
            .trim_start_matches("crate::")
            .trim_start_matches("self::");
        let Some((module, rest)) = statement.split_once("::") else {
            continue;
        };
        for name in rest.split(|c: char| !c.is_alphanumeric() && c != '_') {
            names.insert(name, module.to_owned());
        }
    }
    names
}

/// The strongly connected components of more than one module.
fn knots(imports: &Imports) -> Vec<Vec<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = imports
        .keys()
        .map(|module| (module.as_str(), reach(imports, module)))
        .collect();
    let mut done = BTreeSet::new();
    let mut knots = Vec::new();
    for (module, reach) in &reached {
        if done.contains(module) || !reach.contains(module) {
            continue;
        }
        let is_mutual = |other: &&&str| reached[**other].contains(module);
        let knot: Vec<&str> = reach.iter().filter(is_mutual).copied().collect();
        done.extend(knot.iter().copied());
        knots.push(knot);
    }
    knots
}

/// The modules that imports lead to from `module`.
fn reach<'a>(imports: &'a Imports, module: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&str> = imports[module].iter().map(String::as_str).collect();
    while let Some(next) = waiting.pop() {
        if reached.insert(next) {
            waiting.extend(imports[next].iter().map(String::as_str));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::super::tree_of;
    use super::*;
    use crate::metadata::Package;

    /// A crate whose modules import each other in a circle of this size.
    fn circle(size: usize) -> Vec<String> {
        let name = |number: usize| format!("crates/x/src/m{}.rs", number % size);
        let mut files = vec![("crates/x/src/lib.rs".to_owned(), String::new())];
        files.extend((0..size).map(|number| {
            let next = (number + 1) % size;
            (name(number), format!("use crate::m{next}::X;\n"))
        }));
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        let mut tree = tree_of(&files);
        tree.metadata.packages = vec![Package {
            ours: true,
            manifest: "crates/x/Cargo.toml".to_owned(),
            ..Package::default()
        }];
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn circles_above_the_limit_are_found() {
        assert!(circle(MODULES_MAX).is_empty());
        let found = circle(MODULES_MAX + 1);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("crates/x/src/lib.rs:1: 7 modules"),
            "{found:?}"
        );
    }

    #[test]
    fn imports_are_read_in_all_their_forms() {
        let code = "use crate::{a::X, b, c::{D, E}};\nfn f() -> crate::g::H { super::super::i::J }\nsuper::k::L";
        assert_eq!(names_at_root(code, 2), ["a", "b", "c", "g", "i"]);
        assert_eq!(names_at_root("super::k::L", 1), ["k"]);
    }

    #[test]
    fn reexports_lead_to_their_modules() {
        let names = reexports("pub use runner::{Batch, Runner};\nuse crate::steps::Reason;\n");
        assert_eq!(names["Batch"], "runner");
        assert_eq!(names["Reason"], "steps");
    }
}
