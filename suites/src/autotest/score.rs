//! Score by file in a Markdown document, between two markers.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use testbed::Failure;

/// Markers around the table.
const BEGIN: &str = "<!-- cargo xtask autotest: score -->";
const END: &str = "<!-- end of score -->";

/// Replaces the table of `document` by that of `scores`: passed and counted groups by file.
pub(crate) fn write(
    document: &Path,
    scores: &BTreeMap<&str, (usize, usize)>,
) -> Result<(), Failure> {
    let failure = || Failure::to(format!("write the score into {}", document.display()));
    let text = fs::read_to_string(document).map_err(failure())?;
    let replaced = replace(&text, &table(scores))
        .ok_or_else(|| failure()(io::Error::other(format!("no lines `{BEGIN}` and `{END}`"))))?;
    fs::write(document, replaced).map_err(failure())
}

fn replace(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{table}{END}{after}"))
}

fn table(scores: &BTreeMap<&str, (usize, usize)>) -> String {
    let mut text = String::from("| file | groups | pass |\n|---|---:|---:|\n");
    let (mut all_passed, mut all) = (0, 0);
    for (file, (passed, count)) in scores {
        let file = file.strip_suffix(".at").unwrap_or(file);
        writeln!(text, "| {file} | {count} | {passed} |").expect("a string has room");
        all_passed += passed;
        all += count;
    }
    writeln!(text, "| **all** | **{all}** | **{all_passed}** |").expect("a string has room");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_replaces_the_older_one() {
        let scores = [("bfd.at", (16, 17)), ("cfm.at", (10, 10))].into();
        let text = format!("head\n{BEGIN}\nold\n{END}\ntail\n");
        let new = replace(&text, &table(&scores)).unwrap();
        assert!(new.starts_with(&format!("head\n{BEGIN}\n| file |")));
        assert!(
            new.contains("| bfd | 17 | 16 |\n| cfm | 10 | 10 |\n| **all** | **27** | **26** |")
        );
        assert!(new.ends_with(&format!("{END}\ntail\n")) && !new.contains("old"));
        assert_eq!(replace("no markers", ""), None);
    }
}
