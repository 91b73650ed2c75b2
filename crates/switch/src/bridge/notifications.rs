//! Notifications that wait for the next message or publication: the events of flow monitors and
//! tables, and effects of events that have no caller to send them.

use flow::TableStatus;
use pipeline::Changes;

use super::Effect;
use crate::monitors::{Author, RuleEventRecord};

/// The notifications of a bridge that are not sent yet.
#[derive(Debug, Default)]
pub(super) struct PendingNotifications {
    /// True if any connection has flow monitors.
    has_monitors: bool,
    /// Rule events that flow monitors have not reported yet.
    rule_events: Vec<RuleEventRecord>,
    /// Vacancy events of the tables.
    vacancy_events: Vec<TableStatus>,
    /// Effects of scheduled bundles, port states and controller status.
    deferred_effects: Vec<Effect>,
}

/// The number of events before the messages of a bundle.
pub(super) struct NotificationSavepoint {
    rule_events: usize,
    vacancy_events: usize,
}

impl PendingNotifications {
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.deferred_effects.is_empty()
            && self.vacancy_events.is_empty()
            && self.rule_events.is_empty()
    }

    /// Sets whether any connection has flow monitors.
    pub(super) const fn set_has_monitors(&mut self, has_monitors: bool) {
        self.has_monitors = has_monitors;
    }

    /// Records the rule events of a change, if there are monitors.
    pub(super) fn record_changes(&mut self, changes: &Changes, by: Option<Author>) {
        if self.has_monitors {
            let rule_events = changes
                .rule_events()
                .map(|rule_event| RuleEventRecord { rule_event, by });
            self.rule_events.extend(rule_events);
        }
    }

    /// Records vacancy events of the tables.
    pub(super) fn record_vacancy(&mut self, events: Vec<TableStatus>) {
        self.vacancy_events.extend(events);
    }

    /// Defers effects to the next message or publication.
    pub(super) fn defer(&mut self, effects: Vec<Effect>) {
        self.deferred_effects.extend(effects);
    }

    /// Removes and returns the rule events.
    pub(super) fn take_rule_events(&mut self) -> Vec<RuleEventRecord> {
        std::mem::take(&mut self.rule_events)
    }

    /// Removes and returns the vacancy events.
    pub(super) fn take_vacancy_events(&mut self) -> Vec<TableStatus> {
        std::mem::take(&mut self.vacancy_events)
    }

    /// Moves the deferred effects to the end of `effects`.
    pub(super) fn take_effects(&mut self, effects: &mut Vec<Effect>) {
        effects.append(&mut self.deferred_effects);
    }

    /// Returns a savepoint for [`Self::roll_back`].
    pub(super) const fn savepoint(&self) -> NotificationSavepoint {
        NotificationSavepoint {
            rule_events: self.rule_events.len(),
            vacancy_events: self.vacancy_events.len(),
        }
    }

    /// Removes the events since a savepoint.
    pub(super) fn roll_back(&mut self, savepoint: NotificationSavepoint) {
        self.rule_events.truncate(savepoint.rule_events);
        self.vacancy_events.truncate(savepoint.vacancy_events);
    }
}
