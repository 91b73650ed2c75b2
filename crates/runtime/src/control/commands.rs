//! The commands of the control socket: a table with one row per command, by subject. The checks of
//! arguments and their error messages are those of Open vSwitch's unixctl.
//!
//! A subject is a file with rows (`COMMANDS`) and the functions that answer; it is listed in
//! [`SUBJECTS`].

mod auto_attach;
mod bonds;
mod bridges;
mod capturing;
mod conntrack;
mod coverage;
mod datapath;
mod datapath_changes;
mod datapath_flows;
mod dpctl;
mod dummies;
mod faults;
mod fdb;
pub(super) mod features;
mod flow_list;
mod fragments;
mod implementations;
mod json;
mod lacp;
mod logs;
mod monitors;
mod own;
mod port_config;
mod process;
mod qos;
mod recirculations;
mod routes;
mod routing_rules;
mod spanning_tree;
pub(super) mod tracing;
mod tunnels;
mod upcalls;
mod warp;
mod workers;

use std::collections::BTreeMap;

use super::bridge_runtime::OpenListener;
use super::datapath_ports::DatapathName;
use super::{BridgeRuntime, Control};
use crate::inbox::{CommandReply, CommandRequest, OutputFormat};
use config::DummyMode;
use workers::WorkerTotals;

/// All commands, by subject; names are unique.
const SUBJECTS: &[&[Command]] = &[
    &COMMANDS,
    &auto_attach::COMMANDS,
    &bonds::COMMANDS,
    &bridges::COMMANDS,
    &capturing::COMMANDS,
    &conntrack::COMMANDS,
    &datapath::COMMANDS,
    &dpctl::COMMANDS,
    &fragments::COMMANDS,
    &implementations::COMMANDS,
    &lacp::COMMANDS,
    &logs::COMMANDS,
    &monitors::COMMANDS,
    &own::COMMANDS,
    &process::COMMANDS,
    &qos::COMMANDS,
    &fdb::COMMANDS,
    &features::COMMANDS,
    &routes::COMMANDS,
    &routing_rules::COMMANDS,
    &tunnels::COMMANDS,
    &tracing::COMMANDS,
    &spanning_tree::COMMANDS,
    &coverage::COMMANDS,
    &upcalls::COMMANDS,
    &workers::COMMANDS,
];

/// Commands that exist only if dummies are enabled.
const FOR_TESTS: [&[Command]; 3] = [&dummies::COMMANDS, &faults::COMMANDS, &warp::COMMANDS];

/// Commands that are missing in the list, as in Open vSwitch.
const UNLISTED: [&[&str]; 2] = [&upcalls::UNLISTED, &implementations::UNLISTED];

/// No limit of arguments.
const MANY: usize = usize::MAX;

/// A command.
struct Command {
    /// The name.
    name: &'static str,
    /// The arguments, for the list of commands.
    usage: &'static str,
    /// The minimum number of arguments.
    least: usize,
    /// The maximum number of arguments.
    most: usize,
    /// The function that answers.
    answer: Answer,
}

/// The function of a command. An error is one line.
enum Answer {
    /// Runs on the control thread.
    Immediate(fn(&mut Control, &[String]) -> Result<String, String>),
    /// Runs on the control thread, which answers later.
    Pending(fn(&mut Control, CommandRequest)),
    /// Takes a snapshot on the control thread; another thread formats the answer.
    Deferred(fn(&mut Control, &[String]) -> Result<DeferredAnswer, String>),
}

use Answer::{Deferred, Immediate, Pending};

/// An answer that takes long to format.
pub(super) type DeferredAnswer = Box<dyn FnOnce() -> String + Send>;

#[rustfmt::skip]
const COMMANDS: [Command; 1] = [
    Command { name: "list-commands", usage: "", least: 0, most: 0, answer: Immediate(list_commands) },
];

impl Command {
    /// Returns the command with this name.
    ///
    /// # Errors
    /// There is none, or the number of arguments is wrong.
    fn find(name: &str, arguments: usize, dummies: DummyMode) -> Result<&'static Self, String> {
        let mut rows = all(dummies);
        let former = bonds::FORMER.iter().find(|(former, _)| *former == name);
        let present = former.map_or(name, |(_, present)| present);
        let row = rows.find(|row| row.name == present).ok_or_else(|| {
            format!(
                "\"{name}\" is not a valid command (use \"list-commands\" to see a list of valid commands)"
            )
        })?;
        if arguments < row.least {
            let least = row.least;
            return Err(format!(
                "\"{name}\" command requires at least {least} arguments"
            ));
        }
        if arguments > row.most {
            let most = row.most;
            return Err(format!("\"{name}\" command takes at most {most} arguments"));
        }
        Ok(row)
    }
}

/// Returns all commands.
fn all(dummies: DummyMode) -> impl Iterator<Item = &'static Command> {
    let for_tests = dummies.is_enabled().then_some(FOR_TESTS);
    let subjects = SUBJECTS
        .iter()
        .copied()
        .chain(for_tests.into_iter().flatten());
    subjects.flatten()
}

/// The state that commands keep.
#[derive(Default)]
pub(super) struct CommandState {
    /// The workers' counters at the last reset of the cycle statistics.
    cleared: Vec<WorkerTotals>,
    /// The choices of implementations.
    implementations: implementations::ImplementationChoices,
    /// The settings of upcalls.
    pub(super) upcalls: upcalls::UpcallSettings,
    /// The changes of datapaths by operators.
    pub(super) changes: datapath_changes::DatapathChanges,
    /// The changed features of datapaths.
    pub(super) features: BTreeMap<DatapathName, features::DatapathFeatures>,
    /// The packets whose traces have ended with a recirculation.
    frozen: recirculations::FrozenPackets,
    /// The warp of the clock in progress, if any.
    warp: Option<warp::ClockWarp>,
    /// The control socket of the process, beside those of the bridges.
    pub(super) unixctl: Option<OpenListener>,
    /// True if the exit also removes the configuration of foreign interfaces.
    pub(super) cleans_up: bool,
}

impl Control {
    /// Executes a command and sends the answer.
    pub(super) fn handle_command_request(&mut self, request: CommandRequest) {
        let row = Command::find(
            &request.command,
            request.arguments.len(),
            self.tools.dummies,
        );
        let answer = match row.map(|row| &row.answer) {
            Ok(Immediate(answer)) => match json::answer(&request.command) {
                Some(in_json) if request.format == OutputFormat::Json => {
                    let answer = in_json(self, &request.arguments).map(CommandReply::Json);
                    // The client may have disconnected.
                    return drop(request.answer.send(answer));
                }
                _ => answer(self, &request.arguments),
            },
            Ok(Pending(answer)) => return answer(self, request),
            Ok(Deferred(answer)) => match answer(self, &request.arguments) {
                Ok(deferred) => return self.answer_in_background(deferred, request),
                Err(problem) => Err(problem),
            },
            Err(problem) => Err(problem),
        };
        // The client may have disconnected.
        drop(request.answer.send(answer.map(CommandReply::Text)));
    }

    fn answer_in_background(&self, deferred: DeferredAnswer, request: CommandRequest) {
        let answer = move || drop(request.answer.send(Ok(CommandReply::Text(deferred()))));
        drop(self.tools.runtime.spawn_blocking(answer));
    }
}

/// Returns the bridge that the first argument names.
fn named<'a>(
    control: &'a mut Control,
    arguments: &[String],
) -> Result<&'a mut BridgeRuntime, String> {
    let name = arguments.first().map_or("", String::as_str);
    site_of(control, name).ok_or_else(|| "no such bridge".to_owned())
}

/// Returns the bridge with this name.
fn site_of<'a>(control: &'a mut Control, name: &str) -> Option<&'a mut BridgeRuntime> {
    control.site_named(name).map(|(_, site)| site)
}

/// Splits the arguments into those that begin with a dash, and the others.
fn options(arguments: &[String]) -> (Vec<&str>, Vec<&str>) {
    let words = arguments.iter().map(String::as_str);
    words.partition(|word| word.starts_with('-'))
}

/// Returns the commands that are listed, by name.
fn listed(dummies: DummyMode) -> Vec<&'static Command> {
    let mut rows: Vec<_> = all(dummies)
        .filter(|row| !UNLISTED.iter().any(|names| names.contains(&row.name)))
        .collect();
    rows.sort_by_key(|row| row.name);
    rows
}

fn list_commands(control: &mut Control, _: &[String]) -> Result<String, String> {
    let rows = listed(control.tools.dummies);
    let lines = rows
        .iter()
        .map(|row| format!("  {:<23} {}\n", row.name, row.usage));
    Ok(std::iter::once("The available commands are:\n".to_owned())
        .chain(lines)
        .collect())
}

#[cfg(test)]
mod tests;
