//! Reset (RFC 2544, 26.6, as RFC 6201 mends it).

use std::thread;
use std::time::Duration;

use base::Instant;
use record::MatchSet;
use record::{Outcome, Reading};
use testbed::Ending;
use trafficgen::{EndNo, Keep, Kept, Length, Measurement, Pace, Rate, Request, Stream, Template};

use crate::catalogue::lines::{DRAIN, Lines, Offer, greet, is_void};
use crate::catalogue::offered::figure;
use crate::catalogue::{
    Better, Bound, Description, Experiment, Family, Figure, Own, Parameter, Point, Setting, Values,
    View,
};
use crate::cores::Watch;
use crate::scenario::Tools;
use crate::station::{Restarted, Station};
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const RESET: Experiment = Experiment {
    description: Description {
        name: "reset",
        title: "A device that is ended and started again",
        family: Family::Benchmarking,
        question: "How long does a device that is started again forward nothing, and what of that time does it wait for its controller?",
        source: "RFC 2544, 26.6, and RFC 6201: planned and unplanned resets of the process",
        steps: &[
            "The device is started for this test alone, and forwards before anything is done to it; frames of 64 bytes go from the client to the server at equal gaps, and each one's arrival is kept.",
            "Amid them its process is asked to end (SIGTERM) or killed (SIGKILL), and started again at once; the cables stay, and Open vSwitch's database goes on. The kernel's bridge is taken away and made again, which counts as killed.",
            "The controller waits for the device's call, to within five milliseconds, and gives it its rules again.",
            "The outage is the longest silence at the server, from the last frame before to the first frame behind it; by lost frames it is their number by the gap between two.",
            "All other times are counted from when the device was told to end.",
        ],
        parameters: &[
            Parameter::axis(
                "ending",
                "how the device is ended",
                Values::Words {
                    quick: &["killed"],
                    all: &["killed", "asked"],
                },
            ),
            Parameter::constant(
                "pps",
                "frames a second",
                Values::Numbers {
                    quick: &[10_000],
                    paper: &[10_000],
                    rfc: &[10_000],
                    bound: Bound {
                        least: 100,
                        most: 20_000,
                    },
                },
            ),
            Parameter::constant(
                "millis",
                "milliseconds within which it has to forward again",
                Values::Numbers {
                    quick: &[600],
                    paper: &[10_000],
                    rfc: &[60_000],
                    bound: Bound {
                        least: 100,
                        most: 60_000,
                    },
                },
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Matrix {
                title: "Outage by how the device was ended",
                figure: "outage_ms",
                across: "ending",
                published: "",
            },
            View::Table {
                title: "What the outage is made of",
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
        topology: None,
    },
    setting: Setting::Own(|_| Own {
        // The usual place, and yet one of its own: the run's device is to live on.
        apart: true,
        ..Own::default()
    }),
    takes: |device, point| {
        let killed = point.word("ending") == "killed";
        device.can_restart() && (killed || !device.is_in_kernel())
    },
    seconds: |point| point.number("millis") as f64 / 1e3 + 0.8,
    measure,
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("outage_ms", "Outage", "ms", Better::Lower),
    figure("loss_outage_ms", "Outage, by lost frames", "ms", Better::Lower),
    figure("ended_ms", "Gone", "ms", Better::Lower),
    figure("called_ms", "Called its controller", "ms", Better::Lower),
    figure("ruled_ms", "Had its rules", "ms", Better::Lower),
    figure("first_frame_ms", "First frame out again", "ms", Better::Lower),
    figure("lost", "Lost", "frames", Better::Lower),
];

/// Frames are sent for so long, and so often at most, to see whether the device forwards.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: u32 = 25;
/// Frames go for so long before the device is ended.
const BEFORE: Duration = Duration::from_millis(100);

fn measure(
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let ending = match point.word("ending") {
        "asked" => Ending::Asked,
        _ => Ending::Killed,
    };
    let length = BEFORE + Duration::from_millis(point.number("millis"));
    let request = request(point.number("pps"), length);
    let mut lines = Lines::open(&station.bench, 64, tools)?;
    greet(&station.bench, 0..2)?;
    forwards(point.number("pps"), &mut lines)?;
    // What is watched is the machine: the process that is ended takes its account with it.
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let (measured, restarted) = thread::scope(|scope| {
        let station = &mut *station;
        let restarted = scope.spawn(move || {
            tools.clock.sleep_until(tools.clock.now() + BEFORE);
            station.restart(ending, MatchSet::Port, tools.spawner, tools.clock)
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
    let mut conditions = watch.end(&station.bench)?;
    conditions.process = None;
    let mut reading = Reading::at(point);
    tell(&measurement, &restarted, point.number("pps"), &mut reading);
    let mut measured = Measured::new(Outcome::Reading(reading), conditions);
    if let Some(reason) = is_void(&measurement) {
        measured.void(reason);
    }
    Ok(measured)
}

/// Waits until frames show that the rules are in force.
fn forwards(pps: u64, lines: &mut dyn Offer) -> Result<(), TrialError> {
    for _ in 0..LOOKS {
        if lines.offer(&request(pps, LOOK))?.streams[0].lost == 0 {
            return Ok(());
        }
    }
    Err(TrialError::Impossible(
        "the device did not forward all frames before it was to be ended".to_owned(),
    ))
}

/// Frames at equal gaps from the client to the server, each one kept.
fn request(pps: u64, length: Duration) -> Request {
    let pace = Pace::Constant(Rate::Frames(pps));
    let stream = Stream::new(Template::udp(64), pace, EndNo(0), EndNo(1));
    let mut request = Request::new(vec![stream], Length::of(length));
    request.drain = DRAIN;
    let most = pps as u128 * length.as_millis() / 1_000;
    request.keep = Some(Keep {
        from: 0,
        most: usize::try_from(most).expect("the experiment's bounds say so"),
    });
    request
}

/// Puts down when what had happened.
fn tell(measurement: &Measurement, restarted: &Restarted, pps: u64, reading: &mut Reading) {
    let told = restarted.stopped.told;
    let since = |then: Instant| then.since(told).as_secs_f64() * 1e3;
    let stream = &measurement.streams[0];
    reading.put("lost", stream.lost as f64);
    reading.put("loss_outage_ms", stream.lost as f64 / pps as f64 * 1e3);
    reading.put("ended_ms", since(restarted.stopped.gone));
    for (name, when) in [
        ("called_ms", restarted.called),
        ("ruled_ms", restarted.ruled),
    ] {
        match when {
            Some(when) => reading.put(name, since(when)),
            None => reading.lack(name, "it has no controller in this mode"),
        }
    }
    match silence(&stream.kept, told.as_nanos()) {
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

/// The longest time in which nothing came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Silence {
    /// When the last frame before it came.
    last_ns: u64,
    /// When the first frame behind it came.
    first_ns: u64,
}

impl Silence {
    fn outage_ms(self) -> f64 {
        (self.first_ns - self.last_ns) as f64 / 1e6
    }
}

/// The longest silence that ended after the device was told to end, or why there is none.
fn silence(kept: &[Kept], told_ns: u64) -> Result<Silence, &'static str> {
    let mut came: Vec<u64> = kept.iter().map(|one| one.came_ns).collect();
    came.sort_unstable();
    let before = came.partition_point(|&ns| ns < told_ns);
    if before == 0 {
        return Err("nothing came out before it was ended");
    }
    if before == came.len() {
        return Err("nothing came out again in the time that it had");
    }
    let ends = came[before - 1..].windows(2);
    let longest = ends.max_by_key(|two| two[1] - two[0]);
    let two = longest.expect("there is one before and one behind");
    Ok(Silence {
        last_ns: two[0],
        first_ns: two[1],
    })
}

#[cfg(test)]
mod tests;
