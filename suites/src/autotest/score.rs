//! Score by file and the expected failures by reason in a Markdown document, each between two
//! markers.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use suite_report::ExpectedFailures;
use testbed::Failure;

/// Lines before and after a table.
struct Markers {
    begin: &'static str,
    end: &'static str,
}

/// Markers of the score by file.
const SCORE: Markers = Markers {
    begin: "<!-- cargo xtask autotest: score -->",
    end: "<!-- end of score -->",
};

/// Markers of the expected failures.
const EXPECTED: Markers = Markers {
    begin: "<!-- cargo xtask autotest: expected failures -->",
    end: "<!-- end of expected failures -->",
};

/// Replaces the tables of `document`: passed and counted groups by file, and the expected failures.
pub(crate) fn write(
    document: &Path,
    scores: &BTreeMap<&str, (usize, usize)>,
    expected: &ExpectedFailures,
) -> Result<(), Failure> {
    let failure = || Failure::to(format!("write the score into {}", document.display()));
    let mut text = fs::read_to_string(document).map_err(failure())?;
    let reasons = expected.by_reason();
    for (markers, table) in [
        (&SCORE, score_table(scores)),
        (&EXPECTED, reason_table(&reasons)),
    ] {
        let Markers { begin, end } = markers;
        text = replace(&text, markers, &table).ok_or_else(|| {
            failure()(io::Error::other(format!("no lines `{begin}` and `{end}`")))
        })?;
    }
    fs::write(document, text).map_err(failure())
}

fn replace(text: &str, Markers { begin, end }: &Markers, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n{table}{end}{after}"))
}

fn score_table(scores: &BTreeMap<&str, (usize, usize)>) -> String {
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

/// Returns the expected failures: the reasons of most groups first, each with the number of groups
/// and their files.
fn reason_table(reasons: &BTreeMap<&str, Vec<&str>>) -> String {
    let mut rows: Vec<_> = reasons.iter().collect();
    rows.sort_by_key(|(_, groups)| Reverse(groups.len()));
    let mut text = String::from("| reason | groups | files |\n|---|---:|---|\n");
    for (reason, groups) in &rows {
        let mut files: BTreeMap<&str, usize> = BTreeMap::new();
        for group in *groups {
            let file = group.split_once('/').map_or(*group, |(file, _)| file);
            *files
                .entry(file.strip_suffix(".at").unwrap_or(file))
                .or_default() += 1;
        }
        let files: Vec<String> = files
            .iter()
            .map(|(file, count)| format!("{file} {count}"))
            .collect();
        let (reason, count, files) = (reason.replace('|', "\\|"), groups.len(), files.join(", "));
        writeln!(text, "| {reason} | {count} | {files} |").expect("a string has room");
    }
    let all: usize = rows.iter().map(|(_, groups)| groups.len()).sum();
    writeln!(text, "| **all** | **{all}** | |").expect("a string has room");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_replaces_the_older_one() {
        let Markers { begin, end } = SCORE;
        let scores = [("bfd.at", (16, 17)), ("cfm.at", (10, 10))].into();
        let text = format!("head\n{begin}\nold\n{end}\ntail\n");
        let new = replace(&text, &SCORE, &score_table(&scores)).unwrap();
        assert!(new.starts_with(&format!("head\n{begin}\n| file |")));
        assert!(
            new.contains("| bfd | 17 | 16 |\n| cfm | 10 | 10 |\n| **all** | **27** | **26** |")
        );
        assert!(new.ends_with(&format!("{end}\ntail\n")) && !new.contains("old"));
        assert_eq!(replace("no markers", &EXPECTED, ""), None);
    }

    #[test]
    fn reasons_of_most_groups_are_first() {
        let reasons = [
            ("a|b", vec!["bfd.at/x"]),
            ("c", vec!["bfd.at/y", "cfm.at/a/b", "cfm.at/z"]),
        ]
        .into();
        let table = reason_table(&reasons);
        let rows: Vec<_> = table.lines().skip(2).collect();
        let expected = [
            "| c | 3 | bfd 1, cfm 2 |",
            "| a\\|b | 1 | bfd 1 |",
            "| **all** | **4** | |",
        ];
        assert_eq!(rows, expected);
    }
}
