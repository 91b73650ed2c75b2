//! Commands of features that are not supported, answered like Open vSwitch without their
//! configuration: connectivity fault management (CFM, BFD) and auto-attach (ovs-vswitchd(8)).

use super::Answer::Immediate;
use super::Command;
use crate::control::Control;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 7] = [
    Command { name: "autoattach/show-isid", usage: "[bridge]", least: 0, most: 1, answer: Immediate(nothing) },
    Command { name: "autoattach/statistics", usage: "[bridge]", least: 0, most: 1, answer: Immediate(nothing) },
    Command { name: "autoattach/status", usage: "[bridge]", least: 0, most: 1, answer: Immediate(nothing) },
    Command { name: "bfd/set-forwarding", usage: "[interface] normal|false|true", least: 1, most: 2, answer: Immediate(bfd_set) },
    Command { name: "bfd/show", usage: "[interface]", least: 0, most: 1, answer: Immediate(bfd) },
    Command { name: "cfm/set-fault", usage: "[interface] normal|false|true", least: 1, most: 2, answer: Immediate(cfm_set) },
    Command { name: "cfm/show", usage: "[interface]", least: 0, most: 1, answer: Immediate(cfm) },
];

/// The answer to a change of all objects, of which there are none.
const DONE: &str = "OK\n";

fn nothing(_: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(String::new())
}

fn bfd(_: &mut Control, arguments: &[String]) -> Result<String, String> {
    none_named(arguments, 1, "no such bfd object")
}

fn bfd_set(_: &mut Control, arguments: &[String]) -> Result<String, String> {
    none_named(arguments, 2, "no such BFD object").map(|_| DONE.to_owned())
}

fn cfm(_: &mut Control, arguments: &[String]) -> Result<String, String> {
    none_named(arguments, 1, "no such CFM object")
}

fn cfm_set(_: &mut Control, arguments: &[String]) -> Result<String, String> {
    none_named(arguments, 2, "no such CFM object").map(|_| DONE.to_owned())
}

/// Returns an empty text for all objects, or the error `error` if `naming` arguments name one.
fn none_named(arguments: &[String], naming: usize, error: &str) -> Result<String, String> {
    match arguments.len() < naming {
        true => Ok(String::new()),
        false => Err(error.to_owned()),
    }
}
