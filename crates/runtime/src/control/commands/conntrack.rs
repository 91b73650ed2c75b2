//! Commands of the connection tracker: `dpctl/ct-*`, `dpctl/dump-conntrack` and
//! `dpctl/flush-conntrack` (ovs-dpctl(8), "Connection Tracking Table").
//!
//! Each datapath has a tracker. Commands that read the whole table run on another thread, and copy
//! a few connections under each lock: neither the control thread nor a worker waits for them.

mod format;
mod limits;

use std::fmt::Write;
use std::str::FromStr;
use std::sync::Arc;

use base::Instant;
use conntrack::{ConnectionInfo, Conntrack, CtZone, DumpCursor, SequenceCheck};
use switch::connection_filter::{ConnectionFilter, parse_request};

use super::Answer::{Deferred, Immediate, Pending};
use super::dpctl::{self, failure};
use super::{Command, DeferredAnswer};
use crate::control::Control;
use crate::control::datapath_ports::DatapathName;
use crate::inbox::{CommandReply, CommandRequest};
use format::{ConnectionLine, ConnectionStatistics};
use limits::{LimitChanges, format_limits, parse_zones};

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 13] = [
    Command { name: "dpctl/ct-bkts", usage: "[dp] [gt=N]", least: 0, most: 2, answer: Deferred(buckets) },
    Command { name: "dpctl/ct-del-limits", usage: "[dp] zone=N1[,N2]...", least: 1, most: 2, answer: Immediate(delete_limits) },
    Command { name: "dpctl/ct-disable-tcp-seq-chk", usage: "[dp]", least: 0, most: 1, answer: Immediate(disable_sequence_check) },
    Command { name: "dpctl/ct-enable-tcp-seq-chk", usage: "[dp]", least: 0, most: 1, answer: Immediate(enable_sequence_check) },
    Command { name: "dpctl/ct-get-limits", usage: "[dp] [zone=N1[,N2]...]", least: 0, most: 2, answer: Immediate(get_limits) },
    Command { name: "dpctl/ct-get-maxconns", usage: "[dp]", least: 0, most: 1, answer: Immediate(max_connections) },
    Command { name: "dpctl/ct-get-nconns", usage: "[dp]", least: 0, most: 1, answer: Immediate(connections) },
    Command { name: "dpctl/ct-get-tcp-seq-chk", usage: "[dp]", least: 0, most: 1, answer: Immediate(sequence_check) },
    Command { name: "dpctl/ct-set-limits", usage: "[dp] [default=L] [zone=N,limit=L]...", least: 1, most: super::MANY, answer: Immediate(set_limits) },
    Command { name: "dpctl/ct-set-maxconns", usage: "[dp] maxconns", least: 1, most: 2, answer: Immediate(set_max_connections) },
    Command { name: "dpctl/ct-stats-show", usage: "[dp] [zone=N]", least: 0, most: 3, answer: Deferred(statistics) },
    Command { name: "dpctl/dump-conntrack", usage: "[-m] [-s] [dp] [zone=N]", least: 0, most: 4, answer: Deferred(dump) },
    Command { name: "dpctl/flush-conntrack", usage: "[dp] [zone=N] [ct-orig-tuple] [ct-reply-tuple]", least: 0, most: 4, answer: Pending(flush) },
];

/// The tracker of a command, and its other arguments.
struct TrackerCommand<'a> {
    tracker: Arc<Conntrack>,
    /// The arguments behind the datapath's name, without options.
    rest: Vec<&'a str>,
    /// True with `-m`.
    is_verbose: bool,
    /// True with `-s`.
    has_statistics: bool,
    now: Instant,
}

impl<'a> TrackerCommand<'a> {
    fn new(control: &mut Control, words: &'a [String]) -> Result<Self, String> {
        let (datapath, rest) = datapath_arguments(control, words)?;
        let (options, _) = super::options(words);
        let has = |names: [&str; 2]| options.iter().any(|option| names.contains(option));
        let now = control.now();
        Ok(Self {
            tracker: control.trackers.of_datapath(datapath, now),
            rest,
            is_verbose: has(["-m", "--more"]),
            has_statistics: has(["-s", "--statistics"]),
            now,
        })
    }

    /// Removes a number after `prefix` from the end of the arguments.
    fn take_number(&mut self, prefix: &str) -> Option<u16> {
        let value = number(self.rest.last()?, prefix)?;
        self.rest.pop();
        Some(value)
    }

    /// Refuses arguments that remain.
    fn end(self) -> Result<Arc<Conntrack>, String> {
        none(&self.rest).map(|()| self.tracker)
    }
}

/// Returns the tracker of a command without arguments other than the datapath.
fn tracker(control: &mut Control, words: &[String]) -> Result<Arc<Conntrack>, String> {
    TrackerCommand::new(control, words)?.end()
}

/// Returns the datapath of a command, the only one by default, and the arguments behind its name
/// without options.
pub(super) fn datapath_arguments<'a>(
    control: &Control,
    words: &'a [String],
) -> Result<(DatapathName, Vec<&'a str>), String> {
    let (_, mut rest) = super::options(words);
    let named = rest.first().and_then(|name| dpctl::named(control, name));
    if let Some(datapath) = named {
        rest.remove(0);
        return Ok((datapath, rest));
    }
    let datapaths = control.datapaths();
    match datapaths.first() {
        Some(datapath) if datapaths.len() == 1 => Ok((*datapath, rest)),
        _ => Err(failure("datapath not found", "Invalid argument")),
    }
}

/// Refuses arguments that remain, which Open vSwitch takes for a datapath.
pub(super) fn none(rest: &[&str]) -> Result<(), String> {
    match rest.is_empty() {
        true => Ok(()),
        false => Err(failure("datapath not found", "Invalid argument")),
    }
}

/// Parses a number after `prefix`.
fn number<T: FromStr>(word: &str, prefix: &str) -> Option<T> {
    word.strip_prefix(prefix)?.parse().ok()
}

/// Runs `action` on each connection, of a zone if one is given. Copies a few under each lock.
fn for_each_connection(
    tracker: &Conntrack,
    zone: Option<u16>,
    now: Instant,
    mut action: impl FnMut(&ConnectionInfo),
) {
    let mut cursor = DumpCursor::default();
    let mut connections = Vec::new();
    while tracker.dump(&mut cursor, now, &mut connections) {
        for connection in connections.drain(..) {
            if zone.is_none_or(|zone| CtZone(zone) == connection.original.zone) {
                action(&connection);
            }
        }
    }
}

fn buckets(control: &mut Control, words: &[String]) -> Result<DeferredAnswer, String> {
    let mut command = TrackerCommand::new(control, words)?;
    let threshold = command.take_number("gt=").unwrap_or(0);
    let tracker = command.end()?;
    Ok(Box::new(move || {
        format::buckets(&tracker.shard_lens(), threshold.into())
    }))
}

fn get_limits(control: &mut Control, words: &[String]) -> Result<String, String> {
    let command = TrackerCommand::new(control, words)?;
    match command.rest[..] {
        [] => Ok(format_limits(&command.tracker, None)),
        [word] => {
            let zones = parse_zones(word);
            let zones = zones.map_err(|problem| failure(&problem, "Invalid argument"))?;
            Ok(format_limits(&command.tracker, Some(&zones)))
        }
        _ => none(&command.rest).map(|()| String::new()),
    }
}

fn set_limits(control: &mut Control, words: &[String]) -> Result<String, String> {
    let command = TrackerCommand::new(control, words)?;
    let changes = LimitChanges::parse(&command.rest);
    let changes = changes.map_err(|problem| failure(&problem, "Invalid argument"))?;
    changes.apply(&command.tracker);
    Ok(String::new())
}

fn delete_limits(control: &mut Control, words: &[String]) -> Result<String, String> {
    let command = TrackerCommand::new(control, words)?;
    let zones = parse_zones(command.rest.first().copied().unwrap_or_default());
    for zone in zones.map_err(|problem| failure(&problem, "Invalid argument"))? {
        command.tracker.set_zone_limit(zone, None);
    }
    Ok(String::new())
}

fn max_connections(control: &mut Control, words: &[String]) -> Result<String, String> {
    let limit = tracker(control, words)?.connections_max();
    Ok(format!("{limit}\n"))
}

fn set_max_connections(control: &mut Control, words: &[String]) -> Result<String, String> {
    let mut command = TrackerCommand::new(control, words)?;
    let limit = command.rest.pop().and_then(|word| word.parse().ok());
    let tracker = command.end()?;
    let malformed = || failure("maxconns missing or malformed", "Invalid argument");
    tracker.set_connections_max(limit.ok_or_else(malformed)?);
    Ok("setting maxconns successful".to_owned())
}

fn connections(control: &mut Control, words: &[String]) -> Result<String, String> {
    let count = tracker(control, words)?.len();
    Ok(format!("{count}\n"))
}

fn sequence_check(control: &mut Control, words: &[String]) -> Result<String, String> {
    let state = match tracker(control, words)?.sequence_check() {
        SequenceCheck::Strict => "enabled",
        SequenceCheck::Off => "disabled",
    };
    Ok(format!("TCP sequence checking: {state}\n"))
}

fn enable_sequence_check(control: &mut Control, words: &[String]) -> Result<String, String> {
    tracker(control, words)?.set_sequence_check(SequenceCheck::Strict);
    Ok("enabling TCP sequence checking successful".to_owned())
}

fn disable_sequence_check(control: &mut Control, words: &[String]) -> Result<String, String> {
    tracker(control, words)?.set_sequence_check(SequenceCheck::Off);
    Ok("disabling TCP sequence checking successful".to_owned())
}

/// Counts connections by protocol and, with `-m` or `verbose`, by state.
fn statistics(control: &mut Control, words: &[String]) -> Result<DeferredAnswer, String> {
    let mut command = TrackerCommand::new(control, words)?;
    let count = command.rest.len();
    command.rest.retain(|word| *word != "verbose");
    let is_verbose = command.is_verbose || command.rest.len() < count;
    let zone = command.take_number("zone=");
    let now = command.now;
    let tracker = command.end()?;
    Ok(Box::new(move || {
        let mut statistics = ConnectionStatistics::default();
        for_each_connection(&tracker, zone, now, |connection| statistics.add(connection));
        statistics.format(is_verbose)
    }))
}

fn dump(control: &mut Control, words: &[String]) -> Result<DeferredAnswer, String> {
    let mut command = TrackerCommand::new(control, words)?;
    let zone = command.take_number("zone=");
    let (is_verbose, has_statistics) = (command.is_verbose, command.has_statistics);
    let now = command.now;
    let tracker = command.end()?;
    Ok(Box::new(move || {
        let mut text = String::new();
        for_each_connection(&tracker, zone, now, |connection| {
            let line = ConnectionLine {
                connection,
                is_verbose,
                has_statistics,
            };
            writeln!(text, "{line}").expect("a string has room");
        });
        text
    }))
}

/// Removes all connections, those of a zone, or those with the given parts of tuples.
fn flush(control: &mut Control, request: CommandRequest) {
    let CommandRequest {
        arguments, answer, ..
    } = request;
    match prepare_flush(control, &arguments) {
        Ok((tracker, filter, now)) => {
            let flush = move || {
                let removed = filter.flush(&tracker, now);
                let missing = || failure("failed to flush conntrack", "No such file or directory");
                let result = removed
                    .map(|_| CommandReply::Text(String::new()))
                    .ok_or_else(missing);
                // The client may have disconnected.
                drop(answer.send(result));
            };
            drop(control.tools.runtime.spawn_blocking(flush));
        }
        Err(problem) => drop(answer.send(Err(problem))),
    }
}

fn prepare_flush(
    control: &mut Control,
    words: &[String],
) -> Result<(Arc<Conntrack>, ConnectionFilter, Instant), String> {
    let command = TrackerCommand::new(control, words)?;
    let request = parse_request(&command.rest);
    let request = request.map_err(|problem| failure(&problem, "Invalid argument"))?;
    Ok((
        command.tracker,
        ConnectionFilter::new(&request),
        command.now,
    ))
}
