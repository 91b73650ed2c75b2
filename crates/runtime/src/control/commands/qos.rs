//! Commands of egress shaping: `qos/*` of ovs-vswitchd(8).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base::QueueId;
use ports::shaping::{ClassCounts, ClassRates, EffectiveQos};

use super::Answer::Immediate;
use super::Command;
use crate::control::Control;
use crate::control::bridge_runtime::PortRuntime;
use config::{EgressLimit, PortKind, qdisc_name};

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 2] = [
    Command { name: "qos/show", usage: "interface", least: 1, most: 1, answer: Immediate(show) },
    Command { name: "qos/show-types", usage: "interface", least: 1, most: 1, answer: Immediate(types) },
];

/// The type that every port supports.
const POLICER: &str = "egress-policer";

/// The types that only interfaces of the host support.
const DISCIPLINES: [&str; 3] = ["linux-hfsc", "linux-htb", "linux-noop"];

fn show(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let name = &arguments[0];
    let port = find(control, name)?;
    if let Some((_, shaped)) = port.queues() {
        let counts = port.device.as_ref().map(|device| device.queue_counts());
        let counts = match counts {
            Some(Ok(counts)) => Ok(counts),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the interface does not exist".to_owned()),
        };
        return Ok(show_queues(name, shaped, &counts));
    }
    let mut sites = control.sites.values();
    let settings = sites.find_map(|site| site.interface_settings.get(name));
    Ok(match settings.and_then(|settings| settings.egress) {
        Some(EgressLimit { rate, burst }) => {
            format!("QoS: {name} {POLICER}\ncbs: {burst}\ncir: {rate}\n")
        }
        None => format!("QoS not configured on {name}\n"),
    })
}

/// Formats the queues like Open vSwitch, the default queue first.
fn show_queues(
    name: &str,
    shaped: &EffectiveQos,
    counts: &Result<BTreeMap<QueueId, ClassCounts>, String>,
) -> String {
    let kind = qdisc_name(shaped.qdisc);
    let mut text = format!("QoS: {name} {kind}\nmax-rate: {}\n", 8 * shaped.total.max);
    for (queue, service) in &shaped.queues {
        let title = match queue.0 {
            0 => "Default".to_owned(),
            number => format!("Queue {number}"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{title}:");
        for (key, value) in details(*service) {
            let _ = writeln!(text, "  {key}: {value}");
        }
        let counts = counts.as_ref();
        let _ = match counts.map(|counts| counts.get(queue).copied().unwrap_or_default()) {
            Ok(ClassCounts {
                bytes,
                packets,
                drops,
            }) => writeln!(
                text,
                "  tx_packets: {packets}\n  tx_bytes: {bytes}\n  tx_errors: {drops}"
            ),
            Err(why) => writeln!(
                text,
                "  Failed to get statistics for queue {}: {why}",
                queue.0
            ),
        };
    }
    text
}

/// Returns the settings of a queue that are set.
fn details(service: ClassRates) -> impl Iterator<Item = (&'static str, u64)> {
    let ClassRates {
        min,
        max,
        burst,
        priority,
    } = service;
    let all = [
        ("burst", 8 * burst, burst > 0),
        ("priority", priority.into(), priority > 0),
        ("min-rate", 8 * min, true),
        ("max-rate", 8 * max, max != min),
    ];
    let shown = all.into_iter().filter(|(_, _, is_shown)| *is_shown);
    shown.map(|(key, value, _)| (key, value))
}

fn types(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let port = find(control, &arguments[0])?;
    let disciplines = match port.spec.kind {
        PortKind::Interface => &DISCIPLINES[..],
        _ => &[],
    };
    let types = std::iter::once(&POLICER).chain(disciplines);
    let lines = types.map(|kind| format!("QoS type: {kind}\n"));
    Ok(lines.collect())
}

/// Returns the port with this name.
fn find<'a>(control: &'a Control, name: &str) -> Result<&'a PortRuntime, String> {
    let mut ports = control.sites.values().flat_map(|site| site.ports.values());
    let port = ports.find(|port| port.spec.name == name);
    port.ok_or_else(|| "no such interface".to_owned())
}
