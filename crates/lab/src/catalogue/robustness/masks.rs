//! Rules with different masks: the cost of a device that searches its masks one by one.

use std::time::Duration;

use base::PortNo;
use base::SplitMix64;
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, Refusal};
use trafficgen::template::{FLOWS_MAX, FlowField, Flows};
use trafficgen::{BadTemplate, Mix, Pace, Rate, Template};

use crate::catalogue::in_force;
use crate::catalogue::offered::{FIGURES, Load, offer, offer_once};
use crate::catalogue::prelude::*;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const MASKS: Experiment = Experiment {
    description: Description {
        name: "mask-explosion",
        title: "Number of masks",
        family: Family::Robustness,
        question: "Does the delay grow with the number of masks of the rules?",
        source: "the tuple space explosion attack (doi:10.1145/3359989.3365431)",
        steps: &[
            "Each rule matches a prefix of the source and one of the destination address, with a different pair of lengths; no frame matches two rules.",
            "The load starts when a frame that only these rules drop is no longer forwarded.",
            "Frames of 64 bytes are offered at a given rate, of a million flows in random order with different ports. Each matches another rule, in shuffled order; or all match the rule of the lowest priority.",
            "Before the load, each rule is matched twice.",
        ],
        parameters: &[
            Parameter::axis(
                "rules",
                "rules, each with a different mask",
                Values::numbers(
                    &[1_000],
                    &[1, 10, 100, 300, 1_000],
                    &[1, 10, 100, 300, 1_000],
                    [1, RULES_MAX],
                ),
            ),
            Parameter::axis(
                "hit",
                "rules that frames match: all in turn, or the last",
                Values::words(&["each"], &["each", "last"]),
            ),
            Parameter::constant(
                "pps",
                "frames per second",
                Values::numbers(&[50_000], &[100_000], &[100_000], [100, 10_000_000]),
            ),
            Parameter::constant(
                "millis",
                "duration of the load in milliseconds",
                Values::numbers(&[150], &[3_000], &[60_000], [50, 3_600_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Received frames by number of masks",
                figure: "received_kpps",
                along: "rules",
                log: false,
            },
            View::Lines {
                title: "Median delay by number of masks",
                figure: "p50_us",
                along: "rules",
                log: true,
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "offered_kpps",
                    "received_kpps",
                    "loss_percent",
                    "p50_us",
                    "p99_us",
                    "p999_us",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: |device, _| device.speaks_openflow(),
    seconds: |point| {
        0.6 + point.number("millis") as f64 / 1e3 + point.number("rules") as f64 * 60e-6
    },
    measure,
    ..Experiment::BASE
};

/// Number of prefix lengths.
const LENGTHS: u32 = 32;
const RULES_MAX: u64 = (LENGTHS * LENGTHS) as u64;

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let count = point.small("rules");
    setup.install(&rules(count).expect("fields follow their prerequisites"))?;
    in_force::wait(setup, tools)?;
    let numbers = match point.word("hit") {
        "last" => count - 1..count,
        _ => 0..count,
    };
    let pps = point.number("pps");
    let pace = Pace::Constant(Rate::Frames(pps));
    let mut load = Load::udp(64, pace, Duration::from_millis(point.number("millis")));
    load.frames = frames(numbers).map_err(|error| TrialError::Impossible(error.to_string()))?;
    let twice = Duration::from_nanos(2 * u64::from(count) * 1_000_000_000 / pps);
    offer_once(
        &Load {
            length: twice.max(Duration::from_millis(1)),
            ..load.clone()
        },
        setup,
        tools,
    )?;
    let offered = offer(&load, setup, tools)?;
    let reading = offered.reading(point);
    Ok(offered.measured(reading))
}

/// Returns the prefix lengths of both addresses for the rule `number`; no two rules have the same
/// pair.
const fn lengths(number: u32) -> [u32; 2] {
    let source = LENGTHS - number % LENGTHS;
    let destination = LENGTHS - (number / LENGTHS + number) % LENGTHS;
    [source, destination]
}

/// Returns addresses that match the rule `number` and no other: they differ from the template's in
/// the last bit of each prefix.
fn addresses(number: u32) -> [u32; 2] {
    let Template {
        source,
        destination,
        ..
    } = Template::udp(64);
    let [first, second] = lengths(number);
    let differs = |address: u32, length: u32| address ^ (1 << (LENGTHS - length));
    [
        differs(source.ipv4.to_bits(), first),
        differs(destination.ipv4.to_bits(), second),
    ]
}

/// Returns `count` rules in descending priority.
fn rules(count: u32) -> Result<Vec<FlowMod>, Refusal> {
    let rule = |priority: u16, matching, out| {
        let actions = Instructions::apply(vec![Action::output(PortNo(out))]);
        FlowMod::new(FlowModCommand::Add, priority, matching, actions)
    };
    let back = Match::any().with(Field::InPort, 2)?;
    let mut rules = vec![in_force::rule(), rule(1, back, 1)];
    for (number, priority) in (0..count).zip((0..0x8000).rev()) {
        let [source, destination] = addresses(number);
        let [first, second] = lengths(number);
        let mask = |length: u32| u128::from(u32::MAX << (LENGTHS - length));
        let matching = Match::any()
            .with(Field::EthType, 0x0800)?
            .with_masked(
                Field::Ipv4Src,
                u128::from(source) & mask(first),
                mask(first),
            )?
            .with_masked(
                Field::Ipv4Dst,
                u128::from(destination) & mask(second),
                mask(second),
            )?;
        rules.push(rule(priority, matching, 2));
    }
    Ok(rules)
}

/// Returns frames for each of these rules, in random order.
fn frames(numbers: std::ops::Range<u32>) -> Result<Mix, BadTemplate> {
    let frame = |number| {
        let mut frame = Template::udp(64);
        let [source, destination] = addresses(number);
        frame.source.ipv4 = source.into();
        frame.destination.ipv4 = destination.into();
        let fields = [FlowField::SourcePort, FlowField::DestinationPort];
        frame.flows = Flows::random(FLOWS_MAX, 1, &fields);
        (frame, 1)
    };
    let mut frames: Vec<(Template, u32)> = numbers.map(frame).collect();
    SplitMix64::new(frames.len() as u64).shuffle(&mut frames);
    Mix::new(frames)
}

#[cfg(test)]
mod tests;
