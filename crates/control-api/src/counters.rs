//! Counters that have an older name.
//!
//! `comporta/counters` prints a renamed counter under both names, so that scripts written for the
//! older one keep working.

/// The older and the present name of each renamed counter.
#[rustfmt::skip]
pub const RENAMED: [(&str, &str); 20] = [
    ("rx_starved",                   "rx_no_buffer"),
    ("rx_mended",                    "rx_ring_reset"),
    ("tx_no_room",                   "tx_full"),
    ("tx_finished",                  "tx_checksummed"),
    ("tx_moved",                     "tx_zero_copy"),
    ("packet_in_told",               "packet_in_sent"),
    ("learn_no_room",                "learn_queue_full"),
    ("packet_in_no_room",            "packet_in_queue_full"),
    ("intercepted_no_room",          "punt_queue_full"),
    ("captured_no_room",             "capture_queue_full"),
    ("membership_no_room",           "membership_queue_full"),
    ("sample_no_room",               "sample_queue_full"),
    ("flow_no_room",                 "flow_export_full"),
    ("interpreted_conjunction",      "slow_path_conjunction"),
    ("interpreted_uncompiled_rules", "slow_path_uncompiled_rules"),
    ("interpreted_resubmit",         "slow_path_resubmit"),
    ("interpreted_action",           "slow_path_action"),
    ("interpreted_watched",          "slow_path_capture"),
    ("stations_evicted",             "fdb_evicted"),
    ("unasked_dropped",              "async_dropped"),
];

/// Returns the older name of a counter.
///
/// # Examples
/// ```
/// use control_api::counters::older_name;
///
/// assert_eq!(older_name("tx_zero_copy"), Some("tx_moved"));
/// assert_eq!(older_name("tx_packets"), None);
/// ```
#[must_use]
pub fn older_name(name: &str) -> Option<&'static str> {
    let renamed = RENAMED.iter().find(|(_, present)| *present == name);
    renamed.map(|(older, _)| *older)
}
