//! Form of Rust files: module documentation, length, and macros and `unsafe` that must not remain.

use super::code::{code_of, lines_with_word};
use super::{SourceFile, TidyFinding, Tree};

/// Longest file, in lines between its module documentation and its tests.
const LINES_MAX: usize = 500;

/// The crates that may use `unsafe`.
const MAY_BE_UNSAFE: [&str; 2] = ["crates/sys/", "crates/dpdk/"];

/// Macros of unfinished work.
const UNFINISHED: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];

pub(super) fn check(tree: &Tree) -> Vec<TidyFinding> {
    tree.rust().flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut find = |line, what: String| findings.push(TidyFinding::new(&file.path, line, what));
    if !file.text.starts_with("//!") {
        find(1, "no `//!` at the top: describe the file".to_owned());
    }
    let length = length(file);
    if length > LINES_MAX && !is_test(file) {
        find(
            LINES_MAX + 1,
            format!("{length} lines of code, {LINES_MAX} at most: split it by ideas"),
        );
    }
    let code = code_of(&file.text);
    for name in UNFINISHED {
        let word = name.trim_end_matches('!');
        for line in lines_with_word(&code, word).filter(|line| has_call(&code, *line, name)) {
            find(line, format!("`{name}` was left: finish or remove it"));
        }
    }
    if !MAY_BE_UNSAFE
        .iter()
        .any(|folder| file.path.starts_with(folder))
    {
        for line in lines_with_word(&code, "unsafe") {
            find(line, "`unsafe` outside of `sys`: wrap it there".to_owned());
        }
    }
    findings
}

/// True if this line of `code` calls the macro `name`.
fn has_call(code: &str, line: usize, name: &str) -> bool {
    code.lines()
        .nth(line - 1)
        .is_some_and(|line| line.contains(name))
}

/// Returns the number of lines between the module documentation, which may be an essay, and the
/// tests.
fn length(file: &SourceFile) -> usize {
    let documentation = file
        .lines()
        .take_while(|(_, line)| line.starts_with("//!"))
        .count();
    let tests = file.lines().find(|(_, line)| *line == "#[cfg(test)]");
    let end = tests.map_or_else(|| file.text.lines().count(), |(number, _)| number - 1);
    end.saturating_sub(documentation)
}

/// True if the file contains only tests.
fn is_test(file: &SourceFile) -> bool {
    file.path
        .split('/')
        .any(|part| part == "tests" || part == "tests.rs")
}

#[cfg(test)]
mod tests {
    use super::super::tree_of;
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&tree_of(&[(path, text)]))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn tidy_file_has_no_findings() {
        let text = "//! A file.\n// unsafe, dbg!\nconst A: &str = \"todo!()\";\n";
        assert!(findings("crates/x/src/a.rs", text).is_empty());
    }

    #[test]
    fn file_needs_module_documentation() {
        assert_eq!(
            findings("crates/x/src/a.rs", "use std::fmt;\n"),
            ["crates/x/src/a.rs:1: no `//!` at the top: describe the file"]
        );
    }

    #[test]
    fn length_excludes_module_documentation_and_tests() {
        let lines = "//! A file.\n".to_owned() + &"fn f() {}\n".repeat(501);
        let essay = "//! A file.\n".repeat(501);
        let tests = "#[cfg(test)]\n".to_owned() + &"// test\n".repeat(600);
        assert!(
            findings("crates/x/src/a.rs", &lines)[0]
                .starts_with("crates/x/src/a.rs:501: 501 lines")
        );
        assert!(findings("crates/x/src/a.rs", &(essay + &tests)).is_empty());
        assert!(findings("crates/x/src/a/tests.rs", &lines).is_empty());
        assert!(findings("tests/it/a.rs", &lines).is_empty());
    }

    #[test]
    fn unfinished_work_is_found() {
        let found = findings(
            "crates/x/src/a.rs",
            "//! A file.\nfn f() { todo!() }\nfn todo() {}\n",
        );
        assert_eq!(
            found,
            ["crates/x/src/a.rs:2: `todo!` was left: finish or remove it"]
        );
    }

    #[test]
    fn unsafe_stays_in_its_crate() {
        let text = "//! A file.\nlet x = unsafe { f() };\n#![forbid(unsafe_code)]\n";
        assert!(findings("crates/sys/src/a.rs", text).is_empty());
        assert_eq!(
            findings("crates/lab/src/a.rs", text),
            ["crates/lab/src/a.rs:2: `unsafe` outside of `sys`: wrap it there"]
        );
    }
}
