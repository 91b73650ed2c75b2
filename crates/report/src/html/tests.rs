//! Texts and structure of the page.

use std::collections::BTreeSet;
use std::path::Path;

use record::{Entry, fixture};

use super::*;

fn fixture_report() -> String {
    rendered(fixture::entries())
}

fn rendered(entries: Vec<Entry>) -> String {
    render(&fixture::results(entries), Language::English)
}

/// Returns all values of an attribute.
fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let opening = format!(" {name}=\"");
    let values = html.split(opening.as_str()).skip(1);
    values.filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn report_has_the_expected_texts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/html/tests/outline.txt");
    let outline = outline(&fixture_report());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &outline).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (index, (actual, expected)) in outline.lines().zip(expected.lines()).enumerate() {
        assert_eq!(actual, expected, "line {} of {}", index + 1, path.display());
    }
    assert_eq!(outline.lines().count(), expected.lines().count());
}

#[test]
fn report_needs_no_network() {
    let html = fixture_report();
    for foreign in [
        "http:", "https:", "<link", "<img", "<iframe", "@import", "url(", "import(",
    ] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    assert!(html.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"));
    assert!(attributes(&html, "src").is_empty());
    for target in attributes(&html, "href") {
        let id = target.strip_prefix('#').expect("links are within the page");
        assert!(attributes(&html, "id").contains(&id), "{id}");
    }
}

#[test]
fn report_works_without_scripts() {
    let html = fixture_report();
    assert_eq!(html.matches("<script").count(), 1, "one, and inline");
    let (page, script) = html.split_once("<script>").unwrap();
    assert!(script.starts_with("// Script of a report"));
    // The page has no controls and no handlers, and points have titles.
    for control in ["<button", "<input", "onclick", "onload"] {
        assert!(!page.contains(control), "{control}");
    }
    let points = page.matches("class=\"dot point\"").count();
    assert!(points > 100, "{points}");
    let titles = page.split("class=\"dot point\"").skip(1);
    for point in titles {
        let (_, inside) = point.split_once('>').unwrap();
        assert!(inside.starts_with("<title>"), "{point}");
    }
}

#[test]
fn texts_of_devices_and_machines_are_escaped() {
    let html = fixture_report();
    assert!(html.contains("A processor &lt;of the fixture&gt;"));
    assert!(!html.contains("<of the fixture>"));
}

#[test]
fn ids_are_unique_and_classes_have_styles() {
    let html = fixture_report();
    let ids = attributes(&html, "id");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    let classes = attributes(&html, "class");
    let classes = classes.iter().flat_map(|value| value.split(' '));
    for class in classes.collect::<BTreeSet<_>>() {
        assert!(STYLE.contains(&format!(".{class}")), "{class}");
    }
}

#[test]
fn same_records_have_the_same_report() {
    assert_eq!(fixture_report(), fixture_report());
}

#[test]
fn run_without_trials_has_a_report() {
    let html = rendered(fixture::entries()[..1].to_vec());
    assert!(html.contains("0 of 186"), "missing trials are counted");
    assert!(!html.contains("NaN") && !html.contains(">inf"));
    assert!(rendered(Vec::new()).contains("</html>"));
}

#[test]
fn single_run_has_no_intervals() {
    let entries = fixture::entries().into_iter();
    let first = entries.filter(|entry| match entry {
        Entry::Session(_) => true,
        Entry::Trial(trial) => trial.run == 1,
    });
    let html = rendered(first.collect());
    assert!(html.contains("one run") && html.contains("too few runs for an interval"));
    assert!(!html.contains("NaN"));
}

/// Returns the texts of the report, a line for each block, without the drawings.
fn outline(html: &str) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    let mut skipped: Option<&str> = None;
    for piece in html.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap_or((piece, ""));
        let name = tag.split([' ', '/']).find(|part| !part.is_empty());
        let name = name.unwrap_or_default();
        let closes = tag.starts_with('/');
        match skipped {
            Some(end) if closes && name == end => skipped = None,
            Some(_) => continue,
            None if !closes && matches!(name, "style" | "svg" | "script") => {
                skipped = ["style", "svg", "script"]
                    .into_iter()
                    .find(|one| *one == name);
                continue;
            }
            None => {}
        }
        match (name, closes) {
            (
                "h1" | "h2" | "h3" | "h4" | "p" | "tr" | "li" | "dt" | "dd" | "nav" | "summary"
                | "pre" | "figcaption",
                true,
            ) => {
                lines.push_str(line.trim());
                lines.push('\n');
                line.clear();
            }
            ("h1" | "h2" | "h3" | "h4", false) => line.push_str("# "),
            ("td" | "th", true) => line.push_str(" | "),
            ("span", false) => line.push(' '),
            _ => {}
        }
        line.push_str(&text.replace('\n', " "));
    }
    lines
}
