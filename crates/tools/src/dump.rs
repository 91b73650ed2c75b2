//! Dumps of a switch's tables in the format of `ovs-ofctl`, with rules in lookup order, and changes
//! to them.

use std::fmt::Write;

use base::{GroupId, MeterId, PortNo, Xid};
use flow::text::{FlowWithoutStats, NameMap, WithNames};
use flow::{FlowStats, FlowStatsRequest};
use openflow::{
    Detail, FlowFormat, Message, MultipartReply, MultipartRequest, Version, print_named,
    split_message,
};

use crate::client::{Atomicity, Client};
use crate::error::ToolError;
use crate::parse::{LineSubject, read_with_command};
use crate::rules::{self, SortOrder};

/// The objects of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpRequest {
    /// Rules.
    Flows {
        /// The filter, in the syntax of `ovs-ofctl dump-flows`; empty for all rules.
        filter: String,
        /// True if counters are printed.
        counts: bool,
        /// The sort orders, before the lookup order.
        orders: Vec<SortOrder>,
    },
    /// Groups: their descriptions, or their counters.
    Groups {
        /// True for counters.
        counts: bool,
    },
    /// Meters: their configuration, or their counters.
    Meters {
        /// True for counters.
        counts: bool,
    },
    /// Ports: their descriptions, or their counters.
    Ports {
        /// True for counters.
        counts: bool,
    },
}

/// Requests a dump and prints it, a line for each object.
///
/// # Errors
/// The filter is malformed, or the switch does not answer.
pub fn dump(client: &mut Client, request: &DumpRequest) -> Result<String, ToolError> {
    let request = match request {
        DumpRequest::Flows {
            filter,
            counts,
            orders,
        } => return flows(client, filter, *counts, orders),
        DumpRequest::Groups { counts: false } => MultipartRequest::GroupDesc(GroupId::ALL),
        DumpRequest::Groups { counts: true } => MultipartRequest::Group(GroupId::ALL),
        DumpRequest::Meters { counts: false } => MultipartRequest::MeterConfig(MeterId::ALL),
        DumpRequest::Meters { counts: true } => MultipartRequest::Meter(MeterId::ALL),
        DumpRequest::Ports { counts: false } => MultipartRequest::PortDesc(PortNo::ANY),
        DumpRequest::Ports { counts: true } => MultipartRequest::Port(PortNo::ANY),
    };
    let reply = sorted(client.request(request)?);
    let version = client.version();
    let names = client.printed_names()?;
    Ok(print_reply(&Message::reply(reply), version, names))
}

fn flows(
    client: &mut Client,
    filter: &str,
    counts: bool,
    orders: &[SortOrder],
) -> Result<String, ToolError> {
    let request = match filter.trim() {
        "" => FlowStatsRequest::all(),
        filter => client.parse_with_names(|names| {
            let read = names.parse_flow_stats_request(filter);
            read.map_err(|error| ToolError::Text { line: 1, error })
        })?,
    };
    let mut rules = request_flows(client, request)?;
    rules::sort(&mut rules, orders);
    let names = client.printed_names()?;
    let mut text = String::new();
    for rule in &rules {
        // Writing to a string cannot fail.
        let _ = match counts {
            true => writeln!(text, " {}", WithNames(rule, names)),
            false => writeln!(text, " {}", WithNames(&FlowWithoutStats(rule), names)),
        };
    }
    Ok(text)
}

/// Sorts groups, meters and port counters by number, the order in which they are printed.
fn sorted(mut reply: MultipartReply) -> MultipartReply {
    match &mut reply {
        MultipartReply::Group(all) => all.sort_by_key(|entry| entry.group),
        MultipartReply::GroupDesc(all) => all.sort_by_key(|entry| entry.group),
        MultipartReply::Meter(all) => all.sort_by_key(|entry| entry.meter),
        MultipartReply::MeterConfig(all) => all.sort_by_key(|entry| entry.meter),
        MultipartReply::Port(all) => all.sort_by_key(|entry| entry.port),
        _ => {}
    }
    reply
}

/// Prints a reply without its first line, which names the message. Several parts are joined.
fn print_reply(message: &Message, version: Version, names: &NameMap) -> String {
    let mut bytes = Vec::new();
    let text = message.encode(Xid(0), version, &mut bytes);
    text.expect("a decoded reply can be encoded");
    let mut text = String::new();
    let mut rest = &bytes[..];
    while let Ok(Some((part, tail))) = split_message(rest) {
        rest = tail;
        let printed = print_named(part, Detail::BRIEF, names);
        let (_, lines) = printed.split_once('\n').unwrap_or_default();
        text += lines;
    }
    text
}

/// A command that changes the tables of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Adds; a line may begin with a command of its own.
    Add,
    /// Modifies all matching objects.
    Modify,
    /// Modifies the rule with exactly this match and priority.
    ModifyStrict,
    /// Deletes all matching objects.
    Delete,
    /// Deletes the rule with exactly this match and priority.
    DeleteStrict,
    /// Inserts buckets into a group.
    InsertBuckets,
    /// Removes buckets from a group.
    RemoveBuckets,
}

impl Command {
    const fn word(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Modify => "modify",
            Self::ModifyStrict => "modify_strict",
            Self::Delete => "delete",
            Self::DeleteStrict => "delete_strict",
            Self::InsertBuckets => "insert_bucket",
            Self::RemoveBuckets => "remove_bucket",
        }
    }
}

/// A change: its objects, command and atomicity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeRequest {
    /// The kind of the changed objects.
    pub subject: LineSubject,
    /// The command.
    pub command: Command,
    /// The atomicity of the lines.
    pub atomicity: Atomicity,
}

/// Changes the tables of a switch by the commands in `lines`.
///
/// # Errors
/// A line is malformed; nothing is changed then. Or the switch refuses a command: the commands
/// before it have taken effect, or none if `atomicity` is all or nothing.
pub fn change(client: &mut Client, change: ChangeRequest, lines: &str) -> Result<(), ToolError> {
    let allow_commands = change.command == Command::Add;
    let word = change.command.word();
    let commands = client.parse_with_names(|names| {
        read_with_command(change.subject, word, allow_commands, lines, names)
    })?;
    client.send_commands(&commands, change.atomicity)
}

/// Replaces all rules of a switch by the rules in `lines`, which have the syntax of additions. Only
/// differences are changed, unless `readd_all` adds all rules again.
///
/// # Errors
/// As for [`change`].
pub fn replace(
    client: &mut Client,
    lines: &str,
    readd_all: bool,
    atomicity: Atomicity,
) -> Result<(), ToolError> {
    let current = request_all_flows(client)?;
    let desired = client.parse_with_names(|names| rules::parse(lines, names))?;
    let commands = rules::replacement(current, desired, readd_all);
    client.send_commands(&commands, atomicity)
}

/// Returns the differences between the rules of a switch and those in `lines`, in the format of
/// `ovs-ofctl diff-flows`: `-` marks rules of the switch, `+` rules of the lines.
///
/// # Errors
/// A line is not a rule, or the switch does not answer.
pub fn difference(client: &mut Client, lines: &str) -> Result<String, ToolError> {
    let current = request_all_flows(client)?;
    let desired = client.parse_with_names(|names| rules::parse(lines, names))?;
    Ok(rules::difference(
        current,
        &desired,
        client.printed_names()?,
    ))
}

fn request_all_flows(client: &mut Client) -> Result<Vec<FlowStats>, ToolError> {
    request_flows(client, FlowStatsRequest::all())
}

fn request_flows(
    client: &mut Client,
    request: FlowStatsRequest,
) -> Result<Vec<FlowStats>, ToolError> {
    match client.request(MultipartRequest::Flow(FlowFormat::Standard, request))? {
        MultipartReply::Flow(_, rules) => Ok(rules),
        _ => Err(ToolError::Down(
            "a reply has another type than its request".into(),
        )),
    }
}
