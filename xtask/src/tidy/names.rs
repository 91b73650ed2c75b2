//! Names of types and tests: a type name has one meaning in the workspace and is a noun, and the
//! name of a test begins with its subject.

use std::collections::{BTreeMap, BTreeSet};

use super::code::code_of;
use super::{SourceFile, TidyFinding, Tree};

/// Type names that may be defined in more than one file. Lower it when fewer are.
const SHARED_NAMES_MAX: usize = 120;

/// Nouns so general that two types of that name tell a reader nothing.
#[rustfmt::skip]
const TOO_GENERAL: [&str; 24] = [
    "Asked", "Change", "End", "Entry", "Event", "Form", "Group", "Kind", "Line", "Options", "ProgramOutcome",
    "Place", "Plan", "Row", "Seen", "Sent", "Shape", "Sheet", "State", "Step", "Told", "Wanted",
    "Watch", "Way",
];

/// Participles of irregular verbs; those of regular verbs end in "ed".
#[rustfmt::skip]
const PARTICIPLES: [&str; 24] = [
    "Begun", "Built", "Chosen", "Cut", "Done", "Drawn", "Found", "Given", "Gone", "Heard", "Held",
    "Kept", "Known", "Left", "Lent", "Made", "Meant", "Said", "Seen", "Sent", "Shown", "Spent",
    "Told", "Written",
];

/// Nouns and adjectives of the field that look like participles.
const NOT_PARTICIPLES: [&str; 2] = ["Malformed", "Seed"];

/// First words of a test name that are no subject.
#[rustfmt::skip]
const NO_SUBJECT: [&str; 58] = [
    "a", "after", "all", "an", "another", "any", "as", "at", "before", "behind", "both", "by",
    "each", "either", "every", "few", "for", "from", "how", "if", "in", "it", "its", "less", "many",
    "more", "most", "neither", "no", "nobody", "none", "not", "nothing", "of", "on", "one", "only",
    "other", "some", "that", "the", "their", "there", "these", "this", "those", "three", "to", "two",
    "what", "whatever", "when", "where", "which", "who", "whoever", "with", "without",
];

pub(super) fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut files_of: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for file in tree.rust() {
        let code = code_of(&file.text);
        for (line, name) in types(&code) {
            if is_participle(name) {
                let text = format!("type `{name}` is named by a participle: name it by a noun");
                findings.push(TidyFinding::new(&file.path, line, text));
            }
            files_of
                .entry(name.to_owned())
                .or_default()
                .insert(&file.path);
        }
        findings.extend(check_tests(file, &code));
    }
    findings.extend(check_shared(&files_of));
    findings
}

/// Findings for type names that several files define.
fn check_shared(files_of: &BTreeMap<String, BTreeSet<&str>>) -> Vec<TidyFinding> {
    let shared = || files_of.iter().filter(|(_, files)| files.len() > 1);
    let paths = |files: &BTreeSet<&str>| files.iter().copied().collect::<Vec<_>>().join(", ");
    let mut findings: Vec<_> = shared()
        .filter(|(name, _)| TOO_GENERAL.contains(&name.as_str()))
        .map(|(name, files)| {
            let text = format!(
                "type `{name}` is also defined in {}: qualify it",
                paths(files)
            );
            TidyFinding::new(files.first().unwrap_or(&""), 1, text)
        })
        .collect();
    let count = shared().count();
    if count >= SHARED_NAMES_MAX {
        let names: Vec<_> = shared().map(|(name, _)| name.as_str()).collect();
        let text = format!(
            "{count} type names are defined in more than one file, {SHARED_NAMES_MAX} are too many: {}",
            names.join(" ")
        );
        findings.push(TidyFinding::new("Cargo.toml", 1, text));
    }
    findings
}

/// The types that `code` defines, with their lines.
fn types(code: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(code.lines()).filter_map(|(number, line)| {
        let indented = line.starts_with(' ');
        let mut words = line.split_whitespace();
        let keyword = words.find(|word| !word.starts_with("pub") && !word.ends_with(')'))?;
        let is_type = match keyword {
            "struct" | "enum" | "trait" | "union" => true,
            // Inside an `impl` it is an associated type.
            "type" => !indented,
            _ => false,
        };
        let name = words.next().filter(|_| is_type)?;
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
        Some((number, &name[..end.unwrap_or(name.len())]))
    })
}

/// True if `name` is one word and a participle.
fn is_participle(name: &str) -> bool {
    let is_one_word = name.chars().filter(|c| c.is_uppercase()).count() == 1;
    let has_ending = name.len() > 4 && name.ends_with("ed") && !name.ends_with("eed");
    is_one_word && (PARTICIPLES.contains(&name) || has_ending) && !NOT_PARTICIPLES.contains(&name)
}

/// Findings for tests whose names do not begin with their subject.
fn check_tests(file: &SourceFile, code: &str) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut is_test = false;
    for (number, line) in (1..).zip(code.lines()) {
        let line = line.trim_start();
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        }
        let function = line.strip_prefix("async ").unwrap_or(line);
        if let Some(name) = function.strip_prefix("fn ").filter(|_| is_test) {
            is_test = false;
            let name = name.split(['(', '<']).next().unwrap_or(name);
            let first = name.split('_').next().unwrap_or(name);
            if NO_SUBJECT.contains(&first) {
                let text = format!("test `{name}` does not begin with its subject");
                findings.push(TidyFinding::new(&file.path, number, text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tree_of;
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let found = check(&tree_of(files));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn participles_are_found_and_nouns_are_not() {
        let text = "struct Told;\npub(crate) enum Managed<'a> {}\nstruct Speed;\nstruct MaskedKey;\nstruct Malformed;\n";
        assert_eq!(
            findings(&[("crates/x/src/a.rs", text)]),
            [
                "crates/x/src/a.rs:1: type `Told` is named by a participle: name it by a noun",
                "crates/x/src/a.rs:2: type `Managed` is named by a participle: name it by a noun",
            ]
        );
    }

    #[test]
    fn general_names_may_be_defined_once() {
        let (first, second) = (
            "pub struct Row;\nstruct Rule;\n",
            "enum Row {}\nstruct Rule;\n",
        );
        assert!(findings(&[("a.rs", first)]).is_empty());
        assert_eq!(
            findings(&[("a.rs", first), ("b.rs", second)]),
            ["a.rs:1: type `Row` is also defined in a.rs, b.rs: qualify it"]
        );
    }

    #[test]
    fn shared_names_are_limited() {
        let text: String = (0..SHARED_NAMES_MAX)
            .map(|number| format!("struct T{number};\n"))
            .collect();
        assert!(findings(&[("a.rs", &text)]).is_empty());
        let found = findings(&[("a.rs", &text), ("b.rs", &text)]);
        assert!(found[0].contains("120 type names"), "{found:?}");
    }

    #[test]
    fn test_names_begin_with_their_subject() {
        let text = "#[test]\nfn bond_restores_its_member() {}\nfn what_helps() {}\n#[test]\n#[cfg(x)]\nfn what_is_gone() {}\n";
        assert_eq!(
            findings(&[("a.rs", text)]),
            ["a.rs:6: test `what_is_gone` does not begin with its subject"]
        );
    }

    #[test]
    fn associated_types_define_no_name() {
        let text = "impl X {\n    type Row = u8;\n}\n";
        assert!(findings(&[("a.rs", text), ("b.rs", text)]).is_empty());
    }
}
