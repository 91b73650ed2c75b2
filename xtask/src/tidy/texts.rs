//! Texts: machine paths and notes that must not remain, and the form of documents.

use super::prose::prose_lines;
use super::{SourceFile, TidyFinding, Tree};

/// First folders of paths that exist on one machine only.
const MACHINE_FOLDERS: [&str; 4] = ["home", "root", "work", "Users"];

/// Files that a fuzzer or other tools wrote, which are not checked.
const FOREIGN: [&str; 2] = ["fuzz/corpus/", "Cargo.lock"];

pub(super) fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    if !tree.committed.iter().any(|path| path == "Cargo.lock") {
        let what = "not committed: `git add` it, so that everybody builds the same";
        findings.push(TidyFinding::new("Cargo.lock", 1, what));
    }
    let ours = |file: &&SourceFile| !FOREIGN.iter().any(|start| file.path.starts_with(start));
    for file in tree.files.iter().filter(ours) {
        for (number, line) in file.lines() {
            if line.contains(concat!("FIX", "ME")) {
                let what = "a note to self was left: do it, or open an issue";
                findings.push(TidyFinding::new(&file.path, number, what));
            }
            if let Some(path) = machine_path(line) {
                let what =
                    format!("`{path}` is a path of one machine: make it relative, or ask for it");
                findings.push(TidyFinding::new(&file.path, number, what));
            }
        }
        if file.has_extension("md") {
            if file.path != CONTENTS {
                findings.extend(check_titles(file));
            }
            findings.extend(check_links(tree, file));
        }
    }
    findings
}

/// Returns a path of one machine in `line`.
fn machine_path(line: &str) -> Option<&str> {
    for (at, _) in line.match_indices('/') {
        // Part of a longer path, of a URL, or of "and/or".
        let inside = line[..at].ends_with(|c: char| c.is_alphanumeric() || "./-_~}>*".contains(c));
        let path = &line[at..];
        let end = path.find(|c: char| c.is_whitespace() || "\"'`)>,;".contains(c));
        let path = &path[..end.unwrap_or(path.len())];
        let folder = path[1..].split_once('/').map(|(folder, _)| folder);
        if !inside && folder.is_some_and(|folder| MACHINE_FOLDERS.contains(&folder)) {
            return Some(path);
        }
    }
    None
}

/// The table of contents of the book, whose parts are titles.
const CONTENTS: &str = "docs/SUMMARY.md";

/// Findings for relative links of a document to files and folders that do not exist.
fn check_links(tree: &Tree, file: &SourceFile) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    for (number, line) in prose_lines(file) {
        for link in line
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')'))
        {
            let target = link.0.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = join(folder, target);
            let inside = format!("{path}/");
            let exists = |file: &SourceFile| file.path == path || file.path.starts_with(&inside);
            if !tree.files.iter().any(exists) {
                let text = format!("link to `{target}`, which does not exist");
                findings.push(TidyFinding::new(&file.path, number, text));
            }
        }
    }
    findings
}

/// Returns the path that `link` names in a document of `folder`.
fn join(folder: &str, link: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Finding for a document that has no title or more than one.
fn check_titles(file: &SourceFile) -> Option<TidyFinding> {
    let mut fenced = false;
    let mut titles = file.lines().filter(|(_, line)| {
        fenced ^= line.trim_start().starts_with("```");
        !fenced && line.starts_with("# ")
    });
    let first = titles.next();
    match (first, titles.next()) {
        (None, _) => Some(TidyFinding::new(
            &file.path,
            1,
            "no title: begin with one line of `# `",
        )),
        (_, Some((number, _))) => {
            let what = "a second title: make it a chapter with `## `";
            Some(TidyFinding::new(&file.path, number, what))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree_of;
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let mut tree = tree_of(&[(path, text)]);
        tree.committed = vec!["Cargo.lock".to_owned()];
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn document_has_one_title() {
        assert!(findings("a.md", "# A\n\n```\n# not a title\n```\n## B\n").is_empty());
        assert_eq!(
            findings("a.md", "# A\n# B\n"),
            ["a.md:2: a second title: make it a chapter with `## `"]
        );
        assert_eq!(
            findings("a.md", "A\n"),
            ["a.md:1: no title: begin with one line of `# `"]
        );
    }

    #[test]
    fn links_to_missing_files_are_found() {
        let mut tree = tree_of(&[
            (
                "docs/a.md",
                "# A\n\n[b](guide/b.md#x) [c](../c) [d](https://d.org) [e](e.md)\n",
            ),
            ("docs/guide/b.md", "# B\n\n[a](../a.md) [a](a.md)\n"),
            ("c/file.txt", ""),
        ]);
        tree.committed = vec!["Cargo.lock".to_owned()];
        let found: Vec<_> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "docs/a.md:3: link to `e.md`, which does not exist",
                "docs/guide/b.md:3: link to `a.md`, which does not exist",
            ]
        );
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        for folder in MACHINE_FOLDERS {
            for before in ["", "see ", "\"", "(", "path=", "file://"] {
                let found = findings("a.sh", &format!("{before}/{folder}/me/x \n"));
                let inside = before.ends_with('/');
                assert_eq!(found.len(), usize::from(!inside), "{before} {folder}");
            }
        }
        for text in [
            "~/work/x",
            "a/home/b",
            "https://x.org/home/",
            "/var/run",
            "/work",
            "$X/root/",
        ] {
            assert!(findings("a.sh", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn notes_to_self_are_found() {
        let note = concat!("x\n// FIX", "ME(now)\n");
        assert_eq!(
            findings("a.rs", note),
            ["a.rs:2: a note to self was left: do it, or open an issue"]
        );
        assert!(findings("fuzz/corpus/x/1", note).is_empty());
    }

    #[test]
    fn lock_file_must_be_committed() {
        let found = check(&tree_of(&[]));
        assert!(found.len() == 1 && found[0].path == "Cargo.lock");
    }
}
