//! Catalogue of the installed cases: a run must reach a verdict on each of them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::Value;
use testbed::Failure;

/// Directories of cases, by the OpenFlow version between the judge and the switch under test. Slow
/// groups are first, so that all labs end at about the same time: each case of meters and groups
/// sends for thirty seconds.
const GROUPS: [&str; 10] = [
    "of14/meter",
    "of14/group",
    "of14/match",
    "of14/action",
    "of13/meter",
    "of13/group",
    "of13/match",
    "of13/action",
    "of10/match",
    "of10/action",
];

/// Directories with cases that send for half a minute each.
const STREAMS: [&str; 2] = ["/meter/", "/group/"];

/// Directory of the cases below the library of the Python environment.
const CASES: &str = "site-packages/os_ken/tests/switch";

/// Case: its file, and its number in the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Case {
    /// Name of the file, as in `of13/action/00_OUTPUT`.
    pub(crate) file: String,
    /// Number in the file, from 1.
    pub(crate) number: usize,
}

impl Case {
    /// Returns the version and the group, as in `of13/action`.
    pub(crate) fn group(&self) -> &str {
        group(&self.file)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.number)
    }
}

/// File of cases.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// Name, as in `of13/action/00_OUTPUT`.
    pub(crate) name: String,
    /// Path without symbolic links.
    pub(crate) path: PathBuf,
    /// Title of each case, in order.
    pub(crate) titles: Vec<String>,
}

impl File {
    /// Returns the OpenFlow version as the directory's name: `of13`.
    pub(crate) fn version(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// Returns true if the cases send for half a minute and measure rates.
    pub(crate) fn streams(&self) -> bool {
        STREAMS.iter().any(|folder| self.name.contains(folder))
    }
}

/// All cases, in the order of execution.
#[derive(Clone, Debug)]
pub(crate) struct Catalogue {
    /// Files of cases.
    pub(crate) files: Vec<File>,
}

impl Catalogue {
    /// Reads the cases that are installed in a Python environment.
    pub(crate) fn read(environment: &Path) -> Result<Self, Failure> {
        let root = find(environment).map_err(Failure::to(format!(
            "find os-ken's cases in {}: install them with cargo xtask conform",
            environment.display()
        )))?;
        let mut files = Vec::new();
        for group in GROUPS {
            let failure = Failure::to(format!("read the cases of {group}"));
            read_folder(&root, &root.join(group), &mut files).map_err(failure)?;
        }
        Ok(Self { files })
    }

    /// Returns the files with names that begin with one of `prefixes`; all if there are none.
    pub(crate) fn only(&self, prefixes: &[String]) -> Result<Self, Failure> {
        for prefix in prefixes {
            if !self.files.iter().any(|file| file.name.starts_with(prefix)) {
                let none = io::Error::from(io::ErrorKind::NotFound);
                return Err(Failure::to(format!("find a file with the prefix {prefix}"))(none));
            }
        }
        let mut files = self.files.clone();
        let wanted = |file: &File| prefixes.iter().any(|prefix| file.name.starts_with(prefix));
        files.retain(|file| prefixes.is_empty() || wanted(file));
        Ok(Self { files })
    }

    /// Returns all cases with their titles.
    pub(crate) fn cases(&self) -> impl Iterator<Item = (Case, &str)> {
        self.files.iter().flat_map(|file| {
            file.titles.iter().zip(1..).map(|(title, number)| {
                let file = file.name.clone();
                (Case { file, number }, title.as_str())
            })
        })
    }
}

/// Returns the version and the group of a file, as in `of13/action`.
fn group(file: &str) -> &str {
    let second = file.match_indices('/').nth(1);
    second.map_or(file, |(at, _)| &file[..at])
}

/// Returns the directory of the cases, which is below a directory named after the Python version.
fn find(environment: &Path) -> io::Result<PathBuf> {
    for library in fs::read_dir(environment.join("lib"))? {
        let cases = library?.path().join(CASES);
        if cases.is_dir() {
            return cases.canonicalize();
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Reads all files of cases in `folder` and its subdirectories, in the order of their names.
fn read_folder(root: &Path, folder: &Path, files: &mut Vec<File>) -> io::Result<()> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            read_folder(root, &path, files)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(File {
                name: name(root, &path),
                titles: titles(&fs::read_to_string(&path)?)?,
                path,
            });
        }
    }
    Ok(())
}

/// Returns the name of a file: its path below `root`, without `.json`.
fn name(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path).with_extension("");
    below.to_string_lossy().into_owned()
}

/// Returns the titles of the cases in a file. The file is a list: a text about the file, and an
/// object for each case.
fn titles(text: &str) -> io::Result<Vec<String>> {
    let list: Vec<Value> = serde_json::from_str(text)?;
    let cases = list.iter().filter(|entry| entry.is_object());
    let title = |case: &Value| case["description"].as_str().unwrap_or_default().to_owned();
    Ok(cases.map(title).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_titles_are_read_from_the_file() {
        let text = r#"["Action: 00", {"description": "one", "tests": []}, {"description": "two"}]"#;
        assert_eq!(titles(text).unwrap(), ["one", "two"]);
        assert!(titles("{").is_err());
    }

    #[test]
    fn case_has_the_group_of_its_directory() {
        assert_eq!(group("of13/action/25_SET_FIELD/01"), "of13/action");
        assert_eq!(group("of13/match/00_IN_PORT"), "of13/match");
        let (root, path) = ("/lib/cases", "/lib/cases/of13/match/00_IN_PORT.json");
        assert_eq!(
            name(Path::new(root), Path::new(path)),
            "of13/match/00_IN_PORT"
        );
    }
}
