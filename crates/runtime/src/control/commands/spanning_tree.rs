//! Commands of spanning trees: `stp/*` and `rstp/*` of ovs-vswitchd(8).

use std::fmt::Write;

use packet::MacAddr;

use super::Answer::Immediate;
use super::{Command, site_of};
use crate::control::Control;
use config::SpanningTreeProtocol;
use l2::spanning_tree::{TreeBridgeId, TreeGuard, TreePortInfo, TreePortState, TreeTimes};
use switch::bridge::{Bridge, BridgeSpanningTree};

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 4] = [
    Command { name: "rstp/show", usage: "[bridge]", least: 0, most: 1, answer: Immediate(rstp_show) },
    Command { name: "rstp/tcn", usage: "[bridge]", least: 0, most: 1, answer: Immediate(rstp_tcn) },
    Command { name: "stp/show", usage: "[bridge]", least: 0, most: 1, answer: Immediate(stp_show) },
    Command { name: "stp/tcn", usage: "[bridge]", least: 0, most: 1, answer: Immediate(stp_tcn) },
];

/// Open vSwitch's layout of a spanning tree.
struct TreeLayout {
    protocol: SpanningTreeProtocol,
    /// The label of the priority, padded.
    priority: &'static str,
    /// The width of the cost column.
    cost: usize,
    /// The error for a bridge without such a tree.
    missing: &'static str,
}

const STP: TreeLayout = TreeLayout {
    protocol: SpanningTreeProtocol::Stp,
    priority: "stp-priority  ",
    cost: 5,
    missing: "no such stp object",
};

const RSTP: TreeLayout = TreeLayout {
    protocol: SpanningTreeProtocol::Rstp,
    priority: "stp-priority    ",
    cost: 8,
    missing: "No such RSTP object",
};

fn stp_show(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    show(control, arguments, &STP)
}

fn rstp_show(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    show(control, arguments, &RSTP)
}

fn stp_tcn(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    change(control, arguments, &STP)
}

fn rstp_tcn(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    change(control, arguments, &RSTP)
}

/// Returns the name of the given bridge, or the names of all bridges with such a tree.
fn selected(
    control: &mut Control,
    arguments: &[String],
    layout: &TreeLayout,
) -> Result<Vec<String>, String> {
    let has_tree = |bridge: &Bridge| {
        let tree = bridge.spanning();
        tree.is_some_and(|tree| tree.config().protocol == layout.protocol)
    };
    if let [name, ..] = arguments {
        let site = site_of(control, name).filter(|site| has_tree(&site.bridge));
        site.ok_or_else(|| layout.missing.to_owned())?;
        return Ok(vec![name.clone()]);
    }
    let bridges = control.sites.values().map(|site| &site.bridge);
    let bridges = bridges.filter(|bridge| has_tree(bridge));
    let mut names: Vec<_> = bridges.map(|bridge| bridge.name().to_owned()).collect();
    names.sort();
    Ok(names)
}

fn change(
    control: &mut Control,
    arguments: &[String],
    layout: &TreeLayout,
) -> Result<String, String> {
    for name in selected(control, arguments, layout)? {
        if let Some(site) = site_of(control, &name) {
            site.bridge.change_topology();
        }
    }
    Ok("OK\n".to_owned())
}

fn show(
    control: &mut Control,
    arguments: &[String],
    layout: &TreeLayout,
) -> Result<String, String> {
    let mut text = String::new();
    for name in selected(control, arguments, layout)? {
        if let Some(bridge) = site_of(control, &name).map(|site| &site.bridge)
            && let Some(spanning) = bridge.spanning()
        {
            write_tree(&mut text, bridge, spanning, layout).expect("a string has room");
        }
    }
    Ok(text)
}

fn write_tree(
    text: &mut String,
    bridge: &Bridge,
    spanning: &BridgeSpanningTree,
    layout: &TreeLayout,
) -> std::fmt::Result {
    let tree = spanning.tree();
    let settings = tree.settings();
    let entries: Vec<_> = bridge.ports().collect();
    let name = |number| {
        let entry = entries.iter().find(|(of, _)| *of == number);
        entry.map_or("", |(_, entry)| &*entry.desc.name)
    };
    writeln!(text, "---- {} ----\nRoot ID:", bridge.name())?;
    write_bridge(text, tree.root().root, tree.root_times(), layout)?;
    match tree.root_port() {
        None => writeln!(text, "  This bridge is the root")?,
        Some(port) => {
            let (port, cost) = (name(port), tree.root().cost);
            writeln!(text, "  root-port       {port}\n  root-path-cost  {cost}")?;
        }
    }
    writeln!(text, "\nBridge ID:")?;
    write_bridge(text, settings.id, &settings.times(), layout)?;
    let (cost, line) = (layout.cost, "-".repeat(layout.cost));
    writeln!(
        text,
        "\n  Interface  Role       State      {:<cost$} Pri.Nbr \n  \
         ---------- ---------- ---------- {line} -------",
        "Cost"
    )?;
    let mut ports: Vec<_> = tree.ports().collect();
    ports.retain(|(_, info)| info.state != TreePortState::Disabled || info.guard.is_some());
    ports.sort_by_key(|(_, info)| number_of(info, layout));
    for (port, info) in ports {
        let (role, state) = match layout.protocol {
            SpanningTreeProtocol::Stp => (info.role.stp_name(), info.state.stp_name()),
            SpanningTreeProtocol::Rstp => (info.role.rstp_name(), info.state.rstp_name()),
        };
        let state = info.guard.map_or(state, TreeGuard::name);
        let (priority, number) = (info.settings.id.0 >> 8, number_of(&info, layout));
        let priority = match layout.protocol {
            SpanningTreeProtocol::Stp => priority,
            SpanningTreeProtocol::Rstp => priority & 0xf0,
        };
        let path_cost = info.settings.path_cost;
        let port = name(port);
        writeln!(
            text,
            "  {port:<10} {role:<10} {state:<10} {path_cost:<cost$} {priority}.{number}"
        )?;
    }
    writeln!(text)
}

/// Returns the port number in a port identifier.
const fn number_of(info: &TreePortInfo, layout: &TreeLayout) -> u16 {
    match layout.protocol {
        SpanningTreeProtocol::Stp => info.settings.id.0 & 0xff,
        SpanningTreeProtocol::Rstp => info.settings.id.0 & 0xfff,
    }
}

fn write_bridge(
    text: &mut String,
    id: TreeBridgeId,
    times: &TreeTimes,
    layout: &TreeLayout,
) -> std::fmt::Result {
    let (priority, address): (u16, MacAddr) = (id.priority(), id.address());
    let (word, hello, age, delay) = (
        layout.priority,
        times.hello_time,
        times.max_age,
        times.forward_delay,
    );
    writeln!(
        text,
        "  {word}{priority}\n  stp-system-id   {address}\n  stp-hello-time  {hello}s\n  \
         stp-max-age     {age}s\n  stp-fwd-delay   {delay}s"
    )
}
