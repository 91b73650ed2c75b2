//! The log of refused rules: a controller that does not report errors would otherwise leave no trace
//! of a rule that is missing.
//!
//! A configured controller's refusals are warnings; those of tools, which print the error, are for
//! information.

use std::fmt;
use std::time::Duration;

use base::Instant;
use flow::Refusal;

use super::{Bridge, ConnectionId};
use crate::connection::ConnectionKind;

/// The maximum number of lines in each window: as many as help to find a fault.
const LINES_MAX: u32 = 10;

/// The length of a window.
const WINDOW: Duration = Duration::from_secs(60);

/// The maximum length of a rule in the log, in bytes.
const TEXT_MAX: usize = 300;

/// The number of refused rules, and the limiter of the log.
#[derive(Debug, Default)]
pub(super) struct RefusalLog {
    refused: u64,
    /// Begin of the present window.
    begin: Option<Instant>,
    lines: u32,
    suppressed: u64,
}

impl RefusalLog {
    /// Counts a refusal. Returns the number of lines that were suppressed before, if this one is
    /// written.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        self.refused += 1;
        if self.begin.is_none_or(|begin| now >= begin + WINDOW) {
            (self.begin, self.lines) = (Some(now), 0);
        }
        if self.lines == LINES_MAX {
            self.suppressed += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

impl Bridge {
    /// Counts and logs a refused rule.
    pub(super) fn log_refusal(
        &mut self,
        id: ConnectionId,
        rule: &dyn fmt::Display,
        refusal: Refusal,
        now: Instant,
    ) {
        let Some(suppressed) = self.refusals.admit(now) else {
            return;
        };
        let main = self.connections.main_of(id);
        let uri = self.uri_of(main);
        let is_primary = self
            .connections
            .find(main)
            .is_some_and(|peer| peer.kind == ConnectionKind::Primary);
        let (bridge, rule) = (self.name(), shortened(&rule.to_string()));
        let controller = uri.as_deref().unwrap_or("service connection");
        match is_primary {
            true => tracing::warn!(bridge, controller, %refusal, suppressed, "refused: {rule}"),
            false => tracing::info!(bridge, controller, %refusal, suppressed, "refused: {rule}"),
        }
    }

    /// Returns the number of rules, and of bundles for one of their messages, that were refused.
    #[must_use]
    pub const fn rules_refused(&self) -> u64 {
        self.refusals.refused
    }
}

/// Shortens a text to the limit of the log, at a character boundary.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}..", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_log_is_rate_limited() {
        let mut log = RefusalLog::default();
        let start = Instant::from_secs(100);
        for _ in 0..LINES_MAX {
            assert_eq!(log.admit(start), Some(0));
        }
        assert_eq!(log.admit(start), None);
        assert_eq!(log.admit(start + Duration::from_secs(59)), None);
        assert_eq!(log.admit(start + WINDOW), Some(2));
        assert_eq!(log.refused, u64::from(LINES_MAX) + 3);
    }

    #[test]
    fn refused_rule_is_shortened_in_log() {
        assert_eq!(
            shortened("add table=0 actions=drop"),
            "add table=0 actions=drop"
        );
        assert_eq!(shortened(&"x".repeat(400)).len(), TEXT_MAX + 2);
    }
}
