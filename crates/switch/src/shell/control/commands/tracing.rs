//! What would become of a frame: `ofproto/trace` of ovs-vswitchd(8).

use flow::Match;
use packet::Frame;

use super::Answer::AtOnce;
use super::{Command, named};
use crate::shell::control::Control;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 1] = [
    Command { name: "ofproto/trace", usage: "{[dp_name] odp_flow | bridge br_flow} [OPTIONS...] [-generate|packet]", least: 1, most: 3, answer: AtOnce(trace) },
];

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
