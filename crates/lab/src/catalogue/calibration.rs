//! Calibration of the tester: a bare link by frame size and by load. Results of a device near these
//! limits are not the device's.

pub(super) mod load;
pub(super) mod size;
#[cfg(test)]
mod tests;

use std::time::Duration;

use record::Reading;
use testbed::{DeviceKind, Host};
use trafficgen::{Measurement, Refusal, TestPort};

use super::offered::{FIGURES, Load, LoadResult, figure, offer_by};
use crate::catalogue::prelude::*;
use crate::setup::TestSetup;
use crate::tools::Tools;
use crate::trial::{TrialError, TrialResult};

/// Duration of the load.
const MILLIS: Parameter = Parameter::constant(
    "millis",
    "duration of the load in milliseconds",
    Values::numbers(&[200], &[3_000], &[60_000], [50, 3_600_000]),
);

/// Transmit and receive method.
const WAY: Parameter = Parameter::axis(
    "way",
    "packet sockets (timestamps of the kernel) or AF_XDP (timestamps of the program)",
    Values::words(&["packet", "xdp"], &["packet", "xdp"]),
);

/// Figures of a link in addition to those of every load.
const OWN: [Figure; 4] = [
    figure("intended_kpps", "Intended", "kpps", Better::Neither),
    figure("lateness_p99_us", "Lateness, 99 %", "µs", Better::Lower),
    figure("lateness_max_us", "Lateness, maximum", "µs", Better::Lower),
    figure("tester_lost", "Lost by the tester", "frames", Better::Lower),
];

/// All figures.
const ALL: [Figure; FIGURES.len() + OWN.len()] = {
    let mut all = [OWN[0]; FIGURES.len() + OWN.len()];
    let mut place = 0;
    while place < all.len() {
        all[place] = match place < FIGURES.len() {
            true => FIGURES[place],
            false => OWN[place - FIGURES.len()],
        };
        place += 1;
    }
    all
};

/// Returns true for a bare link.
fn takes(kind: DeviceKind, _: &Point) -> bool {
    kind == DeviceKind::Direct
}

fn length(point: &Point) -> Duration {
    Duration::from_millis(point.number("millis"))
}

fn seconds(point: &Point) -> f64 {
    0.3 + length(point).as_secs_f64()
}

/// Offers `load` once: the tester's shortfall is the result here.
fn calibrate(
    load: &Load,
    point: &Point,
    setup: &TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let by_xdp = point.word("way") == "xdp";
    let open = |host: &Host| match by_xdp {
        true => TestPort::xdp(&host.namespace, host.interface, *tools.clock),
        false => TestPort::packet(
            &host.namespace,
            host.interface,
            load.longest(),
            *tools.clock,
        ),
    };
    let offered = offer_by(load, setup, tools, &open)?;
    let reading = reading(&offered, point);
    let mut stepped = offered.measurement.refusals.iter();
    let stepped = stepped.find(|one| matches!(one, Refusal::ClockStepped { .. }));
    let stepped = stepped.map(ToString::to_string);
    let mut measured = TrialResult::new(reading, offered.conditions);
    if let Some(reason) = stepped {
        measured.void(reason);
    }
    Ok(measured)
}

/// Returns the figures of every load, and those of the tester itself.
fn reading(offered: &LoadResult, point: &Point) -> Reading {
    let mut reading = offered.reading(point);
    put_tester_figures(&offered.measurement, &mut reading);
    reading
}

fn put_tester_figures(measurement: &Measurement, reading: &mut Reading) {
    let streams = measurement.streams.iter();
    let intended: f64 = streams.map(|stream| stream.intended.pps()).sum();
    reading.put("intended_kpps", intended / 1e3);
    let lateness = &measurement.streams[0].lateness;
    if lateness.is_empty() {
        for name in ["lateness_p99_us", "lateness_max_us"] {
            reading.lack(name, "nothing was sent");
        }
    } else {
        let p99 = lateness.value_at_quantile(0.99);
        reading.put("lateness_p99_us", p99 as f64 / 1e3);
        reading.put("lateness_max_us", lateness.max() as f64 / 1e3);
    }
    let lost: u64 = measurement.ends.iter().map(|end| end.dropped).sum();
    reading.put("tester_lost", lost as f64);
}
