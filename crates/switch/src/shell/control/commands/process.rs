//! Commands of the process: what it is, what it holds, what it logs, and its end.

use base::TableId;

use super::Answer::AtOnce;
use super::{Command, MANY};
use crate::logging::Logging;
use crate::shell::control::Control;
use crate::shell::unixctl::EXIT;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 6] = [
    Command { name: EXIT, usage: "[--cleanup]", least: 0, most: 1, answer: AtOnce(exit) },
    Command { name: "memory/show", usage: "", least: 0, most: 0, answer: AtOnce(memory) },
    Command { name: "version", usage: "", least: 0, most: 0, answer: AtOnce(version) },
    Command { name: "vlog/list", usage: "", least: 0, most: 0, answer: AtOnce(log_list) },
    Command { name: "vlog/reopen", usage: "", least: 0, most: 0, answer: AtOnce(log_reopen) },
    Command { name: "vlog/set", usage: "{spec | PATTERN:destination:pattern}", least: 1, most: MANY, answer: AtOnce(log_set) },
];

fn version(_: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(format!("comporta {}\n", env!("CARGO_PKG_VERSION")))
}

/// Agrees; the process ends when the answer has been sent.
fn exit(_: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(String::new())
}

/// How many of what there is.
fn memory(control: &mut Control, _: &[String]) -> Result<String, String> {
    let (mut ports, mut rules) = (0, 0);
    for site in control.sites.values() {
        ports += site.ports.len();
        let pipeline = site.bridge.rules();
        let tables = (0..=TableId::LAST.0).map(TableId);
        rules += tables
            .map(|table| pipeline.rules(table).count())
            .sum::<usize>();
    }
    let (peers, workers) = (control.peers.len(), control.tools.workers.len());
    Ok(format!(
        "ofconns:{peers} ports:{ports} rules:{rules} workers:{workers}\n"
    ))
}

/// How much is said where.
fn log_list(control: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(logging(control)?.table())
}

/// Opens the log file again.
fn log_reopen(control: &mut Control, _: &[String]) -> Result<String, String> {
    logging(control)?.reopen()?;
    Ok(String::new())
}

/// Says more or less from now on.
fn log_set(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let logging = logging(control)?;
    arguments.iter().try_for_each(|spec| logging.set(spec))?;
    Ok(String::new())
}

fn logging(control: &Control) -> Result<&Logging, String> {
    let logging = control.tools.logging.as_deref();
    logging.ok_or_else(|| "how much this switch says was settled by --log".to_owned())
}
