//! Commands of counters and memory: `coverage/*` and `memory/show` of ovs-vswitchd(8).

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Answer::Immediate;
use super::{Command, datapath};
use crate::control::Control;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 3] = [
    Command { name: "coverage/read-counter", usage: "COUNTER", least: 1, most: 1, answer: Immediate(read_counter) },
    Command { name: "coverage/show", usage: "", least: 0, most: 0, answer: Immediate(coverage) },
    Command { name: "memory/show", usage: "", least: 0, most: 0, answer: Immediate(memory) },
];

/// The names of Open vSwitch for counters here; several are added up.
#[rustfmt::skip]
const OTHER_NAMES: [(&str, &[&str]); 18] = [
    ("bridge_reconfigure",                &["control_reconfigured"]),
    ("conntrack_full",                    &["conntrack_ct_table_full"]),
    ("datapath_drop_invalid_port",        &["worker_no_port", "worker_tunnel_no_port", "worker_tunnel_no_route"]),
    ("datapath_drop_meter",               &["worker_metered"]),
    ("datapath_drop_rx_invalid_packet",   &["worker_runt"]),
    ("datapath_drop_tunnel_pop_error",    &["worker_tunnel_malformed"]),
    ("datapath_drop_tunnel_push_error",   &["worker_tunnel_too_long", "worker_tunnel_payload"]),
    ("datapath_drop_upcall_error",        &["worker_packet_in_queue_full"]),
    ("drop_action_congestion",            &["worker_tunnel_congested"]),
    ("drop_action_forwarding_disabled",   &["worker_spanning_tree", "worker_output_shut"]),
    ("drop_action_of_pipeline",           &["worker_no_match", "worker_no_output", "worker_no_packet_in", "worker_fragment"]),
    ("drop_action_recursion_too_deep",    &["worker_recursion_too_deep"]),
    ("drop_action_stack_too_deep",        &["worker_stack_too_deep"]),
    ("drop_action_too_many_mpls_labels",  &["worker_too_many_mpls_labels"]),
    ("drop_action_too_many_resubmit",     &["worker_too_many_resubmits"]),
    ("drop_action_unsupported_packet_type", &["worker_unsupported_packet_type"]),
    ("packet_in_overflow",                &["worker_packet_in_queue_full"]),
    ("rev_reconfigure",                   &["control_reconfigured"]),
];

/// Adds the counters under the names of Open vSwitch.
fn add_other_names(counters: &mut BTreeMap<String, u64>) {
    for (name, parts) in OTHER_NAMES {
        let count = |part: &&str| counters.get(*part).copied().unwrap_or_default();
        let sum = parts.iter().map(count).sum();
        counters.insert(name.to_owned(), sum);
    }
}

/// Returns every event counter by name.
fn counters(control: &Control) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for (name, count) in control.counters.read() {
        counters.insert(format!("control_{name}"), count);
    }
    for (name, count) in control.trackers.counters() {
        counters.insert(format!("conntrack_{name}"), count);
    }
    for worker in &control.tools.workers {
        for (name, count) in worker.counters.read() {
            *counters.entry(format!("worker_{name}")).or_default() += count;
        }
    }
    let mut add = |name: &str, count| *counters.entry(name.to_owned()).or_default() += count;
    for site in control.sites.values() {
        let addresses = site.bridge.fdb().counts();
        add("stations_evicted", addresses.evicted);
        add("mac_learning_evicted", addresses.evicted);
        add("mac_learning_expired", addresses.expired);
        add("mac_learning_learned", addresses.learned);
        add("mac_learning_moved", addresses.moved);
        let static_moves = site.bridge.fdb().view().static_moves();
        add("mac_learning_static_none_move", static_moves);
        add("learn_refused", site.bridge.learn_refused());
        add("packet_in_limited", site.bridge.packet_ins_limited());
        add("packet_out_limited", site.bridge.packet_outs_limited());
        add("rules_refused", site.bridge.rules_refused());
        for port in site.ports.values() {
            for (name, count) in port.packet_in_counts() {
                add(&format!("port_{name}"), count);
            }
        }
    }
    add_other_names(&mut counters);
    counters
}

/// Lists the events that occurred, as totals only: rates are not recorded.
fn coverage(control: &mut Control, _: &[String]) -> Result<String, String> {
    let counters = counters(control);
    let mut text = "Event coverage, totals since the start:\n".to_owned();
    for (name, count) in counters.iter().filter(|(_, count)| **count != 0) {
        writeln!(text, "{name:<32} total: {count}").expect("a string has room");
    }
    let never = counters.values().filter(|count| **count == 0).count();
    writeln!(text, "{never} events never hit").expect("a string has room");
    Ok(text)
}

fn read_counter(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let counters = counters(control);
    let count = arguments.first().and_then(|name| counters.get(name));
    let count = count.ok_or("No such counter")?;
    Ok(format!("{count}\n"))
}

/// Reports the numbers of objects.
fn memory(control: &mut Control, _: &[String]) -> Result<String, String> {
    let ports: usize = control.sites.values().map(|site| site.ports.len()).sum();
    let (peers, workers) = (control.peers.len(), control.tools.workers.len());
    let rules = datapath::rules(control);
    Ok(format!(
        "ofconns:{peers} ports:{ports} rules:{rules} workers:{workers}\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter_catalog;

    #[test]
    fn counters_have_names_of_open_vswitch_too() {
        let counts = [("worker_no_match", 2), ("worker_no_output", 3)];
        let counts = counts.map(|(name, count)| (name.to_owned(), count));
        let mut counters = BTreeMap::from(counts);
        add_other_names(&mut counters);
        assert_eq!(counters["drop_action_of_pipeline"], 5);
        assert_eq!(counters["datapath_drop_meter"], 0);
    }

    #[test]
    fn counter_of_other_name_is_in_the_catalogue() {
        let document = counter_catalog::document(&[]);
        for part in OTHER_NAMES.iter().flat_map(|(_, parts)| *parts) {
            let (_, name) = part.split_once('_').expect("an owner");
            assert!(document.contains(&format!("| `{name}` |")), "{part}");
        }
    }
}
