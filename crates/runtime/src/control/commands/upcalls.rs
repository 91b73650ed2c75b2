//! Commands of upcalls and revalidators: `upcall/*` and `revalidator/*` of ovs-vswitchd(8).
//!
//! Rules are compiled, so traffic sets up no flows and no thread revalidates them. The settings are
//! accepted and reported, since scripts set them; they change nothing about forwarding.

use super::Answer::Immediate;
use super::{Command, datapath};
use crate::control::Control;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 10] = [
    Command { name: "revalidator/pause", usage: "", least: 0, most: 0, answer: Immediate(nothing) },
    Command { name: "revalidator/purge", usage: "", least: 0, most: 0, answer: Immediate(purge) },
    Command { name: "revalidator/resume", usage: "", least: 0, most: 0, answer: Immediate(nothing) },
    Command { name: "revalidator/wait", usage: "", least: 0, most: 0, answer: Immediate(wait) },
    Command { name: "upcall/disable-megaflows", usage: "", least: 0, most: 0, answer: Immediate(disable_megaflows) },
    Command { name: "upcall/disable-ufid", usage: "", least: 0, most: 0, answer: Immediate(disable_ufid) },
    Command { name: "upcall/enable-megaflows", usage: "", least: 0, most: 0, answer: Immediate(enable_megaflows) },
    Command { name: "upcall/enable-ufid", usage: "", least: 0, most: 0, answer: Immediate(enable_ufid) },
    Command { name: "upcall/set-flow-limit", usage: "flow-limit-number", least: 1, most: 1, answer: Immediate(set_limit) },
    Command { name: "upcall/show", usage: "", least: 0, most: 0, answer: Immediate(show) },
];

/// Commands that Open vSwitch does not list.
pub(super) const UNLISTED: [&str; 2] = ["revalidator/pause", "revalidator/resume"];

/// The settings of upcalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::control) struct UpcallSettings {
    /// True if flows of the datapath match as few fields as possible.
    pub(in crate::control) has_megaflows: bool,
    /// True if flows are dumped by their unique identifier.
    pub(in crate::control) has_ufid: bool,
    /// The limit of flows in the datapath.
    pub(in crate::control) flow_limit: u32,
}

impl Default for UpcallSettings {
    fn default() -> Self {
        Self {
            has_megaflows: true,
            has_ufid: true,
            flow_limit: 10_000,
        }
    }
}

fn nothing(_: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(String::new())
}

/// Publishes pending changes, so that they are in force when the command returns.
fn wait(control: &mut Control, _: &[String]) -> Result<String, String> {
    control.settle_flows();
    control.log_flows();
    Ok(String::new())
}

/// Deletes the active flows.
fn purge(control: &mut Control, _: &[String]) -> Result<String, String> {
    control.settle_flows();
    control.delete_flows();
    Ok(String::new())
}

fn disable_megaflows(control: &mut Control, _: &[String]) -> Result<String, String> {
    control.commands.upcalls.has_megaflows = false;
    control.delete_flows();
    Ok("megaflows disabled\n".to_owned())
}

fn enable_megaflows(control: &mut Control, _: &[String]) -> Result<String, String> {
    control.commands.upcalls.has_megaflows = true;
    control.delete_flows();
    Ok("megaflows enabled\n".to_owned())
}

fn disable_ufid(control: &mut Control, _: &[String]) -> Result<String, String> {
    control.commands.upcalls.has_ufid = false;
    Ok("Datapath dumping tersely using UFID disabled\n".to_owned())
}

fn enable_ufid(control: &mut Control, _: &[String]) -> Result<String, String> {
    control.commands.upcalls.has_ufid = true;
    Ok("Datapath dumping tersely using UFID enabled for supported datapaths\n".to_owned())
}

fn set_limit(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    // As in Open vSwitch, text that is no number is zero.
    let limit = arguments.first().and_then(|text| text.parse().ok());
    let limit = limit.unwrap_or_default();
    control.commands.upcalls.flow_limit = limit;
    Ok(format!("set flow_limit to {limit}\n"))
}

/// Reports the number of rules as flows, and the packets that the interpreter processed.
fn show(control: &mut Control, _: &[String]) -> Result<String, String> {
    let missed = datapath::lookups(control).missed;
    let has_ufid = control.commands.upcalls.has_ufid;
    let datapaths = control.datapaths().into_iter();
    Ok(datapaths
        .map(|datapath| {
            let rules = datapath::flows(control, datapath);
            format!(
                "{}:\n  flows         : (current {rules})\n  upcalls       : none: rules are compiled, \
                 traffic sets up no flow\n  interpreted   : {missed}\n  ufid enabled : {has_ufid}\n\n",
                datapath.full()
            )
        })
        .collect())
}
