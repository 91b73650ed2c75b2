//! Congestion control (RFC 2889, 5.5).

use trafficgen::{Length, Pace, Rate, Stream, StreamOutcome};

use super::{
    LINE, SIZE, TRIAL_MILLIS, between, greatest, is_switch, legacy, request, star, trial_length,
};
use crate::catalogue::lines::{Lines, Offer, greet, is_void, offer_well};
use crate::catalogue::offered::figure;
use crate::catalogue::prelude::*;
use crate::setup::ConditionMonitor;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const CONGESTION: Experiment = Experiment {
    description: Description {
        name: "congestion",
        title: "Congestion control",
        family: Family::Benchmarking,
        question: "Does an uncongested port lose frames because another port is congested, and does the switch apply backpressure?",
        source: "RFC 2889, 5.5",
        steps: &[
            "The device is in legacy mode between four hosts and has learned their addresses.",
            "The first host sends one half to the third and one half to the fourth host; the second sends all to the fourth, whose port has three times the load of the third's.",
            "Together they send at the rate of the tester or of the virtual lines. A virtual link has no rate of its own, so that the core of the device is congested.",
            "Loss at the third port indicates head-of-line blocking. If less was sent than intended and nothing is lost, the device applies backpressure, or the tester was late.",
        ],
        parameters: &[SIZE, LINE, TRIAL_MILLIS],
        figures: FIGURES,
        views: &[View::Table {
            title: "Loss by port",
            figures: &[
                "free_loss_percent",
                "full_loss_percent",
                "offered_kpps",
                "sent_percent",
                "free_p50_us",
                "full_p50_us",
            ],
        }],
        topology: Some(|_| star(HOSTS)),
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(|_| legacy()),
    applies_to: is_switch,
    seconds: |point| 0.9 + 2.0 * (trial_length(point).as_secs_f64() + 0.2),
    measure,
    ..Experiment::BASE
};

const HOSTS: usize = 4;
/// The uncongested and the congested egress port.
const FREE: usize = 2;
const FULL: usize = 3;
/// Loss in per cent above which the device forwards nothing, rather than too little.
const NOTHING_LEFT: f64 = 99.0;
/// Offered share of the intended load, in per cent, below which a sender was held back.
const HELD_BACK: f64 = 99.0;

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("free_loss_percent", "Lost at the uncongested port", "%", Better::Lower),
    figure("full_loss_percent", "Lost at the congested port", "%", Better::Lower),
    figure("offered_kpps", "Total offered load", "kpps", Better::Neither),
    figure("sent_percent", "Share of the intended load", "%", Better::Neither),
    figure("free_p50_us", "Median, uncongested port", "µs", Better::Lower),
    figure("full_p50_us", "Median, congested port", "µs", Better::Lower),
];

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let size = u16::try_from(point.number("size")).expect("the bound says so");
    let mut lines = Lines::open(&setup.bench, size, tools)?;
    greet(&setup.bench, 0..HOSTS)?;
    let mut reading = Reading::at(point);
    let verdict = congest(point, &mut lines, &mut reading)?;
    let conditions = watch.end(&setup.bench)?;
    let mut measured = TrialResult::new(reading, conditions);
    match verdict {
        Ok(words) => measured.note(words.to_owned()),
        Err(reason) => measured.void(reason),
    }
    Ok(measured)
}

/// Returns four streams of equal rate: the first host sends one to the uncongested port and one to
/// the congested port, the second host two to the congested port.
fn streams(size: u64, pace: Pace) -> Vec<Stream> {
    [(0, FREE), (0, FULL), (1, FULL), (1, FULL)]
        .map(|(from, to)| between(size, pace, from, to))
        .to_vec()
}

/// Measures, and returns the interpretation of the losses, or the reason why the trial is void.
fn congest(
    point: &Point,
    lines: &mut dyn Offer,
    reading: &mut Reading,
) -> Result<Result<&'static str, String>, TrialError> {
    let size = point.number("size");
    let most = greatest(point, lines, &|pace| streams(size, pace))?;
    // The second host's line carries two of the streams.
    let line = Rate::Line(point.number("line") * 1_000_000).frames_per_second(size as f64);
    let rate = (most as f64).min(line / 2.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is positive and far below 2^53"
    )]
    let pace = Pace::Constant(Rate::Frames((rate as u64).max(1)));
    let length = Length::of(trial_length(point));
    let measured = offer_well(lines, &request(streams(size, pace), length))?;
    let [free, full] = [&measured.streams[..1], &measured.streams[1..]];
    let sum = |streams: &[StreamOutcome], of: fn(&StreamOutcome) -> f64| -> f64 {
        streams.iter().map(of).sum()
    };
    let loss = |streams| {
        let sent = sum(streams, |one| one.achieved.frames as f64);
        sum(streams, |one| one.lost as f64) / sent.max(1.0) * 100.0
    };
    let offered = sum(&measured.streams, |one| one.achieved.pps());
    let intended = sum(&measured.streams, |one| one.intended.pps());
    let (free_loss, full_loss, sent) = (loss(free), loss(full), offered / intended * 100.0);
    reading.put("free_loss_percent", free_loss);
    reading.put("full_loss_percent", full_loss);
    reading.put("offered_kpps", offered / 1e3);
    reading.put("sent_percent", sent);
    for (name, streams) in [("free_p50_us", free), ("full_p50_us", full)] {
        let delays = &streams[0].delay_from_sent;
        match delays.is_empty() {
            true => reading.lack(name, "no frame arrived"),
            false => reading.put(name, delays.value_at_quantile(0.5) as f64 / 1e3),
        }
    }
    if let Some(reason) = is_void(&measured) {
        return Ok(Err(reason));
    }
    Ok(Ok(verdict(free_loss, full_loss, sent)))
}

/// Returns the interpretation of the losses.
fn verdict(free_loss: f64, full_loss: f64, sent: f64) -> &'static str {
    if free_loss.min(full_loss) > NOTHING_LEFT {
        return "the device forwarded next to nothing";
    }
    match (free_loss > 0.0, full_loss > 0.0) {
        (true, true) => "head-of-line blocking: the port with little lost frames too",
        (true, false) => "only the port with little lost frames",
        (false, true) => "no head-of-line blocking: the port with little lost nothing",
        (false, false) if sent < HELD_BACK => {
            "nothing was lost, and less was sent: the senders were held back, or the tester was late"
        }
        (false, false) => "nothing was overloaded: the device carries all that the tester sends",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::point;
    use super::*;
    use crate::catalogue::simulated::{LearningFaults, learning_switch};

    fn read(faults: LearningFaults) -> (Reading, &'static str) {
        let point = point(&CONGESTION);
        let mut reading = Reading::at(&point);
        let mut switch = learning_switch(HOSTS, 0..HOSTS, faults);
        let verdict_text = congest(&point, &mut switch, &mut reading).unwrap();
        (reading, verdict_text.unwrap())
    }

    #[test]
    fn head_of_line_blocking_is_found_with_a_shared_queue() {
        let (reading, verdict_text) = read(LearningFaults {
            copy_ns: 20_000,
            queue: 10,
            ..LearningFaults::default()
        });
        assert!(verdict_text.starts_with("head-of-line blocking"));
        // The device forwards 50,000 of the offered frames per second, for both ports together.
        let lost = 100.0 * (1.0 - 50.0 / reading.figures["offered_kpps"]);
        let all = 0.25 * reading.figures["free_loss_percent"]
            + 0.75 * reading.figures["full_loss_percent"];
        assert!((all - lost).abs() < 1.0, "{all} {lost}");
        assert!((reading.figures["sent_percent"] - 100.0).abs() < 0.5);
    }

    #[test]
    fn switch_without_losses_is_not_congested() {
        let (reading, verdict_text) = read(LearningFaults::default());
        assert!(verdict_text.starts_with("nothing was overloaded"));
        assert_eq!(reading.figures["free_loss_percent"], 0.0);
        assert!((reading.figures["free_p50_us"] - 10.0).abs() < 0.05);
    }

    #[test]
    fn losses_determine_the_verdict() {
        assert!(verdict(0.0, 3.0, 100.0).starts_with("no head-of-line"));
        assert!(verdict(0.0, 0.0, 70.0).contains("held back"));
        assert!(verdict(1.0, 0.0, 100.0).starts_with("only"));
        assert!(verdict(100.0, 99.9, 100.0).contains("next to nothing"));
    }
}
