//! How many flows there are, whether they come again, and whether they are meant to hurt.

use std::time::Duration;

use base::PortNo;
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, Refusal};
use trafficgen::template::{FlowField, Flows};
use trafficgen::{Pace, Rate, Template};

use crate::catalogue::offered::{FIGURES, Load};
use crate::catalogue::plane::{Plane, on_station};
use crate::catalogue::{
    Bound, Description, Experiment, Family, Parameter, Point, Setting, Values, View,
};
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const FLOWS: Experiment = Experiment {
    description: Description {
        name: "flow-scaling",
        title: "More flows, new flows, hostile flows",
        family: Family::Robustness,
        question: "Does what a device forwards depend on how many flows there are, or only on its rules?",
        source: "RFC 8204, flow scalability, and the tuple space explosion attack (doi:10.1145/3359989.3365431)",
        steps: &[
            "Rules are one that matches the port of arrival, or an access list of three: a port of UDP, a host, a source port, and the rest, all of which go to the server.",
            "Frames of 64 bytes come as fast as set, of so many flows: in order again and again, or each of another flow by chance.",
            "Flows differ in the lowest bits of the addresses and ports that the list asks for, so that each way of missing a rule occurs.",
            "A device that keeps a cache of flows or of masks pays for those; one that looks up its rules does not.",
        ],
        parameters: &[
            Parameter::axis(
                "rules",
                "what frames meet",
                Values::Words {
                    quick: &["list"],
                    all: &["port", "list"],
                },
            ),
            Parameter::axis(
                "flows",
                "flows that frames are of",
                Values::Numbers {
                    quick: &[1, 100_000],
                    paper: &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
                    rfc: &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
                    bound: Bound {
                        least: 1,
                        most: 1_000_000,
                    },
                },
            ),
            Parameter::axis(
                "order",
                "in which order flows come",
                Values::Words {
                    quick: &["random"],
                    all: &["sequential", "random"],
                },
            ),
            Parameter::constant(
                "pps",
                "frames a second",
                Values::Numbers {
                    quick: &[100_000],
                    paper: &[100_000],
                    rfc: &[100_000],
                    bound: Bound {
                        least: 100,
                        most: 10_000_000,
                    },
                },
            ),
            Parameter::constant(
                "millis",
                "milliseconds for which frames are offered",
                Values::Numbers {
                    quick: &[600],
                    paper: &[3_000],
                    rfc: &[60_000],
                    bound: Bound {
                        least: 50,
                        most: 3_600_000,
                    },
                },
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Received by the number of flows",
                figure: "received_kpps",
                along: "flows",
                log: false,
            },
            View::Lines {
                title: "99 % delay by the number of flows",
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
        topology: None,
    },
    setting: Setting::Usual,
    takes: |device, _| device.speaks_openflow(),
    seconds: |point| 0.6 + point.number("millis") as f64 / 1e3,
    measure: |point, station, tools| on_station(point, station, tools, measure),
};

fn measure(point: &Point, plane: &mut dyn Plane) -> Result<Measured, TrialError> {
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

/// The access list. Each of its rules asks for another field of what `frame` has, and so by
/// another mask.
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
