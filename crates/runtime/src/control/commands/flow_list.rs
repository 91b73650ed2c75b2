//! The lists of active flows: `dpctl/dump-flows`, `dpctl/get-flow` and `dpif/dump-flows`. The first
//! list of real ports is answered after an observation of their frames.

use std::collections::BTreeSet;
use std::time::Duration;

use base::PortNo;
use flow::text::NameMap;

use super::options;
use super::tracing::tracer;
use crate::control::Control;
use crate::control::active_flows::{FlowThread, translate};
use crate::control::datapath_ports::DatapathName;
use crate::inbox::{CommandReply, CommandRequest};
use dataplane::program::BridgeId;
use dataplane::slots::PortKey;
use switch::megaflow::{ActiveFlow, FlowFilter, FlowUfid, KeyDetail};

/// The line before the flows of ports without a PMD thread.
const MAIN_THREAD: &str = "flow-dump from the main thread:\n";

/// The result of a command that lists flows.
#[derive(Debug)]
pub(super) enum ListedFlows {
    /// The list.
    Text(String),
    /// The list will exist after this time; the command is executed again.
    After(Duration),
}

/// Answers a command that lists flows, at once or later.
pub(super) fn answer(
    control: &mut Control,
    request: CommandRequest,
    list: fn(&mut Control, &[String]) -> Result<ListedFlows, String>,
) {
    let answer = match list(control, &request.arguments) {
        Ok(ListedFlows::After(wait)) => return control.repeat_after(wait, request),
        Ok(ListedFlows::Text(text)) => Ok(CommandReply::Text(text)),
        Err(problem) => Err(problem),
    };
    // The client may have disconnected.
    drop(request.answer.send(answer));
}

/// The form of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListForm {
    /// Wildcards are written, too.
    is_verbose: bool,
    /// Ports have names.
    has_names: bool,
    /// Flows have their identity before them, and this text between both.
    separator: Option<&'static str>,
    /// The layer is written (`dp:ovs`).
    has_layer: bool,
}

impl ListForm {
    fn of(arguments: &[&str]) -> Self {
        let is_verbose = arguments
            .iter()
            .any(|word| matches!(*word, "-m" | "--more"));
        let names = arguments.iter().rev().find_map(|word| match *word {
            "--names" => Some(true),
            "--no-names" => Some(false),
            _ => None,
        });
        Self {
            is_verbose,
            has_names: names.unwrap_or(is_verbose),
            separator: None,
            has_layer: false,
        }
    }

    /// Returns the form of `dpif/dump-flows` with these options.
    pub(super) fn of_dpif(arguments: &[&str]) -> Self {
        let form = Self::of(arguments);
        Self {
            separator: form.is_verbose.then_some(" "),
            ..form
        }
    }

    /// Returns the form of `dpctl/dump-flows` with these options.
    pub(super) fn of_dpctl(arguments: &[&str]) -> Self {
        let form = Self::of(arguments);
        Self {
            separator: form.is_verbose.then_some(", "),
            has_layer: form.is_verbose,
            ..form
        }
    }
}

/// Lists the active flows of a bridge.
pub(super) fn list(control: &mut Control, bridge: BridgeId, form: ListForm) -> String {
    control.settle_flows();
    lines(control, |_, flow| flow.port.bridge == bridge, form)
}

/// Lists the active flows of real ports for `dpctl/dump-flows`, without titles: their workers are no
/// PMD threads of Open vSwitch, and belong to its main thread.
pub(super) fn list_of_real_ports(
    control: &mut Control,
    options: &[&str],
    filter: Option<&FlowFilter>,
    chosen: Option<FlowThread>,
) -> String {
    control.settle_flows();
    let bridges = bridges_of(control, DatapathName::Netdev);
    let is_selected = |of: FlowThread, flow: &ActiveFlow<PortKey>| {
        bridges.contains(&flow.port.bridge)
            && chosen.is_none_or(|chosen| of == chosen)
            && filter.is_none_or(|filter| filter.accepts(&flow.megaflow))
    };
    lines(control, is_selected, ListForm::of_dpctl(options))
}

/// Returns the bridges of a datapath.
fn bridges_of(control: &Control, datapath: DatapathName) -> BTreeSet<BridgeId> {
    let sites = control.sites.iter();
    let sites = sites.filter(|(_, site)| site.datapath() == datapath);
    sites.map(|(id, _)| *id).collect()
}

/// Lists the active flows of dummies for `dpctl/dump-flows`: those of one thread, or of all with
/// titles. The flows of the operator, `added`, are of no thread and are listed last.
pub(super) fn list_of_dummies(
    control: &mut Control,
    options: &[&str],
    filter: Option<&FlowFilter>,
    chosen: Option<FlowThread>,
    added: &str,
) -> String {
    control.settle_flows();
    let form = ListForm::of_dpctl(options);
    let cores = control.flows.cores().into_iter().map(Some);
    let threads = match chosen {
        Some(thread) => vec![thread],
        None => cores.chain([None]).collect(),
    };
    let last = threads.len() - 1;
    let bridges = bridges_of(control, DatapathName::Dummy);
    let mut text = String::new();
    for (index, thread) in threads.into_iter().enumerate() {
        let is_selected = |of: FlowThread, flow: &ActiveFlow<PortKey>| {
            of == thread
                && bridges.contains(&flow.port.bridge)
                && filter.is_none_or(|filter| filter.accepts(&flow.megaflow))
        };
        let mut flows = lines(control, is_selected, form);
        if index == last {
            flows += added;
        }
        if !flows.is_empty() && chosen.is_none() {
            text += &title(thread);
        }
        text += &flows;
    }
    text
}

/// Lists the selected flows in the order in which they were set up.
fn lines(
    control: &mut Control,
    is_selected: impl Fn(FlowThread, &ActiveFlow<PortKey>) -> bool,
    form: ListForm,
) -> String {
    let flows = control.flows.iter();
    let flows = flows.filter(|(thread, _, flow)| is_selected(*thread, flow));
    let mut flows: Vec<_> = flows
        .map(|(thread, ufid, flow)| (thread, ufid, flow.clone()))
        .collect();
    flows.sort_by_key(|(thread, ufid, flow)| (flow.created, *ufid, *thread));
    let lines = flows
        .iter()
        .map(|(_, ufid, flow)| line(control, *ufid, flow, form));
    lines.collect()
}

/// Returns the line before the flows of a thread.
pub(super) fn title(thread: FlowThread) -> String {
    match thread {
        None => MAIN_THREAD.to_owned(),
        Some(core) => format!("flow-dump from pmd on cpu core: {core}\n"),
    }
}

/// Parses the number of a PMD thread's core; -1 is the main thread.
pub(super) fn parse_thread(text: &str) -> Result<FlowThread, String> {
    if text == "-1" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        failure(
            &format!("pmd={text} is not the number of a core"),
            "Invalid argument",
        )
    })
}

fn line(
    control: &mut Control,
    ufid: FlowUfid,
    flow: &ActiveFlow<PortKey>,
    form: ListForm,
) -> String {
    let now = control.now();
    let ports = control.datapath_ports();
    let port = ports.number((flow.port.bridge, flow.port.port));
    let name = ports.name((flow.port.bridge, flow.port.port));
    let port = match (form.has_names, name, port) {
        (true, Some(name), _) => name.to_owned(),
        (_, _, Some(number)) => number.to_string(),
        _ => "none".to_owned(),
    };
    let actions = match form.has_names {
        true => {
            let arrived = (&flow.frame, flow.tunnel.as_ref());
            translate(&tracer(control), flow.port, arrived, true).1
        }
        false => flow.actions.clone(),
    };
    let detail = match form.is_verbose {
        true => KeyDetail::All,
        false => KeyDetail::Examined,
    };
    let key = flow.megaflow.to_odp(&port, detail);
    let counters = flow.counters(now);
    let layer = if form.has_layer { ", dp:ovs" } else { "" };
    let identity = form.separator.map(|separator| format!("{ufid}{separator}"));
    let identity = identity.unwrap_or_default();
    format!("{identity}{key}, {counters}{layer}, actions:{actions}\n")
}

/// Returns the flow with this identity, for `dpctl/get-flow`.
pub(super) fn get(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let (options, rest) = options(arguments);
    let ufid = rest.last().and_then(|text| FlowUfid::parse(text));
    let ufid = ufid.ok_or_else(|| failure("parsing flow ufid", "Invalid argument"))?;
    control.settle_flows();
    let flow = control.flows.get(ufid).cloned();
    let flow = flow.ok_or_else(|| failure("getting flow", "No such file or directory"))?;
    Ok(line(control, ufid, &flow, ListForm::of_dpctl(&options)))
}

/// Parses a filter of flows, in the syntax of `ovs-ofctl` with numbers or names of the datapath's
/// ports.
pub(super) fn parse_filter(control: &mut Control, text: &str) -> Result<FlowFilter, String> {
    let mut names = NameMap::default();
    for (number, name, _) in control.datapath_ports().all() {
        names.add_port(PortNo(number), name);
    }
    let parsed = names.parse_flow_stats_request(text);
    let parsed = parsed.map_err(|error| {
        failure(
            &format!("Failed to parse filter ({error})"),
            "Invalid argument",
        )
    })?;
    Ok(FlowFilter::new(&parsed.matching))
}

/// Returns the datapath that a command concerns: the named one, or the only one.
pub(super) fn datapath_of(control: &Control, name: Option<&str>) -> Result<DatapathName, String> {
    let datapaths = control.datapaths();
    let found = match name {
        Some(name) => DatapathName::parse(name).filter(|name| datapaths.contains(name)),
        None if datapaths.len() > 1 => {
            return Err(failure(
                "multiple datapaths, specify one",
                "Invalid argument",
            ));
        }
        None => datapaths.first().copied(),
    };
    found.ok_or_else(|| failure("datapath not found", "Invalid argument"))
}

fn failure(what: &str, why: &str) -> String {
    format!("{}: {what} ({why})", crate::PROGRAM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_of_flows_is_a_core_or_the_main_thread() {
        assert_eq!(parse_thread("-1"), Ok(None));
        assert_eq!(parse_thread("3"), Ok(Some(3)));
        assert!(parse_thread("x").is_err() && parse_thread("-2").is_err());
        assert_eq!(title(Some(3)), "flow-dump from pmd on cpu core: 3\n");
        assert_eq!(title(None), MAIN_THREAD);
    }
}
