//! Comparison of the rules of a switch with those of a file, the commands that replace them, and
//! sort orders of rules.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use base::{Cookie, TableId};
use flow::field::FieldInfo;
use flow::text::{DEFAULT_PRIORITY, NameMap, WithNames};
use flow::{Field, FlowFlags, FlowMod, FlowModCommand, FlowStats, Instructions, Match};
use openflow::Message;

use crate::error::ToolError;
use crate::parse::{LineSubject, read_lines};

/// The flags that are attributes of a rule; the others only affect its addition.
const RULE_FLAGS: [(FlowFlags, &str); 3] = [
    (FlowFlags::SEND_FLOW_REMOVED, "send_flow_rem"),
    (FlowFlags::NO_PACKET_COUNTS, "no_packet_counts"),
    (FlowFlags::NO_BYTE_COUNTS, "no_byte_counts"),
];

/// The identity of a rule, in the order of printing: table, priority, and match as text.
pub(crate) type RuleKey = (TableId, Reverse<u16>, String);

/// A rule without its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleSpec {
    table: TableId,
    priority: u16,
    matching: Match,
    cookie: Cookie,
    idle_timeout_s: u16,
    hard_timeout_s: u16,
    importance: u16,
    flags: FlowFlags,
    instructions: Instructions,
}

impl RuleSpec {
    fn from_stats(stats: FlowStats) -> Self {
        Self {
            table: stats.table,
            priority: stats.priority,
            matching: stats.matching,
            cookie: stats.cookie,
            idle_timeout_s: stats.idle_timeout_s,
            hard_timeout_s: stats.hard_timeout_s,
            importance: stats.importance,
            flags: rule_flags(stats.flags),
            instructions: stats.instructions,
        }
    }

    fn from_flow_mod(flow: &FlowMod) -> Self {
        Self {
            table: flow.table,
            priority: flow.priority,
            matching: flow.matching.clone(),
            cookie: flow.cookie,
            idle_timeout_s: flow.idle_timeout_s,
            hard_timeout_s: flow.hard_timeout_s,
            importance: flow.importance,
            flags: rule_flags(flow.flags),
            instructions: flow.instructions.clone(),
        }
    }

    fn key(&self) -> RuleKey {
        let matching = self.matching.to_string();
        (self.table, Reverse(self.priority), matching)
    }

    /// Returns the command that deletes the rule.
    fn deletion(self) -> FlowMod {
        let mut deletion = FlowMod::new(
            FlowModCommand::DeleteStrict,
            self.priority,
            self.matching,
            Instructions::default(),
        );
        deletion.table = self.table;
        deletion
    }
}

fn rule_flags(flags: FlowFlags) -> FlowFlags {
    let bits = RULE_FLAGS.iter().map(|(flag, _)| flag.0 & flags.0);
    FlowFlags(bits.fold(0, |all, bit| all | bit))
}

impl RuleSpec {
    /// Formats the rule as in `ovs-ofctl diff-flows`, without its sign.
    fn format(&self, names: &NameMap) -> String {
        let mut words = Vec::new();
        if self.table != TableId::FIRST {
            words.push(format!("table={}", WithNames(&self.table, names)));
        }
        let priority = format!("priority={}", self.priority);
        let priority = Some(priority).filter(|_| self.priority != DEFAULT_PRIORITY);
        let matching = WithNames(&self.matching, names).to_string();
        let matching = Some(matching).filter(|text| !text.is_empty());
        let parts: Vec<String> = priority.into_iter().chain(matching).collect();
        words.extend(Some(parts.join(",")).filter(|text| !text.is_empty()));
        if self.cookie != Cookie(0) {
            words.push(format!("cookie=0x{:x}", self.cookie.0));
        }
        for (name, number) in [
            ("idle_timeout", self.idle_timeout_s),
            ("hard_timeout", self.hard_timeout_s),
            ("importance", self.importance),
        ] {
            words.extend((number != 0).then(|| format!("{name}={number}")));
        }
        let flags = RULE_FLAGS
            .iter()
            .filter(|(flag, _)| self.flags.contains(*flag));
        words.extend(flags.map(|(_, name)| (*name).to_owned()));
        words.push(format!("actions={}", WithNames(&self.instructions, names)));
        words.join(" ")
    }
}

/// The rules of a file, by identity, with the commands that add them.
pub(crate) type DesiredRules = BTreeMap<RuleKey, (RuleSpec, FlowMod)>;

/// Parses the rules of a file. The last of several rules with the same identity wins.
pub(crate) fn parse(lines: &str, names: &NameMap) -> Result<DesiredRules, ToolError> {
    let read = match read_lines(LineSubject::Flow, lines, names) {
        Err(ToolError::Empty) => Vec::new(),
        read => read?,
    };
    let rules = read.into_iter().map(|(line, message)| match message {
        Message::FlowMod(flow) if flow.command == FlowModCommand::Add => {
            let rule = RuleSpec::from_flow_mod(&flow);
            Ok((rule.key(), (rule, flow)))
        }
        _ => Err(ToolError::NotRule { line }),
    });
    rules.collect()
}

fn rules_by_key(current: Vec<FlowStats>) -> BTreeMap<RuleKey, RuleSpec> {
    let rules = current.into_iter().map(RuleSpec::from_stats);
    rules.map(|rule| (rule.key(), rule)).collect()
}

/// Returns the differences between the rules of a switch and those of a file: lines with `-` for
/// rules that are only in the switch, or different there, and with `+` for those of the file.
pub(crate) fn difference(
    current: Vec<FlowStats>,
    desired: &DesiredRules,
    names: &NameMap,
) -> String {
    let existing = rules_by_key(current);
    let keys: BTreeSet<&RuleKey> = existing.keys().chain(desired.keys()).collect();
    let mut differing = String::new();
    for key in keys {
        let (old, new) = (existing.get(key), desired.get(key).map(|(rule, _)| rule));
        if old != new {
            let old = old.map(|rule| format!("-{}\n", rule.format(names)));
            let new = new.map(|rule| format!("+{}\n", rule.format(names)));
            differing.extend(old.into_iter().chain(new));
        }
    }
    differing
}

/// Returns the commands that replace the rules of a switch by those of a file: additions of missing
/// and different rules, or of all with `readd_all`, and then deletions.
pub(crate) fn replacement(
    current: Vec<FlowStats>,
    desired: DesiredRules,
    readd_all: bool,
) -> Vec<Message> {
    let mut existing = rules_by_key(current);
    let mut commands = Vec::new();
    for (key, (rule, flow)) in desired {
        let same = existing.remove(&key).is_some_and(|old| old == rule);
        if readd_all || !same {
            commands.push(Message::FlowMod(flow));
        }
    }
    let others = existing.into_values().map(RuleSpec::deletion);
    commands.extend(others.map(Message::FlowMod));
    commands
}

/// A sort order of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortOrder {
    /// The field of the match, or none for the priority.
    field: Option<Field>,
    /// True for descending values. Rules without the field are last in either case.
    descending: bool,
}

impl SortOrder {
    /// Returns the order by a field of this name, or by `priority`.
    ///
    /// # Errors
    /// There is no such field.
    pub fn by(name: &str, descending: bool) -> Result<Self, ToolError> {
        let named = |row: &&'static FieldInfo| row.name == name;
        let called = |row: &&'static FieldInfo| row.ofctl == name;
        let row = Field::all()
            .find(named)
            .or_else(|| Field::all().find(called));
        match (name, row) {
            ("priority", _) => Ok(Self {
                field: None,
                descending,
            }),
            (_, Some(row)) => Ok(Self {
                field: Some(row.field),
                descending,
            }),
            (name, None) => Err(ToolError::NoField(name.to_owned())),
        }
    }

    fn compare(self, one: &FlowStats, other: &FlowStats) -> Ordering {
        let ordered = |ordering: Ordering| match self.descending {
            true => ordering.reverse(),
            false => ordering,
        };
        let Some(field) = self.field else {
            return ordered(one.priority.cmp(&other.priority));
        };
        let value = |rule: &FlowStats| rule.matching.term(field).map(|term| term.value);
        match (value(one), value(other)) {
            (Some(one), Some(other)) => ordered(one.cmp(&other)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        }
    }
}

/// Sorts rules by these orders, and then in lookup order.
pub(crate) fn sort(rules: &mut [FlowStats], orders: &[SortOrder]) {
    rules.sort_by_cached_key(|rule| {
        let matching = rule.matching.to_string();
        (rule.table, Reverse(rule.priority), matching)
    });
    rules.sort_by(|one, other| {
        let compared = orders.iter().map(|order| order.compare(one, other));
        compared.fold(Ordering::Equal, Ordering::then)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn rule(text: &str) -> FlowStats {
        let flow: FlowMod = text.parse().expect("it is one");
        FlowStats {
            table: flow.table,
            priority: flow.priority,
            cookie: flow.cookie,
            matching: flow.matching,
            instructions: flow.instructions,
            idle_timeout_s: flow.idle_timeout_s,
            hard_timeout_s: flow.hard_timeout_s,
            importance: flow.importance,
            flags: flow.flags,
            duration: Duration::ZERO,
            idle_age: Duration::ZERO,
            hard_age: Duration::ZERO,
            packets: 0,
            bytes: 0,
        }
    }

    fn rules(lines: &str) -> Vec<FlowStats> {
        lines.lines().map(rule).collect()
    }

    const OLD: &str = "table=1,priority=5,tcp,cookie=7,idle_timeout=5,actions=output:2\n\
                       priority=3,actions=drop\n\
                       arp,actions=normal";
    const NEW: &str = "table=1,priority=5,tcp,cookie=7,actions=output:2\n\
                       priority=3,actions=drop\n\
                       udp,actions=normal";

    #[test]
    fn difference_lists_rules_of_both_sides() {
        let differs = |lines| {
            let desired = parse(lines, NameMap::empty()).expect("these are rules");
            difference(rules(OLD), &desired, NameMap::empty())
        };
        let output = differs(NEW);
        let desired = "-arp actions=NORMAL\n\
                      +udp actions=NORMAL\n\
                      -table=1 priority=5,tcp cookie=0x7 idle_timeout=5 actions=output:2\n\
                      +table=1 priority=5,tcp cookie=0x7 actions=output:2\n";
        assert_eq!(output, desired);
        assert_eq!(differs(OLD), "");
    }

    #[test]
    fn replacement_changes_only_differing_rules_unless_readding_all() {
        let commands = |readd_all| {
            let desired = parse(NEW, NameMap::empty()).expect("these are rules");
            let commands = replacement(rules(OLD), desired, readd_all);
            let output = commands.into_iter().map(|command| match command {
                Message::FlowMod(flow) => flow.to_string(),
                other => panic!("{other:?}"),
            });
            output.collect::<Vec<_>>()
        };
        let few = commands(false);
        assert_eq!(few.len(), 3, "{few:?}");
        assert_eq!(few[2], "delete_strict table=0,arp");
        assert_eq!(commands(true).len(), 4);
    }

    #[test]
    fn rules_without_sort_field_are_last() {
        let output = |name: &str, descending| {
            let order = SortOrder::by(name, descending).expect("there is one");
            let mut rules =
                rules("in_port=2,actions=drop\npriority=9,actions=drop\nin_port=7,actions=drop");
            sort(&mut rules, &[order]);
            let texts = rules.iter().map(|rule| rule.matching.to_string());
            texts.collect::<Vec<_>>().join(";")
        };
        assert_eq!(output("in_port", false), "in_port=2;in_port=7;");
        assert_eq!(output("in_port", true), "in_port=7;in_port=2;");
        assert_eq!(output("priority", false), ";in_port=2;in_port=7");
        assert!(SortOrder::by("prot", false).is_err());
    }

    #[test]
    fn rule_file_rejects_other_commands() {
        let error = parse("tcp,actions=drop\ndelete tcp", NameMap::empty()).err();
        let message = error.map(|error| error.to_string());
        assert_eq!(
            message.as_deref(),
            Some("line 2: expected a rule to add, not another command")
        );
    }
}
