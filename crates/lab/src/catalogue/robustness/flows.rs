//! Number of flows, their order, and rules that defeat flow caches.

use std::time::Duration;

use base::PortNo;
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, Refusal};
use trafficgen::template::{FlowField, Flows};
use trafficgen::{Pace, Rate, Template};

use crate::catalogue::offered::{FIGURES, Load};
use crate::catalogue::plane::{Plane, on_setup};
use crate::catalogue::prelude::*;

/// The experiment.
pub(crate) const FLOWS: Experiment = Experiment {
    description: Description {
        name: "flow-scaling",
        title: "Flow scalability",
        family: Family::Robustness,
        question: "Does the forwarding rate depend on the number of flows, or on the rules only?",
        source: "RFC 8204, flow scalability, and the tuple space explosion attack (doi:10.1145/3359989.3365431)",
        steps: &[
            "The rules are one that matches the ingress port, or an access list that matches a UDP port, a host, a source port, and the rest; all forward to the server.",
            "Frames of 64 bytes are offered at the given rate, of the given number of flows: in cyclic order, or in random order.",
            "Flows differ in the lowest bits of the addresses and ports that the list matches, so that each combination of mismatches occurs.",
            "A device with a cache of flows or masks becomes slower with their number; one that looks up its rules does not.",
        ],
        parameters: &[
            Parameter::axis(
                "rules",
                "rules: one of the ingress port, or an access list",
                Values::words(&["list"], &["port", "list"]),
            ),
            Parameter::axis(
                "flows",
                "number of flows",
                Values::numbers(
                    &[1, 100_000],
                    &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
                    &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
                    [1, 1_000_000],
                ),
            ),
            Parameter::axis(
                "order",
                "order of the flows: cyclic or random",
                Values::words(&["random"], &["sequential", "random"]),
            ),
            Parameter::constant(
                "pps",
                "frames per second",
                Values::numbers(&[100_000], &[100_000], &[100_000], [100, 10_000_000]),
            ),
            Parameter::constant(
                "millis",
                "duration of the load in milliseconds",
                Values::numbers(&[600], &[3_000], &[60_000], [50, 3_600_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Received frames by number of flows",
                figure: "received_kpps",
                along: "flows",
                log: false,
            },
            View::Lines {
                title: "99 % delay by number of flows",
                figure: "p99_us",
                along: "flows",
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
    seconds: |point| 0.6 + point.number("millis") as f64 / 1e3,
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
    let mut frames = Template::udp(64);
    if point.word("rules") == "list" {
        let rules = list(&frames).expect("fields follow their prerequisites");
        plane.install(&rules)?;
    }
    let count = point.small("flows");
    let fields = [
        FlowField::SourceAddress,
        FlowField::SourcePort,
        FlowField::DestinationPort,
    ];
    frames.flows = match (count, point.word("order")) {
        (1, _) => Flows::ONE,
        (_, "random") => Flows::random(count, 1, &fields),
        _ => Flows::sequential(count, &fields),
    };
    let pace = Pace::Constant(Rate::Frames(point.number("pps")));
    let length = Duration::from_millis(point.number("millis"));
    let mut load = Load::udp(64, pace, length);
    load.frames = frames.into();
    let offered = plane.offer(&load)?;
    let reading = offered.reading(point);
    Ok(offered.measured(reading))
}

/// Returns the access list. Each rule matches another field of `frame`, and so has another mask.
fn list(frame: &Template) -> Result<[FlowMod; 5], Refusal> {
    let udp = || {
        Match::any()
            .with(Field::EthType, 0x0800)?
            .with(Field::IpProto, 17)
    };
    let port = |field, port: u16| udp()?.with(field, u128::from(port));
    let host = udp()?.with(Field::Ipv4Src, frame.source.ipv4.to_bits().into())?;
    let rule = |priority, matching, out| {
        let actions = Instructions::apply(vec![Action::output(PortNo(out))]);
        FlowMod::new(FlowModCommand::Add, priority, matching, actions)
    };
    let from = |port: u32| Match::any().with(Field::InPort, port.into());
    Ok([
        rule(400, port(Field::UdpDst, frame.destination.port)?, 2),
        rule(300, host, 2),
        rule(200, port(Field::UdpSrc, frame.source.port)?, 2),
        rule(100, from(1)?, 2),
        rule(500, from(2)?, 1),
    ])
}

#[cfg(test)]
mod tests;
