//! Commands of the process: version and exit.

use super::Answer::Immediate;
use super::Command;
use crate::control::Control;
use crate::unixctl::EXIT;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 2] = [
    Command { name: EXIT, usage: "[--cleanup]", least: 0, most: 1, answer: Immediate(exit) },
    Command { name: "version", usage: "", least: 0, most: 0, answer: Immediate(version) },
];

/// Returns the version; when it replaces another daemon, in a form that its scripts accept.
fn version(control: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(format!("{}\n", control.tools.version))
}

/// Accepts the exit; the process ends after the answer is sent. The switch's own interfaces are
/// always removed. Queues on foreign interfaces remain, unless `--cleanup` is given.
fn exit(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    if arguments.iter().any(|argument| argument == "--cleanup") {
        control.clean_up();
    }
    Ok(String::new())
}
