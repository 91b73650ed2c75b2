//! Frames that the controller sends.

use std::time::Duration;

use base::{Instant, PortNo, Xid};
use flow::Action;

use super::figures::{bad, ns, plain, put_times, rate, time};
use super::flows::{delete_all, drop_rest, sized};
use super::packet_in::{MILLISECONDS, RATE, SIZE};
use super::rig::{Rig, settle};
use super::traffic::QUIET;
use super::{Found, VERSION, on_device, takes};
use crate::catalogue::{Experiment, Family, Figure, Point, Setting, View};
use crate::controller::packet_out;
use crate::frames;
use crate::trial::TrialError;

/// The experiment.
pub(crate) const PACKET_OUT: Experiment = Experiment {
    name: "packet-out",
    title: "Frames from the controller",
    family: Family::Oflops,
    question: "How many frames a second does a device send for its controller, and how soon?",
    source: "OFLOPS, module openflow_packet_out",
    steps: &[
        "Packet-outs with a frame each are sent at a fixed rate, whether the last frame came out or not; where the device does not read, they are withheld and counted, and no memory grows.",
        "The delay is from handing a packet-out to the system until its frame comes out.",
        "Frames that did not come out are lost.",
    ],
    parameters: &[RATE, SIZE, MILLISECONDS, VERSION],
    figures: FIGURES,
    views: &[
        View::Lines {
            title: "Frames out a second by packet-outs a second",
            figure: "frames_s",
            along: "rate",
            log: false,
        },
        View::Lines {
            title: "Median delay by packet-outs a second",
            figure: "p50_us",
            along: "rate",
            log: true,
        },
        View::Percentiles {
            title: "From a packet-out to its frame",
            histogram: "packet_out_ns",
        },
        View::Table {
            title: "All figures",
            figures: &[
                "frames_s", "loss", "withheld", "mean_us", "p50_us", "p99_us", "max_us", "sent_s",
            ],
        },
    ],
    setting: Setting::Usual,
    takes,
    seconds: |point| 0.5 + point.number("milliseconds") as f64 / 1e3,
    measure: |point, station, tools| on_device(point, station, tools, measure),
};

const FIGURES: &[Figure] = &[
    rate("frames_s", "Frames a second", "/s"),
    bad("loss", "Share lost"),
    bad("withheld", "Not sent for want of room"),
    time("mean_us", "Mean", "µs"),
    time("p50_us", "Median", "µs"),
    time("p99_us", "99 %", "µs"),
    time("max_us", "Longest", "µs"),
    plain("sent_s", "Packet-outs a second", "/s"),
];

/// A packet-out on its way.
#[derive(Clone, Copy)]
struct Sent {
    xid: Xid,
    said: Instant,
    handed: Option<Instant>,
    came: bool,
}

fn measure(point: &Point, rig: &mut dyn Rig) -> Result<Found, TrialError> {
    settle(rig, vec![delete_all(), drop_rest()])?;
    let size = u16::try_from(point.number("size")).expect("the bound says so");
    let frame = sized(0, size);
    let length = frame.headers() + frame.payload;
    let (pps, start) = (point.number("rate"), rig.now());
    let end = start + Duration::from_millis(point.number("milliseconds"));
    let mut sent: Vec<Sent> = Vec::new();
    let (mut withheld, mut refused) = (0_u64, None);
    let (mut delays, mut last) = (Vec::new(), start);
    loop {
        let now = rig.now();
        if now >= end && now.since(last.max(end)) >= QUIET {
            break;
        }
        let due = now.since(start).as_nanos() * u128::from(pps) / 1_000_000_000;
        if now < end && (sent.len() as u128 + u128::from(withheld)) < due {
            if rig.has_room() {
                let number = u32::try_from(sent.len()).expect("there are few millions");
                let output = vec![Action::output(PortNo(2))];
                let message = packet_out(frame.bytes(number), PortNo::CONTROLLER, output);
                let xid = rig.say(&message)?;
                let handed = rig.handed_at(xid);
                let came = false;
                sent.push(Sent {
                    xid,
                    said: now,
                    handed,
                    came,
                });
            } else {
                withheld += 1;
            }
        }
        while let Some(told) = rig.hear()? {
            refused = refused.or_else(|| told.refusal(rig.version()));
        }
        while let Some(caught) = rig.catch()? {
            let is_ours = caught.bytes.get(..6) == Some(&super::flows::FAR);
            let number = frames::number(&caught.bytes, length).filter(|_| is_ours);
            let place = number.and_then(|number| usize::try_from(number).ok());
            let Some(one) = place.and_then(|place| sent.get_mut(place)) else {
                continue;
            };
            last = caught.at;
            if !std::mem::replace(&mut one.came, true) {
                let handed = one.handed.or_else(|| rig.handed_at(one.xid));
                delays.push(ns(caught.at.since(handed.unwrap_or(one.said))));
            }
        }
    }
    let mut found = Found::at(point);
    let reading = &mut found.reading;
    let otherwise = refused.as_deref().unwrap_or("no frame came out");
    let names = ["mean_us", "p50_us", "p99_us", "max_us"];
    put_times(reading, names, "packet_out_ns", &delays, otherwise);
    let seconds = last.max(end).since(start).as_secs_f64();
    reading.put("frames_s", delays.len() as f64 / seconds);
    let asked = sent.len() as f64;
    reading.put("loss", 1.0 - delays.len() as f64 / asked.max(1.0));
    reading.put("withheld", withheld as f64);
    reading.put("sent_s", asked / end.since(start).as_secs_f64());
    if let Some(reason) = refused {
        found
            .notes
            .push(format!("the device refused a packet-out: {reason}"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
