//! Rust files that no module imports, which the compiler never sees.

use std::collections::BTreeSet;

use super::code::code_of;
use super::{TidyFinding, Tree};

pub(super) fn check(tree: &Tree) -> Vec<TidyFinding> {
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
            TidyFinding::new(
                &file.path,
                1,
                "no `mod` imports this file: import or remove it",
            )
        })
        .collect()
}

/// Returns the folder of the modules that the file at `path` declares.
fn folder_of_children(path: &str, is_root: bool) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    match name.trim_end_matches(".rs") {
        _ if is_root => folder.to_owned(),
        "mod" => folder.to_owned(),
        stem => format!("{folder}/{stem}"),
    }
}

/// Returns the names of the modules that `code` declares in their own files.
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
    fn unimported_file_is_found() {
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
            [TidyFinding::new(
                "crates/x/src/d.rs",
                1,
                "no `mod` imports this file: import or remove it"
            )]
        );
    }
}
