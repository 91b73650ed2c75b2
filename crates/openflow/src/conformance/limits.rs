//! The limits of a switch, as the code has them: what a controller or a frame may use, what
//! says that it is all, and what shows it.

use flow::Refusal;
use testkit::document::{check_part, table};

use super::DOCUMENT;
use super::files::texts;

/// What happens beyond a limit.
enum LimitEffect {
    /// Whoever asks is refused, for this reason.
    Refused(Refusal),
    /// This happens.
    Effect(&'static str),
}

/// A limit.
struct LimitRow {
    description: &'static str,
    /// Where its constant is, and what it is called there.
    file: &'static str,
    name: &'static str,
    beyond: LimitEffect,
    /// What shows it: a test, or a case.
    proof: &'static str,
}

const fn limit(
    description: &'static str,
    (file, name): (&'static str, &'static str),
    beyond: LimitEffect,
    proof: &'static str,
) -> LimitRow {
    LimitRow {
        description,
        file,
        name,
        beyond,
        proof,
    }
}

#[rustfmt::skip]
const LIMITS: &[LimitRow] = { use {LimitEffect::*, Refusal::*}; &[
    limit("number of the last table", ("base/src/ids.rs", "LAST"),
        Refused(FlowModBadTable), "tables_that_are_not_there.case"),
    limit("rules, in one table or all", ("pipeline/src/limits.rs", "RULES"),
        Refused(FlowModTableFull), "table_limit_and_total_limit_are_enforced"),
    limit("actions of a rule or packet-out", ("pipeline/src/limits.rs", "ACTIONS_MAX"),
        Refused(ActionTooMany), "action_limit_is_enforced"),
    limit("actions in actions, one in another", ("flow/src/extension.rs", "NESTING_MAX"),
        Refused(ActionBadArgument), "nicira_actions_that_cannot_be.case"),
    limit("actions of an action set", ("pipeline/src/limits.rs", "ACTION_SET_MAX"),
        Effect("the frame is dropped, counted"), "action_set_limit_is_enforced"),
    limit("actions of a bucket", ("pipeline/src/limits.rs", "BUCKET_ACTIONS_MAX"),
        Refused(ActionTooMany), "bucket_action_limit_is_enforced"),
    limit("groups", ("pipeline/src/limits.rs", "GROUPS"),
        Refused(GroupModOutOfGroups), "group_limit_is_enforced"),
    limit("buckets of a group", ("pipeline/src/limits.rs", "BUCKETS_PER_GROUP_MAX"),
        Refused(GroupModOutOfBuckets), "bucket_limits_are_enforced"),
    limit("buckets of all groups", ("pipeline/src/limits.rs", "BUCKETS"),
        Refused(GroupModOutOfBuckets), "bucket_limits_are_enforced"),
    limit("groups in a row", ("pipeline/src/limits.rs", "CHAIN_MAX"),
        Refused(GroupModChainingUnsupported), "group_chain_limit_is_enforced"),
    limit("buckets that one frame goes through", ("pipeline/src/limits.rs", "BUCKETS_PER_FRAME_MAX"),
        Effect("the frame is dropped, counted"), "packet_bucket_limit_is_enforced"),
    limit("meters", ("pipeline/src/limits.rs", "METERS"),
        Refused(MeterModOutOfMeters), "meter_limit_is_enforced"),
    limit("bands of a meter", ("pipeline/src/limits.rs", "BANDS_MAX"),
        Refused(MeterModOutOfBands), "meter_mod_refused.case"),
    limit("fields for options of tunnels", ("pipeline/src/limits.rs", "TLV_FIELDS"),
        Refused(TlvBadField), "tlv_map_errors_name_the_reason"),
    limit("bytes of a tunnel option's value", ("pipeline/src/limits.rs", "TLV_LENGTH_MAX"),
        Refused(TlvBadLength), "tlv_map_errors_name_the_reason"),
    limit("bytes of all tunnel options' values", ("pipeline/src/limits.rs", "TLV_SPACE_MAX"),
        Refused(TlvTableFull), "tlv_map_errors_name_the_reason"),
    limit("resubmissions, one in another", ("pipeline/src/limits.rs", "RECURSION_MAX"),
        Effect("the frame is dropped, counted"), "resubmit_in_circles_ends.case"),
    limit("resubmissions of a frame", ("pipeline/src/limits.rs", "RESUBMITS_MAX"),
        Effect("the frame is dropped, counted"), "resubmit_too_often_ends.case"),
    limit("entries of a frame's stack", ("pipeline/src/limits.rs", "STACK_MAX"),
        Effect("the frame is dropped, counted"), "a_stack_has_an_end.case"),
    limit("bytes that say how a frame that waits goes on", ("flow/src/continuation.rs", "CONTINUATION_BYTES_MAX"),
        Effect("the frame is dropped, counted"), "continuations_round_trip"),
    limit("bytes before a received frame for headers that are put there, 16 of them a device's", ("packet/src/frame.rs", "HEADROOM"),
        Effect("the frame is dropped, counted"), "frame_without_space_for_a_tag_is_dropped"),
    limit("bundles of a connection", ("switch/src/core/bundles.rs", "BUNDLES_MAX"),
        Refused(BundleOutOfBundles), "bundles_and_their_bytes_are_bounded_and_given_back"),
    limit("bytes of a connection's bundles", ("switch/src/core/bundles.rs", "BYTES_MAX"),
        Refused(BundleMessageTooMany), "bundles_and_their_bytes_are_bounded_and_given_back"),
    limit("bundles of a bridge that wait for their time", ("switch/src/core/bridge/schedule.rs", "SCHEDULED_MAX"),
        Refused(BundleOutOfBundles), "bundles_that_wait_are_bounded_and_what_they_can_do_is_told"),
    limit("how far a bundle's time lies ahead", ("switch/src/core/bridge/schedule.rs", "FUTURE_MAX"),
        Refused(BundleScheduleFuture), "a_time_that_cannot_be_kept_is_refused_and_one_that_waits_can_be_given_up"),
    limit("how late a bundle's commit may come", ("switch/src/core/bridge/schedule.rs", "PAST_MAX"),
        Refused(BundleSchedulePast), "a_time_that_cannot_be_kept_is_refused_and_one_that_waits_can_be_given_up"),
    limit("flow monitors of a connection", ("switch/src/core/monitors.rs", "MONITORS_MAX"),
        Refused(MonitorUnknown), "monitors_are_set_up_all_or_none_and_there_are_so_many_at_most"),
    limit("changes of rules that wait for a watcher", ("switch/src/core/monitors.rs", "WAITING_MAX"),
        Effect("its monitors are paused"), "slow_flow_monitor_is_paused_and_misses_nothing"),
    limit("connections of a bridge whose monitors are paused", ("switch/src/core/monitors.rs", "PAUSED_MAX"),
        Effect("the next that does not read is left, logged"), "when_too_many_are_paused_the_next_slow_reader_is_left"),
    limit("questions of a connection that come in several messages", ("switch/src/core/bridge/tables.rs", "FRAGMENTED_MAX"),
        Refused(RequestMultipartOverflow), "a_question_comes_in_parts_and_is_bounded"),
    limit("entries of such a question", ("switch/src/core/bridge/tables.rs", "ENTRIES_MAX"),
        Refused(RequestMultipartOverflow), "a_question_comes_in_parts_and_is_bounded"),
    limit("bytes of a connection's messages in work", ("switch/src/shell/connection.rs", "IN_FLIGHT_MAX"),
        Effect("it is read no further until they are answered"), "memory_stays_bounded_with_a_peer_that_reads_no_replies"),
    limit("flow-mods of a connection that are kept to be written over", ("openflow/src/channel.rs", "SPARE_MAX"),
        Effect("freed"), "recycled_messages_are_small_and_bounded"),
    limit("messages sent unasked that wait for a connection", ("switch/src/shell/connection.rs", "UNASKED_MAX"),
        Effect("dropped, counted"), "memory_stays_bounded_with_a_controller_that_reads_no_packet_ins"),
    limit("connections at one socket", ("switch/src/shell/peers.rs", "PEERS_MAX"),
        Effect("turned away, logged"), "switch_serves_a_thousand_connections"),
    limit("auxiliary connections to a controller", ("switch/src/config/auxiliaries.rs", "MAX"),
        Effect("refused at the start, in one line"), "a_number_of_auxiliary_connections_has_a_limit"),
    limit("frames of a worker on their way to controllers", ("switch/src/shell/worker_thread.rs", "EVENTS_MAX"),
        Effect("dropped, counted"), "more_packet_ins_than_the_ring_holds_are_counted_and_cost_nothing_else"),
    limit("frames a second of a port that go to controllers, unless set", ("switch/src/config/policing.rs", "PER_SECOND_USUAL"),
        Effect("dropped, counted"), "storm_of_table_misses_delays_no_other_frames_and_is_counted"),
    limit("frames of a port that go to controllers at once, unless set", ("switch/src/config/policing.rs", "BURST_USUAL"),
        Effect("dropped, counted"), "frames_that_a_port_sends_too_fast_are_counted_and_cost_nothing_else"),
    limit("buffers of a worker for frames", ("switch/src/dataplane/worker.rs", "BUFFERS_MAX"),
        Effect("the copy is dropped, counted"), "copies_are_freed_when_buffers_run_out"),
    limit("queues of a port, and of the device of an AF_XDP port", ("ports/src/lib.rs", "QUEUES_MAX"),
        Effect("refused at the start, in one line"), "more_queues_than_cores"),
    limit("queues that rules may name, of a port", ("base/src/ids.rs", "COUNT"),
        Effect("said in the interface's `error`"), "qos_errors_are_reported"),
    limit("MTU of an AF_XDP port", ("ports/src/xdp.rs", "MTU_MAX"),
        Effect("refused at the start, in one line"), "what_cannot_be_opened_says_what_to_do"),
    limit("frames that come by a queue of an AF_XDP port", ("ports/src/xdp.rs", "COMING"),
        Effect("dropped, counted"), "frames_beyond_the_memory_are_counted_and_the_rest_arrives"),
    limit("frames that go by a queue of an AF_XDP port", ("ports/src/xdp.rs", "GOING"),
        Effect("dropped, counted"), "a_port_that_does_not_send_keeps_no_more_than_its_own"),
    limit("queues that an AF_XDP memory of a worker is made for", ("ports/src/xdp/memories.rs", "SOCKETS_MAX"),
        Effect("those beyond have another; frames between are copied, counted"), "more_ports_than_a_memory_is_for_have_another_and_frames_go_between_them"),
    limit("frames that the memory of a DPDK port is made for", ("dpdk/src/arguments.rs", "BUFFERS_MAX"),
        Effect("refused at the start, in one line"), "what_is_wrong_with_a_devices_words_is_said"),
    limit("MTU of a DPDK port", ("dpdk/src/arguments.rs", "MTU_MAX"),
        Effect("refused at the start, in one line"), "what_is_wrong_with_a_devices_words_is_said"),
    limit("segments that a frame is cut into at a DPDK port", ("dpdk/src/queue.rs", "SEGMENTS_MAX"),
        Effect("dropped, counted"), "a_frame_of_too_many_segments_is_dropped_and_counted"),
    limit("flows that a worker counts for a bridge's NetFlow between two reports", ("switch/src/dataplane/flows.rs", "FLOWS_MAX"),
        Effect("frames of others are not told of, counted"), "what_finds_no_room_is_counted_and_what_the_control_thread_has_none_for_stays"),
    limit("flows of a bridge that are kept for NetFlow", ("switch/src/export/netflow.rs", "FLOWS_MAX"),
        Effect("the one that would be told first is told"), "of_more_than_are_kept_the_first_that_would_be_told_is_told"),
    limit("stations of a bridge", ("switch/src/config/switching.rs", "STATIONS_MAX"),
        Effect("the busiest port's oldest goes, counted"), "a_flood_of_addresses_costs_the_port_that_sends_it"),
    limit("multicast groups of a bridge that listens in", ("switch/src/config/switching.rs", "GROUPS_MAX"),
        Effect("the one of which nothing was heard for longest goes"), "a_new_group_costs_the_one_that_was_silent_for_longest"),
    limit("messages in messages that are printed: errors, bundles", ("openflow/src/print.rs", "NESTING_MAX"),
        Effect("the rest is left out"), "nested_messages_print_up_to_nesting_limit"),
    limit("segments of a captured stream that wait for one before them", ("tools/src/capture.rs", "EARLY_MAX"),
        Effect("the stream begins anew behind the gap"), "stream_restarts_after_gap"),
] };

/// Holds the document's table against the constants, and the proofs against the tests.
pub(super) fn limits() {
    let files = texts(&["crates", "tests"]);
    let line = |limit: &LimitRow| {
        let proof = match limit.proof.strip_suffix(".case") {
            Some(_) => files.iter().any(|(path, _)| path.ends_with(limit.proof)),
            None => {
                let head = format!("fn {}(", limit.proof);
                files.iter().any(|(_, text)| text.contains(&head))
            }
        };
        assert!(proof, "nothing is called {}", limit.proof);
        let beyond = match limit.beyond {
            LimitEffect::Refused(refusal) => format!("refused: {refusal}"),
            LimitEffect::Effect(what) => what.to_owned(),
        };
        let path = format!("crates/{}", limit.file);
        let (_, text) = files
            .iter()
            .find(|(path_of, _)| path_of.ends_with(&path))
            .unwrap_or_else(|| panic!("there is no {path}"));
        vec![
            limit.description.to_owned(),
            value(text, limit),
            beyond,
            format!("`{}`", limit.proof),
        ]
    };
    let rows: Vec<_> = LIMITS.iter().map(line).collect();
    let heads = ["what", "limit", "beyond it", "proof"];
    check_part(DOCUMENT, "limits", &table(&heads, &rows));
}

/// What a constant is.
fn value(text: &str, limit: &LimitRow) -> String {
    let written = written(text, limit.name);
    let written = written.unwrap_or_else(|| panic!("{} has no {}", limit.file, limit.name));
    let units = [
        ("Duration::from_secs(", " s"),
        ("Duration::from_millis(", " ms"),
        ("NonZeroU32::new(", ""),
        ("NonZeroUsize::new(", ""),
        ("Self(", ""),
    ];
    let unit = units.iter().find_map(|(head, unit)| {
        let (inside, _) = written.strip_prefix(head)?.split_once(')')?;
        Some((inside, *unit))
    });
    let (inside, unit) = unit.unwrap_or((written, ""));
    let number = number(text, inside);
    let number = number.unwrap_or_else(|| panic!("{}: {written} is no number", limit.name));
    format!("{}{unit}", grouped(number))
}

/// What stands behind the `=` of a constant.
fn written<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("const {name}: "))?;
    let (_, rest) = rest.split_once(" = ")?;
    Some(rest.split_once(';')?.0)
}

/// The value of a number, a product, a power of two, or another constant of the file.
fn number(text: &str, expression: &str) -> Option<u64> {
    if let Some((base, power)) = expression.split_once(" << ") {
        return Some(number(text, base)? << number(text, power)?);
    }
    if let Some((first, rest)) = expression.split_once(" * ") {
        return Some(number(text, first)? * number(text, rest)?);
    }
    let name = expression.strip_prefix("Self::").unwrap_or(expression);
    match name.starts_with(char::is_uppercase) {
        true => number(text, written(text, name)?),
        false => name.replace('_', "").parse().ok(),
    }
}

/// The number in groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
