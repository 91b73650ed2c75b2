//! Frames of each kind by one rule that does not look at them.

use std::time::Duration;

use trafficgen::template::{Encapsulation, Label, Party, Protocol, Tag, Tunnel};
use trafficgen::{BadTemplate, Mix, Pace, Rate, Template};

use super::{CHANGED, DAMAGED, measured};
use crate::catalogue::offered::{FIGURES as LOAD, Load, offer};
use crate::catalogue::{
    Description, Experiment, Family, Figure, Parameter, Point, Setting, Values, View,
};
use crate::scenario::Tools;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const KINDS: Experiment = Experiment {
    description: Description {
        name: "frame-kinds",
        title: "Frames of every kind",
        family: Family::Whitebox,
        question: "Does a frame take longer, is it lost or changed, by what it carries and what stands before that?",
        source: "vSDNBox, section 6, and RFC 6985 for mixed sizes",
        steps: &[
            "One rule a direction matches the port of arrival: the device need not look at what a frame carries.",
            "Frames of one kind are offered at a set rate, all of the same size; the mix has 7 of 64 bytes, 4 of 570 and 1 of 1518 in turns.",
            "Every frame that comes out is compared with what was sent, up to its payload, and all of its checksums are verified, those inside of tunnels too.",
        ],
        parameters: &[
            Parameter::axis(
                "kind",
                "what frames are: IPv4 with UDP, TCP or ICMP, IPv6 with UDP; UDP behind a tag, two tags or a label, or inside of a tunnel; the mix of sizes",
                Values::Words {
                    quick: &["vxlan"],
                    all: NAMES,
                },
            ),
            Parameter::constant(
                "size",
                "bytes of a frame, its checksum (FCS) included",
                Values::numbers(&[150], &[150], &[150], [128, 1_514]),
            ),
            Parameter::constant(
                "pps",
                "frames a second",
                Values::numbers(&[20_000], &[100_000], &[100_000], [100, 10_000_000]),
            ),
            Parameter::constant(
                "millis",
                "milliseconds for which frames are offered",
                Values::numbers(&[100], &[3_000], &[60_000], [20, 3_600_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Matrix {
                title: "Median delay by kind",
                figure: "p50_us",
                across: "kind",
                published: "",
            },
            View::Matrix {
                title: "Lost by kind",
                figure: "loss_percent",
                across: "kind",
                published: "",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "offered_kpps",
                    "received_kpps",
                    "loss_percent",
                    "mean_us",
                    "p50_us",
                    "p99_us",
                    "changed",
                    "damaged",
                ],
            },
        ],
        topology: None,
    },
    setting: Setting::Usual,
    takes: |_, _| true,
    seconds: |point| 0.3 + point.number("millis") as f64 / 1e3,
    measure,
};

const FIGURES: &[Figure] = &[
    LOAD[0], LOAD[1], LOAD[2], LOAD[3], LOAD[4], LOAD[5], LOAD[6], LOAD[7], LOAD[8], LOAD[9],
    LOAD[10], CHANGED, DAMAGED,
];

const NAMES: &[&str] = &[
    "udp", "tcp", "icmp", "ipv6-udp", "vlan", "qinq", "mpls", "vxlan", "gre", "geneve", "imix",
];

fn measure(
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let size = u16::try_from(point.number("size")).expect("the bound says so");
    let frames = frames(point.word("kind"), size);
    let frames = frames.map_err(|error| TrialError::Impossible(error.to_string()))?;
    let pace = Pace::Constant(Rate::Frames(point.number("pps")));
    let length = Duration::from_millis(point.number("millis"));
    let mut load = Load::udp(size.into(), pace, length);
    load.frames = frames;
    let offered = offer(&load, station, tools)?;
    let reading = offered.reading(point);
    Ok(measured(&offered, reading))
}

/// Frames of a kind.
fn frames(kind: &str, size: u16) -> Result<Mix, BadTemplate> {
    let mut frame = Template::udp(size);
    let tag = |vid| Tag { vid, pcp: 1 };
    // The ends of a tunnel are other stations than those whose frames go through it.
    let tunnel = Tunnel {
        source: Party::numbered(11),
        destination: Party::numbered(12),
        vni: 0x1234,
    };
    match kind {
        "tcp" => frame.protocol = Protocol::Tcp,
        "icmp" => frame.protocol = Protocol::Icmp,
        "ipv6-udp" => frame.protocol = Protocol::Udp6,
        "vlan" => frame.encapsulation = Encapsulation::Vlan(tag(100)),
        "qinq" => {
            let (outer, inner) = (tag(200), tag(100));
            frame.encapsulation = Encapsulation::QinQ { outer, inner };
        }
        "mpls" => {
            let label = Label {
                value: 1_000,
                class: 1,
                ttl: 64,
            };
            frame.encapsulation = Encapsulation::Mpls(label);
        }
        "vxlan" => frame.encapsulation = Encapsulation::Vxlan(tunnel),
        "gre" => frame.encapsulation = Encapsulation::Gre(tunnel),
        "geneve" => frame.encapsulation = Encapsulation::Geneve(tunnel),
        "imix" => return Mix::imix(&Template::udp(64)),
        _ => {}
    }
    frame.check()?;
    Ok(frame.into())
}

#[cfg(test)]
mod tests;
