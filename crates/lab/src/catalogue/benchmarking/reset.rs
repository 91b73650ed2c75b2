//! Reset (RFC 2544, 26.6, updated by RFC 6201).

use std::thread;
use std::time::Duration;

use crate::rules::MatchSet;
use base::Instant;
use testbed::StopSignal;
use trafficgen::{
    FrameRecord, Keep, Length, Measurement, Pace, Rate, Request, Stream, Template, TestPortNo,
};

use crate::catalogue::lines::{DRAIN, Lines, Offer, greet, is_void};
use crate::catalogue::offered::figure;
use crate::catalogue::prelude::*;
use crate::setup::ConditionMonitor;
use crate::setup::{RestartTimes, TestSetup};
use crate::tools::Tools;

/// The experiment.
pub(crate) const RESET: Experiment = Experiment {
    description: Description {
        name: "reset",
        title: "Reset",
        family: Family::Benchmarking,
        question: "How long is the outage of a device that is restarted, and which part of it is due to the controller connection?",
        source: "RFC 2544, 26.6, and RFC 6201: planned and unplanned resets of the process",
        steps: &[
            "The device is started for this trial and forwards before the reset; frames of 64 bytes are sent from the client to the server at equal gaps, and the arrival of each is recorded.",
            "Meanwhile its process is terminated (SIGTERM) or killed (SIGKILL), and restarted at once; the links remain, and the database of Open vSwitch keeps running. The Linux bridge is deleted and created again, which counts as killed.",
            "The controller accepts the device's connection to within five milliseconds and installs its rules again.",
            "The outage is the longest time without frames at the server; by lost frames it is their number times the gap.",
            "All other times run from the signal to the process.",
        ],
        parameters: &[
            Parameter::axis(
                "ending",
                "end of the device: terminated (asked) or killed",
                Values::words(&["killed"], &["killed", "asked"]),
            ),
            Parameter::constant(
                "pps",
                "frames per second",
                Values::numbers(&[10_000], &[10_000], &[10_000], [100, 20_000]),
            ),
            Parameter::constant(
                "millis",
                "time limit for forwarding in milliseconds",
                Values::numbers(&[600], &[10_000], &[60_000], [100, 60_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Matrix {
                title: "Outage by end of the device",
                figure: "outage_ms",
                across: "ending",
                published: "",
            },
            View::Table {
                title: "Parts of the outage",
                figures: &[
                    "outage_ms",
                    "loss_outage_ms",
                    "ended_ms",
                    "called_ms",
                    "ruled_ms",
                    "first_frame_ms",
                    "lost",
                ],
            },
        ],
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(|_| DedicatedSetup {
        // The default setup, but not the shared one, since the device of the run must not be
        // restarted.
        separate: true,
        ..DedicatedSetup::default()
    }),
    applies_to: |device, point| {
        let killed = point.word("ending") == "killed";
        device.can_restart() && (killed || !device.is_in_kernel())
    },
    seconds: |point| point.number("millis") as f64 / 1e3 + 0.8,
    measure,
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("outage_ms", "Outage", "ms", Better::Lower),
    figure("loss_outage_ms", "Outage, by lost frames", "ms", Better::Lower),
    figure("ended_ms", "Process ended", "ms", Better::Lower),
    figure("called_ms", "Connected", "ms", Better::Lower),
    figure("ruled_ms", "Rules installed", "ms", Better::Lower),
    figure("first_frame_ms", "First frame forwarded", "ms", Better::Lower),
    figure("lost", "Lost", "frames", Better::Lower),
];

/// Duration and greatest number of the trials that check whether the device forwards.
const CHECK_LENGTH: Duration = Duration::from_millis(20);
const CHECKS_MAX: u32 = 25;
/// Time of frames before the device is stopped.
const BEFORE: Duration = Duration::from_millis(100);

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let ending = match point.word("ending") {
        "asked" => StopSignal::Term,
        _ => StopSignal::Kill,
    };
    let length = BEFORE + Duration::from_millis(point.number("millis"));
    let request = request(point.number("pps"), length);
    let mut lines = Lines::open(&setup.bench, 64, tools)?;
    greet(&setup.bench, 0..2)?;
    forwards(point.number("pps"), &mut lines)?;
    // Only the machine's conditions count: the stopped process loses its usage counters.
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let (measured, restarted) = thread::scope(|scope| {
        let setup = &mut *setup;
        let restarted = scope.spawn(move || {
            tools.clock.sleep_until(tools.clock.now() + BEFORE);
            setup.restart(ending, MatchSet::Port, tools)
        });
        let measured = lines.offer(&request);
        let restarted = restarted.join();
        (
            measured,
            restarted.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        )
    });
    let measurement = measured?;
    let restarted = restarted.map_err(|error| TrialError::Impossible(error.to_string()))?;
    let mut conditions = watch.end(&setup.bench)?;
    conditions.process = None;
    let mut reading = Reading::at(point);
    put_restart_times(&measurement, &restarted, point.number("pps"), &mut reading);
    let mut measured = TrialResult::new(reading, conditions);
    if let Some(reason) = is_void(&measurement) {
        measured.void(reason);
    }
    Ok(measured)
}

/// Waits until all frames are forwarded, so that the rules are in force.
fn forwards(pps: u64, lines: &mut dyn Offer) -> Result<(), TrialError> {
    for _ in 0..CHECKS_MAX {
        if lines.offer(&request(pps, CHECK_LENGTH))?.streams[0].lost == 0 {
            return Ok(());
        }
    }
    Err(TrialError::Impossible(
        "the device did not forward all frames before it was to be stopped".to_owned(),
    ))
}

/// Returns frames at equal gaps from the client to the server, all of which are kept.
fn request(pps: u64, length: Duration) -> Request {
    let pace = Pace::Constant(Rate::Frames(pps));
    let stream = Stream::new(Template::udp(64), pace, TestPortNo(0), TestPortNo(1));
    let mut request = Request::new(vec![stream], Length::of(length));
    request.drain = DRAIN;
    let most = pps as u128 * length.as_millis() / 1_000;
    request.keep = Some(Keep {
        from: 0,
        most: usize::try_from(most).expect("the experiment's bounds say so"),
    });
    request
}

/// Adds the times of the restart to the reading.
fn put_restart_times(
    measurement: &Measurement,
    restarted: &RestartTimes,
    pps: u64,
    reading: &mut Reading,
) {
    let told = restarted.stopped.signalled;
    let since = |then: Instant| then.since(told).as_secs_f64() * 1e3;
    let stream = &measurement.streams[0];
    reading.put("lost", stream.lost as f64);
    reading.put("loss_outage_ms", stream.lost as f64 / pps as f64 * 1e3);
    reading.put("ended_ms", since(restarted.stopped.ended));
    for (name, when) in [
        ("called_ms", restarted.connected),
        ("ruled_ms", restarted.rules_installed),
    ] {
        match when {
            Some(when) => reading.put(name, since(when)),
            None => reading.lack(name, "it has no controller in this mode"),
        }
    }
    match silence(&stream.records, told.as_nanos()) {
        Ok(silence) => {
            reading.put("outage_ms", silence.outage_ms());
            let first = Instant::from_nanos(silence.first_ns);
            reading.put("first_frame_ms", since(first));
        }
        Err(reason) => {
            for name in ["outage_ms", "first_frame_ms"] {
                reading.lack(name, reason);
            }
        }
    }
}

/// The longest time without a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Silence {
    /// Arrival of the last frame before it.
    last_ns: u64,
    /// Arrival of the first frame after it.
    first_ns: u64,
}

impl Silence {
    fn outage_ms(self) -> f64 {
        (self.first_ns - self.last_ns) as f64 / 1e6
    }
}

/// Returns the longest silence that ended after the request to stop, or the reason why there is
/// none.
fn silence(kept: &[FrameRecord], stopped_ns: u64) -> Result<Silence, &'static str> {
    let mut arrivals: Vec<u64> = kept.iter().map(|one| one.received_ns).collect();
    arrivals.sort_unstable();
    let before = arrivals.partition_point(|&ns| ns < stopped_ns);
    if before == 0 {
        return Err("no frame arrived before the device was stopped");
    }
    if before == arrivals.len() {
        return Err("no frame arrived after the restart within the time limit");
    }
    let ends = arrivals[before - 1..].windows(2);
    let longest = ends.max_by_key(|two| two[1] - two[0]);
    let two = longest.expect("there is one before and one behind");
    Ok(Silence {
        last_ns: two[0],
        first_ns: two[1],
    })
}

#[cfg(test)]
mod tests;
