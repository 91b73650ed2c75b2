//! The files of the project, for tests that search them.

use std::fs;
use std::path::{Path, PathBuf};

/// The text files in these folders and their subfolders: source, test cases and vectors.
pub(crate) fn texts(folders: &[&str]) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for folder in folders {
        collect(&root.join(folder), &mut found);
    }
    found
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            collect(&path, found);
        } else if is_text(&path) {
            let text = fs::read_to_string(&path).expect("it can be read");
            found.push((path, text));
        }
    }
}

fn is_text(path: &Path) -> bool {
    let is_vector = path.to_string_lossy().contains("/vectors/v1");
    let kind = path.extension().and_then(|kind| kind.to_str());
    is_vector || matches!(kind, Some("rs" | "case"))
}
