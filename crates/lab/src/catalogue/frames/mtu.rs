//! Frames that are too long for the port that they should leave by.

use std::time::Duration;

use base::PortNo;
use controller::Ask;
use record::{Outcome, Reading};
use testbed::{DeviceKind, Host, Topology};
use trafficgen::{
    End, EndNo, Length, MeasureError, Measurement, Pace, Rate, Request, Stream, Template, Threads,
    measure as measure_streams,
};

use crate::catalogue::offered::figure;
use crate::catalogue::{
    Better, Description, Experiment, Family, Figure, Own, Parameter, Point, Setting, Values, View,
};
use crate::cores::Watch;
use crate::scenario::Tools;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const MTU: Experiment = Experiment {
    description: Description {
        name: "mtu",
        title: "Frames longer than a port takes",
        family: Family::LatencyAndLoss,
        question: "What becomes of frames that are longer than the port they should leave by takes: are they forwarded, fragmented, dropped and counted, or do they harm those that fit?",
        source: "OFLOPS with NetFPGA, section 3: frames above the MTU",
        steps: &[
            "The client's cable takes frames of 9,216 bytes and more, the server's has the MTU that is set; the device is started so.",
            "Four streams of UDP are offered at the same time and rate: of 64 bytes, of frames that just fit, of such with one byte more, and with 500 more.",
            "What comes out at the server and is none of these is a part of one, and what comes back to the client was told by the device.",
            "The device's own counters of port 2 are asked before and after: frames dropped and in error, by OpenFlow.",
        ],
        parameters: &[
            Parameter::axis(
                "mtu",
                "bytes above Ethernet that the port takes",
                Values::numbers(
                    &[1_500],
                    &[1_500, 4_000, 8_400],
                    &[1_500, 4_000, 8_400],
                    [576, 8_400],
                ),
            ),
            Parameter::constant(
                "pps",
                "frames a second",
                Values::numbers(&[10_000], &[10_000], &[10_000], [100, 1_000_000]),
            ),
            Parameter::constant(
                "millis",
                "milliseconds for which frames of each size are offered",
                Values::numbers(&[50], &[2_000], &[60_000], [10, 3_600_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Table {
                title: "What came out, and what was told of the rest",
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
                title: "Frames of 64 bytes, beside others that do not fit",
                figure: "beside_percent",
                across: "mtu",
            },
        ],
        topology: Some(|_| {
            Topology::default()
                .with_mtu(CABLE)
                .expect("cables take as much")
        }),
    },
    setting: Setting::Own(|_| Own::default()),
    takes: |device, _| {
        let has_cables = !device.makes_taps() && !matches!(device, DeviceKind::External(_));
        has_cables && device != DeviceKind::Direct
    },
    seconds: |point| 1.0 + point.number("millis") as f64 / 1e3,
    measure,
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("fits_percent", "Just fit: came", "%", Better::Higher),
    figure("over_percent", "One byte more: came", "%", Better::Neither),
    figure("far_percent", "500 bytes more: came", "%", Better::Neither),
    figure("beside_percent", "Of 64 bytes, beside those: came", "%", Better::Higher),
    figure("fragments", "Frames that are none of ours", "", Better::Neither),
    figure("told", "Frames back to the client", "", Better::Neither),
    figure("counted_percent", "Missing frames that the port counted", "%", Better::Higher),
    figure("changed", "Changed", "frames", Better::Lower),
];

/// What cables take above Ethernet.
const CABLE: u32 = 9_216;

/// Bytes of a frame beside what the MTU counts: the header and the checksum (FCS).
const AROUND: u64 = 18;

/// How long stragglers are waited for.
const DRAIN: Duration = Duration::from_millis(200);

/// By how much longer frames are that are far too long.
const FAR: u16 = 500;

/// The devices' interface that leads to the server.
const NARROW: &str = "p2";

/// How long a device may take to tell what its port has counted.
const SETTLE: Duration = Duration::from_millis(600);

fn measure(
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    narrow(station, point.small("mtu"))?;
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let before = counted(station)?;
    let measurement = offer(&request(point, tools), station, tools)?;
    let missing = measurement.streams.iter().map(|one| one.lost).sum();
    let counted = await_counts(before, missing, station, tools)?;
    let conditions = watch.end(&station.bench)?;
    let reading = reading(point, &measurement, counted);
    let mut measured = Measured::new(Outcome::Reading(reading), conditions);
    for refusal in &measurement.refusals {
        measured.note(refusal.to_string());
    }
    Ok(measured)
}

/// Sizes of the frames of each stream, in the order of [`CAME`].
fn sizes(mtu: u64) -> [u16; 4] {
    let longest = u16::try_from(mtu + AROUND).expect("the bound says so");
    [64, longest, longest + 1, longest + FAR]
}

/// The streams from the client to the server, all at the same time.
fn request(point: &Point, tools: &Tools<'_>) -> Request {
    let pace = Pace::Constant(Rate::Frames(point.number("pps")));
    let stream = |size| Stream::new(Template::udp(size), pace, EndNo(0), EndNo(1));
    let streams = sizes(point.number("mtu")).map(stream).to_vec();
    let length = Duration::from_millis(point.number("millis"));
    let mut request = Request::new(streams, Length::of(length));
    request.drain = DRAIN;
    if let [send, receive, ..] = *tools.cores.tester.as_slice() {
        request.threads = Threads::Pair { send, receive };
    }
    request
}

/// Offers them, by a thread on the tester's first core.
fn offer(
    request: &Request,
    station: &Station,
    tools: &Tools<'_>,
) -> Result<Measurement, TrialError> {
    let longest = u16::try_from(CABLE).expect("it is a frame's size");
    let open = |host: &Host| End::packet(&host.namespace, host.interface, longest, *tools.clock);
    let hosts = station.bench.hosts()[..2].iter();
    let mut ends: Vec<End> = hosts.map(open).collect::<Result<_, _>>()?;
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

/// Has the server's cable take no more than so many bytes above Ethernet.
fn narrow(station: &Station, mtu: u32) -> Result<(), TrialError> {
    let server = station.bench.server();
    server.namespace.set_mtu(server.interface, mtu)?;
    station.bench.device_namespace().set_mtu(NARROW, mtu)?;
    Ok(())
}

/// What the device says that port 2 could not send; none without OpenFlow.
fn counted(station: &Station) -> Result<Option<u64>, TrialError> {
    let Some(mut controller) = station.controller() else {
        return Ok(None);
    };
    let ports = controller.port_counts(PortNo(2))?;
    let unsent = ports
        .iter()
        .map(|port| known(port.tx_dropped) + known(port.tx_errors));
    Ok(Some(unsent.sum()))
}

/// A counter; all ones where the device has none (OF 1.0.1, 5.3.5).
const fn known(counter: u64) -> u64 {
    match counter {
        u64::MAX => 0,
        counter => counter,
    }
}

/// How many more it counted, when that is as many as are missing or will not be.
fn await_counts(
    before: Option<u64>,
    missing: u64,
    station: &Station,
    tools: &Tools<'_>,
) -> Result<Option<Counted>, TrialError> {
    let deadline = tools.clock.now() + SETTLE;
    loop {
        let (Some(before), Some(after)) = (before, counted(station)?) else {
            return Ok(None);
        };
        let counted = after.saturating_sub(before);
        let now = tools.clock.now();
        if counted >= missing || now >= deadline {
            return Ok(Some(Counted { counted, missing }));
        }
        tools.clock.sleep_until(now + Duration::from_millis(20));
    }
}

/// Frames that did not come out, and how many the device says it could not send.
#[derive(Clone, Copy, Debug)]
struct Counted {
    counted: u64,
    missing: u64,
}

/// What each stream's share is called that came out.
const CAME: [&str; 4] = [
    "beside_percent",
    "fits_percent",
    "over_percent",
    "far_percent",
];

fn reading(point: &Point, measurement: &Measurement, counted: Option<Counted>) -> Reading {
    let mut reading = Reading::at(point);
    for (name, stream) in CAME.into_iter().zip(&measurement.streams) {
        let sent = stream.achieved.frames;
        match sent {
            0 => reading.lack(name, "none was sent"),
            sent => reading.put(name, stream.received as f64 / sent as f64 * 100.0),
        }
    }
    let ends = &measurement.ends;
    reading.put("told", ends[0].unknown as f64);
    reading.put("fragments", ends[1].unknown as f64);
    let changed: u64 = measurement.streams.iter().map(|one| one.changed).sum();
    reading.put("changed", changed as f64);
    match counted {
        None => reading.lack("counted_percent", "it has no controller to tell"),
        Some(Counted { missing: 0, .. }) => reading.lack("counted_percent", "none was missing"),
        Some(Counted { counted, missing }) => {
            let share = counted as f64 / missing as f64;
            reading.put("counted_percent", share * 100.0);
        }
    }
    reading
}

#[cfg(test)]
mod tests;
