//! What a switch holds, as `ovs-ofctl` dumps it; rules in the order in which frames
//! meet them.

use std::fmt::Write;

use base::{GroupId, MeterId, PortNo, Xid};
use flow::text::{FlowWithoutStats, NameMap, WithNames};
use flow::{FlowStats, FlowStatsRequest};
use openflow::{
    Detail, FlowFormat, Message, MultipartReply, MultipartRequest, Version, print_named,
};

use crate::client::{Atomicity, Client};
use crate::error::ToolError;
use crate::parse::{LineSubject, read_with_command};
use crate::rules::{self, SortOrder};

/// What is to be told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpRequest {
    /// Rules, and what they counted if that is wanted.
    Flows {
        /// Which, in the words of `ovs-ofctl dump-flows`; nothing is all.
        filter: String,
        /// With what they counted.
        counts: bool,
        /// In which order, before that in which frames meet them.
        orders: Vec<SortOrder>,
    },
    /// Groups: what they are, or what they counted.
    Groups {
        /// What they counted.
        counts: bool,
    },
    /// Meters: what they are, or what they counted.
    Meters {
        /// What they counted.
        counts: bool,
    },
    /// Ports: what they are, or what they counted.
    Ports {
        /// What they counted.
        counts: bool,
    },
}

/// Asks the switch, and tells what it answers, a line for each.
///
/// # Errors
/// The filter is no match, or the switch does not answer.
pub fn dump(client: &mut Client, what: &DumpRequest) -> Result<String, ToolError> {
    let request = match what {
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
    Ok(printed(&Message::reply(reply), version, names))
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
    let mut rules_found = request_flows(client, request)?;
    rules::sort(&mut rules_found, orders);
    let names = client.printed_names()?;
    let mut text = String::new();
    for rule in &rules_found {
        // Writing to a string cannot fail.
        let _ = match counts {
            true => writeln!(text, " {}", WithNames(rule, names)),
            false => writeln!(text, " {}", WithNames(&FlowWithoutStats(rule), names)),
        };
    }
    Ok(text)
}

/// Groups and meters by their numbers. Ports are printed so.
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

/// An answer as it is printed, in one text though it be several messages: without the
/// line that names it.
fn printed(message: &Message, version: Version, names: &NameMap) -> String {
    let mut bytes = Vec::new();
    let text = message.encode(Xid(0), version, &mut bytes);
    text.expect("what was told in this version can be told in it");
    let mut text = String::new();
    let mut rest = &bytes[..];
    while let Some(length) = rest.get(2..4) {
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let (part, tail) = rest.split_at(length.min(rest.len()).max(1));
        rest = tail;
        let printed = print_named(part, Detail::BRIEF, names);
        let (_, lines) = printed.split_once('\n').unwrap_or_default();
        text += lines;
    }
    text
}

/// What is to become of what a switch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Add what a line says; a line may begin with a command of its own.
    Add,
    /// Change it.
    Modify,
    /// Change the one rule that has this match and priority.
    ModifyStrict,
    /// Delete it.
    Delete,
    /// Delete the one rule that has this match and priority.
    DeleteStrict,
    /// Put buckets into a group.
    InsertBuckets,
    /// Take buckets out of a group.
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

/// A change, and how it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeRequest {
    /// What is changed.
    pub subject: LineSubject,
    /// How.
    pub command: Command,
    /// All of it or nothing, or one after the other.
    pub atomicity: Atomicity,
}

/// Changes what a switch holds by the commands in `lines`.
///
/// # Errors
/// A line is wrong: then nothing is done. Or the switch refuses a command: those before it
/// are done, or nothing if all were to be done together.
pub fn change(client: &mut Client, change: ChangeRequest, lines: &str) -> Result<(), ToolError> {
    let allow_commands = change.command == Command::Add;
    let word = change.command.word();
    let commands = client.parse_with_names(|names| {
        read_with_command(change.subject, word, allow_commands, lines, names)
    })?;
    client.send_commands(&commands, change.atomicity)
}

/// Has a switch hold the rules in `lines`, which are written as they are added, and no
/// others. Only what differs is changed, unless all is to be added `readd_all`.
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

/// What differs between the rules of a switch and those in `lines`, in the words of
/// `ovs-ofctl diff-flows`: `-` is before those of the switch, `+` before those in the lines.
///
/// # Errors
/// A line is no rule, or the switch does not answer.
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
        _ => Err(ToolError::Down("it told of something else".into())),
    }
}
