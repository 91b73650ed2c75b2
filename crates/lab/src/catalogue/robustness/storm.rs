//! Storm of new flows: almost every frame has a flow that the device has not seen before.

use std::collections::BTreeSet;
use std::time::Duration;

use base::PortNo;
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, Refusal};
use trafficgen::template::{FLOWS_MAX, FlowField, Flows, Party};
use trafficgen::{self, Pace, Rate, Template};

use crate::catalogue::in_force;
use crate::catalogue::offered::{Load, LoadResult, figure, offer, offer_once};
use crate::catalogue::prelude::*;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const STORM: Experiment = Experiment {
    description: Description {
        name: "new-flow-storm",
        title: "Delay of new flows",
        family: Family::Robustness,
        question: "How much longer is the delay of the first frame of a flow than that of others, and is it lost more often?",
        source: "RFC 8204, InitialPacketProcessingLatency",
        steps: &[
            "The rules are an access list of the given length, each of which matches two fields of addresses and ports, and one of lower priority that matches the ingress port; all forward to the server.",
            "The load starts when a frame that only the list drops is no longer forwarded.",
            "Frames of 64 bytes are offered at a given rate, all of one flow.",
            "Then frames of a million flows are offered in random order, so that nearly every frame is the first of its flow: both addresses and both ports differ in their lowest five bits.",
            "A device with a flow cache misses it for nearly every frame; one that looks up its rules has the same work for every frame.",
        ],
        parameters: &[
            Parameter::axis(
                "rules",
                "length of the access list; 0 for one rule that matches the ingress port",
                Values::numbers(
                    &[1_000],
                    &[0, 100, 1_000, 4_000],
                    &[0, 100, 1_000, 4_000],
                    [0, RULES_MAX],
                ),
            ),
            Parameter::axis(
                "pps",
                "frames per second",
                Values::numbers(
                    &[50_000],
                    &[10_000, 50_000, 100_000, 200_000],
                    &[10_000, 50_000, 100_000, 200_000],
                    [100, 10_000_000],
                ),
            ),
            Parameter::constant(
                "millis",
                "duration of each load in milliseconds",
                Values::numbers(&[150], &[3_000], &[60_000], [50, 3_600_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Received frames of new flows by frames per second",
                figure: "storm_received_kpps",
                along: "pps",
                log: false,
            },
            View::Lines {
                title: "Median delay of new flows, relative to one flow",
                figure: "delay_ratio",
                along: "pps",
                log: true,
            },
            View::Percentiles {
                title: "Delay of the frames of new flows",
                values: "storm_delay_ns",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "delay_ratio",
                    "received_ratio",
                    "storm_received_kpps",
                    "storm_loss_percent",
                    "storm_p50_us",
                    "storm_p99_us",
                    "one_received_kpps",
                    "one_loss_percent",
                    "one_p50_us",
                    "one_p99_us",
                    "new_percent",
                ],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: |device, _| device.speaks_openflow(),
    seconds: |point| {
        0.4 + 2.0 * point.number("millis") as f64 / 1e3 + point.number("rules") as f64 * 60e-6
    },
    measure,
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("delay_ratio", "Median delay, new relative to known", "", Better::Lower),
    figure("received_ratio", "Received, new relative to known", "", Better::Higher),
    figure("storm_received_kpps", "New flows: received", "kpps", Better::Higher),
    figure("storm_loss_percent", "New flows: lost", "%", Better::Lower),
    figure("storm_p50_us", "New flows: median", "µs", Better::Lower),
    figure("storm_p99_us", "New flows: 99 %", "µs", Better::Lower),
    figure("one_received_kpps", "One flow: received", "kpps", Better::Higher),
    figure("one_loss_percent", "One flow: lost", "%", Better::Lower),
    figure("one_p50_us", "One flow: median", "µs", Better::Lower),
    figure("one_p99_us", "One flow: 99 %", "µs", Better::Lower),
    figure("new_percent", "First frames of flows", "%", Better::Neither),
];

/// Fields in which flows differ; the lowest bits of a flow's number determine the first field.
const FIELDS: [FlowField; 4] = [
    FlowField::SourceAddress,
    FlowField::DestinationAddress,
    FlowField::SourcePort,
    FlowField::DestinationPort,
];

/// Values of each of the four fields: a million flows have twenty bits.
const VALUES: u32 = 32;

/// Greatest number of rules: four kinds, each with one rule for every pair of values.
const RULES_MAX: u64 = 4 * (VALUES as u64) * (VALUES as u64);

/// Number of storms, each with other flows, while the tester falls short.
const ATTEMPTS: u64 = 3;

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let pace = Pace::Constant(Rate::Frames(point.number("pps")));
    let length = Duration::from_millis(point.number("millis"));
    let one = Template::udp(64);
    let rules = list(&one, point.small("rules")).expect("fields follow their prerequisites");
    setup.install(&rules)?;
    in_force::wait(setup, tools)?;
    let before = offer(&Load::udp(64, pace, length), setup, tools)?;
    let mut attempt = 1;
    let (after, flows) = loop {
        let flows = Flows::random(FLOWS_MAX, attempt, &FIELDS);
        let mut load = Load::udp(64, pace, length);
        load.frames = Template {
            flows: flows.clone(),
            ..one.clone()
        }
        .into();
        let offered = offer_once(&load, setup, tools)?;
        if !offered.fell_short() || attempt == ATTEMPTS {
            break (offered, flows);
        }
        attempt += 1;
    };
    let mut reading = reading(point, [&before, &after], &flows);
    type Doubts = Vec<trafficgen::Refusal>;
    let doubts = before.measurement.refusals.into_iter();
    let (short, other): (Doubts, Doubts) =
        doubts.partition(|one| matches!(one, trafficgen::Refusal::Shortfall { .. }));
    if let Some(short) = short.first() {
        let reason = format!("the tester is too slow for one flow: {short}");
        lack_of_one(&mut reading, &reason);
    }
    let mut measured = after.measured(reading);
    for refusal in other {
        measured.void(format!("one flow: {refusal}"));
    }
    Ok(measured)
}

/// Removes the figures of the single flow, and their ratios to the storm.
fn lack_of_one(reading: &mut Reading, reason: &str) {
    for figure in FIGURES {
        let name = figure.name;
        let is_of_one = name.starts_with("one_") || name.ends_with("_ratio");
        if is_of_one && reading.figures.remove(name).is_some() {
            reading.lack(name, reason);
        }
    }
    reading.histograms.remove("one_delay_ns");
}

/// Returns the figures of the single flow and of the storm.
fn reading(point: &Point, [one, storm]: [&LoadResult; 2], flows: &Flows) -> Reading {
    let mut reading = Reading::at(point);
    let all = [("one", one), ("storm", storm)];
    let [old, new] = all.map(|(name, offered)| {
        let own = offered.reading(point);
        for figure in ["received_kpps", "loss_percent", "p50_us", "p99_us"] {
            let full = format!("{name}_{figure}");
            match own.figures.get(figure) {
                Some(value) => reading.put(&full, *value),
                None => reading.lack(&full, "no frame arrived"),
            }
        }
        if let Some(delays) = own.histograms.get("delay_ns") {
            let full = format!("{name}_delay_ns");
            reading.histograms.insert(full, delays.clone());
        }
        own
    });
    for (ratio, figure) in [
        ("delay_ratio", "p50_us"),
        ("received_ratio", "received_kpps"),
    ] {
        match (new.figures.get(figure), old.figures.get(figure)) {
            (Some(new), Some(old)) if *old > 0.0 => reading.put(ratio, new / old),
            _ => reading.lack(ratio, "no frame arrived"),
        }
    }
    let sent = storm.sum(|stream| stream.achieved.frames);
    let different: BTreeSet<u32> = (0..sent).map(|number| flows.of(number)).collect();
    let share = different.len() as f64 / sent.max(1) as f64;
    reading.put("new_percent", share * 100.0);
    reading
}

/// Returns the access list: rules of four kinds in turns, each for a pair of values of the varied
/// fields of `frame`, above rules for all other frames.
fn list(frame: &Template, count: u32) -> Result<Vec<FlowMod>, Refusal> {
    let rule = |priority: u16, matching, out| {
        let actions = Instructions::apply(vec![Action::output(PortNo(out))]);
        FlowMod::new(FlowModCommand::Add, priority, matching, actions)
    };
    let from = |port: u32| Match::any().with(Field::InPort, port.into());
    let mut rules = vec![
        in_force::rule(),
        rule(10, from(1)?, 2),
        rule(11, from(2)?, 1),
    ];
    for (number, priority) in (0..count).zip((0..u16::MAX - 1).rev()) {
        rules.push(rule(priority, pair(frame, number)?, 2));
    }
    Ok(rules)
}

/// Returns the match of the rule `number`.
fn pair(frame: &Template, number: u32) -> Result<Match, Refusal> {
    // A permutation of all pairs of values: 165 has no factor in common with their number.
    let pair_number = number / 4 * 165 % (VALUES * VALUES);
    let (first, second) = (pair_number % VALUES, pair_number / VALUES);
    let (source, destination) = (&frame.source, &frame.destination);
    let address = |party: &Party, value: u32| u128::from(party.ipv4.to_bits() ^ value);
    let port = |port: u16, value: u32| u128::from(u32::from(port) ^ value);
    let udp = Match::any()
        .with(Field::EthType, 0x0800)?
        .with(Field::IpProto, 17)?;
    match number % 4 {
        0 => udp
            .with(Field::Ipv4Src, address(source, first))?
            .with(Field::UdpDst, port(destination.port, second)),
        1 => udp
            .with(Field::Ipv4Dst, address(destination, first))?
            .with(Field::UdpSrc, port(source.port, second)),
        2 => udp
            .with(Field::Ipv4Src, address(source, first))?
            .with(Field::Ipv4Dst, address(destination, second)),
        _ => udp
            .with(Field::UdpSrc, port(source.port, first))?
            .with(Field::UdpDst, port(destination.port, second)),
    }
}

#[cfg(test)]
mod tests;
