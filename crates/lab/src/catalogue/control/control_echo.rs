//! Echo time between the controller and the device.

use std::time::Duration;

use openflow::Message;

use super::figures::{bad, plain, put_times, time};
use super::flows::delete_all;
use super::poll::Poll;
use super::rig::{ControlRig, LimitedInbox, TIMEOUT, send_batch};
use super::{TrialReport, VERSION, on_device, takes};
use crate::catalogue::prelude::*;
use crate::trial::TrialError;

/// The experiment "control-echo".
pub(crate) const CONTROL_ECHO: Experiment = Experiment {
    description: Description {
        name: "control-echo",
        title: "Echo of the control channel",
        family: Family::Oflops,
        question: "How long does an idle device take to reply to an echo request of its controller?",
        source: "OFLOPS, module openflow_echo_delay",
        steps: &[
            "There are no rules and no frames.",
            "Echo requests of 64 bytes are sent at a fixed interval, independent of the replies.",
            "The echo time runs from the transmission of a request to the arrival of its reply.",
            "A request without a reply within ten seconds is lost.",
        ],
        parameters: &[
            Parameter::axis(
                "period-us",
                "microseconds between two requests",
                Values::numbers(
                    &[1_000],
                    &[1_000, 10_000, 250_000],
                    &[1_000, 10_000, 250_000, 500_000, 1_000_000, 4_000_000],
                    [10, 60_000_000],
                ),
            ),
            Parameter::constant(
                "echoes",
                "echoes per trial",
                Values::numbers(&[300], &[100], &[15], [1, 1_000_000]),
            ),
            VERSION,
        ],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "Median echo time by interval",
                figure: "p50_us",
                across: "period-us",
            },
            View::Percentiles {
                title: "Echoes",
                values: "echo_ns",
            },
            View::Table {
                title: "All figures",
                figures: &["mean_us", "p50_us", "p99_us", "max_us", "lost", "echoes"],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds: |point| 0.3 + point.number("echoes") as f64 * point.number("period-us") as f64 / 1e6,
    measure: |point, setup, tools| on_device(point, setup, tools, measure),
    ..Experiment::BASE
};

const FIGURES: &[Figure] = &[
    time("mean_us", "Mean", "µs"),
    time("p50_us", "Median", "µs"),
    time("p99_us", "99 %", "µs"),
    time("max_us", "Maximum", "µs"),
    bad("lost", "Lost"),
    plain("echoes", "Echoes", ""),
];

/// Payload bytes of an echo request, as in OFLOPS.
const PAYLOAD: usize = 56;

fn measure(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    send_batch(rig, vec![delete_all()])?;
    let request = Message::EchoRequest(vec![0x5a; PAYLOAD]);
    let period = Duration::from_micros(point.number("period-us"));
    let mut poll = Poll::new(request, period, point.number("echoes"), rig.now());
    poll_until_done(rig, &mut poll)?;
    let mut report = TrialReport::at(point);
    let reading = &mut report.reading;
    let names = ["mean_us", "p50_us", "p99_us", "max_us"];
    put_times(
        reading,
        names,
        "echo_ns",
        poll.answers_ns(),
        "no echo reply arrived",
    );
    reading.put("lost", poll.open() as f64);
    reading.put("echoes", poll.sent() as f64);
    if poll.withheld() > 0 {
        let count = poll.withheld();
        report.notes.push(format!(
            "{count} requests were not sent: the device did not read"
        ));
    }
    Ok(report)
}

/// Sends all requests of `poll` and waits for their replies, for at most ten seconds after the last
/// request.
pub(super) fn poll_until_done(rig: &mut dyn ControlRig, poll: &mut Poll) -> Result<(), TrialError> {
    let mut deadline = rig.now() + TIMEOUT;
    while !poll.is_over() || (poll.open() > 0 && rig.now() < deadline) {
        poll.turn(rig)?;
        let mut inbox = LimitedInbox::default();
        while let Some(message) = inbox.receive(rig)? {
            poll.process(&message, rig);
        }
        if !poll.is_over() {
            deadline = rig.now() + TIMEOUT;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
