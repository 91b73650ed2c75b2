//! Frames that the controller sends through the device.

use std::time::Duration;

use base::{Instant, PortNo, Xid};
use controller::packet_out;
use flow::Action;

use super::figures::{bad, ns, plain, put_times, rate, time};
use super::flows::{delete_all, drop_rest, sized};
use super::packet_in::{MILLISECONDS, RATE, SIZE};
use super::rig::{ControlRig, LimitedInbox, TIMEOUT, send_batch};
use super::traffic::{BURST, FRAMES_MAX, QUIET};
use super::{TrialReport, VERSION, on_device, takes};
use crate::catalogue::prelude::*;
use crate::frames::{self, UdpFrame};
use crate::trial::TrialError;

/// The experiment "packet-out".
pub(crate) const PACKET_OUT: Experiment = Experiment {
    description: Description {
        name: "packet-out",
        title: "Packet-out rate and delay",
        family: Family::Oflops,
        question: "How many packet-outs per second does a device execute, and with which delay?",
        source: "OFLOPS, module openflow_packet_out",
        steps: &[
            "Packet-outs with one frame each are sent at a fixed rate, independent of the frames; if the device does not read, they are withheld and counted, so that the tester's queue does not grow.",
            "The delay runs from the transmission of a packet-out to the arrival of its frame at the server.",
            "Frames that do not arrive are lost.",
        ],
        parameters: &[RATE, SIZE, MILLISECONDS, VERSION],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Frames per second by packet-outs per second",
                figure: "frames_s",
                along: "rate",
                log: false,
            },
            View::Lines {
                title: "Median delay by packet-outs per second",
                figure: "p50_us",
                along: "rate",
                log: true,
            },
            View::Percentiles {
                title: "Delay from a packet-out to its frame",
                values: "packet_out_ns",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "frames_s", "loss", "withheld", "mean_us", "p50_us", "p99_us", "max_us",
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

const FIGURES: &[Figure] = &[
    rate("frames_s", "Frames per second", "/s"),
    bad("loss", "Loss"),
    bad("withheld", "Withheld packet-outs"),
    time("mean_us", "Mean", "µs"),
    time("p50_us", "Median", "µs"),
    time("p99_us", "99 %", "µs"),
    time("max_us", "Maximum", "µs"),
    plain("sent_s", "Packet-outs per second", "/s"),
];

/// A packet-out that was sent.
#[derive(Clone, Copy)]
struct PacketOutRecord {
    xid: Xid,
    queued: Instant,
    written: Option<Instant>,
    received: bool,
}

/// All packet-outs of a trial, and the delays of their frames.
struct PacketOuts {
    frame: UdpFrame,
    sent: Vec<PacketOutRecord>,
    withheld: u64,
    delays: Vec<u64>,
    refused: Option<String>,
    last: Instant,
}

fn measure(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    send_batch(rig, vec![delete_all(), drop_rest()])?;
    let size = u16::try_from(point.number("size")).expect("the parameter is bounded");
    let (pps, start) = (point.number("rate"), rig.now());
    let end = start + Duration::from_millis(point.number("milliseconds"));
    let mut packet_outs = PacketOuts {
        frame: sized(0, size),
        sent: Vec::new(),
        withheld: 0,
        delays: Vec::new(),
        refused: None,
        last: end,
    };
    loop {
        let now = rig.now();
        // The second condition ends the loop if frames arrive without end.
        if now >= end && (now.since(packet_outs.last) >= QUIET || now >= end + TIMEOUT) {
            break;
        }
        let due = now.since(start).as_nanos() * u128::from(pps) / 1_000_000_000;
        if now < end && (packet_outs.sent.len() as u128 + u128::from(packet_outs.withheld)) < due {
            packet_outs.send_next(rig, now)?;
        }
        let mut inbox = LimitedInbox::default();
        while let Some(message) = inbox.receive(rig)? {
            packet_outs.refused = packet_outs
                .refused
                .or_else(|| message.refusal(rig.version()));
        }
        packet_outs.receive_frames(rig)?;
    }
    let mut report = TrialReport::at(point);
    packet_outs.put_figures(&mut report.reading, start, end);
    if let Some(reason) = packet_outs.refused {
        let note = format!("the device refused a packet-out: {reason}");
        report.notes.push(note);
    }
    Ok(report)
}

impl PacketOuts {
    /// Sends the next packet-out if the connection has room.
    fn send_next(&mut self, rig: &mut dyn ControlRig, now: Instant) -> Result<(), TrialError> {
        if !rig.has_room() || self.sent.len() >= FRAMES_MAX {
            self.withheld += 1;
            return Ok(());
        }
        let number = u32::try_from(self.sent.len()).expect("there are at most FRAMES_MAX frames");
        let output = vec![Action::output(PortNo(2))];
        let message = packet_out(self.frame.bytes(number), PortNo::CONTROLLER, output);
        let xid = rig.queue(&message)?;
        rig.flush()?;
        self.sent.push(PacketOutRecord {
            xid,
            queued: now,
            written: rig.written_at(xid),
            received: false,
        });
        Ok(())
    }

    /// Receives up to a burst of frames.
    fn receive_frames(&mut self, rig: &mut dyn ControlRig) -> Result<(), TrialError> {
        let length = self.frame.headers() + self.frame.payload;
        for _ in 0..BURST {
            let Some(frame) = rig.receive_frame()? else {
                break;
            };
            let is_ours = frame.bytes.get(..6) == Some(&super::flows::FAR);
            let number = frames::number(&frame.bytes, length).filter(|_| is_ours);
            let index = number.and_then(|number| usize::try_from(number).ok());
            let Some(one) = index.and_then(|index| self.sent.get_mut(index)) else {
                continue;
            };
            self.last = self.last.max(frame.at);
            if !std::mem::replace(&mut one.received, true) {
                let written = one.written.or_else(|| rig.written_at(one.xid));
                let delay = frame.at.since(written.unwrap_or(one.queued));
                self.delays.push(ns(delay));
            }
        }
        Ok(())
    }

    fn put_figures(&self, reading: &mut Reading, start: Instant, end: Instant) {
        let absence = self.refused.as_deref().unwrap_or("no frame arrived");
        let names = ["mean_us", "p50_us", "p99_us", "max_us"];
        put_times(reading, names, "packet_out_ns", &self.delays, absence);
        let (received, sent) = (self.delays.len() as f64, self.sent.len() as f64);
        reading.put("frames_s", received / self.last.since(start).as_secs_f64());
        reading.put("loss", 1.0 - received / sent.max(1.0));
        reading.put("withheld", self.withheld as f64);
        reading.put("sent_s", sent / end.since(start).as_secs_f64());
    }
}

#[cfg(test)]
mod tests;
