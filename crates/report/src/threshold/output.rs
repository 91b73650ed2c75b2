//! Judgements as a Markdown table, and as JUnit XML for continuous integration.

use std::fmt::Write as _;

use super::{Judgement, Verdict};

/// Returns a headline and a table, in which thresholds that are not met come first.
#[must_use]
pub fn markdown(judgements: &[Judgement]) -> String {
    let [not_met, open, met] = counts(judgements);
    let mut text = format!("**{not_met} not met**, {open} inconclusive, {met} met.\n\n");
    if judgements.is_empty() {
        return text;
    }
    text.push_str("| | threshold | device | point | figure | measured (99 %) |\n");
    text.push_str("|---|---|---|---|---|---|\n");
    let mut sorted: Vec<&Judgement> = judgements.iter().collect();
    sorted.sort_by_key(|judgement| judgement.verdict);
    for judgement in sorted {
        let cell = judgement.cell.as_ref();
        let columns = [
            judgement.verdict.name().to_owned(),
            format!("`{}`", judgement.threshold),
            cell.map_or_else(String::new, |key| key.device.clone()),
            cell.map_or_else(String::new, super::CellKey::point_text),
            cell.map_or_else(String::new, |key| key.figure.clone()),
            judgement.measured.clone(),
        ];
        let columns = columns.map(|column| column.replace('|', "\\|").replace('\n', " "));
        let _ = writeln!(text, "| {} |", columns.join(" | "));
    }
    text
}

/// Returns the judgements as JUnit tests: not met is a failure, inconclusive an error.
#[must_use]
pub fn junit(judgements: &[Judgement]) -> String {
    let [not_met, open, _] = counts(judgements);
    let attributes = format!(
        "tests=\"{}\" failures=\"{not_met}\" errors=\"{open}\"",
        judgements.len()
    );
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {attributes}>\n  \
         <testsuite name=\"comporta lab\" {attributes}>\n"
    );
    for judgement in judgements {
        let cell = judgement.cell.as_ref();
        let class = cell.map_or_else(
            || "lab".to_owned(),
            |key| format!("{}.{}", key.experiment, key.device),
        );
        let place = cell.map_or_else(String::new, |key| {
            format!(" ({} {} {})", key.device, key.point_text(), key.figure)
        });
        let name = format!("{}{place}", judgement.threshold);
        let (class, name, measured) = (xml(&class), xml(&name), xml(&judgement.measured));
        let _ = write!(text, "    <testcase classname=\"{class}\" name=\"{name}\"");
        let _ = match judgement.verdict {
            Verdict::Met => writeln!(text, "/>"),
            Verdict::NotMet => writeln!(text, "><failure message=\"{measured}\"/></testcase>"),
            Verdict::Inconclusive => writeln!(
                text,
                "><error type=\"inconclusive\" message=\"{measured}\"/></testcase>"
            ),
        };
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

fn counts(judgements: &[Judgement]) -> [usize; 3] {
    [Verdict::NotMet, Verdict::Inconclusive, Verdict::Met].map(|verdict| {
        let same = judgements.iter().filter(|one| one.verdict == verdict);
        same.count()
    })
}

/// Escapes a text for an attribute of XML 1.0, without control characters.
fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(' '),
            control if control.is_control() => (),
            other => safe.push(other),
        }
    }
    safe
}
