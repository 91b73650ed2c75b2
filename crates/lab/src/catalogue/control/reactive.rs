//! Flows that the controller sets up at the packet-in of their first frame.

use std::time::Duration;

use base::{Instant, PortNo};
use controller::packet_out;
use flow::{Action, FlowModCommand};

use super::figures::{bad, lack_all, ms, ns, plain, put_times, rate, time};
use super::flows::FlowRules;
use super::packet_in::{numbered_packet_in, packet_in_setup};
use super::rig::{ControlRig, LimitedInbox, TIMEOUT, send_batch};
use super::traffic::Traffic;
use super::{TrialReport, VERSION, on_device, takes};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// The experiment "reactive".
pub(crate) const REACTIVE: Experiment = Experiment {
    description: Description {
        name: "reactive",
        title: "Reactive path provisioning",
        family: Family::Oflops,
        question: "How long does a new flow take until its own rule forwards it, if the controller installs a rule at each packet-in?",
        source: "OFLOPS, module openflow_reactive; RFC 8456, 5.1.5 and 5.1.6",
        steps: &[
            "No rule matches the frames; for each packet-in the controller sends a rule for its flow, and a packet-out with the frame.",
            "Frames of all flows are sent in turn, again and again.",
            "A flow is set up when a frame of it arrives that was not sent to the controller; the time runs from the transmission of its first frame.",
            "The part of this time up to the packet-in is a separate figure.",
        ],
        parameters: &[
            Parameter::axis(
                "flows",
                "new flows at once",
                Values::numbers(
                    &[100],
                    &[1, 10, 100, 1_000],
                    &[1, 10, 100, 1_000, 10_000],
                    [1, 50_000],
                ),
            ),
            Parameter::constant(
                "pps",
                "frames per second of all flows",
                Values::numbers(&[50_000], &[50_000], &[50_000], [10, 1_000_000]),
            ),
            VERSION,
        ],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "Flow setup time, median",
                figure: "setup_p50_us",
                across: "flows",
            },
            View::Shares {
                title: "Flow setup time",
                values: "setup_ns",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "setup_p50_us",
                    "setup_p99_us",
                    "setup_max_us",
                    "up_p50_us",
                    "up_p99_us",
                    "all_ms",
                    "flows_s",
                    "never",
                    "packet_ins",
                    "resolution_us",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds: |point| 0.4 + 4.0 * point.number("flows") as f64 / point.number("pps") as f64,
    measure: |point, setup, tools| on_device(point, setup, tools, measure),
    ..Experiment::BASE
};

const FIGURES: &[Figure] = &[
    time("setup_mean_us", "Setup, mean", "µs"),
    time("setup_p50_us", "Setup, median", "µs"),
    time("setup_p99_us", "Setup, 99 %", "µs"),
    time("setup_max_us", "Setup, maximum", "µs"),
    time("up_mean_us", "To the controller, mean", "µs"),
    time("up_p50_us", "To the controller, median", "µs"),
    time("up_p99_us", "To the controller, 99 %", "µs"),
    time("up_max_us", "To the controller, maximum", "µs"),
    time("all_ms", "All flows set up", "ms"),
    rate("flows_s", "Flows per second", "/s"),
    bad("never", "Flows never set up"),
    plain("packet_ins", "Packet-in rate and delay", ""),
    plain("resolution_us", "Sampling interval per rule", "µs"),
];

/// Setup of one flow.
#[derive(Clone, Copy, Default)]
struct FlowSetup {
    first_sent: Option<Instant>,
    packet_in: Option<Instant>,
    set_up: Option<Instant>,
}

fn measure(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    let mut report = TrialReport::at(point);
    let count = point.small("flows");
    let setup = packet_in_setup(rig.version());
    let prepared = send_batch(rig, setup)?;
    if let Some(reason) = prepared.first_refusal() {
        lack_all(&mut report.reading, FIGURES, &reason);
        return Ok(report);
    }
    let frames: Vec<_> = (0..count).map(super::flows::frame).collect();
    let mut before = Traffic::of(frames.clone(), point.number("pps"), rig.now());
    if let Some(stale) = before.settle_without_output(rig)? {
        stale.add_to(&mut report);
    }
    let start = rig.now();
    let mut traffic = Traffic::of(frames, point.number("pps"), start);
    let mut all = vec![FlowSetup::default(); count as usize];
    let mut packet_in_frames: Vec<bool> = Vec::new();
    let (mut waiting, mut refused) = (all.len(), None);
    let round = Duration::from_nanos(u64::from(count) * 1_000_000_000 / point.number("pps"));
    let deadline = start + round * 2 + TIMEOUT / 5;
    while waiting > 0 && rig.now() < deadline {
        traffic.turn(rig)?;
        process_messages(
            rig,
            &traffic,
            count,
            &mut all,
            &mut packet_in_frames,
            &mut refused,
        )?;
        traffic.receive_frames(rig, |arrival| {
            let flow = &mut all[arrival.flow as usize];
            // A frame of which the controller received a packet-in was forwarded by a packet-out.
            let was_packet_in = packet_in_frames
                .get(arrival.number as usize)
                .copied()
                .unwrap_or(false);
            flow.first_sent.get_or_insert(arrival.sent);
            if !was_packet_in && flow.set_up.is_none() {
                flow.set_up = Some(arrival.received);
                waiting -= 1;
            }
        })?;
    }
    put_figures(
        &mut report,
        &all,
        start,
        packet_in_frames
            .iter()
            .filter(|is_packet_in| **is_packet_in)
            .count(),
        refused.as_deref(),
    );
    let resolution = traffic.round().as_secs_f64() * 1e6;
    report.reading.put("resolution_us", resolution);
    report.notes.extend(traffic.shortfall());
    Ok(report)
}

/// Replies to each packet-in with a rule for its flow and a packet-out of its frame.
fn process_messages(
    rig: &mut dyn ControlRig,
    traffic: &Traffic,
    count: u32,
    all: &mut [FlowSetup],
    packet_in_frames: &mut Vec<bool>,
    refused: &mut Option<String>,
) -> Result<(), TrialError> {
    let flows = FlowRules::of(rig.version());
    let mut inbox = LimitedInbox::default();
    while let Some(message) = inbox.receive(rig)? {
        if refused.is_none() {
            *refused = message.refusal(rig.version());
        }
        let Some((number, frame)) = numbered_packet_in(&message, traffic.length()) else {
            continue;
        };
        let Some(sent) = traffic.sent_at(number) else {
            continue;
        };
        let index = usize::try_from(number).expect("there are at most FRAMES_MAX frames");
        if packet_in_frames.len() <= index {
            packet_in_frames.resize(index + 1, false);
        }
        packet_in_frames[index] = true;
        let flow = number % count;
        let setup = &mut all[flow as usize];
        setup.first_sent.get_or_insert(sent);
        let is_first = setup.packet_in.is_none();
        setup.packet_in.get_or_insert(message.at);
        if is_first && rig.has_room() {
            rig.queue(&flows.message(FlowModCommand::Add, flow, None))?;
        }
        if rig.has_room() {
            let output = vec![Action::output(PortNo(2))];
            rig.queue(&packet_out(frame.data.clone(), PortNo(1), output))?;
        }
        rig.flush()?;
    }
    Ok(())
}

fn put_figures(
    report: &mut TrialReport,
    all: &[FlowSetup],
    start: Instant,
    packet_ins: usize,
    refused: Option<&str>,
) {
    let reading = &mut report.reading;
    let until = |of: fn(&FlowSetup) -> Option<Instant>| -> Vec<u64> {
        let times = all
            .iter()
            .filter_map(|flow| Some(ns(of(flow)?.since(flow.first_sent?))));
        times.collect()
    };
    let absence = refused.unwrap_or("no flow was set up");
    let names = [
        "setup_mean_us",
        "setup_p50_us",
        "setup_p99_us",
        "setup_max_us",
    ];
    put_times(
        reading,
        names,
        "setup_ns",
        &until(|flow| flow.set_up),
        absence,
    );
    let names = ["up_mean_us", "up_p50_us", "up_p99_us", "up_max_us"];
    let no_packet_in = "no packet-in arrived";
    put_times(
        reading,
        names,
        "up_ns",
        &until(|flow| flow.packet_in),
        no_packet_in,
    );
    let never = all.iter().filter(|flow| flow.set_up.is_none()).count();
    reading.put("never", never as f64);
    reading.put("packet_ins", packet_ins as f64);
    match all
        .iter()
        .map(|flow| flow.set_up)
        .collect::<Option<Vec<_>>>()
    {
        Some(times) => {
            let last = times.into_iter().max().unwrap_or(start).since(start);
            reading.put("all_ms", ms(last));
            reading.put("flows_s", all.len() as f64 / last.as_secs_f64());
        }
        None => {
            let reason = format!("{never} flows were never set up");
            reading.lack("all_ms", reason.clone());
            reading.lack("flows_s", reason);
        }
    }
}

#[cfg(test)]
mod tests;
