//! The condition by which loose commands and statistics requests select rules.

use base::{Cookie, GroupId, PortNo};
use flow::{FlowMod, FlowStatsRequest, Match};

use super::Rule;

/// Selects rules by match, cookie, and the ports and groups of their actions.
pub(crate) struct RuleFilter<'a> {
    pub(crate) matching: &'a Match,
    pub(crate) cookie: Cookie,
    pub(crate) cookie_mask: u64,
    pub(crate) out_port: PortNo,
    pub(crate) out_group: GroupId,
}

impl<'a> RuleFilter<'a> {
    /// Returns the filter of a statistics request.
    pub(crate) const fn of_request(request: &'a FlowStatsRequest) -> Self {
        Self {
            matching: &request.matching,
            cookie: request.cookie,
            cookie_mask: request.cookie_mask,
            out_port: request.out_port,
            out_group: request.out_group,
        }
    }

    /// Returns the filter of a modification, which ignores `out_port` and `out_group`.
    pub(crate) fn of_modification(command: &'a FlowMod) -> Self {
        Self {
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            ..Self::of_deletion(command)
        }
    }

    /// Returns the filter of a deletion.
    pub(crate) fn of_deletion(command: &'a FlowMod) -> Self {
        Self {
            matching: &command.matching,
            cookie: command.cookie,
            cookie_mask: command.cookie_mask,
            out_port: command.out_port,
            out_group: command.out_group,
        }
    }

    /// True if the filter selects `rule`.
    pub(crate) fn selects(&self, rule: &Rule) -> bool {
        self.selects_cookie(rule)
            && (self.out_port == PortNo::ANY || rule.outputs_to(self.out_port))
            && (self.out_group == GroupId::ANY
                || rule.groups().any(|group| group == self.out_group))
            && self.matching.covers(rule.matching())
    }

    fn selects_cookie(&self, rule: &Rule) -> bool {
        (rule.cookie.0 ^ self.cookie.0) & self.cookie_mask == 0
    }
}
