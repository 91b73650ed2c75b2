//! Frames longer than the MTU of the egress port.

use std::time::Duration;

use base::PortNo;
use controller::DeviceRequests;
use testbed::{DeviceKind, Host, Topology};
use trafficgen::{
    Length, MeasureError, Measurement, Pace, Rate, Request, Stream, Template, TestPort, TestPortNo,
    Threads, measure as measure_streams,
};

use crate::catalogue::offered::figure;
use crate::catalogue::prelude::*;
use crate::setup::ConditionMonitor;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const MTU: Experiment = Experiment {
    description: Description {
        name: "mtu",
        title: "Frames above the MTU",
        family: Family::LatencyAndLoss,
        question: "What happens to frames above the MTU of the egress port: are they forwarded, fragmented, or dropped and counted, and do they affect other frames?",
        source: "OFLOPS with NetFPGA, section 3: frames above the MTU",
        steps: &[
            "The client's link has an MTU of 9,216 bytes or more, the server's has the given MTU, before the device starts.",
            "Four UDP streams are offered at the same time and rate: of 64 bytes, of the MTU, of one byte above it, and of 500 bytes above it.",
            "Other frames at the server are fragments, and frames at the client are messages of the device.",
            "The port statistics of port 2 (dropped frames and errors) are requested by OpenFlow before and after the load.",
        ],
        parameters: &[
            Parameter::axis(
                "mtu",
                "MTU of the port in bytes",
                Values::numbers(
                    &[1_500],
                    &[1_500, 4_000, 8_400],
                    &[1_500, 4_000, 8_400],
                    [576, 8_400],
                ),
            ),
            Parameter::constant(
                "pps",
                "frames per second",
                Values::numbers(&[10_000], &[10_000], &[10_000], [100, 1_000_000]),
            ),
            Parameter::constant(
                "millis",
                "duration of the load in milliseconds",
                Values::numbers(&[50], &[2_000], &[60_000], [10, 3_600_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Table {
                title: "Received frames and port statistics",
                figures: &[
                    "fits_percent",
                    "over_percent",
                    "far_percent",
                    "beside_percent",
                    "fragments",
                    "told",
                    "counted_percent",
                    "changed",
                ],
            },
            View::Bars {
                title: "Frames of 64 bytes during oversized frames",
                figure: "beside_percent",
                across: "mtu",
            },
        ],
        topology: Some(|_| {
            Topology::default()
                .with_mtu(CABLE)
                .expect("cables take as much")
        }),
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(|_| DedicatedSetup::default()),
    applies_to: |device, _| {
        let has_cables = !device.makes_taps() && !matches!(device, DeviceKind::External(_));
        has_cables && device != DeviceKind::Direct
    },
    seconds: |point| 1.0 + point.number("millis") as f64 / 1e3,
    measure,
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("fits_percent", "Frames of the MTU: received", "%", Better::Higher),
    figure("over_percent", "One byte above: received", "%", Better::Neither),
    figure("far_percent", "500 bytes above: received", "%", Better::Neither),
    figure("beside_percent", "64 bytes: received", "%", Better::Higher),
    figure("fragments", "Foreign frames", "", Better::Neither),
    figure("told", "Frames to the client", "", Better::Neither),
    figure("counted_percent", "Missing frames in port statistics", "%", Better::Higher),
    figure("changed", "Modified", "frames", Better::Lower),
];

/// MTU of the links.
const CABLE: u32 = 9_216;

/// Bytes of a frame that the MTU does not count: the header and the checksum (FCS).
const AROUND: u64 = 18;

/// Time limit for late frames.
const DRAIN: Duration = Duration::from_millis(200);

/// Excess length of the longest frames, in bytes.
const FAR: u16 = 500;

/// The device's interface to the server.
const NARROW: &str = "p2";

/// Time limit for the device's port counters.
const SETTLE: Duration = Duration::from_millis(600);

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    narrow(setup, point.small("mtu"))?;
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let before = counted(setup)?;
    let measurement = offer(&request(point, tools), setup, tools)?;
    let missing = measurement.streams.iter().map(|one| one.lost).sum();
    let counted = await_counts(before, missing, setup, tools)?;
    let conditions = watch.end(&setup.bench)?;
    let reading = reading(point, &measurement, counted);
    let mut measured = TrialResult::new(reading, conditions);
    for refusal in &measurement.refusals {
        measured.note(refusal.to_string());
    }
    Ok(measured)
}

/// Returns the frame sizes of the streams, in the order of [`CAME`].
fn sizes(mtu: u64) -> [u16; 4] {
    let longest = u16::try_from(mtu + AROUND).expect("the bound says so");
    [64, longest, longest + 1, longest + FAR]
}

/// Returns the simultaneous streams from the client to the server.
fn request(point: &Point, tools: &Tools<'_>) -> Request {
    let pace = Pace::Constant(Rate::Frames(point.number("pps")));
    let stream = |size| Stream::new(Template::udp(size), pace, TestPortNo(0), TestPortNo(1));
    let streams = sizes(point.number("mtu")).map(stream).to_vec();
    let length = Duration::from_millis(point.number("millis"));
    let mut request = Request::new(streams, Length::of(length));
    request.drain = DRAIN;
    if let [send, receive, ..] = *tools.cores.tester.as_slice() {
        request.threads = Threads::Pair { send, receive };
    }
    request
}

/// Offers the streams from a thread on the tester's first core.
fn offer(
    request: &Request,
    setup: &TestSetup,
    tools: &Tools<'_>,
) -> Result<Measurement, TrialError> {
    let longest = u16::try_from(CABLE).expect("it is a frame's size");
    let open =
        |host: &Host| TestPort::packet(&host.namespace, host.interface, longest, *tools.clock);
    let hosts = setup.bench.hosts()[..2].iter();
    let mut ends: Vec<TestPort> = hosts.map(open).collect::<Result<_, _>>()?;
    let measured = std::thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            let cores = &tools.cores.tester;
            testbed::pin_current_thread(&cores[..cores.len().min(1)])?;
            let measured = measure_streams(&mut ends, request, tools.clock, tools.interrupt);
            Ok::<_, testbed::Failure>(measured)
        });
        measuring
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    measured.map_err(|error| match error {
        MeasureError::Interrupted => TrialError::Interrupted,
        error => TrialError::Impossible(error.to_string()),
    })
}

/// Sets the MTU at both ends of the server's link.
fn narrow(setup: &TestSetup, mtu: u32) -> Result<(), TrialError> {
    let server = setup.bench.server();
    server.namespace.set_mtu(server.interface, mtu)?;
    setup.bench.device_namespace().set_mtu(NARROW, mtu)?;
    Ok(())
}

/// Returns the device's count of frames that port 2 could not send; `None` without OpenFlow.
fn counted(setup: &TestSetup) -> Result<Option<u64>, TrialError> {
    let Some(mut controller) = setup.controller() else {
        return Ok(None);
    };
    let ports = controller.port_counts(PortNo(2))?;
    let unsent = ports
        .iter()
        .map(|port| known(port.tx_dropped) + known(port.tx_errors));
    Ok(Some(unsent.sum()))
}

/// Returns a counter, or 0 for all ones, which means unsupported (OF 1.0.1, 5.3.5).
const fn known(counter: u64) -> u64 {
    match counter {
        u64::MAX => 0,
        counter => counter,
    }
}

/// Returns the increase of the device's count. Waits up to [`SETTLE`] until it reaches the number
/// of missing frames.
fn await_counts(
    before: Option<u64>,
    missing: u64,
    setup: &TestSetup,
    tools: &Tools<'_>,
) -> Result<Option<UnsentFrames>, TrialError> {
    let deadline = tools.clock.now() + SETTLE;
    loop {
        let (Some(before), Some(after)) = (before, counted(setup)?) else {
            return Ok(None);
        };
        let counted = after.saturating_sub(before);
        let now = tools.clock.now();
        if counted >= missing || now >= deadline {
            return Ok(Some(UnsentFrames { counted, missing }));
        }
        tools.clock.sleep_until(now + Duration::from_millis(20));
    }
}

/// Missing frames, and the part of them that the device counted.
#[derive(Clone, Copy, Debug)]
struct UnsentFrames {
    counted: u64,
    missing: u64,
}

/// Figures of the share of each stream that arrived.
const CAME: [&str; 4] = [
    "beside_percent",
    "fits_percent",
    "over_percent",
    "far_percent",
];

fn reading(point: &Point, measurement: &Measurement, counted: Option<UnsentFrames>) -> Reading {
    let mut reading = Reading::at(point);
    for (name, stream) in CAME.into_iter().zip(&measurement.streams) {
        let sent = stream.achieved.frames;
        match sent {
            0 => reading.lack(name, "none was sent"),
            sent => reading.put(name, stream.received as f64 / sent as f64 * 100.0),
        }
    }
    let ends = &measurement.ends;
    reading.put("told", ends[0].foreign as f64);
    reading.put("fragments", ends[1].foreign as f64);
    let changed: u64 = measurement.streams.iter().map(|one| one.modified).sum();
    reading.put("changed", changed as f64);
    match counted {
        None => reading.lack("counted_percent", "the device has no controller"),
        Some(UnsentFrames { missing: 0, .. }) => {
            reading.lack("counted_percent", "none was missing")
        }
        Some(UnsentFrames { counted, missing }) => {
            let share = counted as f64 / missing as f64;
            reading.put("counted_percent", share * 100.0);
        }
    }
    reading
}

#[cfg(test)]
mod tests;
