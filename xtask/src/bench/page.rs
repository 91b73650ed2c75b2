//! What was measured as a person reads it, in Markdown, and as a program does, in JSON.

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::Failure;
use super::figures::{Figures, Spread};
use super::rows::{Bar, Group, Limit, Row, Value};

/// Where the tables are: of the switch for its users, of the instrument beside its method.
const README: &str = "README.md";
const METHOD: &str = "docs/measuring.md";
const BEGIN: &str = "<!-- the tables of `cargo xtask bench --readme` begin -->";
const END: &str = "<!-- the tables end -->";

/// The names of `rows`, and what they are about.
pub(super) fn list(rows: &[&Row]) -> String {
    let width = rows.iter().map(|row| row.id().len()).max().unwrap_or(0);
    let line = |row: &&Row| {
        let bars: Vec<String> = row.bars.iter().map(wanted).collect();
        let bars = match bars.is_empty() {
            true => String::new(),
            false => format!("; wanted: {}", bars.join(", ")),
        };
        format!("{:width$}  {}, {}{bars}\n", row.id(), row.about, row.unit)
    };
    rows.iter().map(line).collect()
}

/// A table for each group, and what could not be measured.
pub(super) fn table(rows: &[&Row], figures: &Figures, command: &str) -> String {
    let sections = sections(rows, figures, command);
    let sections: Vec<String> = sections.into_iter().map(|(_, section)| section).collect();
    let mut text = sections.join("\n");
    for (name, reason) in &figures.failures {
        text += &format!("\nNot measured: {name}, since {reason}\n");
    }
    text
}

/// A table for each group, with what it is of.
pub(super) fn sections(rows: &[&Row], figures: &Figures, command: &str) -> Vec<(Group, String)> {
    let of = |group: Group| {
        let rows = rows.iter().copied().filter(|row| row.group == group);
        let rows: Vec<&Row> = rows.collect();
        let text = || {
            format!(
                "{}\n\n`{command}`; {}. Medians, with the range of all runs.\n\n{}",
                heading(group),
                machine(),
                of_group(&rows, figures)
            )
        };
        (!rows.is_empty()).then(|| (group, text()))
    };
    Group::ALL.into_iter().filter_map(of).collect()
}

/// The line above a group's table.
fn heading(group: Group) -> String {
    format!("**{}**", group.title())
}

fn of_group(rows: &[&Row], figures: &Figures) -> String {
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| figures.of(row)) {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let mut text = format!("| row | unit | {} | wanted | |\n", columns.join(" | "));
    text += &format!("|---|---|{}---|---|\n", "---:|".repeat(columns.len()));
    for row in rows {
        let cells = columns.iter().map(|column| cell(row, column, figures));
        let cells: Vec<String> = cells.collect();
        let bars: Vec<String> = row.bars.iter().map(wanted).collect();
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

/// A median with its range.
fn cell(row: &Row, column: &str, figures: &Figures) -> String {
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

/// What a bar wants, in words.
fn wanted(bar: &Bar) -> String {
    let limit = match bar.limit {
        Limit::AtMost(most) => format!("at most {most}"),
        Limit::AtLeast(least) => format!("at least {least}"),
    };
    match bar.value {
        Value::Median(_) => limit,
        Value::Ratio(one, other) => format!("{limit} of {other} ({one})"),
    }
}

/// Whether a bar is reached.
fn verdict(row: &Row, bar: &Bar, figures: &Figures) -> String {
    let Some(value) = figures.value(row, bar) else {
        return "not measured".to_owned();
    };
    let word = match bar.is_reached_by(value) {
        true => "reached",
        false => "**missed**",
    };
    match bar.value {
        Value::Median(_) => word.to_owned(),
        Value::Ratio(..) => format!("{word}: {}", number(value)),
    }
}

/// A number with three digits that count, and commas between thousands.
fn number(value: f64) -> String {
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
        "" => grouped,
        rest => format!("{grouped}.{rest}"),
    }
}

/// All of it for programs: every sample.
pub(super) fn json(rows: &[&Row], figures: &Figures, command: &str) -> String {
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

fn row_json(row: &Row, figures: &Figures) -> Json {
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
    let bar = |bar: &Bar| {
        let value = figures.value(row, bar);
        json!({
            "wanted": wanted(bar),
            "value": value,
            "reached": value.map(|value| bar.is_reached_by(value)),
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

/// The machine in a few words.
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

/// The page that has the table of a group.
const fn page(group: Group) -> &'static str {
    match group {
        Group::Generator | Group::Impaired => METHOD,
        _ => README,
    }
}

/// Puts the tables where the README, or the page on the method, has those of their groups.
pub(super) fn put_into_readme(root: &Path, sections: &[(Group, String)]) -> Result<(), Failure> {
    for file in [README, METHOD] {
        let here = sections.iter().filter(|(group, _)| page(*group) == file);
        let here: Vec<_> = here.cloned().collect();
        if here.is_empty() {
            continue;
        }
        let path = root.join(file);
        let text = fs::read_to_string(&path)?;
        let text =
            replaced(&text, &here).ok_or_else(|| format!("{file} has no place for the tables"))?;
        fs::write(&path, text)?;
        println!("{file} has the tables now");
    }
    Ok(())
}

/// The text with these tables, and those that it has of other groups.
fn replaced(text: &str, sections: &[(Group, String)]) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (old, after) = rest.split_once(END)?;
    let of = |group: Group| {
        let new = sections.iter().find(|(of, _)| *of == group);
        new.map_or_else(|| section(old, group), |(_, new)| Some(new.as_str()))
    };
    let inside: Vec<&str> = Group::ALL.into_iter().filter_map(of).collect();
    let inside: String = inside
        .iter()
        .map(|section| format!("{}\n\n", section.trim_end()))
        .collect();
    Some(format!("{before}{BEGIN}\n\n{inside}{END}{after}"))
}

/// The table of a group with what it is of, where `text` has one.
fn section(text: &str, group: Group) -> Option<&str> {
    let start = text.find(&heading(group))?;
    let end = text[start..].find("\n**").unwrap_or(text.len() - start);
    Some(&text[start..start + end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::rows::{OURS, chosen};

    #[test]
    fn numbers_have_three_digits_that_count() {
        let numbers = [
            0.0,
            0.0521,
            0.984,
            1.0,
            15.0,
            99.96,
            123.4,
            1_234_567.8,
            -1234.0,
        ];
        let words = [
            "0.000",
            "0.052",
            "0.98",
            "1.00",
            "15.0",
            "100",
            "123",
            "1,234,568",
            "-1,234",
        ];
        assert_eq!(numbers.map(number), words);
    }

    #[test]
    fn a_row_says_what_was_wanted_and_whether_it_is_reached() {
        let rows = chosen(&["forms/macs".to_owned()]).expect("it is there");
        let mut figures = Figures::default();
        let not = table(&rows, &figures, "x");
        assert!(not.ends_with("| at most 20 | not measured |\n"), "{not}");
        figures.add(rows[0], OURS, 21.0);
        figures.add(rows[0], OURS, 19.0);
        let reached = table(&rows, &figures, "x");
        let row = "| 1,000 stations (`forms/macs-1000`) | ns a frame | 20.0 (19.0 – 21.0) | at most 20 | reached |\n";
        assert!(reached.ends_with(row), "{reached}");
        let json: Json = serde_json::from_str(&json(&rows, &figures, "x")).expect("it is JSON");
        assert_eq!(json["rows"][0]["bars"][0]["reached"], true);
        assert_eq!(json["rows"][0]["columns"][0]["samples"][1], 19.0);
    }

    #[test]
    fn a_table_takes_the_place_of_the_last_of_its_group() {
        let none = format!("a\n{BEGIN}\n\nsome words\n\n{END}\nb\n");
        let section = |group, what: &str| (group, format!("{}\n\n{what}\n", heading(group)));
        let (forms, idle) = (heading(Group::Forms), heading(Group::Idle));
        let with = |text: &str, group, what| {
            replaced(text, &[section(group, what)]).expect("there is a place")
        };
        let one = with(&none, Group::Idle, "| 1 |");
        assert_eq!(one, format!("a\n{BEGIN}\n\n{idle}\n\n| 1 |\n\n{END}\nb\n"));
        let two = with(&one, Group::Forms, "| 2 |");
        let both = format!("a\n{BEGIN}\n\n{forms}\n\n| 2 |\n\n{idle}\n\n| 1 |\n\n{END}\nb\n");
        assert_eq!(two, both);
        let again = with(&two, Group::Idle, "| 3 |");
        assert_eq!(again, both.replace("| 1 |", "| 3 |"));
        assert_eq!(replaced("nothing", &[]), None);
    }

    #[test]
    fn the_pages_have_a_place_for_the_tables() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for file in [README, METHOD] {
            let text = fs::read_to_string(root.join(file)).expect("there is one");
            assert!(replaced(&text, &[]).is_some(), "{file}");
        }
    }
}
