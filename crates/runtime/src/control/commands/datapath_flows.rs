//! Flows of a datapath that an operator adds, modifies and deletes by ovs-dpctl(8).

use super::datapath_changes::{AddedFlow, datapath_of, failure, missing};
use crate::control::Control;
use switch::odp::OdpFlow;

/// The names of actions with arguments.
#[rustfmt::skip]
const ACTIONS: [&str; 22] = [
    "check_pkt_len", "clone", "ct", "hash", "lb_output", "meter", "pop_mpls", "pop_nsh", "push_eth",
    "push_mpls", "add_mpls", "push_nsh", "push_vlan", "recirc", "sample", "set", "tnl_pop",
    "tnl_push", "trunc", "userspace", "psample", "dec_ttl",
];

/// The names of actions without arguments.
const PLAIN_ACTIONS: [&str; 5] = ["ct_clear", "drop", "pop_eth", "pop_vlan", "ct"];

/// A change of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OdpFlowChange {
    Add,
    Modify,
    Delete,
}

pub(super) fn add_flow(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    change_flow(control, arguments, OdpFlowChange::Add)
}

pub(super) fn modify_flow(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    change_flow(control, arguments, OdpFlowChange::Modify)
}

pub(super) fn delete_flow(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    change_flow(control, arguments, OdpFlowChange::Delete)
}

fn change_flow(
    control: &mut Control,
    arguments: &[String],
    change: OdpFlowChange,
) -> Result<String, String> {
    let words = if change == OdpFlowChange::Delete {
        1
    } else {
        2
    };
    let first = arguments.len().saturating_sub(words);
    let datapath = datapath_of(control, arguments.get(..first).and_then(<[_]>::first))?;
    let flow = arguments.get(first).map_or("", String::as_str);
    let actions = arguments.get(first + 1).map_or("", String::as_str);
    apply(control, &datapath, change, (flow, actions))?;
    Ok(String::new())
}

fn apply(
    control: &mut Control,
    datapath: &str,
    change: OdpFlowChange,
    (flow, actions): (&str, &str),
) -> Result<(), String> {
    let added = control.commands.changes.datapath(datapath).cloned();
    let ports = control.datapath_ports();
    let number = |name: &str| match &added {
        Some(added) => added.number_of(name),
        None => ports.find(name).and_then(|port| ports.number(port)),
    };
    let parsed = OdpFlow::parse(flow, number).map_err(|error| {
        failure(&match change {
            OdpFlowChange::Delete => format!("{error} ({})", error.reason()),
            _ => format!("parsing flow key ({error}) ({})", error.reason()),
        })
    })?;
    let key = parsed.text();
    if change == OdpFlowChange::Delete {
        return match control.commands.changes.delete(datapath, &key) {
            true => Ok(()),
            false => Err(failure("deleting flow (No such file or directory)")),
        };
    }
    if !are_actions(actions) {
        return Err(failure("parsing actions (Invalid argument)"));
    }
    if parsed
        .in_port
        .is_none_or(|port| port.mask != u128::from(u32::MAX))
    {
        tracing::warn!("{datapath}: failed to put flow: in_port is not an exact match");
        return Err(failure("updating flow table (Invalid argument)"));
    }
    let flow = AddedFlow {
        key,
        actions: actions.to_owned(),
    };
    let done = control
        .commands
        .changes
        .put(datapath, flow, change == OdpFlowChange::Add);
    done.map_err(|why| failure(&format!("updating flow table ({why})")))
}

pub(super) fn add_flows(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    change_flows(control, arguments, OdpFlowChange::Add)
}

pub(super) fn modify_flows(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    change_flows(control, arguments, OdpFlowChange::Modify)
}

pub(super) fn delete_flows_of_file(
    control: &mut Control,
    arguments: &[String],
) -> Result<String, String> {
    change_flows(control, arguments, OdpFlowChange::Delete)
}

/// Executes the lines of a file: `[add|modify|delete] FLOW [ACTIONS]`.
fn change_flows(
    control: &mut Control,
    arguments: &[String],
    usual: OdpFlowChange,
) -> Result<String, String> {
    let (file, before) = arguments.split_last().ok_or_else(missing)?;
    let datapath = datapath_of(control, before.first())?;
    let text =
        std::fs::read_to_string(file).map_err(|error| failure(&format!("{file}: {error}")))?;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let (change, line) = match word {
            "add" => (OdpFlowChange::Add, rest.trim()),
            "modify" => (OdpFlowChange::Modify, rest.trim()),
            "delete" => (OdpFlowChange::Delete, rest.trim()),
            _ => (usual, line),
        };
        let (flow, actions) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if actions.is_empty() && change != OdpFlowChange::Delete {
            return Err(failure(&format!("{file}:{number}: actions are missing")));
        }
        apply(control, &datapath, change, (flow, actions.trim()))?;
    }
    Ok(String::new())
}

/// True if a text is a list of actions by its outer syntax.
fn are_actions(text: &str) -> bool {
    let mut rest = text.trim_start_matches([',', ' ']);
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let end = rest.find(['(', ',', ' ']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let is_port = !name.is_empty() && name.bytes().all(|digit| digit.is_ascii_digit());
        rest = match after.strip_prefix('(') {
            Some(inner) if ACTIONS.contains(&name) => match end_of_group(inner) {
                Some(end) => &inner[end + 1..],
                None => return false,
            },
            Some(_) => return false,
            None if is_port || PLAIN_ACTIONS.contains(&name) => after,
            None => return false,
        };
        rest = rest.trim_start_matches([',', ' ']);
    }
    true
}

/// Returns the place of the parenthesis that closes a group.
fn end_of_group(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    text.bytes().position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_have_known_names_and_closed_groups() {
        for text in [
            "2",
            "1,2",
            "drop",
            "set(ipv4(ttl=1)),pop_vlan,3",
            "clone(1,2),3",
        ] {
            assert!(are_actions(text), "{text}");
        }
        for text in ["", "dance", "set(ipv4(ttl=1)", "set", "4x", "port(1)"] {
            assert!(!are_actions(text), "{text}");
        }
    }
}
