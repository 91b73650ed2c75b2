//! The line parser of scripts.

use std::time::Duration;

use base::{GroupId, MeterId, PortNo, TableId};
use flow::text::{
    parse_actions, parse_flow, parse_flow_stats_request, parse_group_line, parse_meter_line,
};
use flow::{
    Consistency, FlowFlags, FlowMod, FlowModCommand, FlowStatsRequest, FragmentHandling, GroupMod,
    Match, MeterMod, MissingRule, PacketOut, PipelineFields, PortDesc, TlvCommand, TlvMapping,
    TlvTableMod,
};
use packet::Frame;
use packet::build::Stack;
use pipeline::{MissPolicy, TableMiss};

use super::notation;

/// A parsed line.
pub(super) enum CaseLine {
    /// An empty line or a comment.
    Remark,
    /// An event.
    Event(CaseEvent),
    /// An expected effect, in the notation of effects.
    Effect(String),
    /// A count query.
    Count(CountQuery),
}

/// An event of a script.
pub enum CaseEvent {
    /// Adds or changes ports.
    Ports(Vec<PortDesc>),
    /// Removes a port.
    PortRemoved(PortNo),
    /// Sets the table-miss policy.
    Miss(MissPolicy),
    /// Sets the treatment of misses in a table, or all.
    TableMiss(TableId, TableMiss),
    /// Sets the handling of IP fragments.
    Fragments(FragmentHandling),
    /// Enters or leaves fail-standalone mode.
    Standalone(bool),
    /// A flow-mod.
    Flow(Box<FlowMod>),
    /// A group-mod.
    Group(GroupMod),
    /// A meter-mod.
    Meter(MeterMod),
    /// A packet-out.
    PacketOut(PacketOut),
    /// Resumes the last paused frame with these fields changed.
    Resume(Match),
    /// A frame arrives.
    Receive {
        /// The ingress port.
        port: PortNo,
        /// The number of times that the frame arrives.
        times: usize,
        /// The frame.
        frame: Frame,
    },
    /// Time passes.
    Time(Duration),
    /// Dumps the rules.
    Dump(FlowStatsRequest),
    /// Changes the TLV map of tunnel options.
    TlvTable(TlvTableMod),
    /// Dumps the groups.
    Groups,
    /// Dumps the meters.
    Meters,
}

/// A query for counters. `line` is the query without the values; `names` are the counters that it
/// names.
pub enum CountQuery {
    /// Counters of a rule.
    Flow {
        /// The query.
        line: String,
        /// The rule: its table, priority and match.
        rule: Box<FlowMod>,
        /// The names of the counters.
        names: Vec<String>,
    },
    /// Counters of a table.
    Table {
        /// The query.
        line: String,
        /// The table.
        table: u8,
        /// The names of the counters.
        names: Vec<String>,
    },
    /// Counters of a group.
    Group {
        /// The query.
        line: String,
        /// The group.
        group: GroupId,
        /// The names of the counters.
        names: Vec<String>,
    },
    /// Counters of a meter.
    Meter {
        /// The query.
        line: String,
        /// The meter.
        meter: MeterId,
        /// The names of the counters.
        names: Vec<String>,
    },
}

type ParseResult<T> = Result<T, String>;

/// Parses a line.
pub(super) fn read(text: &str) -> ParseResult<CaseLine> {
    let text = text.trim();
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let rest = rest.trim();
    if text.is_empty() || text.starts_with('#') {
        return Ok(CaseLine::Remark);
    }
    match word {
        ">" => output_effect(rest).map(CaseLine::Effect),
        "!" => message_effect(rest).map(CaseLine::Effect),
        "x" => Ok(CaseLine::Effect(notation::effect_line("x", rest))),
        "=" => count_line(rest),
        _ => event(word, rest).map(CaseLine::Event),
    }
}

/// Parses a table or `all`, and the treatment of misses.
fn table_miss(text: &str) -> ParseResult<CaseEvent> {
    let (table, miss) = text.split_once(' ').unwrap_or((text, ""));
    let table = match table {
        "all" => TableId::ALL,
        number => TableId(
            number
                .parse()
                .map_err(|_| "a table is expected".to_owned())?,
        ),
    };
    let miss = match miss {
        "default" => TableMiss::Default,
        "controller" => TableMiss::Controller,
        "continue" => TableMiss::Continue,
        "drop" => TableMiss::Drop,
        _ => return Err("default, controller, continue or drop is expected".to_owned()),
    };
    Ok(CaseEvent::TableMiss(table, miss))
}

fn event(word: &str, rest: &str) -> ParseResult<CaseEvent> {
    match word {
        "ports" | "port" => ports(rest),
        "miss" => match rest {
            "controller" => Ok(CaseEvent::Miss(MissPolicy::Controller)),
            "drop" => Ok(CaseEvent::Miss(MissPolicy::Drop)),
            _ => Err("controller or drop is expected".to_owned()),
        },
        "table_miss" => table_miss(rest),
        "fragments" => notation::fragments(rest).map(CaseEvent::Fragments),
        "standalone" => Ok(CaseEvent::Standalone(rest == "on")),
        "flow" => flow(rest).map(|flow| CaseEvent::Flow(Box::new(with_v13_semantics(flow)))),
        "flow11" => flow(rest).map(|flow| CaseEvent::Flow(Box::new(with_v11_semantics(flow)))),
        "flow10" => flow(rest).map(|flow| CaseEvent::Flow(Box::new(with_v10_semantics(flow)))),
        "group" => parse_group_line(rest)
            .map(CaseEvent::Group)
            .map_err(notation::error_text),
        "meter" => parse_meter_line(rest)
            .map(CaseEvent::Meter)
            .map_err(notation::error_text),
        "tlv" => tlv(rest).map(CaseEvent::TlvTable),
        "groups" => Ok(CaseEvent::Groups),
        "meters" => Ok(CaseEvent::Meters),
        "packet_out" => packet_out(rest),
        "resume" => rest
            .parse()
            .map(CaseEvent::Resume)
            .map_err(notation::error_text),
        "<" => receive(rest),
        "dump" => parse_flow_stats_request(rest)
            .map(CaseEvent::Dump)
            .map_err(notation::error_text),
        _ => match word.strip_prefix('+') {
            Some(time) => notation::duration(time).map(CaseEvent::Time),
            None => Err("unknown event".to_owned()),
        },
    }
}

fn ports(text: &str) -> ParseResult<CaseEvent> {
    if let Some(port) = text.strip_suffix(" gone") {
        return notation::port(port).map(CaseEvent::PortRemoved);
    }
    let ports = text.split_whitespace().map(notation::port_desc);
    ports.collect::<ParseResult<_>>().map(CaseEvent::Ports)
}

fn flow(text: &str) -> ParseResult<FlowMod> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let command = match word {
        "add" => FlowModCommand::Add,
        "modify" => FlowModCommand::Modify,
        "modify_strict" => FlowModCommand::ModifyStrict,
        "delete" => FlowModCommand::Delete,
        "delete_strict" => FlowModCommand::DeleteStrict,
        _ => return Err("a command is expected".to_owned()),
    };
    parse_flow(command, rest).map_err(notation::error_text)
}

/// Converts a flow-mod to the semantics of OpenFlow 1.3: a modification does not change the cookie.
fn with_v13_semantics(flow: FlowMod) -> FlowMod {
    FlowMod {
        new_cookie: None,
        ..flow
    }
}

/// Converts a flow-mod to the semantics of OpenFlow 1.1: an addition resets the counters, and a
/// modification without a cookie mask adds the rule if it is missing.
fn with_v11_semantics(flow: FlowMod) -> FlowMod {
    let modifies = matches!(
        flow.command,
        FlowModCommand::Modify | FlowModCommand::ModifyStrict
    );
    let adds = modifies && flow.cookie_mask == 0;
    FlowMod {
        new_cookie: None,
        cookie: match adds {
            true => flow.new_cookie.unwrap_or_default(),
            false => flow.cookie,
        },
        missing: match adds {
            true => MissingRule::Add,
            false => MissingRule::Ignore,
        },
        flags: match flow.command {
            FlowModCommand::Add => flow.flags.with(FlowFlags::RESET_COUNTS),
            _ => flow.flags,
        },
        ..flow
    }
}

/// Converts a flow-mod to the semantics of OpenFlow 1.0: an addition resets the counters, a
/// modification adds the rule if it is missing, and actions need no prerequisites in the match.
fn with_v10_semantics(flow: FlowMod) -> FlowMod {
    let modifies = matches!(
        flow.command,
        FlowModCommand::Modify | FlowModCommand::ModifyStrict
    );
    FlowMod {
        consistency: Consistency::Waived,
        new_cookie: modifies.then(|| flow.new_cookie.unwrap_or_default()),
        flags: match flow.command {
            FlowModCommand::Add => flow.flags.with(FlowFlags::RESET_COUNTS),
            _ => flow.flags,
        },
        ..flow
    }
}

fn packet_out(text: &str) -> ParseResult<CaseEvent> {
    let (head, frame) = text.split_once('|').ok_or("a frame is expected after |")?;
    let (port, actions) = head.trim().split_once(' ').ok_or("actions are expected")?;
    let pipeline_fields: Match = port.parse().map_err(notation::error_text)?;
    let actions = actions.trim().strip_prefix("actions=").unwrap_or(actions);
    Ok(CaseEvent::PacketOut(PacketOut {
        buffer: None,
        registers: PipelineFields::from_match(&pipeline_fields),
        actions: parse_actions(actions).map_err(notation::error_text)?,
        data: frame_of(frame)?.bytes().to_vec(),
    }))
}

fn receive(text: &str) -> ParseResult<CaseEvent> {
    let (port, mut rest) = text
        .split_once(' ')
        .ok_or("a port and a frame are expected")?;
    let mut times = 1;
    if let Some(repeated) = rest.trim().strip_prefix("x ") {
        let (count, frame) = repeated.split_once(' ').ok_or("a frame is expected")?;
        times = count
            .parse()
            .map_err(|_| "a number of frames is expected")?;
        rest = frame;
    }
    Ok(CaseEvent::Receive {
        port: notation::port(port)?,
        times,
        frame: frame_of(rest)?,
    })
}

fn frame_of(text: &str) -> ParseResult<Frame> {
    let stack: Stack = text.trim().parse().map_err(notation::error_text)?;
    Ok(stack.build())
}

/// Parses `> 2  frame` and formats it as an effect.
fn output_effect(text: &str) -> ParseResult<String> {
    let (to, frame) = text
        .split_once(' ')
        .ok_or("a port and a frame are expected")?;
    Ok(notation::output_line(to, &frame_of(frame)?))
}

/// Parses `! packet_in .. | frame`, or another message.
fn message_effect(text: &str) -> ParseResult<String> {
    match text.split_once('|') {
        Some((head, frame)) => Ok(notation::packet_in_line(head, &frame_of(frame)?)),
        None => Ok(notation::effect_line("!", text)),
    }
}

/// Parses `= flow selector counts`, `= table number counts`, or a line of a dump.
fn count_line(text: &str) -> ParseResult<CaseLine> {
    let mut parts = text.split_whitespace();
    let (kind, selector) = (parts.next(), parts.next().unwrap_or_default());
    let counts = parts.filter_map(|part| part.split_once('='));
    let names: Vec<_> = counts.map(|(name, _)| name.to_owned()).collect();
    match kind {
        Some("flow") => {
            let rule = parse_flow(FlowModCommand::DeleteStrict, selector);
            Ok(CaseLine::Count(CountQuery::Flow {
                line: format!("flow {selector}"),
                rule: Box::new(rule.map_err(notation::error_text)?),
                names,
            }))
        }
        Some("table") => Ok(CaseLine::Count(CountQuery::Table {
            line: format!("table {selector}"),
            table: selector.parse().map_err(|_| "a table is expected")?,
            names,
        })),
        Some("group") => Ok(CaseLine::Count(CountQuery::Group {
            line: format!("group {selector}"),
            group: GroupId(selector.parse().map_err(|_| "a group is expected")?),
            names,
        })),
        Some("meter") => Ok(CaseLine::Count(CountQuery::Meter {
            line: format!("meter {selector}"),
            meter: meter(selector)?,
            names,
        })),
        _ => Ok(CaseLine::Effect(notation::effect_line("=", text))),
    }
}

/// Parses `add 0xffff,0x01,4->tun_metadata0` (class, type, length and field), `delete` with the
/// same arguments, or `clear`.
fn tlv(text: &str) -> ParseResult<TlvTableMod> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let command = match word {
        "add" => TlvCommand::Add,
        "delete" => TlvCommand::Delete,
        "clear" => TlvCommand::Clear,
        _ => return Err("add, delete or clear is expected".to_owned()),
    };
    let mappings = rest.split_whitespace().map(mapping);
    Ok(TlvTableMod {
        command,
        mappings: mappings.collect::<ParseResult<_>>()?,
    })
}

fn mapping(text: &str) -> ParseResult<TlvMapping> {
    let read = || {
        let (option, index) = text.split_once("->tun_metadata")?;
        let mut parts = option.split(',');
        let mut hexadecimal = || u16::from_str_radix(parts.next()?.strip_prefix("0x")?, 16).ok();
        Some(TlvMapping {
            class: hexadecimal()?,
            kind: hexadecimal()?.try_into().ok()?,
            length: parts.next()?.parse().ok()?,
            index: index.parse().ok()?,
        })
    };
    read().ok_or_else(|| "a mapping is expected, as 0xffff,0x01,4->tun_metadata0".to_owned())
}

fn meter(text: &str) -> ParseResult<MeterId> {
    let meter = parse_meter_line(&format!("delete meter={text}"));
    meter.map(|meter| meter.meter).map_err(notation::error_text)
}
