//! Result of the lookup of a packet in a table.

use pipeline::{DropReason, Rule};

use crate::action_program::SlowPathReason;
use crate::classifier::{ConjunctiveMatch, LookupFallback, TableView, View};
use crate::packed_key::PackedKey;

/// Result of the lookup of a packet in a table, or of the checks before the first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MatchResult<'a> {
    /// The rule that the packet matches, or none.
    Rule(Option<&'a Rule>),
    /// The rule that the packet matches by the conjunction with this id.
    Conjunction(&'a Rule, u32),
    /// The interpreter must look up the packet.
    SlowPath(SlowPathReason),
    /// The packet is forwarded as by a learning switch; tables are not used.
    Standalone,
    /// The packet is dropped.
    Drop(DropReason),
}

impl MatchResult<'_> {
    /// No rule matches.
    pub(crate) const MISS: Self = Self::Rule(None);
}

/// Looks up a packet, which may have tunnel options, in a table; `None` is a table without rules.
#[inline]
pub(crate) fn look_up<'a>(
    view: &View,
    table: Option<&'a TableView>,
    key: &PackedKey,
    has_options: bool,
) -> MatchResult<'a> {
    let Some(table) = table else {
        return MatchResult::MISS;
    };
    match table.fallback {
        None => MatchResult::Rule(view.look_up(table, key).map(AsRef::as_ref)),
        Some(LookupFallback::Conjunctions) => {
            conjunctive_result(view.look_up_conjunctive(table, key))
        }
        Some(LookupFallback::Interpreter) => match view.look_up_compiled(table, key, has_options) {
            Some(found) => MatchResult::Rule(found.map(AsRef::as_ref)),
            None => MatchResult::SlowPath(SlowPathReason::Uncompiled),
        },
    }
}

/// The result of a lookup in a table with clauses.
pub(crate) fn conjunctive_result(found: ConjunctiveMatch<'_>) -> MatchResult<'_> {
    match found {
        ConjunctiveMatch::Rule(found) => MatchResult::Rule(found.map(AsRef::as_ref)),
        ConjunctiveMatch::Conjunction(rule, id) => MatchResult::Conjunction(rule, id),
        ConjunctiveMatch::TooMany => MatchResult::SlowPath(SlowPathReason::Conjunction),
    }
}
