//! The state of the display, and the keys that change it.

use std::time::Duration;

use control_api::telemetry::Telemetry;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::rates::TelemetryDelta;
use super::sheet::{RowOrder, Sheet};

/// The pane with a part of every sheet; a pane for each sheet follows it.
pub(super) const ALL: usize = 0;

/// The panes, in order.
pub(super) const PANES: [&str; 7] = [
    "All",
    "Ports",
    "Tables",
    "Workers",
    "Flows",
    "Connections",
    "Controllers",
];

/// The selectable intervals.
const INTERVALS: [Duration; 8] = [
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
];

/// The number of rows in a page.
const PAGE: usize = 10;

/// The request of a key to the event loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyRequest {
    /// No request.
    Nothing,
    /// An immediate update.
    Refresh,
    /// The end of the program.
    Quit,
}

/// The state of the display.
#[derive(Clone, Debug)]
pub(super) struct TopView {
    /// The selected pane.
    pub(super) pane: usize,
    /// The order of each pane's rows; none for the order of the reply.
    pub(super) orders: [Option<RowOrder>; PANES.len()],
    /// The first row of each pane.
    pub(super) first: [usize; PANES.len()],
    /// True while updates are paused.
    pub(super) paused: bool,
    /// The time between two replies.
    pub(super) interval: Duration,
    /// The bridge that is shown alone.
    pub(super) bridge: Option<String>,
    /// True while the help is shown.
    pub(super) show_help: bool,
    /// The error of the last request.
    pub(super) problem: Option<String>,
    before: Option<Telemetry>,
    now: Option<Telemetry>,
}

impl TopView {
    pub(super) fn new(interval: Duration, bridge: Option<String>, order: Option<RowOrder>) -> Self {
        Self {
            pane: ALL,
            orders: [order; PANES.len()],
            first: [0; PANES.len()],
            paused: false,
            interval,
            bridge,
            show_help: false,
            problem: None,
            before: None,
            now: None,
        }
    }

    /// Handles a reply or an error.
    pub(super) fn handle_reply(&mut self, reply: Result<Telemetry, String>) {
        match reply {
            Ok(telemetry) => {
                self.problem = None;
                self.before = self.now.replace(telemetry);
            }
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// Returns the last reply.
    pub(super) const fn now(&self) -> Option<&Telemetry> {
        self.now.as_ref()
    }

    /// Returns the change between the last two replies; none before the first.
    pub(super) fn change(&self) -> Option<TelemetryDelta<'_>> {
        let now = self.now.as_ref()?;
        Some(TelemetryDelta::new(self.before.as_ref(), now))
    }

    /// Returns the sheets of the selected pane, sorted.
    pub(super) fn sheets(&self) -> Vec<Sheet> {
        let Some(change) = self.change() else {
            return Vec::new();
        };
        let mut sheets = change.sheets(self.bridge.as_deref());
        if let Some(sheet_index) = self.pane.checked_sub(1) {
            sheets = vec![sheets.swap_remove(sheet_index)];
        }
        if let Some(order) = self.orders[self.pane] {
            sheets.iter_mut().for_each(|sheet| sheet.sort(order));
        }
        sheets
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: KeyEvent) -> KeyRequest {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c' | 'd') if ctrl => return KeyRequest::Quit,
            KeyCode::Char('q') => return KeyRequest::Quit,
            KeyCode::Esc if self.show_help => self.show_help = false,
            KeyCode::Esc => return KeyRequest::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.show_help = !self.show_help,
            KeyCode::Tab | KeyCode::Right => self.pane = (self.pane + 1) % PANES.len(),
            KeyCode::BackTab | KeyCode::Left => {
                self.pane = (self.pane + PANES.len() - 1) % PANES.len();
            }
            KeyCode::Char(digit @ '1'..='7') => self.pane = digit as usize - '1' as usize,
            KeyCode::Up | KeyCode::Char('k') => self.scroll(|first| first.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.scroll(|first| first + 1),
            KeyCode::PageUp => self.scroll(|first| first.saturating_sub(PAGE)),
            KeyCode::PageDown => self.scroll(|first| first + PAGE),
            KeyCode::Home => self.scroll(|_| 0),
            KeyCode::End => self.scroll(|_| usize::MAX),
            KeyCode::Char('>' | '.') => self.sort_by_next(1),
            KeyCode::Char('<' | ',') => self.sort_by_next(-1),
            KeyCode::Char('r' | 'R' | 'I') => self.reverse(),
            KeyCode::Char(' ' | 'p') => {
                self.paused = !self.paused;
                return self.unless_paused();
            }
            KeyCode::Char('+' | '=') => self.interval = longer(self.interval),
            KeyCode::Char('-') => {
                self.interval = shorter(self.interval);
                return self.unless_paused();
            }
            KeyCode::Char('b') => self.show_next_bridge(),
            KeyCode::Enter => return KeyRequest::Refresh,
            _ => {}
        }
        KeyRequest::Nothing
    }

    const fn unless_paused(&self) -> KeyRequest {
        match self.paused {
            true => KeyRequest::Nothing,
            false => KeyRequest::Refresh,
        }
    }

    /// Moves the first row, at most to the last row.
    fn scroll(&mut self, to: impl FnOnce(usize) -> usize) {
        let rows = self.sheets().iter().map(|sheet| sheet.rows.len()).max();
        let last = rows.unwrap_or_default().saturating_sub(1);
        let first = &mut self.first[self.pane];
        *first = to(*first).min(last);
    }

    /// Sorts by the neighbouring column; after the last column, the rows are not sorted.
    fn sort_by_next(&mut self, step: isize) {
        let sheets = self.sheets();
        let Some(columns) = sheets.first().map(|sheet| sheet.columns) else {
            return;
        };
        let order = self.orders[self.pane];
        let index = order.and_then(|order| {
            let mut names = columns.iter().map(|column| column.name);
            names.position(|name| name == order.column)
        });
        // Index 0 means no order.
        let index = index.map_or(0, |index| index + 1);
        let count = columns.len() + 1;
        let index = (index + count).saturating_add_signed(step) % count;
        self.orders[self.pane] = index.checked_sub(1).map(|index| RowOrder {
            column: columns[index].name,
            reversed: order.is_some_and(|order| order.reversed),
        });
    }

    fn reverse(&mut self) {
        if let Some(order) = &mut self.orders[self.pane] {
            order.reversed = !order.reversed;
        }
    }

    /// Selects the next bridge; after the last, all bridges.
    fn show_next_bridge(&mut self) {
        let bridges = self.now.iter().flat_map(|now| &now.bridges);
        let mut names = bridges.map(|bridge| bridge.name.clone());
        self.bridge = match &self.bridge {
            None => names.next(),
            Some(shown) => names.skip_while(|name| name != shown).nth(1),
        };
    }
}

fn longer(interval: Duration) -> Duration {
    let mut longer = INTERVALS.into_iter().filter(|other| *other > interval);
    longer.next().unwrap_or(interval)
}

fn shorter(interval: Duration) -> Duration {
    let mut shorter = INTERVALS.into_iter().filter(|other| *other < interval);
    shorter.next_back().unwrap_or(interval)
}

#[cfg(test)]
mod tests {
    use super::super::rates::tests::switch_with;
    use super::*;

    fn view() -> TopView {
        let mut view = TopView::new(Duration::from_secs(2), None, None);
        view.handle_reply(Ok(switch_with(1000, 1000)));
        view.handle_reply(Ok(switch_with(2000, 2000)));
        view
    }

    fn press(view: &mut TopView, keys: &[KeyCode]) -> KeyRequest {
        let press = |key: &KeyCode| view.press(KeyEvent::from(*key));
        keys.iter().map(press).last().unwrap_or(KeyRequest::Nothing)
    }

    #[test]
    fn keys_select_panes_and_quit() {
        let mut view = view();
        press(&mut view, &[KeyCode::Tab, KeyCode::Right]);
        assert_eq!(PANES[view.pane], "Tables");
        press(
            &mut view,
            &[KeyCode::Left, KeyCode::BackTab, KeyCode::BackTab],
        );
        assert_eq!(PANES[view.pane], "Controllers");
        press(&mut view, &[KeyCode::Char('5')]);
        assert_eq!(PANES[view.pane], "Flows");
        press(&mut view, &[KeyCode::Char('?')]);
        assert!(view.show_help);
        assert_eq!(press(&mut view, &[KeyCode::Esc]), KeyRequest::Nothing);
        assert_eq!(press(&mut view, &[KeyCode::Esc]), KeyRequest::Quit);
        assert_eq!(press(&mut view, &[KeyCode::Char('q')]), KeyRequest::Quit);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(view.press(interrupt), KeyRequest::Quit);
    }

    #[test]
    fn keys_select_sort_column_and_reverse_order() {
        let mut view = view();
        press(&mut view, &[KeyCode::Char('2'), KeyCode::Char('<')]);
        let last = view.orders[1].expect("it is sorted");
        assert_eq!(last.column, "OUT-DROPS");
        press(&mut view, &[KeyCode::Char('>'), KeyCode::Char('>')]);
        assert_eq!(view.orders[1].map(|order| order.column), Some("BRIDGE"));
        press(&mut view, &[KeyCode::Char('>'), KeyCode::Char('r')]);
        let sheets = view.sheets();
        assert_eq!(sheets[0].rows[0][1].exact(), "eth2");
        assert_eq!(view.orders[2], None, "other panes have orders of their own");
    }

    #[test]
    fn keys_stop_at_last_row_interval_and_bridge() {
        let mut view = view();
        press(&mut view, &[KeyCode::Char('2'), KeyCode::End]);
        assert_eq!(view.first[1], 1);
        press(&mut view, &[KeyCode::PageUp]);
        assert_eq!(view.first[1], 0);
        press(&mut view, &[KeyCode::Char('+')]);
        assert_eq!(view.interval, Duration::from_secs(5));
        let slowest = [KeyCode::Char('-'); 20];
        assert_eq!(press(&mut view, &slowest), KeyRequest::Refresh);
        assert_eq!(view.interval, INTERVALS[0]);
        assert_eq!(press(&mut view, &[KeyCode::Char(' ')]), KeyRequest::Nothing);
        assert!(view.paused);
        assert_eq!(press(&mut view, &[KeyCode::Char(' ')]), KeyRequest::Refresh);
        press(&mut view, &[KeyCode::Char('b')]);
        assert_eq!(view.bridge.as_deref(), Some("br0"));
        press(&mut view, &[KeyCode::Char('b')]);
        assert_eq!(view.bridge, None);
    }

    #[test]
    fn failed_request_keeps_last_reply() {
        let mut view = view();
        view.handle_reply(Err("no switch answers".to_owned()));
        assert_eq!(view.problem.as_deref(), Some("no switch answers"));
        assert!(!view.sheets().is_empty());
        view.handle_reply(Ok(switch_with(10, 0)));
        assert_eq!(view.problem, None);
        assert_eq!(
            view.change().and_then(TelemetryDelta::time),
            None,
            "it is another"
        );
    }
}
