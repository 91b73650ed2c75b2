//! Commands of captures: start, read and stop, for `comporta capture`.

use flow::FlowStatsRequest;

use super::Answer::{Deferred, Immediate};
use super::{Command, DeferredAnswer, tracing};
use crate::control::Control;
use control_api::capture::{READ, SNAPLEN_MAX, START, STOP};
use dataplane::capture::CaptureId;

#[rustfmt::skip]
pub(super) const COMMANDS: [Command; 3] = [
    Command { name: READ, usage: "capture", least: 1, most: 1, answer: Deferred(read) },
    Command { name: START, usage: "bridge flow snaplen", least: 3, most: 3, answer: Immediate(start) },
    Command { name: STOP, usage: "capture", least: 1, most: 1, answer: Immediate(stop) },
];

/// Starts a capture, and answers just before the workers receive it.
fn start(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    let [bridge, flow, snaplen] = arguments else {
        return Err("name a bridge, a flow and a number of bytes".to_owned());
    };
    let (bridge, request) = tracing::flow_of_bridge(control, bridge, flow)?;
    let bare = FlowStatsRequest {
        matching: request.matching.clone(),
        ..FlowStatsRequest::all()
    };
    if request != bare {
        return Err(format!(
            "{flow}: a capture filter is a match only: omit table, cookie, out_port and out_group"
        ));
    }
    let snaplen = snaplen.parse().ok();
    let snaplen = snaplen.filter(|snaplen| (1..=SNAPLEN_MAX).contains(snaplen));
    let snaplen = snaplen.ok_or_else(|| format!("give a snaplen from 1 to {SNAPLEN_MAX}"))?;
    let now = control.now();
    let CaptureId(id) = control
        .capturing
        .start(bridge, request.matching, snaplen, now)?;
    control.publish_at_once();
    Ok(id.to_string())
}

fn read(control: &mut Control, arguments: &[String]) -> Result<DeferredAnswer, String> {
    control.read_capture(number(arguments)?)
}

/// Stops a capture. An expired one is no error.
fn stop(control: &mut Control, arguments: &[String]) -> Result<String, String> {
    control.capturing.stop(number(arguments)?);
    Ok(String::new())
}

fn number(arguments: &[String]) -> Result<CaptureId, String> {
    let number = arguments.first().and_then(|number| number.parse().ok());
    number
        .map(CaptureId)
        .ok_or_else(|| "give the number of a capture".to_owned())
}
