//! What the report says and what it must never need.

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

/// Values of an attribute, wherever it stands.
fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let opening = format!(" {name}=\"");
    let values = html.split(opening.as_str()).skip(1);
    values.filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn the_report_says_what_it_said_before() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/html/tests/outline.txt");
    let outline = outline(&fixture_report());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &outline).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (index, (is, was)) in outline.lines().zip(expected.lines()).enumerate() {
        assert_eq!(is, was, "line {} of {}", index + 1, path.display());
    }
    assert_eq!(outline.lines().count(), expected.lines().count());
}

#[test]
fn it_needs_no_network() {
    let html = fixture_report();
    for foreign in [
        "http:", "https:", "<link", "<img", "<iframe", "@import", "url(", "import(",
    ] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    assert!(html.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"));
    assert!(attributes(&html, "src").is_empty());
    for target in attributes(&html, "href") {
        let id = target.strip_prefix('#').expect("a place in the page");
        assert!(attributes(&html, "id").contains(&id), "{id}");
    }
}

#[test]
fn it_works_without_scripts() {
    let html = fixture_report();
    assert_eq!(html.matches("<script").count(), 1, "one, and inline");
    let (page, script) = html.split_once("<script>").unwrap();
    assert!(script.starts_with("// What a report does where scripts run"));
    // Nothing waits for a script: no control, no handler, and points name their values.
    for waiting in ["<button", "<input", "onclick", "onload"] {
        assert!(!page.contains(waiting), "{waiting}");
    }
    let points = page.matches("class=\"dot point\"").count();
    assert!(points > 100, "{points}");
    let told = page.split("class=\"dot point\"").skip(1);
    for point in told {
        let (_, inside) = point.split_once('>').unwrap();
        assert!(inside.starts_with("<title>"), "{point}");
    }
}

#[test]
fn what_devices_and_machines_say_of_themselves_is_text() {
    let html = fixture_report();
    assert!(html.contains("A processor &lt;of the fixture&gt;"));
    assert!(!html.contains("<of the fixture>"));
}

#[test]
fn ids_are_unique_and_every_class_has_a_style() {
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
fn the_same_records_give_the_same_report() {
    assert_eq!(fixture_report(), fixture_report());
}

#[test]
fn a_run_that_ended_before_its_first_test_still_has_a_report() {
    let html = rendered(fixture::entries()[..1].to_vec());
    assert!(html.contains("0 of 174"), "what is missing is told");
    assert!(!html.contains("NaN") && !html.contains(">inf"));
    assert!(rendered(Vec::new()).contains("</html>"));
}

#[test]
fn one_run_shows_numbers_and_no_intervals() {
    let entries = fixture::entries().into_iter();
    let first = entries.filter(|entry| match entry {
        Entry::Session(_) => true,
        Entry::Trial(trial) => trial.run == 1,
    });
    let html = rendered(first.collect());
    assert!(html.contains("one run") && html.contains("nothing is proven"));
    assert!(!html.contains("NaN"));
}

/// The words of the report, a line for each block, without the drawings.
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
            Some(waiting) if closes && name == waiting => skipped = None,
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
