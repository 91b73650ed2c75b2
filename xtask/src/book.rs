//! The documents as one book with search, made by mdBook.
//!
//! The documents keep their places in the tree, so that they can be read there. They are copied
//! into `target/book/src` with the same layout, and their links stay valid.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::Shell;
use crate::{TaskError, setup};

/// The table of contents, from the project's root. Its links name the book's chapters.
const SUMMARY: &str = "docs/SUMMARY.md";

/// The folder of pictures.
const IMAGES: &str = "docs/images";

/// The folder of the book, from the project's root.
const BOOK: &str = "target/book";

const CONFIGURATION: &str = "\
[book]
title = \"Comporta\"
language = \"en\"
src = \"src\"

[build]
build-dir = \"html\"

[output.html]
default-theme = \"light\"
preferred-dark-theme = \"navy\"

[output.html.search]
limit-results = 30
";

/// Installs mdBook, builds the book, and returns its first page.
pub(crate) fn build(shell: &mut Shell) -> Result<PathBuf, TaskError> {
    setup::book(shell)?;
    let root = shell.root().to_owned();
    let book = root.join(BOOK);
    if book.exists() {
        fs::remove_dir_all(&book)?;
    }
    let sources = book.join("src");
    let summary =
        fs::read_to_string(root.join(SUMMARY)).map_err(|error| format!("{SUMMARY}: {error}"))?;
    for chapter in chapters(&summary) {
        copy(&root, &sources, &chapter)?;
    }
    for entry in fs::read_dir(root.join(IMAGES))? {
        let name = entry?.file_name();
        copy(&root, &sources, &Path::new(IMAGES).join(name))?;
    }
    fs::write(sources.join("SUMMARY.md"), from_root(&summary))?;
    fs::write(book.join("book.toml"), CONFIGURATION)?;
    let mut command = Command::new(root.join(setup::MDBOOK));
    shell.succeed(command.arg("build").arg(&book))?;
    Ok(book.join("html/index.html"))
}

/// Copies a file from the project into the book's sources.
fn copy(root: &Path, sources: &Path, path: &Path) -> Result<(), TaskError> {
    let to = sources.join(path);
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(root.join(path), to).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(())
}

/// Returns the chapters that a summary links to, as paths from the project's root.
fn chapters(summary: &str) -> Vec<PathBuf> {
    let links = summary.split("](").skip(1);
    links
        .filter_map(|link| link.split_once(')'))
        .map(|(path, _)| PathBuf::from(resolve(path)))
        .collect()
}

/// Returns a link of the summary as a path from the project's root: the summary is in `docs/`.
fn resolve(link: &str) -> String {
    match link.strip_prefix("../") {
        Some(path) => path.to_owned(),
        None => format!("docs/{link}"),
    }
}

/// Returns the summary with links from the book's root.
fn from_root(summary: &str) -> String {
    let mut parts = summary.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (link, rest) = part.split_once(')').unwrap_or((part, ""));
        text += &format!("]({}){rest}", resolve(link));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_the_summary_lead_to_files_from_the_root() {
        let summary = "# Contents\n\n- [Comporta](../README.md)\n- [Lab](guide/lab.md)\n";
        assert_eq!(
            chapters(summary),
            [
                PathBuf::from("README.md"),
                PathBuf::from("docs/guide/lab.md")
            ]
        );
        assert_eq!(
            from_root(summary),
            "# Contents\n\n- [Comporta](README.md)\n- [Lab](docs/guide/lab.md)\n"
        );
    }
}
