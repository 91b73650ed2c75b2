//! The display as text, for scripts, pipes and logs: exact numbers, one blank line between tables.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use control_api::telemetry::Telemetry;

use super::TopOptions;
use super::rates::TelemetryDelta;
use super::sheet::{RowOrder, Sheet, SheetCell};
use crate::clock;
use crate::error::WatchError;

/// Prints `count` texts, or until the pipe is closed. If the switch does not answer, the request is
/// repeated.
pub(super) fn run(
    options: &TopOptions,
    count: Option<u64>,
    order: Option<RowOrder>,
) -> Result<(), WatchError> {
    let request = || options.target.telemetry(options.rules);
    let mut before = request()?;
    let mut printed = 0;
    while count.is_none_or(|count| printed < count) {
        clock::wait(options.interval);
        let text = match request() {
            Ok(now) => {
                let text = text(Some(&before), &now, options.target.bridge.as_deref(), order);
                before = now;
                printed += 1;
                text
            }
            Err(error) => format!("# {error}\n"),
        };
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written.map_err(WatchError::io("standard output"))?,
        }
    }
    Ok(())
}

/// Formats a reply, compared with the previous one.
fn text(
    before: Option<&Telemetry>,
    now: &Telemetry,
    only: Option<&str>,
    order: Option<RowOrder>,
) -> String {
    let change = TelemetryDelta::new(before, now);
    let up = Duration::from_nanos(now.uptime_ns).as_secs_f64();
    let mut text = format!("comporta {} up {up:.1} s", now.version);
    if let Some(time) = change.time() {
        // Writing to a string cannot fail.
        let _ = write!(text, ", rates over {:.3} s", time.as_secs_f64());
    }
    text += "\n";
    for mut sheet in change.sheets(only) {
        if let Some(order) = order {
            sheet.sort(order);
        }
        text += "\n";
        text += &lines(&sheet);
    }
    text += "\n";
    text
}

/// Formats a title, the column names, and the rows.
fn lines(sheet: &Sheet) -> String {
    let names = sheet.columns.iter().map(|column| column.name.to_owned());
    let rows = sheet.rows.iter();
    let mut table: Vec<Vec<String>> = vec![names.collect()];
    table.extend(rows.map(|row| row.iter().map(SheetCell::exact).collect()));
    let width = |column: usize| {
        let cells = table.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    };
    let widths: Vec<_> = (0..sheet.columns.len()).map(width).collect();
    let mut text = format!("{}\n", sheet.title);
    for row in &table {
        let cells = row.iter().zip(sheet.columns).zip(&widths);
        let cells = cells.map(|((cell, column), width)| match column.is_number {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text += line.trim_end();
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::rates::tests::switch_with;
    use super::*;

    #[test]
    fn text_has_a_table_of_each_kind_with_exact_numbers() {
        let (before, now) = (switch_with(1000, 1000), switch_with(3500, 6000));
        let output = text(Some(&before), &now, None, RowOrder::by("out/s"));
        assert!(output.starts_with("comporta 9.9 up 3.5 s, rates over 2.500 s\n\nPORTS\n"));
        let lines: Vec<_> = output.lines().collect();
        assert!(lines[3].starts_with("BRIDGE  PORT  NO  LINK"), "{output}");
        // Sorted by output, the second port is first.
        assert!(
            lines[4].starts_with("br0     eth2  2   no-carrier"),
            "{output}"
        );
        assert!(lines[4].contains("  2000.0  1600000.0  "), "{output}");
        for title in ["TABLES", "WORKERS", "FLOWS", "CONTROLLERS"] {
            assert!(lines.contains(&title), "{output}");
        }
    }
}
