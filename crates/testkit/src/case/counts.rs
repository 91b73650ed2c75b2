//! Counters by the names that scripts use for them.

use std::time::Duration;

use flow::{FlowStats, GroupStats, MeterStats, TableStats};

use super::notation;
use super::script::CountQuery;

/// Counter values by name.
pub type NamedCounts = Vec<(String, String)>;

/// The counters of a rule.
#[must_use]
pub fn flow_counts(stats: &FlowStats) -> NamedCounts {
    named([
        ("packets", stats.packets.to_string()),
        ("bytes", stats.bytes.to_string()),
        ("cookie", format!("{:#x}", stats.cookie.0)),
        ("duration", seconds(stats.duration)),
    ])
}

/// The counters of a table.
#[must_use]
pub fn table_counts(stats: &TableStats) -> NamedCounts {
    named([
        ("lookups", stats.lookups.to_string()),
        ("matched", stats.matched.to_string()),
        ("active", stats.active.to_string()),
    ])
}

/// The counters of a group and its buckets.
#[must_use]
pub fn group_counts(stats: &GroupStats) -> NamedCounts {
    let buckets = stats.buckets.iter().enumerate();
    let buckets = buckets.map(|(at, stats)| (format!("bucket{at}"), stats.packets.to_string()));
    let whole = named([
        ("references", stats.references.to_string()),
        ("packets", stats.packets.to_string()),
        ("bytes", stats.bytes.to_string()),
        ("duration", seconds(stats.duration)),
    ]);
    whole.into_iter().chain(buckets).collect()
}

/// The counters of a meter and its bands.
#[must_use]
pub fn meter_counts(stats: &MeterStats) -> NamedCounts {
    let bands = stats.bands.iter().enumerate();
    let bands = bands.map(|(at, stats)| (format!("band{at}"), stats.packets.to_string()));
    let whole = named([
        ("flows", stats.flows.to_string()),
        ("packets", stats.packets.to_string()),
        ("bytes", stats.bytes.to_string()),
        ("duration", seconds(stats.duration)),
    ]);
    whole.into_iter().chain(bands).collect()
}

fn named<const N: usize>(named: [(&str, String); N]) -> NamedCounts {
    named.map(|(name, count)| (name.to_owned(), count)).to_vec()
}

pub(super) fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs_f64())
}

impl CountQuery {
    /// Returns the line that answers the query with `counts`; without counters, every value is
    /// `none`.
    ///
    /// # Errors
    /// The query names a counter that does not exist.
    pub fn answer(&self, counts: &NamedCounts) -> Result<String, String> {
        let (Self::Flow { line, names, .. }
        | Self::Table { line, names, .. }
        | Self::Group { line, names, .. }
        | Self::Meter { line, names, .. }) = self;
        let mut text = line.clone();
        for name in names {
            let answer = counts.iter().find(|(counter, _)| counter == name);
            if answer.is_none() && !counts.is_empty() {
                return Err(format!("no such counter: {name}"));
            }
            let value = answer.map_or("none", |(_, value)| value);
            text += &format!(" {name}={value}");
        }
        Ok(notation::effect_line("=", &text))
    }
}
