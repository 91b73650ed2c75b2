//! The notation of scripts: names of ports and times, and the lines of effects.

use std::fmt::{Debug, Display};
use std::time::Duration;

use base::{Cookie, PortNo};
use flow::{
    Continuation, Field, FlowRemoved, FlowRemovedReason, FragmentHandling, Instructions,
    PacketInReason, PipelineFields, PortConfig, PortDesc, PortState, Refusal,
};
use packet::Frame;
use packet::build::Stack;
use pipeline::{Cause, PacketInMeta};

/// Names of the configuration bits of a port.
const CONFIG: [(&str, PortConfig); 6] = [
    ("down", PortConfig::DOWN),
    ("no_recv", PortConfig::NO_RECV),
    ("no_recv_stp", PortConfig::NO_RECV_STP),
    ("no_flood", PortConfig::NO_FLOOD),
    ("no_fwd", PortConfig::NO_FWD),
    ("no_packet_in", PortConfig::NO_PACKET_IN),
];
const STATE: [(&str, PortState); 2] = [
    ("link_down", PortState::LINK_DOWN),
    ("blocked", PortState::BLOCKED),
];

pub(super) fn error_text(error: impl Display) -> String {
    error.to_string()
}

pub(super) fn port(text: &str) -> Result<PortNo, String> {
    text.parse().map_err(|_| format!("not a port: {text}"))
}

/// Parses `2`, or `2(no_flood,link_down)`.
pub(super) fn port_desc(text: &str) -> Result<PortDesc, String> {
    let (number, words) = text.split_once('(').unwrap_or((text, ""));
    let mut config = PortConfig::default();
    let mut state = PortState::default();
    for word in words
        .trim_end_matches(')')
        .split(',')
        .filter(|w| !w.is_empty())
    {
        let named = CONFIG.iter().find(|(name, _)| *name == word);
        if let Some((_, bit)) = named {
            config.0 |= bit.0;
            continue;
        }
        let named = STATE.iter().find(|(name, _)| *name == word);
        let (_, bit) = named.ok_or_else(|| format!("unknown port flag: {word}"))?;
        state.0 |= bit.0;
    }
    Ok(PortDesc {
        name: format!("p{number}"),
        config,
        state,
        ..PortDesc::new(port(number)?)
    })
}

pub(super) fn fragments(text: &str) -> Result<FragmentHandling, String> {
    match text {
        "normal" => Ok(FragmentHandling::Normal),
        "drop" => Ok(FragmentHandling::Drop),
        "reassemble" => Ok(FragmentHandling::Reassemble),
        "nx_match" => Ok(FragmentHandling::NxMatch),
        _ => Err("normal, drop, reassemble or nx_match is expected".to_owned()),
    }
}

/// Parses `10s` or `500ms`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let number = |digits: &str| digits.parse().map_err(|_| format!("not a time: {text}"));
    match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(millis), _) => Ok(Duration::from_millis(number(millis)?)),
        (None, Some(seconds)) => Ok(Duration::from_secs(number(seconds)?)),
        (None, None) => Err("seconds or milliseconds are expected".to_owned()),
    }
}

/// Formats an effect: a line below an event, with single spaces.
#[must_use]
pub fn effect_line(sign: &str, text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    format!("     {sign} {}", words.join(" "))
}

/// Formats a frame that leaves.
#[must_use]
pub fn output_line(to: &str, frame: &Frame) -> String {
    format!("     > {to}  {}", Stack::dissect(frame))
}

/// Formats a packet-in with this head.
#[must_use]
pub fn packet_in_line(head: &str, frame: &Frame) -> String {
    format!("{} | {}", effect_line("!", head), Stack::dissect(frame))
}

/// Formats the nonzero pipeline fields of a frame except its ingress port, each after a space.
#[must_use]
pub fn registers_text(registers: &PipelineFields) -> String {
    let fields = registers.to_match();
    let terms = fields.terms().filter(|term| term.field != Field::InPort);
    let terms = terms.map(|term| format!(" {}={:#x}", term.field, term.value));
    let options = registers.options.iter();
    let options = options.map(|(field, value)| format!(" {field}={value:#x}"));
    terms.chain(options).collect()
}

/// Formats the head of a packet-in: the values that differ from the defaults.
pub(super) fn packet_in_head(meta: &PacketInMeta) -> String {
    let reason = match (meta.cause, meta.cause.reason()) {
        (Cause::Miss, _) => "miss",
        (_, PacketInReason::NoMatch) => "no_match",
        (_, PacketInReason::Action) => "action",
        (_, PacketInReason::InvalidTtl) => "invalid_ttl",
        (_, PacketInReason::ActionSet) => "action_set",
        (_, PacketInReason::Group) => "group",
        (_, PacketInReason::PacketOut) => "packet_out",
    };
    let mut head = format!("packet_in reason={reason} table={}", meta.table);
    if meta.cookie != Cookie::NONE {
        head += &format!(" cookie={:#x}", meta.cookie.0);
    }
    head += &registers_text(&meta.registers);
    if meta.controller != 0 {
        head += &format!(" id={}", meta.controller);
    }
    if !meta.userdata.is_empty() {
        head += &format!(" userdata={}", hex(&meta.userdata));
    }
    if let Some(continuation) = &meta.continuation {
        head += &continuation_text(continuation);
    }
    if let Some(len) = meta.max_len {
        head += &format!(" max_len={}", len.0);
    }
    head
}

/// Formats the continuation of a paused frame.
fn continuation_text(continuation: &Continuation) -> String {
    let mut text = " waits".to_owned();
    for entry in &continuation.stack {
        text += &format!(" stack={entry:#x}");
    }
    for step in &continuation.steps {
        text += &format!(" table={}:{}", step.table, step.rest);
    }
    if let Some(set) = &continuation.set {
        text += &format!(" set:{}", Instructions::apply(set.clone()));
    }
    text
}

/// Formats the flow-removed message of a rule.
#[must_use]
pub fn flow_removed_line(event: &FlowRemoved) -> String {
    let reason = match event.reason {
        FlowRemovedReason::IdleTimeout => "idle_timeout",
        FlowRemovedReason::HardTimeout => "hard_timeout",
        FlowRemovedReason::Delete => "delete",
        FlowRemovedReason::GroupDelete => "group_delete",
        FlowRemovedReason::MeterDelete => "meter_delete",
        FlowRemovedReason::Eviction => "eviction",
    };
    let mut rule = format!("table={},priority={}", event.table, event.priority);
    let matching = event.matching.to_string();
    if !matching.is_empty() {
        rule += &format!(",{matching}");
    }
    let text = format!(
        "flow_removed {rule} reason={reason} cookie={:#x} packets={} bytes={} duration={}s",
        event.cookie.0,
        event.packets,
        event.bytes,
        event.duration.as_secs_f64(),
    );
    effect_line("!", &text)
}

/// Formats a refusal.
#[must_use]
pub fn refusal_line(refusal: Refusal) -> String {
    effect_line("!", &format!("refused {}", snake_case(&refusal)))
}

/// Converts `ActionBadOutPort` to `action_bad_out_port`.
pub(super) fn snake_case(name: &impl Debug) -> String {
    let mut text = String::new();
    for letter in format!("{name:?}").chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
