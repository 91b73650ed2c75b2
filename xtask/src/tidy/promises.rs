//! Proofs that the specification names: each must exist.

use std::collections::BTreeSet;

use super::{SourceFile, TidyFinding, Tree};

/// The document with promises and, in the last column of its tables, their proofs.
const PROMISES: &str = "SPECIFICATION.md";

/// The folders of cases and fuzz targets.
const CASES: &str = "crates/pipeline/cases/";
const FUZZ_TARGETS: &str = "fuzz/fuzz_targets/";

pub(super) fn check(tree: &Tree) -> Vec<TidyFinding> {
    let Some(promises) = tree.file(PROMISES) else {
        return Vec::new();
    };
    let known = proofs(tree);
    let mut findings = Vec::new();
    for (number, line) in promises.lines() {
        for name in named(line).filter(|name| !known.contains(name)) {
            let what = format!(
                "`{name}` proves nothing: there is no such test function, case or fuzz target"
            );
            findings.push(TidyFinding::new(PROMISES, number, what));
        }
    }
    findings
}

/// Returns the names of all tests, cases and fuzz targets.
fn proofs(tree: &Tree) -> BTreeSet<&str> {
    let functions = tree.rust().flat_map(functions);
    let files = tree.files.iter().filter_map(|file| {
        let target = || file.path.strip_prefix(FUZZ_TARGETS)?.strip_suffix(".rs");
        file.path.strip_prefix(CASES).or_else(target)
    });
    functions.chain(files).collect()
}

/// Returns the functions that `file` defines.
fn functions(file: &SourceFile) -> impl Iterator<Item = &str> {
    file.lines().filter_map(|(_, line)| {
        let (name, _) = line
            .trim_start()
            .strip_prefix("fn ")?
            .split_once(['(', '<'])?;
        Some(name)
    })
}

/// Returns the proofs in a table line: all code in its last column.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let row = line
        .strip_prefix("| ")
        .and_then(|row| row.strip_suffix(" |"));
    let last = row.and_then(|row| row.rsplit_once(" | "));
    let proof = last.map_or("", |(_, proof)| proof);
    // Code is between the first and second backtick, the third and fourth, and so on.
    let code = proof.split('`').skip(1).step_by(2);
    code.filter(|name| name.contains('_') || name.ends_with(".case"))
}

#[cfg(test)]
mod tests {
    use super::super::tree_of;
    use super::*;

    #[test]
    fn proof_is_a_function_a_case_or_a_fuzz_target() {
        let tree = tree_of(&[
            ("crates/a/src/lib.rs", "#[test]\nfn it_is_so() {}\n"),
            ("crates/pipeline/cases/priority.case", ""),
            ("fuzz/fuzz_targets/flow_text.rs", ""),
            (
                PROMISES,
                "| promise | proof |\n|---|---|\n| It is `not_looked_at`. | `it_is_so`, `priority.case`; target `flow_text` |\n",
            ),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn unknown_proof_is_found_in_its_line() {
        let tree = tree_of(&[(
            PROMISES,
            "| promise | proof |\n|---|---|\n| It is so. | `it_is_so` |\n",
        )]);
        let findings = check(&tree);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].line, findings[0].path.as_str()), (3, PROMISES));
        assert!(findings[0].what.starts_with("`it_is_so`"), "{findings:?}");
    }
}
