//! Benchmark results as Markdown for readers, as JSON for programs, and in the project's documents.

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::figures::{Figures, Spread};
use super::groups::BenchGroup;
use super::rows::{BenchRow, OURS, OVS, OVS_DPDK, OVS_TSO, RowTarget, TargetBound, TargetFigure};
use super::{TaskError, chart};

/// The documents with tables: results of the switch for its users, and results of the instrument
/// next to its method.
const RESULTS: &str = "docs/benchmarks.md";
const METHOD: &str = "docs/measuring.md";
const BEGIN: &str = "<!-- cargo xtask bench --publish: tables -->";
const END: &str = "<!-- end of tables -->";

/// The document with the summary, whose rows are results of several groups.
const README: &str = "README.md";
const SUMMARY_BEGIN: &str = "<!-- cargo xtask bench --publish: summary -->";
const SUMMARY_END: &str = "<!-- end of summary -->";

/// Rows of the summary, each with the peer that it is compared with.
#[rustfmt::skip]
const SUMMARY: [(&str, &str); 8] = [
    ("dpdk/flows-1000",      OVS_DPDK),
    ("dpdk/flows-100000",    OVS_DPDK),
    ("dpdk/tables-random",   OVS_DPDK),
    ("dpdk/acl-1000-random", OVS_DPDK),
    ("dpdk/acl-3-attack",    OVS_DPDK),
    ("veth/rate",            OVS),
    ("veth/tcp",             OVS_TSO),
    ("startup/ports-flows",  OVS),
];

/// Returns the names and subjects of `rows`, for `--list`.
pub(super) fn list(rows: &[&BenchRow]) -> String {
    let width = rows.iter().map(|row| row.id().len()).max().unwrap_or(0);
    let line = |row: &&BenchRow| {
        let targets: Vec<String> = row.bars.iter().map(target).collect();
        let targets = match targets.is_empty() {
            true => String::new(),
            false => format!("; target: {}", targets.join(", ")),
        };
        format!(
            "{:width$}  {}, {}{targets}\n",
            row.id(),
            row.about,
            row.unit
        )
    };
    rows.iter().map(line).collect()
}

/// Returns one table for each group, and the rows that could not be measured.
pub(super) fn table(rows: &[&BenchRow], figures: &Figures, command: &str) -> String {
    let sections = sections(rows, figures, command);
    let sections: Vec<String> = sections.into_iter().map(|(_, section)| section).collect();
    let mut text = sections.join("\n");
    for (name, reason) in &figures.failures {
        text += &format!("\nNot measured: {name}: {reason}\n");
    }
    text
}

/// Returns one table for each group, under its title, command and machine.
pub(super) fn sections(
    rows: &[&BenchRow],
    figures: &Figures,
    command: &str,
) -> Vec<(BenchGroup, String)> {
    let of = |group: BenchGroup| {
        let rows = rows.iter().copied().filter(|row| row.group == group);
        let rows: Vec<&BenchRow> = rows.collect();
        let text = || {
            format!(
                "{}\n\n`{command}`\n\n{}.\nMedians, with the range of all runs.\n\n{}",
                heading(group),
                machine(),
                of_group(&rows, figures)
            )
        };
        (!rows.is_empty()).then(|| (group, text()))
    };
    BenchGroup::ALL.into_iter().filter_map(of).collect()
}

/// Returns the title line of a group's table.
fn heading(group: BenchGroup) -> String {
    format!("**{}**", group.title())
}

fn of_group(rows: &[&BenchRow], figures: &Figures) -> String {
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| figures.of(row)) {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let mut text = format!("| row | unit | {} | target | |\n", columns.join(" | "));
    text += &format!("|---|---|{}---|---|\n", "---:|".repeat(columns.len()));
    for row in rows {
        let cells = columns.iter().map(|column| cell(row, column, figures));
        let cells: Vec<String> = cells.collect();
        let bars: Vec<String> = row.bars.iter().map(target).collect();
        let reached: Vec<String> = row
            .bars
            .iter()
            .map(|bar| verdict(row, bar, figures))
            .collect();
        text += &format!(
            "| {} (`{}`) | {} | {} | {} | {} |\n",
            row.about,
            row.id(),
            row.unit,
            cells.join(" | "),
            bars.join("; "),
            reached.join("; ")
        );
    }
    text
}

/// Returns a median with its range.
fn cell(row: &BenchRow, column: &str, figures: &Figures) -> String {
    let samples = figures.of(row).iter().find(|(name, _)| name == column);
    let spread = samples.and_then(|(_, samples)| Spread::of(samples));
    match spread {
        None => String::new(),
        Some(Spread {
            median,
            least,
            most,
        }) if number(least) == number(most) => number(median),
        Some(Spread {
            median,
            least,
            most,
        }) => {
            format!("{} ({} – {})", number(median), number(least), number(most))
        }
    }
}

/// Returns a target as text.
fn target(bar: &RowTarget) -> String {
    let limit = match bar.limit {
        TargetBound::AtMost(most) => format!("at most {most}"),
        TargetBound::AtLeast(least) => format!("at least {least}"),
    };
    match bar.value {
        TargetFigure::Median(_) => limit,
        TargetFigure::Ratio(one, other) => format!("{limit} × {other} ({one})"),
    }
}

/// Returns whether a target is met, as text.
fn verdict(row: &BenchRow, bar: &RowTarget, figures: &Figures) -> String {
    let Some(value) = figures.value(row, bar) else {
        return "not measured".to_owned();
    };
    let word = match bar.is_reached_by(value) {
        true => "met",
        false => "**missed**",
    };
    match bar.value {
        TargetFigure::Median(_) => word.to_owned(),
        TargetFigure::Ratio(..) => format!("{word}: {}", number(value)),
    }
}

/// Formats a number with three significant digits and commas between thousands.
pub(super) fn number(value: f64) -> String {
    let (value, suffix) = match value.abs() >= 999_500.0 {
        true => (value / 1e6, " M"),
        false => (value, ""),
    };
    let value = match value.abs() {
        large if large >= 999.5 => {
            let unit = 10_f64.powf(large.log10().floor() - 2.0);
            (value / unit).round() * unit
        }
        _ => value,
    };
    let places = match value.abs() {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        value if value >= 0.0995 => 2,
        _ => 3,
    };
    let text = format!("{value:.places$}");
    let (whole, rest) = text
        .split_once('.')
        .map_or((text.as_str(), ""), |parts| parts);
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        let left = whole.len() - place;
        if place > 0 && left % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match rest {
        "" => format!("{grouped}{suffix}"),
        rest => format!("{grouped}.{rest}{suffix}"),
    }
}

/// Returns all samples as JSON.
pub(super) fn json(rows: &[&BenchRow], figures: &Figures, command: &str) -> String {
    let rows: Vec<Json> = rows.iter().map(|row| row_json(row, figures)).collect();
    let failures = figures.failures.iter();
    let failures: Vec<Json> = failures
        .map(|(name, reason)| json!({ "name": name, "reason": reason }))
        .collect();
    let all = json!({
        "command": command,
        "machine": machine(),
        "rows": rows,
        "failures": failures,
    });
    format!("{all:#}\n")
}

fn row_json(row: &BenchRow, figures: &Figures) -> Json {
    let column = |(name, samples): &(String, Vec<f64>)| {
        let spread = Spread::of(samples);
        json!({
            "column": name,
            "samples": samples,
            "median": spread.map(|spread| spread.median),
            "least": spread.map(|spread| spread.least),
            "most": spread.map(|spread| spread.most),
        })
    };
    let bar = |bar: &RowTarget| {
        let value = figures.value(row, bar);
        json!({
            "target": target(bar),
            "value": value,
            "met": value.map(|value| bar.is_reached_by(value)),
        })
    };
    json!({
        "row": row.id(),
        "about": row.about,
        "unit": row.unit,
        "columns": figures.of(row).iter().map(column).collect::<Vec<_>>(),
        "bars": row.bars.iter().map(bar).collect::<Vec<_>>(),
    })
}

/// Returns the processor and kernel of this machine.
fn machine() -> String {
    let line = |path: &str, start: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let found = text.lines().find(|line| line.starts_with(start));
        let value = found.map(|line| line.rsplit(':').next().unwrap_or(line).trim().to_owned());
        value.unwrap_or_else(|| "unknown".to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(1, Into::into);
    format!(
        "{cores} cores of {}, Linux {}",
        line("/proc/cpuinfo", "model name"),
        line("/proc/sys/kernel/osrelease", ""),
    )
}

/// Returns the document with the table of a group.
const fn page(group: BenchGroup) -> &'static str {
    match group {
        BenchGroup::Generator | BenchGroup::Impaired => METHOD,
        _ => RESULTS,
    }
}

/// Writes the results into the project's documents: tables, summary and chart.
pub(super) fn publish(
    root: &Path,
    rows: &[&BenchRow],
    figures: &Figures,
    command: &str,
) -> Result<(), TaskError> {
    let sections = sections(rows, figures, command);
    for file in [RESULTS, METHOD] {
        let here = sections.iter().filter(|(group, _)| page(*group) == file);
        let here: Vec<_> = here.cloned().collect();
        if !here.is_empty() {
            edit(root, file, |text| replaced(text, &here))?;
        }
    }
    edit(root, README, |text| summarized(text, rows, figures))?;
    if let Some(chart) = chart::chart(rows, figures, &machine()) {
        fs::write(root.join(chart::FILE), chart)?;
        println!("{} is written", chart::FILE);
    }
    Ok(())
}

/// Replaces the text of a document.
fn edit(
    root: &Path,
    file: &str,
    replace: impl FnOnce(&str) -> Option<String>,
) -> Result<(), TaskError> {
    let path = root.join(file);
    let text = fs::read_to_string(&path).map_err(|error| format!("{file}: {error}"))?;
    let text = replace(&text).ok_or_else(|| format!("{file} has no markers for the tables"))?;
    fs::write(&path, text)?;
    println!("{file} is updated");
    Ok(())
}

/// Returns the README with new summary lines for the rows that were measured; the other lines stay.
fn summarized(text: &str, rows: &[&BenchRow], figures: &Figures) -> Option<String> {
    let (before, rest) = text.split_once(SUMMARY_BEGIN)?;
    let (old, after) = rest.split_once(SUMMARY_END)?;
    let lines = SUMMARY.iter().filter_map(|(id, peer)| {
        let row = rows.iter().find(|row| row.id() == *id);
        let new = row.and_then(|row| summary_line(row, peer, figures));
        new.or_else(|| {
            let kept = old.lines().find(|line| line.contains(&format!("`{id}`")));
            kept.map(|line| format!("{line}\n"))
        })
    });
    let lines: String = lines.collect();
    let head = "| workload | Comporta | peer | ratio |\n|---|---:|---:|---:|\n";
    Some(format!(
        "{before}{SUMMARY_BEGIN}\n{head}{lines}{SUMMARY_END}{after}"
    ))
}

/// Returns the summary of a row: both medians, and the median of the ratios of all runs.
fn summary_line(row: &BenchRow, peer: &'static str, figures: &Figures) -> Option<String> {
    let median = |column: &str| {
        let samples = figures.of(row).iter().find(|(name, _)| name == column);
        samples.and_then(|(_, samples)| Spread::of(samples))
    };
    let (ours, theirs) = (median(OURS)?, median(peer)?);
    let ratio = figures.value_of(row, TargetFigure::Ratio(OURS, peer))?;
    let missed = row.bars.iter().any(|bar| {
        let value = figures.value(row, bar);
        bar.value == TargetFigure::Ratio(OURS, peer)
            && value.is_some_and(|value| !bar.is_reached_by(value))
    });
    let note = if missed { " (**target missed**)" } else { "" };
    Some(format!(
        "| {} (`{}`) | {} {} | {peer}: {} | {}{note} |\n",
        row.about,
        row.id(),
        number(ours.median),
        row.unit,
        number(theirs.median),
        number(ratio),
    ))
}

/// Returns the text with these tables; tables of other groups stay.
fn replaced(text: &str, sections: &[(BenchGroup, String)]) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (old, after) = rest.split_once(END)?;
    let of = |group: BenchGroup| {
        let new = sections.iter().find(|(of, _)| *of == group);
        new.map_or_else(|| section(old, group), |(_, new)| Some(new.as_str()))
    };
    let inside: Vec<&str> = BenchGroup::ALL.into_iter().filter_map(of).collect();
    let inside: String = inside
        .iter()
        .map(|section| format!("{}\n\n", section.trim_end()))
        .collect();
    Some(format!("{before}{BEGIN}\n\n{inside}{END}{after}"))
}

/// Returns the section of a group in `text`.
fn section(text: &str, group: BenchGroup) -> Option<&str> {
    let start = text.find(&heading(group))?;
    let end = text[start..].find("\n**").unwrap_or(text.len() - start);
    Some(&text[start..start + end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::rows::chosen;

    #[test]
    fn numbers_have_three_significant_digits() {
        let numbers = [
            0.0,
            0.0521,
            0.984,
            1.0,
            15.0,
            99.96,
            123.4,
            12_345.6,
            999_400.0,
            1_234_567.8,
            -1234.0,
        ];
        let words = [
            "0.000", "0.052", "0.98", "1.00", "15.0", "100", "123", "12,300", "999,000", "1.23 M",
            "-1,230",
        ];
        assert_eq!(numbers.map(number), words);
    }

    #[test]
    fn row_shows_its_target_and_whether_it_is_met() {
        let rows = chosen(&["forms/macs".to_owned()]).expect("the row exists");
        let mut figures = Figures::default();
        let empty = table(&rows, &figures, "x");
        assert!(
            empty.ends_with("| at most 20 | not measured |\n"),
            "{empty}"
        );
        figures.add(rows[0], OURS, 21.0);
        figures.add(rows[0], OURS, 19.0);
        let met = table(&rows, &figures, "x");
        let row = "| 1,000 MAC addresses (`forms/macs-1000`) | ns/packet | 20.0 (19.0 – 21.0) | at most 20 | met |\n";
        assert!(met.ends_with(row), "{met}");
        let json: Json = serde_json::from_str(&json(&rows, &figures, "x")).expect("valid JSON");
        assert_eq!(json["rows"][0]["bars"][0]["met"], true);
        assert_eq!(json["rows"][0]["columns"][0]["samples"][1], 19.0);
    }

    #[test]
    fn table_replaces_the_older_one_of_its_group() {
        let none = format!("a\n{BEGIN}\n\nsome words\n\n{END}\nb\n");
        let section = |group, text: &str| (group, format!("{}\n\n{text}\n", heading(group)));
        let (forms, idle) = (heading(BenchGroup::Forms), heading(BenchGroup::Idle));
        let with = |text: &str, group, table| {
            replaced(text, &[section(group, table)]).expect("the markers exist")
        };
        let one = with(&none, BenchGroup::Idle, "| 1 |");
        assert_eq!(one, format!("a\n{BEGIN}\n\n{idle}\n\n| 1 |\n\n{END}\nb\n"));
        let two = with(&one, BenchGroup::Forms, "| 2 |");
        let both = format!("a\n{BEGIN}\n\n{forms}\n\n| 2 |\n\n{idle}\n\n| 1 |\n\n{END}\nb\n");
        assert_eq!(two, both);
        let again = with(&two, BenchGroup::Idle, "| 3 |");
        assert_eq!(again, both.replace("| 1 |", "| 3 |"));
        assert_eq!(replaced("nothing", &[]), None);
    }

    #[test]
    fn summary_updates_measured_rows_and_keeps_the_others() {
        let rows = chosen(&["dpdk/tables-random".to_owned()]).expect("the row exists");
        let mut figures = Figures::default();
        figures.add(rows[0], OURS, 8_000_000.0);
        figures.add(rows[0], OVS_DPDK, 5_000_000.0);
        let kept = "| x (`veth/rate`) | 1 | 2 | 3 |\n";
        let text = format!("a\n{SUMMARY_BEGIN}\n{kept}{SUMMARY_END}\nb\n");
        let new = summarized(&text, &rows, &figures).expect("the markers exist");
        let line = "| 10-table pipeline, 100,000 flows (`dpdk/tables-random`) | 8.00 M packets/s | OVS-DPDK: 5.00 M | 1.60 (**target missed**) |\n";
        assert!(new.contains(&format!("{line}{kept}")), "{new}");
    }

    #[test]
    fn documents_have_markers() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |file| fs::read_to_string(root.join(file)).expect("the document exists");
        for file in [RESULTS, METHOD] {
            assert!(replaced(&read(file), &[]).is_some(), "{file}");
        }
        assert!(summarized(&read(README), &[], &Figures::default()).is_some());
    }

    #[test]
    fn summary_names_rows_that_exist() {
        for (id, _) in SUMMARY {
            assert_eq!(
                chosen(&[id.to_owned()]).map(|rows| rows[0].id()).ok(),
                Some(id.to_owned())
            );
        }
    }
}
