//! Rust files that nothing imports: dead code that the compiler never sees.

use std::collections::BTreeSet;

use super::code::code_of;
use super::{Finding, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    let roots = tree.metadata.ours().flat_map(|package| &package.roots);
    let mut waiting: Vec<String> = roots.cloned().collect();
    while let Some(path) = waiting.pop() {
        if let Some(file) = tree.file(&path) {
            let code = code_of(&file.text);
            let is_root = tree
                .metadata
                .ours()
                .any(|package| package.roots.contains(&path));
            let folder = folder_of_children(&path, is_root);
            for name in declared(&code) {
                waiting.push(format!("{folder}/{name}.rs"));
                waiting.push(format!("{folder}/{name}/mod.rs"));
            }
            reached.insert(path);
        }
        waiting.retain(|path| !reached.contains(path));
    }
    tree.rust()
        .filter(|file| !reached.contains(&file.path))
        .map(|file| {
            Finding::new(
                &file.path,
                1,
                "no `mod` imports this file: import or remove it",
            )
        })
        .collect()
}

/// Where the files are that the file at `path` declares.
fn folder_of_children(path: &str, is_root: bool) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    match name.trim_end_matches(".rs") {
        _ if is_root => folder.to_owned(),
        "mod" => folder.to_owned(),
        stem => format!("{folder}/{stem}"),
    }
}

/// The names of all modules that `code` declares in files of their own.
fn declared(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for line in code.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [.., "mod", name] = words[..]
            && let Some(name) = name.strip_suffix(';')
        {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::tree_of;
    use super::*;
    use crate::metadata::Package;

    #[test]
    fn a_file_that_nothing_imports_is_found() {
        let mut tree = tree_of(&[
            (
                "crates/x/src/lib.rs",
                "mod a;\npub(crate) mod b;\nmod inline { }\n// mod d;\n",
            ),
            ("crates/x/src/a.rs", "#[cfg(test)]\nmod tests;\n"),
            ("crates/x/src/a/tests.rs", ""),
            ("crates/x/src/b/mod.rs", "pub mod c;"),
            ("crates/x/src/b/c.rs", ""),
            ("crates/x/src/d.rs", ""),
            ("crates/x/benches/speed.rs", ""),
            ("fuzz/fuzz_targets/y.rs", ""),
        ]);
        tree.metadata.packages = vec![Package {
            ours: true,
            roots: vec![
                "crates/x/src/lib.rs".to_owned(),
                "crates/x/benches/speed.rs".to_owned(),
            ],
            ..Package::default()
        }];
        assert_eq!(
            check(&tree),
            [Finding::new(
                "crates/x/src/d.rs",
                1,
                "no `mod` imports this file: import or remove it"
            )]
        );
    }
}
