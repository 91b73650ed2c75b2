//! The limits of the switch: the resource that a controller or a packet may use, the effect of
//! exceeding the limit, and the test that shows it.

use flow::Refusal;
use testkit::document::{check_part, table};

use super::DOCUMENT;
use super::files::texts;

/// The effect of exceeding a limit.
enum LimitEffect {
    /// The request is refused with this error.
    Refused(Refusal),
    /// Another effect, as text.
    Effect(&'static str),
}

/// A limit.
struct LimitRow {
    description: &'static str,
    /// The file with the constant.
    file: &'static str,
    name: &'static str,
    beyond: LimitEffect,
    /// The test or test case that shows the effect.
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
    limit("highest table number", ("base/src/ids.rs", "LAST"),
        Refused(FlowModBadTable), "tables_missing.case"),
    limit("rules, per table and in all tables", ("pipeline/src/limits.rs", "RULES"),
        Refused(FlowModTableFull), "table_limit_and_total_limit_are_enforced"),
    limit("actions of a rule or packet-out", ("pipeline/src/limits.rs", "ACTIONS_MAX"),
        Refused(ActionTooMany), "action_limit_is_enforced"),
    limit("nesting depth of actions", ("flow/src/extension.rs", "NESTING_MAX"),
        Refused(ActionBadArgument), "nicira_actions_refused.case"),
    limit("actions of an action set", ("pipeline/src/limits.rs", "ACTION_SET_MAX"),
        Effect("the frame is dropped and counted"), "action_set_limit_is_enforced"),
    limit("actions of a bucket", ("pipeline/src/limits.rs", "BUCKET_ACTIONS_MAX"),
        Refused(ActionTooMany), "bucket_action_limit_is_enforced"),
    limit("groups", ("pipeline/src/limits.rs", "GROUPS"),
        Refused(GroupModOutOfGroups), "group_limit_is_enforced"),
    limit("buckets of a group", ("pipeline/src/limits.rs", "BUCKETS_PER_GROUP_MAX"),
        Refused(GroupModOutOfBuckets), "bucket_limits_are_enforced"),
    limit("buckets of all groups", ("pipeline/src/limits.rs", "BUCKETS"),
        Refused(GroupModOutOfBuckets), "bucket_limits_are_enforced"),
    limit("length of a chain of groups", ("pipeline/src/limits.rs", "CHAIN_MAX"),
        Refused(GroupModChainingUnsupported), "group_chain_limit_is_enforced"),
    limit("buckets executed for one frame", ("pipeline/src/limits.rs", "BUCKETS_PER_FRAME_MAX"),
        Effect("the frame is dropped and counted"), "packet_bucket_limit_is_enforced"),
    limit("outputs of a frame; dropped outputs and learned rules likewise", ("pipeline/src/limits.rs", "OUTPUTS_PER_FRAME_MAX"),
        Effect("the frame is dropped and counted"), "packet_output_limit_is_enforced"),
    limit("actions of all rules and buckets that a frame executes", ("pipeline/src/limits.rs", "ACTIONS_PER_FRAME_MAX"),
        Effect("the frame is dropped and counted"), "packet_action_limit_is_enforced"),
    limit("meters", ("pipeline/src/limits.rs", "METERS"),
        Refused(MeterModOutOfMeters), "meter_limit_is_enforced"),
    limit("bands of a meter", ("pipeline/src/limits.rs", "BANDS_MAX"),
        Refused(MeterModOutOfBands), "meter_mod_refused.case"),
    limit("fields for tunnel options (`tun_metadata`)", ("pipeline/src/limits.rs", "TLV_FIELDS"),
        Refused(TlvBadField), "tlv_map_errors_name_the_reason"),
    limit("bytes of one tunnel option", ("pipeline/src/limits.rs", "TLV_LENGTH_MAX"),
        Refused(TlvBadLength), "tlv_map_errors_name_the_reason"),
    limit("bytes of all tunnel options", ("pipeline/src/limits.rs", "TLV_SPACE_MAX"),
        Refused(TlvTableFull), "tlv_map_errors_name_the_reason"),
    limit("nesting depth of resubmissions", ("pipeline/src/limits.rs", "RECURSION_MAX"),
        Effect("the frame is dropped and counted"), "resubmit_depth_limit.case"),
    limit("resubmissions of a frame", ("pipeline/src/limits.rs", "RESUBMITS_MAX"),
        Effect("the frame is dropped and counted"), "resubmit_count_limit.case"),
    limit("entries of the stack of a frame", ("pipeline/src/limits.rs", "STACK_MAX"),
        Effect("the frame is dropped and counted"), "stack_depth_limit.case"),
    limit("bytes of the continuation of a paused frame", ("flow/src/continuation.rs", "CONTINUATION_BYTES_MAX"),
        Effect("the frame is dropped and counted"), "continuations_round_trip"),
    limit("headroom of a received frame in bytes, 16 of them reserved for the device", ("packet/src/frame.rs", "HEADROOM"),
        Effect("the frame is dropped and counted"), "frame_without_space_for_a_tag_is_dropped"),
    limit("segments of a frame that the switch cuts", ("packet/src/segment.rs", "SEGMENTS_MAX"),
        Effect("dropped and counted"), "frame_with_too_many_segments_is_refused_before_a_buffer_is_taken"),
    limit("bundles of a connection", ("switch/src/bundles.rs", "BUNDLES_MAX"),
        Refused(BundleOutOfBundles), "bundles_are_limited_in_number_and_bytes"),
    limit("bytes of a connection's bundles", ("switch/src/bundles.rs", "BYTES_MAX"),
        Refused(BundleMessageTooMany), "bundles_are_limited_in_number_and_bytes"),
    limit("scheduled bundles of a bridge", ("switch/src/bridge/schedule.rs", "SCHEDULED_MAX"),
        Refused(BundleOutOfBundles), "scheduled_bundles_are_limited_and_report_features"),
    limit("time between now and the scheduled time of a bundle", ("switch/src/bridge/schedule.rs", "FUTURE_MAX"),
        Refused(BundleScheduleFuture), "scheduled_bundle_refuses_bad_times_and_can_be_discarded"),
    limit("delay of a commit after its scheduled time", ("switch/src/bridge/schedule.rs", "PAST_MAX"),
        Refused(BundleSchedulePast), "scheduled_bundle_refuses_bad_times_and_can_be_discarded"),
    limit("flow monitors of a connection", ("switch/src/monitors.rs", "MONITORS_MAX"),
        Refused(MonitorUnknown), "monitor_requests_are_atomic_and_limited"),
    limit("rule changes queued for a flow monitor", ("switch/src/monitors.rs", "WAITING_MAX"),
        Effect("its monitors are paused"), "slow_flow_monitor_is_paused_and_misses_nothing"),
    limit("connections of a bridge whose monitors are paused", ("switch/src/monitors.rs", "PAUSED_MAX"),
        Effect("the next slow connection is closed and logged"), "slow_reader_is_disconnected_if_too_many_are_paused"),
    limit("multipart requests in several messages, per connection", ("switch/src/bridge/tables.rs", "FRAGMENTED_MAX"),
        Refused(RequestMultipartOverflow), "multipart_requests_are_joined_and_limited"),
    limit("entries of such a request", ("switch/src/bridge/tables.rs", "ENTRIES_MAX"),
        Refused(RequestMultipartOverflow), "multipart_requests_are_joined_and_limited"),
    limit("bytes of unanswered messages of a connection", ("runtime/src/outbox.rs", "IN_FLIGHT_MAX"),
        Effect("the switch stops reading from the connection until it has answered"), "memory_stays_bounded_with_a_peer_that_reads_no_replies"),
    limit("flow-mods of a connection kept for reuse", ("openflow/src/channel.rs", "SPARE_MAX"),
        Effect("freed"), "recycled_messages_are_small_and_bounded"),
    limit("asynchronous messages queued for a connection", ("runtime/src/outbox.rs", "ASYNC_QUEUE_MAX"),
        Effect("dropped and counted"), "memory_stays_bounded_with_a_controller_that_reads_no_packet_ins"),
    limit("bytes of frames in these messages", ("runtime/src/outbox.rs", "ASYNC_BYTES_MAX"),
        Effect("dropped and counted"), "asynchronous_messages_are_limited_by_bytes"),
    limit("connections of one listening socket", ("runtime/src/peers.rs", "PEERS_MAX"),
        Effect("refused and logged"), "switch_serves_a_thousand_connections"),
    limit("connections at one remote address, loopback excepted", ("runtime/src/peers/admission.rs", "PEERS_OF_ADDRESS_MAX"),
        Effect("refused and logged"), "peers_of_one_address_are_limited"),
    limit("bytes of memory of all connections' messages and bundles", ("runtime/src/peers/admission.rs", "MEMORY_MAX"),
        Effect("messages wait, messages of bundles are refused; listeners leave a third to configured controllers"), "controllers_have_memory_when_listeners_have_none"),
    limit("TLS handshakes in progress with one address", ("runtime/src/peers/admission.rs", "HANDSHAKES_OF_ADDRESS_MAX"),
        Effect("refused and logged"), "handshakes_of_one_address_are_limited"),
    limit("auxiliary connections to a controller", ("config/src/auxiliary.rs", "MAX"),
        Effect("the switch reports the error and does not start"), "auxiliary_count_has_a_limit"),
    limit("packet-ins queued by a worker", ("runtime/src/worker_thread.rs", "EVENTS_MAX"),
        Effect("dropped and counted"), "packet_ins_beyond_the_ring_are_counted_only"),
    limit("buffers of a worker for frames", ("dataplane/src/worker/forwarder.rs", "BUFFERS_MAX"),
        Effect("the copy is dropped and counted"), "copies_are_freed_when_buffers_run_out"),
    limit("queues of a port, and of the device of an AF_XDP port", ("ports/src/lib.rs", "QUEUES_MAX"),
        Effect("the switch reports the error and does not start"), "queue_count_above_limit_is_refused"),
    limit("queues of a port that rules may select", ("base/src/ids.rs", "COUNT"),
        Effect("reported in the column `error` of the interface"), "qos_errors_are_reported"),
    limit("MTU of an AF_XDP port", ("ports/src/xdp.rs", "MTU_MAX"),
        Effect("the switch reports the error and does not start"), "xdp_open_errors_name_a_remedy"),
    limit("received frames held by a queue of an AF_XDP port", ("ports/src/xdp.rs", "RX_CHUNKS"),
        Effect("dropped and counted"), "frames_beyond_rx_chunks_are_counted"),
    limit("frames in transmission by a queue of an AF_XDP port", ("ports/src/xdp.rs", "TX_CHUNKS"),
        Effect("dropped and counted"), "port_that_cannot_send_holds_only_its_tx_chunks"),
    limit("queues that share one AF_XDP memory (UMEM) of a worker", ("ports/src/xdp/umem_pools.rs", "SOCKETS_MAX"),
        Effect("further queues use a second memory; frames between the two are copied and counted"), "ports_beyond_umem_shares_get_another_umem"),
    limit("frames in the memory pool of a DPDK port", ("dpdk/src/arguments.rs", "BUFFERS_MAX"),
        Effect("the switch reports the error and does not start"), "invalid_device_arguments_are_explained"),
    limit("MTU of a DPDK port", ("dpdk/src/arguments.rs", "MTU_MAX"),
        Effect("the switch reports the error and does not start"), "invalid_device_arguments_are_explained"),
    limit("segments of a frame at a DPDK port", ("dpdk/src/queue.rs", "SEGMENTS_MAX"),
        Effect("dropped and counted"), "frame_with_too_many_segments_is_dropped_and_counted"),
    limit("NetFlow flows counted by a worker for a bridge between two reports", ("flow-export/src/flows.rs", "FLOWS_MAX"),
        Effect("other flows are not exported, and counted"), "flow_counts_stay_while_the_ring_is_full_and_losses_are_counted"),
    limit("NetFlow flows of a bridge", ("flow-export/src/netflow.rs", "FLOWS_MAX"),
        Effect("the flow with the earliest timeout is exported early"), "netflow_full_cache_exports_flow_that_is_due_first"),
    limit("entries of the forwarding database of a bridge", ("config/src/switching.rs", "FDB_SIZE"),
        Effect("the oldest entry of the port with the most entries is evicted and counted"), "address_flood_evicts_stations_of_its_own_port"),
    limit("multicast groups of a bridge with snooping", ("config/src/switching.rs", "GROUPS_MAX"),
        Effect("the group with the oldest report is evicted"), "new_group_evicts_the_oldest_group"),
    limit("printed nesting depth of messages in errors and bundles", ("openflow/src/print.rs", "NESTING_MAX"),
        Effect("deeper messages are omitted"), "nested_messages_print_up_to_nesting_limit"),
    limit("out-of-order segments held for a captured stream", ("tools/src/capture.rs", "EARLY_MAX"),
        Effect("the stream restarts after the gap"), "stream_restarts_after_gap"),
] };

/// Checks the document's table against the constants, and the proofs against the tests.
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
    let heads = ["item", "limit", "beyond it", "proof"];
    check_part(DOCUMENT, "limits", &table(&heads, &rows));
}

/// The value of a constant.
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

/// The text after the `=` of a constant.
fn written<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("const {name}: "))?;
    let (_, rest) = rest.split_once(" = ")?;
    Some(rest.split_once(';')?.0)
}

/// Evaluates a number, a product, a power of two, or another constant of the file.
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

/// Formats a number in groups of three digits.
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
