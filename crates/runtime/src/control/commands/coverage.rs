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

/// Returns every event counter by name.
fn counters(control: &Control) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    for (name, count) in control.counters.read() {
        counters.insert(format!("control_{name}"), count);
    }
    for worker in &control.tools.workers {
        for (name, count) in worker.counters.read() {
            *counters.entry(format!("worker_{name}")).or_default() += count;
        }
    }
    let mut add = |name: &str, count| *counters.entry(name.to_owned()).or_default() += count;
    for site in control.sites.values() {
        add("stations_evicted", site.bridge.fdb().counts().evicted);
        add("learn_refused", site.bridge.learn_refused());
        add("packet_in_limited", site.bridge.packet_ins_limited());
        for port in site.ports.values() {
            for (name, count) in port.packet_in_counts() {
                add(&format!("port_{name}"), count);
            }
        }
    }
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
