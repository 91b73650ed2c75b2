//! Downtime of a link under load.

use std::time::Duration;

use trafficgen::{Pace, Rate, Refusal, TestPortNo};

use crate::catalogue::offered::{Doubts, Load, figure};
use crate::catalogue::plane::{Plane, Pull, on_setup};
use crate::catalogue::prelude::*;

/// The experiment.
pub(crate) const LINK_FLAP: Experiment = Experiment {
    description: Description {
        name: "link-flap",
        title: "Link flap",
        family: Family::Robustness,
        question: "How long does a port take to forward again after its link is up?",
        source: "RFC 2544, 26.6, and RFC 6201, for a port instead of the device",
        steps: &[
            "Frames of 64 bytes are sent from the client to the server at equal gaps.",
            "Meanwhile the server's interface is set down and up again.",
            "The outage is the number of consecutive lost frames times their gap; the part beyond the time in which the interface was down is due to the device.",
        ],
        parameters: &[
            Parameter::constant(
                "down-millis",
                "time in which the interface is down, in milliseconds",
                Values::numbers(&[100], &[500], &[1_000], [10, 60_000]),
            ),
            Parameter::constant(
                "pps",
                "frames per second",
                Values::numbers(&[10_000], &[10_000], &[10_000], [100, 1_000_000]),
            ),
        ],
        figures: FIGURES,
        views: &[View::Table {
            title: "Outage and recovery",
            figures: &["outage_ms", "recovery_ms", "lost"],
        }],
        ..Description::EMPTY
    },
    applies_to: |device, _| !device.makes_taps(),
    seconds: |point| point.number("down-millis") as f64 / 1e3 + 2.0,
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("outage_ms", "Outage", "ms", Better::Lower),
    figure("recovery_ms", "Beyond the downtime of the link", "ms", Better::Lower),
    figure("lost", "Lost", "frames", Better::Lower),
];

/// Time before the link is down; three times as long after it.
const AROUND: Duration = Duration::from_millis(400);

fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
    let down = Duration::from_millis(point.number("down-millis"));
    let pps = point.number("pps");
    let pace = Pace::Constant(Rate::Frames(pps));
    let load = Load::udp(64, pace, AROUND + down + 3 * AROUND);
    let pull = Pull {
        after: AROUND,
        down,
    };
    let (offered, pulled) = plane.offer_and_pull(&load, pull)?;
    let stream = &offered.measurement.streams[0];
    let longest = stream.loss_runs.max();
    let mut doubts = Doubts::default();
    doubts.add_losses(&offered);
    // Without a device between the hosts, the client's interface has no carrier during the
    // downtime: the frames that it could not send are the outage.
    doubts.forgive(|refusal| {
        matches!(refusal, Refusal::Dropped { end: TestPortNo(0), frames } if *frames <= longest)
    });
    // The outage is computed from the schedule, so late frames limit its resolution.
    let late_ms = stream.lateness.max() as f64 / 1e6;
    let down_ms = pulled.as_secs_f64() * 1e3;
    let reading = if late_ms > down_ms / 2.0 {
        let reason = format!("the tester is too slow: it sent frames up to {late_ms:.1} ms late");
        Reading::lacking(point, FIGURES, &reason)
    } else {
        let mut reading = Reading::at(point);
        let outage_ms = longest as f64 / pps as f64 * 1e3;
        reading.put("lost", stream.lost as f64);
        reading.put("outage_ms", outage_ms);
        reading.put("recovery_ms", (outage_ms - down_ms).max(0.0));
        reading
    };
    let mut measured = TrialResult::new(reading, offered.conditions);
    if late_ms > down_ms * LATE_NOTED {
        measured.note(format!(
            "the tester sent frames up to {late_ms:.1} ms late: the outage is known no better"
        ));
    }
    doubts.add_flaws(&mut measured);
    Ok(measured)
}

/// Lateness that is noted, as a share of the downtime.
const LATE_NOTED: f64 = 0.01;

#[cfg(test)]
mod tests;
