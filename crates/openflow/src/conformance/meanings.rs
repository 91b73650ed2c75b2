//! Commands, flags and reasons: all values of each type, and the tests that show their meaning.
//! Messages, fields and actions have tables of their own.

use testkit::document::{check_part, table};

use super::files::texts;
use super::{DOCUMENT, spaced};

/// The types of which each value has a row, with their files.
const TYPES: &[(&str, &str)] = &[
    ("FlowModCommand", "flow/src/command.rs"),
    ("FlowFlags", "flow/src/command.rs"),
    ("GroupModCommand", "flow/src/group.rs"),
    ("GroupKind", "flow/src/group.rs"),
    ("MeterModCommand", "flow/src/meter.rs"),
    ("MeterFlags", "flow/src/meter.rs"),
    ("BandKind", "flow/src/meter.rs"),
    ("FragmentHandling", "flow/src/command.rs"),
    ("PortConfig", "flow/src/port.rs"),
    ("PortState", "flow/src/port.rs"),
    ("Role", "flow/src/command.rs"),
    ("MonitorFlags", "flow/src/monitor.rs"),
    ("FlowEvent", "flow/src/monitor.rs"),
    ("PacketInReason", "flow/src/event.rs"),
    ("FlowRemovedReason", "flow/src/event.rs"),
    ("PortReason", "flow/src/port.rs"),
    ("TableReason", "flow/src/table.rs"),
    ("RoleReason", "openflow/src/message/role.rs"),
    (
        "ControllerReason",
        "openflow/src/message/controller_status.rs",
    ),
];

/// A value of a type and its evidence.
struct ValueProof {
    of: &'static str,
    name: &'static str,
    evidence: Evidence,
}

/// The evidence for a value.
enum Evidence {
    /// A test or test case, and the name of the value in its file.
    Test(&'static str, &'static str),
    /// None, because the value is never sent or has no effect; with the reason.
    Unused(&'static str),
}

const fn proven(
    of: &'static str,
    name: &'static str,
    word: &'static str,
    proof: &'static str,
) -> ValueProof {
    let evidence = Evidence::Test(word, proof);
    ValueProof { of, name, evidence }
}

const fn unused(of: &'static str, name: &'static str, why: &'static str) -> ValueProof {
    let evidence = Evidence::Unused(why);
    ValueProof { of, name, evidence }
}

#[rustfmt::skip]
const MEANINGS: &[ValueProof] = &[
    proven("FlowModCommand", "Add",          "flow add",           "add_replaces_identical_match.case"),
    proven("FlowModCommand", "Modify",       "flow modify",        "modify_changes_instructions_only.case"),
    proven("FlowModCommand", "ModifyStrict", "flow modify_strict", "modify_strict_changes_one_rule.case"),
    proven("FlowModCommand", "Delete",       "flow delete",        "delete_removes_more_specific_rules.case"),
    proven("FlowModCommand", "DeleteStrict", "flow delete_strict", "delete_strict_removes_one_rule.case"),
    proven("FlowFlags", "SEND_FLOW_REMOVED", "send_flow_rem",      "hard_timeout.case"),
    proven("FlowFlags", "CHECK_OVERLAP",     "check_overlap",      "overlap_is_refused_with_check_overlap.case"),
    proven("FlowFlags", "RESET_COUNTS",      "reset_counts",       "modify_with_reset_counts.case"),
    proven("FlowFlags", "NO_PACKET_COUNTS",  "no_packet_counts",   "flags_no_packet_and_byte_counts.case"),
    proven("FlowFlags", "NO_BYTE_COUNTS",    "no_byte_counts",     "flags_no_packet_and_byte_counts.case"),
    proven("Timeout", "Idle",                "idle_timeout=",      "idle_timeout.case"),
    proven("Timeout", "Hard",                "hard_timeout=",      "hard_timeout.case"),
    proven("Timeout", "Both",                "hard_timeout=",      "replaced_rule_expires_by_new_timeouts.case"),
    proven("GroupModCommand", "Add",           "group add",           "group_all.case"),
    proven("GroupModCommand", "Modify",        "group modify",        "group_modify_keeps_counters.case"),
    proven("GroupModCommand", "AddOrModify",   "group add_or_mod",    "group_add_or_modify.case"),
    proven("GroupModCommand", "Delete",        "group delete",        "group_delete_removes_referring_rules.case"),
    proven("GroupModCommand", "InsertBuckets", "group insert_bucket", "insert_and_remove_buckets.case"),
    proven("GroupModCommand", "RemoveBuckets", "group remove_bucket", "insert_and_remove_buckets.case"),
    proven("GroupKind", "All",          "type=all",      "group_all.case"),
    proven("GroupKind", "Select",       "type=select",   "group_select.case"),
    proven("GroupKind", "Indirect",     "type=indirect", "group_indirect.case"),
    proven("GroupKind", "FastFailover", "type=ff",       "group_fast_failover.case"),
    proven("MeterModCommand", "Add",    "meter add",     "meter_drop.case"),
    proven("MeterModCommand", "Modify", "meter modify",  "meter_dscp_remark.case"),
    proven("MeterModCommand", "Delete", "meter delete",  "meter_delete_removes_referring_rules.case"),
    proven("MeterFlags", "KBPS",  "kbps",  "meter_kbps.case"),
    proven("MeterFlags", "PKTPS", "pktps", "meter_drop.case"),
    proven("MeterFlags", "BURST", "burst", "meter_drop.case"),
    proven("MeterFlags", "STATS", "stats", "meter_drop.case"),
    proven("BandKind", "Drop",       "type=drop",        "meter_drop.case"),
    proven("BandKind", "DscpRemark", "type=dscp_remark", "meter_dscp_remark.case"),
    proven("FragmentHandling", "Normal",     "fragments normal",     "fragments_dropped.case"),
    proven("FragmentHandling", "Drop",       "fragments drop",       "fragments_dropped.case"),
    proven("FragmentHandling", "Reassemble", "fragments reassemble", "fragments_dropped.case"),
    proven("FragmentHandling", "NxMatch",    "fragments nx_match",   "fragments_matched.case"),
    proven("PortConfig", "DOWN",         "(down)",         "all_and_flood.case"),
    proven("PortConfig", "NO_STP",       "PortConfig::NO_STP", "port_with_no_stp_stays_outside_the_tree"),
    proven("PortConfig", "NO_RECV",      "(no_recv)",      "ports_with_no_receive.case"),
    proven("PortConfig", "NO_RECV_STP",  "(no_recv_stp)",  "ports_with_no_receive.case"),
    proven("PortConfig", "NO_FLOOD",     "(no_flood)",     "all_and_flood.case"),
    proven("PortConfig", "NO_FWD",       "(no_fwd)",       "all_and_flood.case"),
    proven("PortConfig", "NO_PACKET_IN", "(no_packet_in)", "table_miss_rule.case"),
    proven("PortState", "LINK_DOWN", "(link_down)", "group_fast_failover.case"),
    proven("PortState", "BLOCKED",   "(blocked)",   "all_and_flood.case"),
    proven("PortState", "LIVE",      "\"LIVE\"",    "fast_failover_group_follows_port_state"),
    proven("PortState", "STP_LEARN", "PortState::STP_LEARN", "spanning_tree_blocks_one_end_of_a_cable_and_reports_port_status"),
    proven("Role", "Equal",  "Role::Equal",  "slaves_are_read_only_and_a_new_master_replaces_the_old"),
    proven("Role", "Master", "Role::Master", "slaves_are_read_only_and_a_new_master_replaces_the_old"),
    proven("Role", "Slave",  "Role::Slave",  "slaves_are_read_only_and_a_new_master_replaces_the_old"),
    proven("MonitorFlags", "INITIAL",      "!initial",               "flow_monitor_filters_events"),
    proven("MonitorFlags", "ADD",          "MonitorFlags::ADD",      "monitor_reports_only_selected_events"),
    proven("MonitorFlags", "REMOVED",      "MonitorFlags::REMOVED",  "monitor_reports_only_selected_events"),
    proven("MonitorFlags", "MODIFY",       "!modify",                "flow_monitor_filters_events"),
    proven("MonitorFlags", "INSTRUCTIONS", "!actions",               "flow_monitor_filters_events"),
    proven("MonitorFlags", "NO_ABBREV",    "MonitorFlags::NO_ABBREV", "monitor_abbreviates_own_changes_once_per_message"),
    proven("MonitorFlags", "ONLY_OWN",     "MonitorFlags::ONLY_OWN", "monitor_abbreviates_own_changes_once_per_message"),
    proven("FlowEvent", "Initial",  "Initial",            "monitor_reports_initial_rules_and_changes"),
    proven("FlowEvent", "Added",    "Added",              "monitor_reports_initial_rules_and_changes"),
    proven("FlowEvent", "Removed",  "FlowEvent::Removed", "monitor_reports_the_reason_of_a_removal"),
    proven("FlowEvent", "Modified", "Modified",           "monitor_reports_initial_rules_and_changes"),
    proven("PacketInReason", "NoMatch",    "reason=no_match",    "table_miss_rule.case"),
    proven("PacketInReason", "Action",     "reason=action",      "controllers_by_id_and_reason.case"),
    proven("PacketInReason", "InvalidTtl", "reason=invalid_ttl", "ttl_invalid.case"),
    proven("PacketInReason", "ActionSet",  "reason=action_set",  "packet_in_from_action_set.case"),
    proven("PacketInReason", "Group",      "reason=group",       "group_with_nicira_actions.case"),
    proven("PacketInReason", "PacketOut",  "reason=packet_out",  "packet_out.case"),
    proven("FlowRemovedReason", "IdleTimeout", "reason=idle_timeout", "idle_timeout.case"),
    proven("FlowRemovedReason", "HardTimeout", "reason=hard_timeout", "hard_timeout.case"),
    proven("FlowRemovedReason", "Delete",      "reason=delete",       "delete_removes_more_specific_rules.case"),
    proven("FlowRemovedReason", "GroupDelete", "reason=group_delete", "group_delete_removes_referring_rules.case"),
    proven("FlowRemovedReason", "MeterDelete", "reason=meter_delete", "meter_delete_removes_referring_rules.case"),
    proven("FlowRemovedReason", "Eviction",    "FlowRemovedReason::Eviction", "full_table_evicts_rules_and_reports_vacancy"),
    proven("PortReason", "Add",    "PortReason::Add",    "port_status_has_the_reason_of_the_change"),
    proven("PortReason", "Delete", "PortReason::Delete", "port_status_has_the_reason_of_the_change"),
    proven("PortReason", "Modify", "PortReason::Modify", "port_status_has_the_reason_of_the_change"),
    proven("TableReason", "VacancyDown", "TableReason::VacancyDown", "vacancy_event_is_sent_once_in_each_direction"),
    proven("TableReason", "VacancyUp",   "TableReason::VacancyUp",   "vacancy_event_is_sent_once_in_each_direction"),
    proven("RoleReason", "MasterRequest", "RoleReason::MasterRequest",
        "replaced_master_receives_role_status_from_1_3_on"),
    unused("RoleReason", "Config",        "only role requests change roles"),
    unused("RoleReason", "Experimenter",  "no experimenter reason is defined"),
    proven("ControllerReason", "Request",       "Up Request", "controller_status_reports_roles_and_unique_short_ids"),
    proven("ControllerReason", "ChannelStatus", "Up ChannelStatus", "controller_status_reports_connections_and_configuration"),
    proven("ControllerReason", "Role",          "Up Role", "controller_status_reports_roles_and_unique_short_ids"),
    proven("ControllerReason", "Added",         "Down Added", "controller_status_reports_connections_and_configuration"),
    proven("ControllerReason", "Removed",       "Down Removed", "controller_status_reports_connections_and_configuration"),
    proven("ControllerReason", "ShortId",       "Up ShortId", "controller_status_reports_roles_and_unique_short_ids"),
    unused("ControllerReason", "Experimenter",  "no experimenter reason is defined"),
];

/// Checks the rows against the types and the proofs, and the document's table against the rows.
pub(super) fn meanings() {
    let files = texts(&["crates", "tests"]);
    let text_of = |end: &str| {
        let found = files.iter().find(|(path, _)| path.ends_with(end));
        &*found.unwrap_or_else(|| panic!("there is no {end}")).1
    };
    for (of, file) in TYPES {
        let named = names(text_of(&format!("crates/{file}")), of);
        let rows = MEANINGS.iter().filter(|row| row.of == *of);
        let rows: Vec<_> = rows.map(|row| row.name).collect();
        assert_eq!(rows, named, "the values of {of}, in their order");
    }
    let line = |row: &ValueProof| {
        let proof = match row.evidence {
            Evidence::Unused(why) => format!("never: {why}"),
            Evidence::Test(word, proof) => {
                let head = format!("fn {proof}(");
                let by = files.iter().find(|(path, text)| match proof.contains('.') {
                    true => path.ends_with(proof),
                    false => text.contains(&head),
                });
                let (_, text) = by.unwrap_or_else(|| panic!("nothing is called {proof}"));
                assert!(text.contains(word), "{proof} does not say {word}");
                format!("`{proof}`")
            }
        };
        vec![words(row.of), words(row.name), proof]
    };
    let rows: Vec<_> = MEANINGS.iter().map(line).collect();
    check_part(DOCUMENT, "meanings", &table(&["of", "", "shown by"], &rows));
}

/// The variants of an enum, or the named bits of a flags type, in the source code.
fn names<'a>(code: &'a str, of: &str) -> Vec<&'a str> {
    let body = |head: String| {
        let (_, rest) = code.split_once(&head)?;
        Some(rest.split_once("\n}")?.0)
    };
    if let Some(variants) = body(format!("pub enum {of} {{\n")) {
        let lines = variants.lines().map(str::trim);
        let lines = lines.filter(|line| line.starts_with(char::is_uppercase));
        let end = |c: char| !c.is_alphanumeric();
        return lines.filter_map(|line| line.split(end).next()).collect();
    }
    let bits = body(format!("impl {of} {{\n"));
    let bits = bits.unwrap_or_else(|| panic!("{of} is neither an enum nor has it bits"));
    let one = |line: &'a str| {
        let (name, value) = line
            .trim()
            .strip_prefix("pub const ")?
            .split_once(": Self = ")?;
        value.starts_with("Self(1 << ").then_some(name)
    };
    bits.lines().filter_map(one).collect()
}

/// Converts `FlowModCommand` to `flow mod command` and `CHECK_OVERLAP` to `check overlap`.
fn words(name: &str) -> String {
    if name.chars().all(|c| c.is_uppercase() || c == '_') {
        return name.replace('_', " ").to_lowercase();
    }
    spaced(name)
}
