//! Commands of the process: what it is, and its end.

use super::Answer::AtOnce;
use super::Command;
use crate::control::Control;
use crate::unixctl::EXIT;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 2] = [
    Command { name: EXIT, usage: "[--cleanup]", least: 0, most: 1, answer: AtOnce(exit) },
    Command { name: "version", usage: "", least: 0, most: 0, answer: AtOnce(version) },
];

/// What it is: where it stands in another's place, in words that scripts for that one take.
fn version(control: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(format!("{}\n", control.tools.version))
}

/// Agrees; the process ends when the answer has been sent. Interfaces that are the switch's own
/// go with it in any case. Queues that it has given to others stay, unless they are to be
/// cleaned up.
fn exit(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    if arguments.iter().any(|argument| argument == "--cleanup") {
        control.clean_up();
    }
    Ok(String::new())
}
