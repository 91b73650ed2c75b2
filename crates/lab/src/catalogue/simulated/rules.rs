//! Rule table of the simulated switch. Each rule has the time for which it is in force, so that
//! changes take effect later than the switch processes them.

use base::{Instant, PortNo};
use flow::{FlowKey, FlowMod, PipelineFields};
use packet::{Depth, Frame, Headers};

/// A rule and the times of its validity.
pub(in crate::catalogue) struct SimulatedRule {
    pub(in crate::catalogue) rule: FlowMod,
    /// False if the switch accepts the rule without effect.
    pub(in crate::catalogue) works: bool,
    pub(in crate::catalogue) from: Instant,
    pub(in crate::catalogue) until: Option<Instant>,
    /// The rule drops frames before this time.
    pub(in crate::catalogue) drops_until: Instant,
    pub(in crate::catalogue) used: Instant,
    pub(in crate::catalogue) packets: u64,
}

/// Rules of the switch, deleted ones among them.
pub(in crate::catalogue) struct RuleTable {
    rules: Vec<SimulatedRule>,
    key: FlowKey,
}

impl RuleTable {
    pub(in crate::catalogue) fn new() -> Self {
        Self {
            rules: Vec::new(),
            key: FlowKey::new(),
        }
    }

    /// Returns the number of rules that are not deleted.
    pub(in crate::catalogue) fn count(&self) -> usize {
        self.rules.iter().filter(|one| one.until.is_none()).count()
    }

    /// Adds a rule that is in force from `from`.
    pub(in crate::catalogue) fn add(&mut self, rule: FlowMod, from: Instant) -> &mut SimulatedRule {
        self.rules.push(SimulatedRule {
            rule,
            works: true,
            from,
            until: None,
            drops_until: from,
            used: from,
            packets: 0,
        });
        self.rules.last_mut().expect("a rule was added")
    }

    /// Deletes all rules but the first `undeletable`; they are in force until `until`.
    pub(in crate::catalogue) fn delete_all(&mut self, until: Instant, undeletable: usize) {
        for one in self.rules.iter_mut().skip(undeletable) {
            one.until.get_or_insert(until);
        }
    }

    /// Removes the rules whose validity ended before `now`.
    pub(in crate::catalogue) fn forget(&mut self, now: Instant) {
        let is_over = |until| until <= now;
        self.rules.retain(|one| !one.until.is_some_and(is_over));
    }

    /// Returns the rule with the same priority and match.
    pub(in crate::catalogue) fn find(&mut self, rule: &FlowMod) -> Option<&mut SimulatedRule> {
        self.rules.iter_mut().find(|one| {
            one.until.is_none()
                && (one.rule.priority, &one.rule.matching) == (rule.priority, &rule.matching)
        })
    }

    /// Returns the rules that are not deleted.
    pub(in crate::catalogue) fn present(&mut self) -> impl Iterator<Item = &mut SimulatedRule> {
        self.rules.iter_mut().filter(|one| one.until.is_none())
    }

    /// Returns the rule of a frame that arrives at `port` at the time `now`, and counts the frame.
    pub(in crate::catalogue) fn lookup(
        &mut self,
        frame: &[u8],
        port: PortNo,
        now: Instant,
    ) -> Option<&SimulatedRule> {
        fill_key(&mut self.key, frame, port);
        let in_force = self.rules.iter_mut().filter(|one| {
            one.works && one.from <= now && one.until.is_none_or(|until| now < until)
        });
        let best = best_match(in_force, |one| &one.rule, &self.key)?;
        best.used = now;
        best.packets += 1;
        Some(best)
    }
}

/// Fills the key with the fields of a frame that arrives at `port`.
pub(in crate::catalogue) fn fill_key(key: &mut FlowKey, frame: &[u8], port: PortNo) {
    let packet = Frame::from_bytes(frame);
    let headers = Headers::parse(&packet, Depth::Transport).expect("frames are whole");
    key.fill(&headers, &PipelineFields::new(port));
}

/// Returns the rule of highest priority that matches `key`.
pub(in crate::catalogue) fn best_match<T>(
    rules: impl Iterator<Item = T>,
    rule: impl Fn(&T) -> &FlowMod,
    key: &FlowKey,
) -> Option<T> {
    let matching = rules.filter(|one| rule(one).matching.accepts(key));
    matching.max_by_key(|one| rule(one).priority)
}
