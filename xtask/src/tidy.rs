//! What the compiler does not check: arrows between crates, the shape of files,
//! things left behind, licences. Each rule is a pure function over a [`Tree`].

mod arrows;
mod code;
mod knots;
mod licences;
mod modules;
mod names;
mod promises;
mod prose;
mod rust;
mod spdx;
mod texts;

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::metadata::Metadata;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    what: String,
}

/// All findings, in the order of files and lines.
#[derive(Debug)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Finding {
    /// `what` is wrong in this line of `path`, and what to do about it.
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// A file of the project.
#[derive(Clone, Debug, Default)]
struct File {
    /// From the project's root.
    path: String,
    text: String,
}

impl File {
    fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }

    /// Lines with their numbers.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// The line that begins with `start`; the first if none does.
    fn line_of(&self, start: &str) -> usize {
        self.lines()
            .find(|(_, line)| line.trim_start().starts_with(start))
            .map_or(1, |(number, _)| number)
    }
}

/// The project as it lies there.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// All text files that are committed or could be.
    files: Vec<File>,
    /// What of them is committed.
    committed: Vec<String>,
    metadata: Metadata,
}

impl Tree {
    /// Reads the project in `root`.
    pub(crate) fn read(root: &Path) -> Result<Self, Failure> {
        let committed = git_files(root, &["--cached"])?;
        let paths = git_files(root, &["--cached", "--others", "--exclude-standard"])?;
        let files = paths.into_iter().filter_map(|path| {
            // What is no text, or deleted and not yet committed so, has no lines.
            let text = fs::read_to_string(root.join(&path)).ok()?;
            Some(File { path, text })
        });
        Ok(Self {
            files: files.collect(),
            committed,
            metadata: Metadata::read(root)?,
        })
    }

    /// The file at `path`.
    fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files that the workspace builds. The fuzz targets are a workspace of
    /// their own.
    fn rust(&self) -> impl Iterator<Item = &File> {
        self.files
            .iter()
            .filter(|file| file.has_extension("rs") && !file.path.starts_with("fuzz/"))
    }
}

/// The files that git knows with these `options`, from the root.
fn git_files(root: &Path, options: &[&str]) -> Result<Vec<String>, Failure> {
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
const RULES: [fn(&Tree) -> Vec<Finding>; 9] = [
    arrows::check,
    rust::check,
    modules::check,
    texts::check,
    licences::check,
    promises::check,
    prose::check,
    names::check,
    knots::check,
];

/// Checks `tree` against all rules.
pub(crate) fn run(tree: &Tree) -> Findings {
    let mut findings: Vec<_> = RULES.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    Findings(findings)
}

/// Writes the prose baseline of the project in `root`.
pub(crate) fn bless(root: &Path) -> Result<(), Failure> {
    let text = prose::baseline_of(&Tree::read(root)?);
    fs::write(root.join(prose::BASELINE), text)
        .map_err(|error| format!("cannot write {}: {error}", prose::BASELINE))?;
    println!("{} is written", prose::BASELINE);
    Ok(())
}

/// Prints findings, one a line.
pub(crate) fn print(findings: &Findings) {
    for finding in &findings.0 {
        println!("{finding}");
    }
}

/// A tree of these files, for the rules' tests.
#[cfg(test)]
fn tree_of(files: &[(&str, &str)]) -> Tree {
    let file = |(path, text): &(&str, &str)| File {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
    };
    Tree {
        files: files.iter().map(file).collect(),
        ..Tree::default()
    }
}
