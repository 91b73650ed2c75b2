//! Notices of third-party code: the crates that the program is linked to, their licences, and the
//! texts that the licences require.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::TaskError;
use crate::metadata::cargo;

/// Prefixes of the names of such texts.
const NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// A crate's name and version.
pub(super) type Crate = (String, String);

/// Returns the notices of the program, with or without DPDK ports.
pub(super) fn text(root: &Path, dpdk: bool) -> Result<String, TaskError> {
    let manifests = manifests(root)?;
    let mut list = String::from("The program is linked of these crates, beside its own:\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in linked(root, dpdk)?.lines() {
        let Some(((name, version), licence)) = read(line) else {
            continue;
        };
        let Some(manifest) = manifests.get(&(name.clone(), version.clone())) else {
            continue;
        };
        let title = format!("{name} {version}");
        let _ = writeln!(list, "{title}: {licence}");
        for text in notices(Path::new(manifest))? {
            texts.entry(text).or_default().push(title.clone());
        }
    }
    let mut texts: Vec<_> = texts.into_iter().map(|(text, of)| (of, text)).collect();
    texts.sort();
    for (of, text) in texts {
        let _ = write!(list, "\n\n==== {}\n\n{}\n", of.join(", "), text.trim_end());
    }
    Ok(list)
}

/// Parses a line of `cargo tree`: crate and licence.
pub(super) fn read(line: &str) -> Option<(Crate, &str)> {
    let (name, licence) = line.split_once('|')?;
    let mut words = name.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    Some(((name.to_owned(), version.to_owned()), licence))
}

/// Returns the linked crates, sorted, one per line.
pub(super) fn linked(root: &Path, dpdk: bool) -> Result<String, TaskError> {
    let mut command = Command::new(cargo());
    command.current_dir(root).args(["tree", "--locked"]);
    command.args(["--package", "cli", "--edges", "normal,no-proc-macro"]);
    command.args(["--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"]);
    if dpdk {
        command.args(["--features", "dpdk"]);
    }
    let printed = output(&mut command)?;
    let mut lines: Vec<_> = printed.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    Ok(lines.join("\n"))
}

/// Returns the manifests of third-party crates.
fn manifests(root: &Path) -> Result<BTreeMap<Crate, String>, TaskError> {
    let mut command = Command::new(cargo());
    command
        .current_dir(root)
        .args(["metadata", "--format-version=1", "--locked"]);
    let printed: Value = serde_json::from_str(&output(&mut command)?)?;
    let packages = printed["packages"].as_array().into_iter().flatten();
    let others = packages.filter(|package| !package["source"].is_null());
    let row = |package: &Value| {
        let word = |name: &str| package[name].as_str().map(str::to_owned);
        Some(((word("name")?, word("version")?), word("manifest_path")?))
    };
    Ok(others.filter_map(row).collect())
}

/// Returns the notices next to a manifest, sorted by name.
fn notices(manifest: &Path) -> Result<Vec<String>, TaskError> {
    let folder = manifest.parent().ok_or("a manifest lies in a folder")?;
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if entry.file_type()?.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let texts = paths.iter().map(fs::read);
    texts
        .map(|text| Ok(String::from_utf8_lossy(&text?).into_owned()))
        .collect()
}

fn output(command: &mut Command) -> Result<String, TaskError> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)?),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{command:?}: {}", said.trim()).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_tree_line_is_parsed() {
        let ours = "base v0.1.0 (/somewhere/base)|Apache-2.0";
        let theirs = "serde v1.0.229|MIT OR Apache-2.0";
        let of = |line| {
            read(line).map(|((name, version), licence)| (format!("{name} {version}"), licence))
        };
        assert_eq!(of(ours), Some(("base 0.1.0".to_owned(), "Apache-2.0")));
        assert_eq!(
            of(theirs),
            Some(("serde 1.0.229".to_owned(), "MIT OR Apache-2.0"))
        );
        assert_eq!(of(""), None);
    }

    #[test]
    fn notices_name_third_party_crates_only() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = text(&root, false).expect("cargo knows the project");
        assert!(text.contains("\nring 0.17") && text.contains("==== ring 0.17"));
        assert!(!text.contains("\nbase 0."));
    }
}
