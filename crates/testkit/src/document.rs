//! Documents with a part that is generated from tables of the code. A part is between `<!-- name
//! -->` and `<!-- end of name -->`; with `UPDATE=1` in the environment it is rewritten, and the
//! difference is reviewed as code.

use std::fs;
use std::path::Path;

/// Compares the part `name` of the document at `path`, relative to the project's root, with `text`.
///
/// # Panics
/// If the document has no such part, or the part differs.
pub fn check_part(path: &str, name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    let document = fs::read_to_string(&path).expect("the document can be read");
    let (begin, end) = (
        format!("<!-- {name} -->\n"),
        format!("<!-- end of {name} -->"),
    );
    let split = document.split_once(&begin).and_then(|(before, rest)| {
        let (part, after) = rest.split_once(&end)?;
        Some((before, part, after))
    });
    let Some((before, part, after)) = split else {
        panic!("{} has no part {name}", path.display());
    };
    let wanted = format!("\n{}\n\n", text.trim());
    if part == wanted {
        return;
    }
    assert!(
        std::env::var("UPDATE").is_ok_and(|value| value == "1"),
        "{}: part {name} is out of date: rewrite it with UPDATE=1",
        path.display()
    );
    let document = format!("{before}{begin}{wanted}{end}{after}");
    fs::write(&path, document).expect("the document can be written");
}

/// Formats a Markdown table from column heads and rows.
#[must_use]
pub fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let mut text = line(&heads) + &format!("|{}\n", "---|".repeat(heads.len()));
    text.extend(rows.iter().map(|row| line(row)));
    text
}
