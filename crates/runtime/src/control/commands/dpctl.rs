//! `dpctl/*`: the commands of ovs-dpctl(8), for the only datapath. Changes of the datapath are
//! refused: it contains the bridges' rules, and nothing else.

use std::collections::BTreeSet;
use std::fmt::Write;

use config::PortKind;
use ports::Counter;

use super::Answer::{Immediate, Pending};
use super::datapath::{LookupCounts, flows, lookups};
use super::flow_list::ListedFlows;
use super::port_config::describe;
use super::{
    Command, MANY, conntrack, datapath_changes, datapath_flows, flow_list, fragments, options,
};
use crate::control::Control;
use crate::control::datapath_ports::DatapathName;
use crate::inbox::CommandRequest;

/// The prefix of error messages, as in Open vSwitch.
const PREFIX: &str = crate::PROGRAM;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 21] = [
    Command { name: "dpctl/add-dp", usage: "dp [iface...]", least: 1, most: MANY, answer: Immediate(datapath_changes::add_datapath) },
    Command { name: "dpctl/add-flow", usage: "[dp] flow actions", least: 2, most: 3, answer: Immediate(datapath_flows::add_flow) },
    Command { name: "dpctl/add-flows", usage: "[dp] file", least: 1, most: 2, answer: Immediate(datapath_flows::add_flows) },
    Command { name: "dpctl/add-if", usage: "dp iface...", least: 2, most: MANY, answer: Immediate(datapath_changes::add_ports) },
    Command { name: "dpctl/cache-get-size", usage: "[dp]", least: 0, most: 1, answer: Immediate(cache_sizes) },
    Command { name: "dpctl/cache-set-size", usage: "dp cache <size>", least: 3, most: 3, answer: Immediate(refuse_caches) },
    Command { name: "dpctl/del-dp", usage: "dp", least: 1, most: 1, answer: Immediate(datapath_changes::delete_datapath) },
    Command { name: "dpctl/del-flow", usage: "[dp] flow", least: 1, most: 2, answer: Immediate(datapath_flows::delete_flow) },
    Command { name: "dpctl/del-flows", usage: "[dp] [file]", least: 0, most: 2, answer: Immediate(delete_flows) },
    Command { name: "dpctl/del-if", usage: "dp iface...", least: 2, most: MANY, answer: Immediate(datapath_changes::delete_ports) },
    Command { name: "dpctl/dump-dps", usage: "", least: 0, most: 0, answer: Immediate(data_paths) },
    Command { name: "dpctl/dump-flows", usage: "[-m] [--names] [dp] [filter=..] [type=..] [pmd=..]", least: 0, most: 6, answer: Pending(answer_dump) },
    Command { name: "dpctl/get-flow", usage: "[dp] ufid", least: 1, most: 2, answer: Immediate(flow_list::get) },
    Command { name: "dpctl/list-commands", usage: "", least: 0, most: 0, answer: Immediate(list_commands) },
    Command { name: "dpctl/mod-flow", usage: "[dp] flow actions", least: 2, most: 3, answer: Immediate(datapath_flows::modify_flow) },
    Command { name: "dpctl/mod-flows", usage: "[dp] file", least: 1, most: 2, answer: Immediate(datapath_flows::modify_flows) },
    Command { name: "dpctl/normalize-actions", usage: "actions", least: 2, most: MANY, answer: Immediate(refuse_actions) },
    Command { name: "dpctl/offload-stats-show", usage: "[dp]", least: 0, most: 1, answer: Immediate(refuse_offload) },
    Command { name: "dpctl/parse-actions", usage: "actions", least: 1, most: MANY, answer: Immediate(refuse_actions) },
    Command { name: "dpctl/set-if", usage: "dp iface...", least: 2, most: MANY, answer: Immediate(datapath_changes::set_ports) },
    Command { name: "dpctl/show", usage: "[-s] [dp...]", least: 0, most: MANY, answer: Immediate(show) },
];

/// Returns the datapath with this name, if a bridge uses it.
pub(super) fn named(control: &Control, name: &str) -> Option<DatapathName> {
    let name = DatapathName::parse(name)?;
    control.datapaths().contains(&name).then_some(name)
}

/// Returns true if a datapath has this name, and a bridge uses it.
pub(super) fn is_datapath(control: &Control, name: &str) -> bool {
    named(control, name).is_some()
}

fn data_paths(control: &mut Control, _: &[String]) -> Result<String, String> {
    let names = control.datapaths().into_iter();
    let names = names.map(|name| format!("{}\n", name.full()));
    let added = control.commands.changes.names();
    Ok(names.chain(added.map(|name| format!("{name}\n"))).collect())
}

/// Lists the ports of the named datapaths, or of all.
fn show(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (options, rest) = options(arguments);
    let (mut datapaths, mut text) = (Vec::new(), String::new());
    for name in &rest {
        if let Some(added) = control.commands.changes.show(name) {
            text += &added;
            continue;
        }
        let found = named(control, name);
        let missing =
            || format!("{PREFIX}: opening datapath {name} failed (No such file or directory)");
        datapaths.push(found.ok_or_else(missing)?);
    }
    if rest.is_empty() {
        datapaths.extend(control.datapaths());
        let changes = &control.commands.changes;
        text.extend(changes.names().filter_map(|name| changes.show(name)));
    }
    control.datapath_ports();
    let has_counters = options.contains(&"-s");
    let lines = datapaths.into_iter();
    let of_bridges: String = lines
        .map(|name| show_one(control, name, has_counters))
        .collect();
    Ok(of_bridges + &text)
}

fn show_one(control: &Control, datapath: DatapathName, has_counters: bool) -> String {
    let LookupCounts { hit, missed, lost } = lookups(control);
    let rules = flows(control, datapath);
    let name = datapath.full();
    let mut text =
        format!("{name}:\n  lookups: hit:{hit} missed:{missed} lost:{lost}\n  flows: {rules}\n");
    let mut shown = BTreeSet::new();
    for (number, name, (bridge, port)) in control.devices.datapath_ports.all() {
        let site = control.sites.get(&bridge);
        let site = site.filter(|site| site.datapath() == datapath);
        let runtime = site.and_then(|site| site.ports.get(&port));
        let (Some(site), Some(runtime)) = (site, runtime) else {
            continue;
        };
        // Tunnels share a port of the datapath.
        if !shown.insert(number) {
            continue;
        }
        let kind = match &runtime.spec.kind {
            PortKind::Tunnel(tunnel) => format!("{}: packet_type=ptap", tunnel.type_name()),
            _ => describe(runtime),
        };
        let kind = match kind.as_str() {
            "system" => String::new(),
            kind => format!(" ({kind})"),
        };
        writeln!(text, "  port {number}: {name}{kind}").expect("a string has room");
        let mut entries = site.bridge.ports();
        if has_counters && let Some((_, entry)) = entries.find(|(of, _)| *of == port) {
            write_counts(&mut text, &entry.counts()).expect("a string has room");
        }
    }
    text
}

/// Formats counters like ovs-dpctl(8), with a question mark for those that do not exist.
fn write_counts(text: &mut String, counts: &ports::QueueCounts) -> std::fmt::Result {
    let lost = counts[Counter::RxOverrun] + counts[Counter::RxTruncated];
    let errors = counts.rx_dropped() - lost;
    writeln!(
        text,
        "    RX packets:{} errors:{errors} dropped:{lost} overruns:{} frame:{}",
        counts[Counter::RxPackets],
        counts[Counter::RxOverrun],
        counts[Counter::RxRunt]
    )?;
    let failed = counts[Counter::TxErrors];
    writeln!(
        text,
        "    TX packets:{} errors:{failed} dropped:{} aborted:? carrier:?\n    collisions:?",
        counts[Counter::TxPackets],
        counts.tx_dropped() - failed
    )?;
    let (received, sent) = (counts[Counter::RxBytes], counts[Counter::TxBytes]);
    writeln!(text, "    RX bytes:{received}  TX bytes:{sent}")
}

fn answer_dump(control: &mut Control, request: CommandRequest) {
    flow_list::answer(control, request, dump_flows);
}

fn dump_flows(control: &mut Control, arguments: &[String]) -> Result<ListedFlows, String> {
    let (options, rest) = options(arguments);
    let (mut all, mut selected) = (true, None);
    let (mut name, mut filter, mut thread) = (None, None, None);
    for word in rest {
        match word.split_once('=') {
            Some(("filter", text)) => filter = Some(flow_list::parse_filter(control, text)?),
            // No flow is offloaded.
            Some(("type", kind)) => all &= !kind.contains("offloaded") || kind.contains("non-"),
            Some(("pmd", core)) => thread = Some(flow_list::parse_thread(core)?),
            _ if is_datapath(control, word) => name = Some(word),
            _ if control.commands.changes.names().any(|name| name == word) => selected = Some(word),
            _ => return Err(format!("{PREFIX}: datapath not found (Invalid argument)")),
        }
    }
    if let Some(name) = selected {
        let flows = control.commands.changes.flows(name);
        let has_title = thread.is_none() && !flows.is_empty();
        let title = has_title.then(|| flow_list::title(None));
        let title = title.unwrap_or_default();
        return Ok(ListedFlows::Text(format!("{title}{flows}")));
    }
    let datapath = flow_list::datapath_of(control, name)?;
    let added = control.commands.changes.flows(datapath.full());
    if !all {
        return Ok(ListedFlows::Text(String::new()));
    }
    let filter = filter.as_ref();
    let flows = match datapath {
        DatapathName::Dummy => {
            flow_list::list_of_dummies(control, &options, filter, thread, &added)
        }
        DatapathName::Netdev => match control.watch_flows() {
            Some(wait) => return Ok(ListedFlows::After(wait)),
            None => flow_list::list_of_real_ports(control, &options, filter, thread) + &added,
        },
    };
    Ok(ListedFlows::Text(flows))
}

/// Deletes the flows that an operator has added, and the active flows; or those in a file. The bridges' rules stay, and traffic sets up the active flows again.
fn delete_flows(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let is_name = |control: &Control, name: &str| {
        let mut added = control.commands.changes.names();
        DatapathName::parse(name).is_some() || added.any(|known| known == name)
    };
    if arguments.last().is_some_and(|last| !is_name(control, last)) {
        return datapath_flows::delete_flows_of_file(control, arguments);
    }
    let names = match arguments.first() {
        Some(name) => {
            vec![named(control, name).map_or_else(|| name.clone(), |known| known.full().to_owned())]
        }
        None => control
            .datapaths()
            .iter()
            .map(|name| name.full().to_owned())
            .collect(),
    };
    for name in names {
        control.commands.changes.clear_flows(&name);
        if DatapathName::parse(&name).is_some() {
            control.settle_flows();
            control.delete_flows();
        }
    }
    Ok(String::new())
}

fn cache_sizes(control: &mut Control, _: &[String]) -> Result<String, String> {
    let names = control.datapaths().into_iter();
    Ok(names.map(|name| format!("{}:\n", name.full())).collect())
}

fn list_commands(_: &mut Control, _: &[String]) -> Result<String, String> {
    let others = conntrack::COMMANDS.iter().chain(&fragments::COMMANDS);
    let mut rows: Vec<_> = COMMANDS.iter().chain(others).collect();
    rows.sort_by_key(|row| row.name);
    let lines = rows.iter();
    let lines = lines.map(|row| format!("  {:<28}  {}\n", row.name, row.usage));
    Ok(std::iter::once("The available commands are:\n".to_owned())
        .chain(lines)
        .collect())
}

/// Returns the error of a command that failed for this reason, in the words of ovs-dpctl(8).
pub(super) fn failure(what: &str, reason: &str) -> String {
    format!("{PREFIX}: {what} ({reason})")
}

fn refusal(what: &str, why: &str) -> String {
    format!("{PREFIX}: {what}: {why} (Operation not supported)")
}

fn refuse_caches(_: &mut Control, _: &[String]) -> Result<String, String> {
    Err(refusal("Setting caches", "there are none"))
}

fn refuse_actions(_: &mut Control, _: &[String]) -> Result<String, String> {
    Err(refusal("odp_actions_from_string", "use OpenFlow actions"))
}

fn refuse_offload(_: &mut Control, _: &[String]) -> Result<String, String> {
    // As in Open vSwitch without hardware offload.
    Err(failure("retrieving offload statistics", "Invalid argument"))
}
