//! What a switch holds, as `ovs-ofctl` dumps it; rules in the order in which frames
//! meet them.

use std::cmp::Reverse;
use std::fmt::Write;

use base::{GroupId, MeterId, PortNo, Xid};
use flow::FlowStatsRequest;
use flow::text::{self, Brief};
use openflow::{Detail, Form, Message, MultipartReply, MultipartRequest, print};

use crate::client::Client;
use crate::error::ToolError;
use crate::parse::{Subject, read_lines};

/// What is to be told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dump {
    /// Rules, and what they counted if that is wanted.
    Flows {
        /// Which, in the words of `ovs-ofctl dump-flows`; nothing is all.
        filter: String,
        /// With what they counted.
        counts: bool,
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
pub fn dump(client: &mut Client, what: &Dump) -> Result<String, ToolError> {
    let request = match what {
        Dump::Flows { filter, counts } => return flows(client, filter, *counts),
        Dump::Groups { counts: false } => MultipartRequest::GroupDesc(GroupId::ALL),
        Dump::Groups { counts: true } => MultipartRequest::Group(GroupId::ALL),
        Dump::Meters { counts: false } => MultipartRequest::MeterConfig(MeterId::ALL),
        Dump::Meters { counts: true } => MultipartRequest::Meter(MeterId::ALL),
        Dump::Ports { counts: false } => MultipartRequest::PortDesc(PortNo::ANY),
        Dump::Ports { counts: true } => MultipartRequest::Port(PortNo::ANY),
    };
    let reply = sorted(client.ask(request)?);
    Ok(printed(client, &Message::reply(reply)))
}

fn flows(client: &mut Client, filter: &str, counts: bool) -> Result<String, ToolError> {
    let request = match filter.trim() {
        "" => FlowStatsRequest::all(),
        filter => text::parse_flow_stats_request(filter)
            .map_err(|error| ToolError::Text { line: 1, error })?,
    };
    let reply = client.ask(MultipartRequest::Flow(Form::Standard, request))?;
    let MultipartReply::Flow(_, mut rules) = reply else {
        return Err(ToolError::Down("it told of something else".into()));
    };
    rules.sort_by_cached_key(|rule| {
        (
            rule.table,
            Reverse(rule.priority),
            rule.matching.to_string(),
        )
    });
    let mut told = String::new();
    for rule in &rules {
        // Writing to a string cannot fail.
        let _ = match counts {
            true => writeln!(told, " {rule}"),
            false => writeln!(told, " {}", Brief(rule)),
        };
    }
    Ok(told)
}

/// Groups and meters by their numbers. Ports are printed so.
fn sorted(mut reply: MultipartReply) -> MultipartReply {
    match &mut reply {
        MultipartReply::Group(all) => all.sort_by_key(|told| told.group),
        MultipartReply::GroupDesc(all) => all.sort_by_key(|told| told.group),
        MultipartReply::Meter(all) => all.sort_by_key(|told| told.meter),
        MultipartReply::MeterConfig(all) => all.sort_by_key(|told| told.meter),
        MultipartReply::Port(all) => all.sort_by_key(|told| told.port),
        _ => {}
    }
    reply
}

/// An answer as it is printed, in one text though it be several messages: without the
/// line that names it.
fn printed(client: &Client, message: &Message) -> String {
    let mut bytes = Vec::new();
    let told = message.encode(Xid(0), client.version(), &mut bytes);
    told.expect("what was told in this version can be told in it");
    let mut text = String::new();
    let mut rest = &bytes[..];
    while let Some(length) = rest.get(2..4) {
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let (part, behind) = rest.split_at(length.min(rest.len()).max(1));
        rest = behind;
        let printed = print(part, Detail::BRIEF);
        let (_, lines) = printed.split_once('\n').unwrap_or_default();
        text += lines;
    }
    text
}

/// Changes what a switch holds by the commands in `lines`; one that names no command is
/// `command`. They are done in their order, up to the first that is refused.
///
/// # Errors
/// A line is wrong: then nothing is done. Or the switch refuses a command.
pub fn change(
    client: &mut Client,
    subject: Subject,
    command: &str,
    lines: &str,
) -> Result<(), ToolError> {
    let said: Vec<String> = lines
        .lines()
        .map(|line| with_command(command, line))
        .collect();
    let read = read_lines(subject, &said.join("\n"))?;
    let commands: Vec<Message> = read.into_iter().map(|(_, message)| message).collect();
    client.tell(&commands)
}

/// A line with a command before it, unless it says nothing. What is named by `all` is
/// what is named by nothing.
fn with_command(command: &str, line: &str) -> String {
    match line.trim() {
        "" => String::new(),
        line if line.starts_with('#') => String::new(),
        "all" => command.to_owned(),
        line => format!("{command} {line}"),
    }
}
