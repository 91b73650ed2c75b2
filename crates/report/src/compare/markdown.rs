//! Comparison as Markdown, for a terminal and for the summary of a CI job.

use std::fmt::Write as _;

use super::{ChangeFinding, Comparison, ComparisonRow, FigureChange};
use crate::format::figure;

/// Greatest number of rows without a significant change that are shown.
const INSIGNIFICANT_ROWS_MAX: usize = 30;

/// Returns the comparison in words and a table.
#[must_use]
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = headline(comparison);
    let is_significant = |row: &&ComparisonRow| row.finding < ChangeFinding::Inconclusive;
    let all = comparison.rows.iter();
    let shown = all.clone().filter(is_significant);
    let rest = all.filter(|row| !is_significant(row));
    let rows: Vec<&ComparisonRow> = shown
        .chain(rest.clone().take(INSIGNIFICANT_ROWS_MAX))
        .collect();
    if !rows.is_empty() {
        text.push_str(
            "\n| | experiment | device | point | figure | before | after | change (99 %) | p |\n",
        );
        text.push_str("|---|---|---|---|---|---:|---:|---:|---:|\n");
    }
    for row in rows {
        let _ = writeln!(text, "{}", line(row));
    }
    let left = rest.count().saturating_sub(INSIGNIFICANT_ROWS_MAX);
    if left > 0 {
        let _ = writeln!(
            text,
            "\n{left} more rows without a significant change are not shown."
        );
    }
    text
}

fn headline(comparison: &Comparison) -> String {
    let rows = comparison.rows.len();
    let counts = ChangeFinding::ALL.map(|finding| comparison.count(finding));
    let [worse, better, different, open, same] = counts;
    let mut text = format!(
        "**{worse} worse, {better} better**, {different} different, {same} equal within {}, \
         {open} inconclusive, of {rows} figures; significant at 99 % with Holm's correction, \
         runs {}.\n",
        percent(comparison.margin),
        if comparison.paired {
            "paired"
        } else {
            "not paired"
        },
    );
    for (count, run) in [
        (comparison.only_before, "first"),
        (comparison.only_after, "second"),
    ] {
        if count > 0 {
            let _ = writeln!(text, "{count} figures are in the {run} run only.");
        }
    }
    text
}

fn line(row: &ComparisonRow) -> String {
    let with_unit = |value: f64| format!("{} {}", figure(value), row.unit).trim().to_owned();
    let p = row
        .change
        .map_or_else(|| "–".to_owned(), |change| probability(change.p));
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {p} |",
        row.finding.name(),
        row.scenario,
        row.device.replace('|', "\\|"),
        row.point.replace('|', "\\|"),
        row.figure,
        with_unit(row.before),
        with_unit(row.after),
        row.change.map_or_else(
            || format!("too few runs: {} and {}", row.runs[0], row.runs[1]),
            |change| change_text(change, row.unit)
        ),
    )
}

fn change_text(change: FigureChange, unit: &str) -> String {
    let [mean, low, high] = [change.mean, change.low, change.high];
    if change.relative {
        let signed = |share: f64| sign(share, percent(share.abs()));
        format!("{} ({} … {})", signed(mean), signed(low), signed(high))
    } else {
        let signed = |value: f64| sign(value, figure(value.abs()));
        let text = format!(
            "{} ({} … {}) {unit}",
            signed(mean),
            signed(low),
            signed(high)
        );
        text.trim().to_owned()
    }
}

fn sign(value: f64, text: String) -> String {
    match value {
        above if above > 0.0 => format!("+{text}"),
        below if below < 0.0 => format!("−{text}"),
        _ => text,
    }
}

fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value >= 1_000.0 {
        format!("{} %", figure(value))
    } else {
        format!("{value:.1} %")
    }
}

fn probability(p: f64) -> String {
    if p < 0.001 {
        "< 0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}
