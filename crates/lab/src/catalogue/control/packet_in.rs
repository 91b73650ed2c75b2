//! Frames that the device sends to the controller.

use std::time::Duration;

use base::Instant;
use controller::application::table_miss;
use flow::{PacketIn, SwitchConfig};
use openflow::{Message, Version};

use super::figures::{bad, lack_all, ns, plain, put_times, rate, time};
use super::flows::{delete_all, sized};
use super::rig::{ControlRig, SwitchMessage, TIMEOUT, send_batch};
use super::traffic::{QUIET, Traffic};
use super::{TrialReport, VERSION, on_device, takes};
use crate::catalogue::prelude::*;
use crate::frames;
use crate::trial::TrialError;

/// The experiment "packet-in".
pub(crate) const PACKET_IN: Experiment = Experiment {
    description: Description {
        name: "packet-in",
        title: "Packet-in rate and delay",
        family: Family::Oflops,
        question: "How many frames per second reach the controller, and with which delay?",
        source: "OFLOPS, module openflow_packet_in",
        steps: &[
            "No rule matches the frames: by OpenFlow 1.0 they are sent to the controller, from 1.3 on the table-miss rule sends them.",
            "Frames are offered at a fixed rate, each of another flow than the previous one, independent of the packet-ins.",
            "The delay runs from the transmission of a frame to the arrival of its packet-in.",
            "Frames without a packet-in are lost; those with two are counted separately.",
        ],
        parameters: &[RATE, SIZE, MILLISECONDS, VERSION],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Packet-ins per second by frames per second",
                figure: "packet_ins_s",
                along: "rate",
                log: false,
            },
            View::Lines {
                title: "Median delay by frames per second",
                figure: "p50_us",
                along: "rate",
                log: true,
            },
            View::Percentiles {
                title: "Delay from a frame to its packet-in",
                values: "packet_in_ns",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "packet_ins_s",
                    "loss",
                    "mean_us",
                    "p50_us",
                    "p99_us",
                    "max_us",
                    "duplicates",
                    "sent_s",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds: |point| 0.5 + point.number("milliseconds") as f64 / 1e3,
    measure: |point, setup, tools| on_device(point, setup, tools, measure),
    ..Experiment::BASE
};

pub(super) const RATE: Parameter = Parameter::axis(
    "rate",
    "frames per second",
    Values::numbers(
        &[1_000, 20_000],
        &[
            10, 100, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
        ],
        &[
            10, 100, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
        ],
        [1, 1_000_000],
    ),
);
pub(super) const SIZE: Parameter = Parameter::axis(
    "size",
    "frame size in bytes, with the checksum (FCS)",
    Values::numbers(&[150], &[150, 1_500], &[64, 150, 1_500], [64, 1_518]),
);
pub(super) const MILLISECONDS: Parameter = Parameter::constant(
    "milliseconds",
    "duration of the load in milliseconds",
    Values::numbers(&[250], &[5_000], &[60_000], [10, 600_000]),
);

pub(super) const FIGURES: &[Figure] = &[
    rate("packet_ins_s", "Packet-ins per second", "/s"),
    bad("loss", "Loss"),
    time("mean_us", "Mean", "µs"),
    time("p50_us", "Median", "µs"),
    time("p99_us", "99 %", "µs"),
    time("max_us", "Maximum", "µs"),
    bad("duplicates", "Duplicates"),
    plain("sent_s", "Frames sent per second", "/s"),
];

/// Frames per second that test for rules of an earlier trial.
const SETTLING_PPS: u64 = 20_000;

/// Number of flows, whose frames are sent in turn.
pub(super) const FLOWS: u32 = 1_000;

/// Returns the messages after which a device sends every frame without a rule to the controller,
/// untruncated.
pub(super) fn packet_in_setup(version: Version) -> Vec<Message> {
    let config = SwitchConfig {
        miss_send_len: u16::MAX,
        ..SwitchConfig::default()
    };
    let mut messages = vec![delete_all(), Message::SetConfig(config)];
    if version >= Version::V13 {
        messages.push(Message::FlowMod(table_miss()));
    }
    messages
}

/// Returns the number and the packet-in of a frame of the experiment.
pub(super) fn numbered_packet_in(
    message: &SwitchMessage,
    length: usize,
) -> Option<(u32, &PacketIn)> {
    let Some(Message::PacketIn(frame)) = &message.body else {
        return None;
    };
    let is_ours = frame.data.get(..6) == Some(&super::flows::FAR);
    let number = frames::number(&frame.data, length).filter(|_| is_ours)?;
    Some((number, frame))
}

fn measure(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    let mut report = TrialReport::at(point);
    let setup = packet_in_setup(rig.version());
    let prepared = send_batch(rig, setup)?;
    if let Some(reason) = prepared.first_refusal() {
        lack_all(&mut report.reading, FIGURES, &reason);
        return Ok(report);
    }
    let size = u16::try_from(point.number("size")).expect("the parameter is bounded");
    let frames: Vec<_> = (0..FLOWS).map(|flow| sized(flow, size)).collect();
    let length = frames[0].headers() + frames[0].payload;
    // Rules of an earlier trial may still be in force in spite of a barrier reply to their
    // deletion.
    let mut before = Traffic::of(frames.clone(), SETTLING_PPS, rig.now());
    if let Some(stale) = before.settle_without_output(rig)? {
        stale.add_to(&mut report);
    }
    let start = rig.now();
    let end = start + Duration::from_millis(point.number("milliseconds"));
    let mut traffic = Traffic::of(frames, point.number("rate"), start);
    let mut packet_ins = PacketIns {
        length,
        delays: Vec::new(),
        received: Vec::new(),
        duplicates: 0,
        last: end,
    };
    loop {
        let now = rig.now();
        // The second condition ends the loop if the device sends packet-ins without end.
        if now >= end && (now.since(packet_ins.last) >= QUIET || now >= end + TIMEOUT) {
            break;
        }
        if now < end {
            traffic.turn(rig)?;
        }
        if let Some(message) = rig.receive()? {
            packet_ins.take(&message, &traffic, now);
        }
        traffic.receive_frames(rig, |_| {})?;
    }
    packet_ins.put_figures(&mut report, &traffic, start);
    report.notes.extend(traffic.shortfall());
    if traffic.received() > 0 {
        let count = traffic.received();
        let why = format!("{count} frames were forwarded without a rule");
        report.void.push(why);
    }
    Ok(report)
}

/// Packet-ins received so far.
struct PacketIns {
    /// Length of a frame in bytes, without its checksum.
    length: usize,
    delays: Vec<u64>,
    received: Vec<bool>,
    duplicates: u64,
    last: Instant,
}

impl PacketIns {
    fn take(&mut self, message: &SwitchMessage, traffic: &Traffic, now: Instant) {
        let Some((number, _)) = numbered_packet_in(message, self.length) else {
            return;
        };
        let Some(sent) = traffic.sent_at(number) else {
            return;
        };
        self.last = self.last.max(now);
        let index = usize::try_from(number).expect("there are at most FRAMES_MAX frames");
        if self.received.len() <= index {
            self.received.resize(index + 1, false);
        }
        match std::mem::replace(&mut self.received[index], true) {
            true => self.duplicates += 1,
            false => self.delays.push(ns(message.at.since(sent))),
        }
    }

    fn put_figures(&self, report: &mut TrialReport, traffic: &Traffic, start: Instant) {
        let reading = &mut report.reading;
        let names = ["mean_us", "p50_us", "p99_us", "max_us"];
        let absence = "no packet-in arrived";
        put_times(reading, names, "packet_in_ns", &self.delays, absence);
        let (received, sent) = (self.delays.len() as f64, traffic.sent().max(1) as f64);
        reading.put(
            "packet_ins_s",
            received / self.last.since(start).as_secs_f64(),
        );
        reading.put("loss", 1.0 - received / sent);
        reading.put("duplicates", self.duplicates as f64);
        reading.put("sent_s", traffic.achieved_pps());
    }
}

#[cfg(test)]
mod tests;
