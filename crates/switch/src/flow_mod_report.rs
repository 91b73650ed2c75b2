//! The report of a connection's flow-mods in the log: their number after a minute, and at the end
//! of the connection, in the words of Open vSwitch.

use std::time::Duration;

use base::Instant;
use flow::FlowModCommand;

/// The time from the first flow-mod of a report to the report.
pub(crate) const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// The executed flow-mods of a connection since its last report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowModReport {
    additions: u64,
    deletions: u64,
    modifications: u64,
    first: Instant,
    last: Instant,
}

impl FlowModReport {
    /// Counts an executed flow-mod.
    #[inline]
    pub(crate) const fn count(&mut self, command: FlowModCommand, now: Instant) {
        if self.total() == 0 {
            self.first = now;
        }
        self.last = now;
        let count = match command {
            FlowModCommand::Add => &mut self.additions,
            FlowModCommand::Modify | FlowModCommand::ModifyStrict => &mut self.modifications,
            FlowModCommand::Delete | FlowModCommand::DeleteStrict => &mut self.deletions,
        };
        *count += 1;
    }

    /// Returns the time of the report; none if there is nothing to report.
    pub(crate) fn due(&self) -> Option<Instant> {
        (self.total() > 0).then(|| self.first + REPORT_INTERVAL)
    }

    /// Returns the text of the report, and begins the next; none if there is nothing to report.
    pub(crate) fn take_text(&mut self, now: Instant) -> Option<String> {
        let report = std::mem::take(self);
        if report.total() == 0 {
            return None;
        }
        let ago = now.since(report.first).as_secs();
        let interval = report.last.since(report.first).as_secs();
        let period = match interval {
            interval if interval == ago => format!("in the last {ago} s"),
            0 => format!("{ago} s ago"),
            interval => format!("in the {interval} s starting {ago} s ago"),
        };
        let counts = [
            (report.additions, "adds"),
            (report.deletions, "deletes"),
            (report.modifications, "modifications"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<_> = counts
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        let (total, counts) = (report.total(), counts.join(", "));
        Some(format!("{total} flow_mods {period} ({counts})"))
    }

    const fn total(&self) -> u64 {
        self.additions + self.deletions + self.modifications
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_names_counts_and_period() {
        let at = Instant::from_secs;
        let mut report = FlowModReport::default();
        assert_eq!((report.take_text(at(1)), report.due()), (None, None));
        report.count(FlowModCommand::Delete, at(5));
        report.count(FlowModCommand::Add, at(5));
        report.count(FlowModCommand::Add, at(5));
        assert_eq!(report.due(), Some(at(65)));
        let text = report.take_text(at(5));
        let expected = "3 flow_mods in the last 0 s (2 adds, 1 deletes)";
        assert_eq!(text.as_deref(), Some(expected));
        report.count(FlowModCommand::ModifyStrict, at(10));
        let text = report.take_text(at(20));
        assert_eq!(
            text.as_deref(),
            Some("1 flow_mods 10 s ago (1 modifications)")
        );
        report.count(FlowModCommand::Add, at(30));
        report.count(FlowModCommand::Add, at(33));
        let text = report.take_text(at(90));
        let expected = "2 flow_mods in the 3 s starting 60 s ago (2 adds)";
        assert_eq!(text.as_deref(), Some(expected));
    }
}
