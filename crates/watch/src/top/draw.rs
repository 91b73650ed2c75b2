//! Drawing of a view.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table, Tabs};

use super::sheet::{RowOrder, Sheet, short};
use super::view::{ALL, PANES, TopView};

const HEAD: Style = Style::new().add_modifier(Modifier::BOLD);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);
const TITLE: Style = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
const PROBLEM: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

const KEYS: &str = "q quit  Tab panes  arrows rows  < > sort  r reverse  space pause  + - interval  b bridge  ? help";

#[rustfmt::skip]
const HELP: [&str; 13] = [
    "q, Esc, Ctrl-C   quit",
    "Tab, left/right  next or previous pane",
    "1 to 7           select a pane",
    "up/down, j, k    rows",
    "PgUp, PgDn       ten rows",
    "Home, End        first or last row",
    "< and >          sort by the neighbouring column",
    "r                reverse the order",
    "space, p         pause",
    "+ and -          longer or shorter interval",
    "Enter            update now",
    "b                show the next bridge alone, or all",
    "?, h, F1         this help",
];

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, view: &TopView) {
    let parts = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ]);
    let [head, tabs, body, foot] = parts.areas(frame.area());
    frame.render_widget(Paragraph::new(summary(view)), head);
    let panes = PANES.iter().zip(1..);
    let panes = panes.map(|(pane, number)| format!("{number} {pane}"));
    let panes = Tabs::new(panes)
        .select(view.pane)
        .highlight_style(CHOSEN)
        .divider(" ");
    frame.render_widget(panes, tabs);
    draw_sheets(frame, body, view);
    frame.render_widget(last_line(view), foot);
    if view.show_help {
        draw_help(frame);
    }
}

/// Returns two lines about the switch as a whole.
fn summary(view: &TopView) -> Vec<Line<'static>> {
    let Some((now, change)) = view.now().zip(view.change()) else {
        return vec![Line::from("comporta: no answer yet")];
    };
    let up = Duration::from_nanos(now.uptime_ns).as_secs();
    let (hours, minutes, seconds) = (up / 3600, up / 60 % 60, up % 60);
    let pause = if view.paused { "  PAUSED" } else { "" };
    let of = view.bridge.as_deref().unwrap_or("all bridges");
    let first = format!(
        "comporta {}  up {hours}:{minutes:02}:{seconds:02}  memory {}B  threads {}  {of}  every {} s{pause}",
        now.version,
        short(now.process.resident_bytes as f64),
        now.process.threads,
        view.interval.as_secs_f64(),
    );
    let only = view.bridge.as_deref();
    let [into, bits_in, out, bits_out] = change.sums(only).map(|rate| match rate {
        Some(rate) => short(rate),
        None => "-".to_owned(),
    });
    let over = change.time().map(|time| time.as_secs_f64());
    let over = over.map_or_else(String::new, |over| format!("  (over {over:.2} s)"));
    let second = format!("in {into}/s {bits_in}bit/s  out {out}/s {bits_out}bit/s{over}");
    vec![Line::styled(first, HEAD), Line::from(second)]
}

/// Returns the error, or the list of keys.
fn last_line(view: &TopView) -> Paragraph<'static> {
    match &view.problem {
        Some(problem) => Paragraph::new(format!("retrying: {problem}")).style(PROBLEM),
        None => Paragraph::new(KEYS).style(Style::new().add_modifier(Modifier::DIM)),
    }
}

fn draw_sheets(frame: &mut Frame<'_>, area: Rect, view: &TopView) {
    let sheets = view.sheets();
    let (order, first) = (view.orders[view.pane], view.first[view.pane]);
    if view.pane != ALL {
        for sheet in &sheets {
            draw_sheet(frame, area, sheet, order, first);
        }
        return;
    }
    let wanted: Vec<_> = sheets.iter().map(|sheet| sheet.rows.len() + 2).collect();
    let heights = distribute(&wanted, area.height.into());
    let heights = heights
        .iter()
        .map(|height| Constraint::Length(u16::try_from(*height).unwrap_or(u16::MAX)));
    let areas = Layout::vertical(heights).split(area);
    for (sheet, area) in sheets.iter().zip(areas.iter()) {
        draw_sheet(frame, *area, sheet, order, first);
    }
}

/// Distributes `lines` evenly, but at most the wanted number to each sheet.
fn distribute(wanted: &[usize], mut lines: usize) -> Vec<usize> {
    let mut got = vec![0; wanted.len()];
    while lines > 0 {
        let mut assigned = false;
        for (got, wanted) in got.iter_mut().zip(wanted) {
            if *got < *wanted && lines > 0 {
                *got += 1;
                lines -= 1;
                assigned = true;
            }
        }
        if !assigned {
            break;
        }
    }
    got
}

fn draw_sheet(
    frame: &mut Frame<'_>,
    area: Rect,
    sheet: &Sheet,
    order: Option<RowOrder>,
    first: usize,
) {
    let cells: Vec<Vec<String>> = sheet
        .rows
        .iter()
        .skip(first.min(sheet.rows.len().saturating_sub(1)))
        .map(|row| row.iter().map(super::sheet::SheetCell::short).collect())
        .collect();
    let width = |column: usize| {
        let cells = cells.iter().map(|row| row[column].chars().count());
        let name = sheet.columns[column].name.len();
        cells.max().unwrap_or_default().max(name)
    };
    let widths: Vec<_> = (0..sheet.columns.len()).map(width).collect();
    let aligned = |column: usize, text: &str| {
        let width = widths[column];
        match sheet.columns[column].is_number {
            true => format!("{text:>width$}"),
            false => text.to_owned(),
        }
    };
    let names = sheet.columns.iter().enumerate().map(|(column, of)| {
        let is_sorted_by = order.is_some_and(|order| order.column == of.name);
        let style = if is_sorted_by { CHOSEN } else { HEAD };
        Span::styled(aligned(column, of.name), style)
    });
    let rows = cells.iter().map(|row| {
        let cells = row.iter().enumerate();
        Row::new(cells.map(|(column, text)| aligned(column, text)))
    });
    let constraints = widths
        .iter()
        .map(|width| Constraint::Length(u16::try_from(*width).unwrap_or(u16::MAX)));
    let title = format!("{} ({})", sheet.title, sheet.rows.len());
    let table = Table::new(rows, constraints)
        .header(Row::new(names))
        .block(Block::new().title(Line::styled(title, TITLE)));
    frame.render_widget(table, area);
}

fn draw_help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let longest = HELP.iter().map(|line| line.len()).max().unwrap_or_default();
    let width = u16::try_from(longest + 4)
        .unwrap_or(u16::MAX)
        .min(area.width);
    let height = u16::try_from(HELP.len() + 2)
        .unwrap_or(u16::MAX)
        .min(area.height);
    let place = Rect {
        x: (area.width - width) / 2,
        y: (area.height - height) / 2,
        width,
        height,
    };
    let lines: Vec<_> = HELP
        .iter()
        .map(|line| Line::from(format!(" {line}")))
        .collect();
    frame.render_widget(Clear, place);
    let help = Paragraph::new(lines).block(Block::bordered().title("Keys"));
    frame.render_widget(help, place);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};

    use super::super::rates::tests::switch_with;
    use super::*;

    /// Draws to a terminal of this size and returns its lines.
    fn drawn(view: &TopView, (width, height): (u16, u16)) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        let buffer = terminal.backend().buffer();
        let rows = buffer.content().chunks(width.into());
        rows.map(|row| {
            let text: String = row.iter().map(|cell| cell.symbol()).collect();
            text.trim_end().to_owned()
        })
        .collect()
    }

    fn view() -> TopView {
        let mut view = TopView::new(Duration::from_secs(2), None, None);
        view.handle_reply(Ok(switch_with(1000, 1000)));
        view.handle_reply(Ok(switch_with(3500, 6000)));
        view
    }

    #[test]
    fn screen_shows_all_sheets_with_rounded_numbers() {
        let lines = drawn(&view(), (150, 40));
        assert_eq!(
            lines[0],
            "comporta 9.9  up 0:00:03  memory 5.24MB  threads 4  all bridges  every 2 s"
        );
        assert_eq!(
            lines[1],
            "in 2.00k/s 1.60Mbit/s  out 2.00k/s 1.60Mbit/s  (over 2.50 s)"
        );
        assert_eq!(lines[3], "PORTS (2)");
        let row = "br0    eth1 1  up         2.00k    1.60M     0";
        assert!(lines[5].starts_with(row), "{}", lines[5]);
        let screen = lines.join("\n");
        for expected in [
            "TABLES (1)",
            "WORKERS (1)",
            "25.0%",
            "no_match=500",
            "tcp:10.0.0.9:6653",
        ] {
            assert!(screen.contains(expected), "{expected}:\n{screen}");
        }
    }

    #[test]
    fn pane_shows_rows_from_selected_first_row() {
        let mut view = view();
        for key in [KeyCode::Char('2'), KeyCode::Down] {
            view.press(KeyEvent::from(key));
        }
        let screen = drawn(&view, (120, 12)).join("\n");
        assert!(
            screen.contains("eth2") && !screen.contains("eth1"),
            "{screen}"
        );
        assert!(!screen.contains("TABLES ("), "{screen}");
    }

    #[test]
    fn unanswered_request_shows_error_and_last_reply() {
        let mut view = view();
        view.handle_reply(Err("no switch answers at x".to_owned()));
        view.paused = true;
        view.show_help = true;
        let screen = drawn(&view, (100, 24)).join("\n");
        assert!(
            screen.contains("retrying: no switch answers at x"),
            "{screen}"
        );
        assert!(screen.contains("PAUSED") && screen.contains("sort by the neighbouring column"));
        let nothing = TopView::new(Duration::from_secs(1), None, None);
        assert_eq!(drawn(&nothing, (40, 5))[0], "comporta: no answer yet");
        // Terminals of any size work.
        for size in [(1, 1), (3, 2), (20, 4)] {
            drawn(&view, size);
        }
    }

    #[test]
    fn screen_lines_are_distributed_evenly_up_to_demand() {
        assert_eq!(distribute(&[2, 10, 3], 9), [2, 4, 3]);
        assert_eq!(distribute(&[2, 3], 100), [2, 3]);
        assert_eq!(distribute(&[5, 5], 0), [0, 0]);
    }
}
