//! Checks what the compiler does not: dependencies between crates, form of files, names, prose,
//! leftovers and licences. Each rule is a pure function over a [`Tree`].

mod arrows;
mod code;
mod knots;
mod licences;
mod modules;
mod names;
mod parsers;
mod promises;
mod prose;
mod rust;
mod spdx;
mod texts;

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::TaskError;
use crate::metadata::Metadata;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TidyFinding {
    path: String,
    line: usize,
    what: String,
}

/// All findings, sorted by file and line.
#[derive(Debug)]
pub(crate) struct Findings(Vec<TidyFinding>);

impl Findings {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl TidyFinding {
    /// Creates a finding: `what` is wrong in this line of `path`, and the remedy.
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// A file of the project.
#[derive(Clone, Debug, Default)]
struct SourceFile {
    /// Path from the project's root.
    path: String,
    text: String,
}

impl SourceFile {
    fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }

    /// Returns the lines with their numbers.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// Returns the number of the first line that begins with `start`, or 1.
    fn line_of(&self, start: &str) -> usize {
        self.lines()
            .find(|(_, line)| line.trim_start().starts_with(start))
            .map_or(1, |(number, _)| number)
    }
}

/// The project's files and packages.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// All text files that are committed or could be.
    files: Vec<SourceFile>,
    /// The committed files.
    committed: Vec<String>,
    metadata: Metadata,
}

impl Tree {
    /// Reads the project in `root`.
    pub(crate) fn read(root: &Path) -> Result<Self, TaskError> {
        let committed = git_files(root, &["--cached"])?;
        let paths = git_files(root, &["--cached", "--others", "--exclude-standard"])?;
        let files = paths.into_iter().filter_map(|path| {
            // A file that is not text, or deleted and not yet committed, has no lines.
            let text = fs::read_to_string(root.join(&path)).ok()?;
            Some(SourceFile { path, text })
        });
        Ok(Self {
            files: files.collect(),
            committed,
            metadata: Metadata::read(root)?,
        })
    }

    /// Returns the file at `path`.
    fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Returns the Rust files of the workspace. The fuzz targets are a workspace of their own.
    fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.files
            .iter()
            .filter(|file| file.has_extension("rs") && !file.path.starts_with("fuzz/"))
    }
}

/// Returns the files that `git ls-files` prints with `options`, from the root.
fn git_files(root: &Path, options: &[&str]) -> Result<Vec<String>, TaskError> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-z"])
        .args(options)
        .output();
    let output = output.map_err(|error| format!("`git` cannot be started: {error}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git ls-files: {}", complaint.trim()).into());
    }
    let list = String::from_utf8_lossy(&output.stdout);
    let mut paths: Vec<_> = list.split_terminator('\0').map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// All rules.
const RULES: [fn(&Tree) -> Vec<TidyFinding>; 10] = [
    arrows::check,
    rust::check,
    modules::check,
    texts::check,
    licences::check,
    promises::check,
    prose::check,
    names::check,
    knots::check,
    parsers::check,
];

/// Checks `tree` against all rules.
pub(crate) fn run(tree: &Tree) -> Findings {
    let mut findings: Vec<_> = RULES.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    Findings(findings)
}

/// Writes the prose baseline of the project in `root`.
pub(crate) fn bless(root: &Path) -> Result<(), TaskError> {
    let text = prose::baseline_of(&Tree::read(root)?);
    fs::write(root.join(prose::BASELINE), text)
        .map_err(|error| format!("cannot write {}: {error}", prose::BASELINE))?;
    println!("{} is written", prose::BASELINE);
    Ok(())
}

/// Prints the findings, one per line.
pub(crate) fn print(findings: &Findings) {
    for finding in &findings.0 {
        println!("{finding}");
    }
}

/// Returns a tree of `files`, for the tests of the rules.
#[cfg(test)]
fn tree_of(files: &[(&str, &str)]) -> Tree {
    let file = |(path, text): &(&str, &str)| SourceFile {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
    };
    Tree {
        files: files.iter().map(file).collect(),
        ..Tree::default()
    }
}
