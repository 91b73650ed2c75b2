//! System recovery (RFC 2544, 26.5).

use std::time::Duration;

use trafficgen::{
    FrameRecord, Keep, Length, Pace, Rate, Request, Schedule, Stream, StreamOutcome, Template,
    TestPortNo,
};

use super::{LINE, RATE_MIN, SIZE, line_rate};
use crate::catalogue::bisection::Bisection;
use crate::catalogue::lines::{DRAIN, Lines, Offer, fell_short, greet, is_void, offer_well};
use crate::catalogue::offered::figure;
use crate::catalogue::prelude::*;
use crate::setup::ConditionMonitor;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const RECOVERY: Experiment = Experiment {
    description: Description {
        name: "recovery",
        title: "System recovery",
        family: Family::Benchmarking,
        question: "How long after an overload does a device still lose frames, and when is its delay normal again?",
        source: "RFC 2544, 26.5, with the overload of VSPERF (a half instead of a tenth)",
        steps: &[
            "A bisection with single trials without loss finds the throughput to a tenth, up to the rate of the virtual line or of the tester.",
            "The median delay at half the throughput is measured before the overload.",
            "Then frames are offered at the overload, and after it at half the throughput; an overload above the limit of the tester is reduced to it, with a note.",
            "The recovery time runs from the end of the overload to the time at which the last lost frame was due.",
            "The delay is normal when its median over two milliseconds of frames is at most a tenth above that before the overload.",
            "One rule per direction matches the ingress port.",
        ],
        parameters: &[
            SIZE,
            LINE,
            Parameter::constant(
                "overload",
                "overload in per cent of the throughput",
                Values::numbers(&[150], &[110], &[110], [101, 1_000]),
            ),
            TRIAL_MILLIS,
            OVERLOAD_MILLIS,
            AFTER_MILLIS,
        ],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Recovery time by frame size",
                figure: "recovery_ms",
                along: "size",
                log: true,
            },
            View::Table {
                title: "Recovery time",
                figures: &[
                    "recovery_ms",
                    "settled_ms",
                    "throughput_kpps",
                    "overload_kpps",
                    "overload_loss_percent",
                    "rest_p50_us",
                ],
            },
        ],
        ..Description::EMPTY
    },
    seconds: |point| {
        let of = |name| point.number(name) as f64 / 1e3;
        0.5 + 6.0 * (of("trial-millis") + 0.07) + of("overload-millis") + 2.0 * of("after-millis")
    },
    measure,
    ..Experiment::BASE
};

const TRIAL_MILLIS: Parameter = Parameter::constant(
    "trial-millis",
    "duration of a trial of the search in milliseconds",
    Values::Numbers {
        quick: &[50],
        paper: &[1_000],
        rfc: &[60_000],
        bound: MILLIS,
    },
);

const OVERLOAD_MILLIS: Parameter = Parameter::constant(
    "overload-millis",
    "duration of the overload in milliseconds",
    Values::Numbers {
        quick: &[100],
        paper: &[5_000],
        rfc: &[60_000],
        bound: MILLIS,
    },
);

const AFTER_MILLIS: Parameter = Parameter::constant(
    "after-millis",
    "duration of the load before and after the overload in milliseconds",
    Values::Numbers {
        quick: &[150],
        paper: &[2_000],
        rfc: &[60_000],
        bound: MILLIS,
    },
);

const MILLIS: Bound = Bound {
    least: 20,
    most: 3_600_000,
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("recovery_ms", "Recovery time", "ms", Better::Lower),
    figure("settled_ms", "Delay normal after", "ms", Better::Lower),
    figure("throughput_kpps", "Throughput", "kpps", Better::Higher),
    figure("overload_kpps", "Overload", "kpps", Better::Neither),
    figure("overload_loss_percent", "Lost during the overload", "%", Better::Lower),
    figure("rest_p50_us", "Median delay before", "µs", Better::Lower),
];

/// Share of the tester's highest rate that the trial uses: at the limit itself it falls short.
const REACHED: f64 = 0.9;
/// Width of the search for the throughput, as a share of its upper bound.
const WIDTH: f64 = 0.1;
/// Duration of the trial that finds the tester's highest rate.
const FLAT_OUT: Duration = Duration::from_millis(30);
/// Greatest number of frames after the overload whose delays are kept.
const KEPT_MAX: u64 = 1_000_000;
/// Window of the delay's median.
const WINDOW_NS: u64 = 2_000_000;
/// Greatest median of a settled delay, as a multiple of the delay at rest.
const SETTLED: f64 = 1.1;
/// Share of the time after the overload; losses that continue for longer have no end.
const ENDLESS: f64 = 0.95;
/// Lateness of the tester from which the record has a note.
const LATE_NS: u64 = 1_000_000;

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let mut reading = Reading::at(point);
    let mut lines = Lines::open(&setup.bench, point_size(point), tools)?;
    greet(&setup.bench, 0..2)?;
    let limits = limits(point, &mut lines)?;
    let mut notes = Vec::new();
    match overload(limits, point.number("overload")) {
        Err(reason) => {
            put_throughput(limits, &mut reading);
            for name in [
                "recovery_ms",
                "settled_ms",
                "overload_kpps",
                "overload_loss_percent",
                "rest_p50_us",
            ] {
                reading.lack(name, reason);
            }
        }
        Ok((plan, cut)) => {
            put_throughput(limits, &mut reading);
            notes.extend(cut);
            let plan = plan.lasting(point);
            notes.extend(recover(&plan, &mut lines, &mut reading)?);
        }
    }
    let conditions = watch.end(&setup.bench)?;
    let mut measured = TrialResult::new(reading, conditions);
    for note in notes {
        match note {
            Note::Void(reason) => measured.void(reason),
            Note::Plain(reason) => measured.note(reason),
        }
    }
    Ok(measured)
}

/// Remark on a trial.
enum Note {
    Plain(String),
    Void(String),
}

/// Highest rates in frames per second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limits {
    /// Throughput of the device; `None` if the least rate had losses.
    throughput: Option<u64>,
    /// Highest offered load: that of the line or the tester.
    greatest: u64,
}

fn point_size(point: &Point) -> u16 {
    u16::try_from(point.number("size")).expect("the experiment's bounds say so")
}

/// Returns frames from the client to the server.
fn request(frame_bytes: u16, pace: Pace, length: Duration) -> Request {
    let stream = Stream::new(
        Template::udp(frame_bytes),
        pace,
        TestPortNo(0),
        TestPortNo(1),
    );
    let mut request = Request::new(vec![stream], Length::of(length));
    request.drain = DRAIN;
    request
}

/// Measures the highest rates.
fn limits(point: &Point, lines: &mut dyn Offer) -> Result<Limits, TrialError> {
    let size = point.number("size");
    let of = |pace, length| request(point_size(point), pace, length);
    let flat_out = lines.offer(&of(Pace::FlatOut, FLAT_OUT))?;
    let sent = flat_out.streams[0].achieved.pps() * REACHED;
    let line = line_rate(point.number("line"), size);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is positive and far below 2^53"
    )]
    let greatest = line.min(sent as u64).max(1);
    let length = Duration::from_millis(point.number("trial-millis"));
    let found = Bisection::new(RATE_MIN.min(greatest), greatest, WIDTH).run(|rate| {
        let pace = Pace::Constant(Rate::Frames(rate));
        let trial = offer_well(lines, &of(pace, length))?;
        Ok::<_, TrialError>(trial.streams[0].lost == 0 && !fell_short(&trial))
    })?;
    Ok(Limits {
        throughput: found.found(),
        greatest,
    })
}

fn put_throughput(limits: Limits, reading: &mut Reading) {
    match limits.throughput {
        Some(rate) => reading.put("throughput_kpps", rate as f64 / 1e3),
        None => reading.lack(
            "throughput_kpps",
            "at the least rate frames were lost, or the tester was late in three attempts",
        ),
    }
}

/// Overload, and the load after it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OverloadPlan {
    frame_bytes: u16,
    /// Frames per second of the overload, and after it.
    overload: u64,
    after: u64,
    overload_for: Duration,
    after_for: Duration,
}

/// Returns the overload of `percent` of the throughput and a remark on it, or the reason why none
/// is possible.
fn overload(limits: Limits, percent: u64) -> Result<(OverloadPlan, Option<Note>), &'static str> {
    let Some(throughput) = limits.throughput else {
        return Err("no throughput was found");
    };
    if throughput >= limits.greatest {
        return Err("the device carries all that the tester or the line does");
    }
    let wanted = throughput * percent / 100;
    let overload = wanted.min(limits.greatest);
    let cut = (overload < wanted).then(|| {
        let share = overload * 100 / throughput;
        Note::Plain(format!(
            "the tester or the line carries {share} % of the throughput, not {percent} %"
        ))
    });
    let plan = OverloadPlan {
        frame_bytes: 64,
        overload,
        after: (throughput / 2).max(1),
        overload_for: Duration::ZERO,
        after_for: Duration::ZERO,
    };
    Ok((plan, cut))
}

impl OverloadPlan {
    /// Returns the plan with the frame size and the durations of a point.
    fn lasting(self, point: &Point) -> Self {
        Self {
            frame_bytes: point_size(point),
            overload_for: Duration::from_millis(point.number("overload-millis")),
            after_for: Duration::from_millis(point.number("after-millis")),
            ..self
        }
    }

    fn step_ns(&self) -> u64 {
        u64::try_from(self.overload_for.as_nanos()).expect("the experiment's bounds say so")
    }

    fn pace(&self) -> Pace {
        Pace::Stepped {
            before: Rate::Frames(self.overload),
            at_ns: self.step_ns(),
            after: Rate::Frames(self.after),
        }
    }

    /// Returns the frames of the overload: those that are due before its end.
    fn overload_frames(&self) -> u64 {
        let frames = u128::from(self.step_ns()) * u128::from(self.overload);
        u64::try_from(frames.div_ceil(1_000_000_000)).expect("a rate is no more than a line's")
    }

    fn request(&self, pace: Pace, length: Duration) -> Request {
        request(self.frame_bytes, pace, length)
    }

    /// Returns the request of the overload and the load after it, whose frames are kept.
    fn stepped(&self) -> Request {
        let mut request = self.request(self.pace(), self.overload_for + self.after_for);
        let behind = u128::from(self.after) * self.after_for.as_millis() / 1_000;
        let most = behind.min(u128::from(KEPT_MAX));
        request.keep = Some(Keep {
            from: self.overload_frames(),
            most: usize::try_from(most).expect("it is a million at most"),
        });
        request
    }
}

/// Measures the delay at rest, offers the overload, and adds the time of recovery to the reading.
fn recover(
    plan: &OverloadPlan,
    lines: &mut dyn Offer,
    reading: &mut Reading,
) -> Result<Vec<Note>, TrialError> {
    let rest = Pace::Constant(Rate::Frames(plan.after));
    let rest = offer_well(lines, &plan.request(rest, plan.after_for))?;
    let rest_ns = rest.streams[0].delay_from_sent.value_at_quantile(0.5);
    if rest.streams[0].received > 0 {
        reading.put("rest_p50_us", rest_ns as f64 / 1e3);
    } else {
        reading.lack("rest_p50_us", "no frame arrived");
    }
    let measured = offer_well(lines, &plan.stepped())?;
    let stream = &measured.streams[0];
    let frames = plan.overload_frames();
    reading.put("overload_kpps", plan.overload as f64 / 1e3);
    if fell_short(&measured) {
        for name in ["recovery_ms", "settled_ms", "overload_loss_percent"] {
            reading.lack(name, "the tester is too slow for the overload");
        }
        return Ok(Vec::new());
    }
    reading.put(
        "overload_loss_percent",
        stream.lost as f64 / frames as f64 * 100.0,
    );
    match recovery_ns(plan, stream) {
        Ok(ns) => reading.put("recovery_ms", ns as f64 / 1e6),
        Err(reason) => reading.lack("recovery_ms", reason),
    }
    let step_ns = measured.began_ns + plan.step_ns();
    match settled_ns(&stream.records, step_ns, rest_ns) {
        Some(ns) => reading.put("settled_ms", ns as f64 / 1e6),
        None => reading.lack("settled_ms", "the delay did not return to within a tenth"),
    }
    let mut notes: Vec<Note> = is_void(&measured).map(Note::Void).into_iter().collect();
    if stream.lateness.max() >= LATE_NS {
        let late = stream.lateness.max() as f64 / 1e6;
        notes.push(Note::Plain(format!("a frame was sent {late:.1} ms late")));
    }
    Ok(notes)
}

/// Returns the time from the step to the schedule of the last lost frame, in nanoseconds, or the
/// reason why it is unknown.
fn recovery_ns(plan: &OverloadPlan, stream: &StreamOutcome) -> Result<u64, &'static str> {
    let Some(last) = stream.last_lost else {
        return Err("the overload lost nothing");
    };
    if last < plan.overload_frames() {
        return Ok(0);
    }
    let due = Schedule::new(plan.pace(), vec![plan.frame_bytes]).nth_ns(last);
    let after = due.saturating_sub(plan.step_ns());
    match after as f64 > ENDLESS * plan.after_for.as_nanos() as f64 {
        true => Err("frames were lost until the end, at half the throughput too"),
        false => Ok(after),
    }
}

/// Returns the time from the step to the first window of two milliseconds whose median delay is at
/// most a tenth above the delay at rest.
fn settled_ns(kept: &[FrameRecord], step_ns: u64, rest_ns: u64) -> Option<u64> {
    let most = SETTLED * rest_ns as f64;
    let mut windows: Vec<Vec<u64>> = Vec::new();
    for one in kept {
        let place = one.sent_ns.saturating_sub(step_ns) / WINDOW_NS;
        let place = usize::try_from(place).expect("a test is short");
        if windows.len() <= place {
            windows.resize_with(place + 1, Vec::new);
        }
        windows[place].push(one.received_ns.saturating_sub(one.sent_ns));
    }
    let is_settled = |window: &mut Vec<u64>| {
        let middle = window.len() / 2;
        !window.is_empty() && *window.select_nth_unstable(middle).1 as f64 <= most
    };
    let place = windows.iter_mut().position(is_settled)?;
    Some(place as u64 * WINDOW_NS)
}

#[cfg(test)]
mod tests;
