//! Commands of bridges and their rules: `bridge/*` and `ofproto/*` of ovs-vswitchd(8).

use std::fmt::Write;

use base::TableId;
use flow::Match;
use packet::Frame;

use super::Answer::{AtOnce, Later};
use super::{Command, Told, named};
use crate::shell::control::Control;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 3] = [
    Command { name: "bridge/dump-flows", usage: "bridge", least: 1, most: 1, answer: Later(dump_flows) },
    Command { name: "ofproto/list", usage: "", least: 0, most: 0, answer: AtOnce(bridges) },
    Command { name: "ofproto/trace", usage: "{[dp_name] odp_flow | bridge br_flow} [OPTIONS...] [-generate|packet]", least: 1, most: 3, answer: AtOnce(trace) },
];

/// The bridges.
fn bridges(control: &mut Control, _: &[String]) -> Result<String, String> {
    let names = control.sites.values().map(|site| site.bridge.name());
    let mut names: Vec<_> = names.map(|name| format!("{name}\n")).collect();
    names.sort();
    Ok(names.concat())
}

/// All rules of a bridge, of all its tables.
fn dump_flows(control: &mut Control, arguments: &[String]) -> Result<Told, String> {
    let now = control.now();
    let pipeline = named(control, arguments)?.bridge.rules();
    Ok(Box::new(move || {
        let mut text = String::new();
        for table in (0..=TableId::LAST.0).map(TableId) {
            for rule in pipeline.rules(table) {
                writeln!(text, "{}", rule.statistics(now)).expect("a string has room");
            }
        }
        text
    }))
}

/// Tells the way of a frame that the flow accepts, or of these bytes.
fn trace(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let [_, flow, packet @ ..] = arguments else {
        return Err("name a bridge and a flow, as in br0 in_port=1,tcp,tp_dst=80".to_owned());
    };
    let matching: Match = flow.parse().map_err(|error| format!("{flow}: {error}"))?;
    let frame = packet.first().map(|digits| frame(digits)).transpose()?;
    let now = control.now();
    named(control, arguments)?
        .bridge
        .trace(&matching, frame, now)
}

/// The frame that is written in hexadecimal.
fn frame(digits: &str) -> Result<Frame, String> {
    let wrong = || format!("{digits}: not the bytes of a frame in hexadecimal");
    if !digits.len().is_multiple_of(2) || digits.len() / 2 > Frame::LEN_MAX {
        return Err(wrong());
    }
    let byte = |at: usize| {
        let two = digits.get(at..at + 2)?;
        let plain = two.bytes().all(|digit| digit.is_ascii_hexdigit());
        u8::from_str_radix(two, 16).ok().filter(|_| plain)
    };
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    Ok(Frame::from_bytes(&bytes.ok_or_else(wrong)?))
}
