//! Commands of the log: `vlog/*` of ovs-appctl(8).

use super::Answer::Immediate;
use super::{Command, MANY};
use crate::control::Control;
use crate::log_control::LogControl;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 7] = [
    Command { name: "vlog/close", usage: "", least: 0, most: 0, answer: Immediate(close) },
    Command { name: "vlog/disable-rate-limit", usage: "[module]...", least: 0, most: MANY, answer: Immediate(limit_rate) },
    Command { name: "vlog/enable-rate-limit", usage: "[module]...", least: 0, most: MANY, answer: Immediate(limit_rate) },
    Command { name: "vlog/list", usage: "", least: 0, most: 0, answer: Immediate(list) },
    Command { name: "vlog/list-pattern", usage: "", least: 0, most: 0, answer: Immediate(list_patterns) },
    Command { name: "vlog/reopen", usage: "", least: 0, most: 0, answer: Immediate(reopen) },
    Command { name: "vlog/set", usage: "{spec | PATTERN:destination:pattern}", least: 1, most: MANY, answer: Immediate(set) },
];

/// Lists the levels by module and destination.
fn list(control: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(log(control)?.levels())
}

/// Lists the patterns of lines.
fn list_patterns(control: &mut Control, _: &[String]) -> Result<String, String> {
    Ok(log(control)?.patterns())
}

/// Closes the log file until it is opened again.
fn close(control: &mut Control, _: &[String]) -> Result<String, String> {
    log(control)?.close();
    Ok(String::new())
}

/// Reopens the log file.
fn reopen(control: &mut Control, _: &[String]) -> Result<String, String> {
    log(control)?.reopen()?;
    Ok(String::new())
}

/// Checks the names of modules and does nothing else: log lines are not rate-limited, because
/// frequent events are counted instead of logged.
fn limit_rate(control: &mut Control, modules: &[String]) -> Result<String, String> {
    let log = log(control)?;
    match modules.iter().all(|module| log.has_module(module)) {
        true => Ok(String::new()),
        false => Err("unknown module".to_owned()),
    }
}

/// Changes levels, patterns or destinations.
fn set(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let log = log(control)?;
    arguments.iter().try_for_each(|spec| log.set(spec))?;
    Ok(String::new())
}

fn log(control: &Control) -> Result<&dyn LogControl, String> {
    let log = control.tools.log.as_deref();
    log.ok_or_else(|| "the log level of this switch is set by --log".to_owned())
}
