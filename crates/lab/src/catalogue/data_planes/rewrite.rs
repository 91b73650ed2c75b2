//! Scenario 4: the delay of rewriting a header field.

use flow::{Action, Field, Match};
use packet::MacAddr;
use testbed::DeviceKind;

use super::{PACKETS, SIZE, WARM_UP, echo};
use crate::catalogue::plane::{Plane, on_setup};
use crate::catalogue::prelude::*;
use crate::frames::{Tag, UdpFrame};

/// The experiment "echo-rewrite".
pub(crate) const REWRITE: Experiment = Experiment {
    description: Description {
        name: "echo-rewrite",
        title: "Header rewriting",
        family: Family::DataPlanes,
        question: "How much delay does the rewriting of a header field add?",
        source: "Costa et al., scenario 4, table 6",
        steps: &[
            "One rule per direction matches the ingress port; the one towards the server rewrites one field.",
            "A busy-polling thread sends UDP frames from the client to the server and back, with one outstanding at a time.",
            "Each received frame is compared byte for byte with the expected result, including the checksums of IPv4 and UDP.",
            "For the VLAN priority, frames have a tag; otherwise they have none.",
            "A rule that the device rejects has an empty cell with the error message.",
        ],
        parameters: &[
            Parameter::axis(
                "rewrite",
                "field that is rewritten",
                Values::words(FIELDS, FIELDS),
            ),
            SIZE_64,
            PACKETS,
            WARM_UP,
        ],
        figures: echo::FIGURES,
        views: &[
            View::Matrix {
                title: "Mean round trip by rewritten field",
                figure: "mean_us",
                across: "rewrite",
                published: "rewrite",
            },
            View::Runs {
                title: "Mean round trip, run by run",
                figure: "mean_us",
                across: "rewrite",
            },
            View::Percentiles {
                title: "Round trips",
                values: "round_trip_ns",
            },
            echo::ALL_FIGURES,
        ],
        ..Description::EMPTY
    },
    applies_to: |device: DeviceKind, point| echo::takes(device, point.word("rewrite") != "none"),
    seconds: echo::seconds,
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

pub(super) const FIELDS: &[&str] = &[
    "none",
    "mac-destination",
    "ip-destination",
    "vlan-priority",
    "ip-tos",
    "udp-port",
];

/// The only size as published is 64 bytes.
const SIZE_64: Parameter = Parameter {
    values: Values::Numbers {
        quick: &[64],
        paper: &[64],
        rfc: &[64],
        bound: super::SIZE_BOUND,
    },
    ..SIZE
};

pub(super) fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
    let field = point.word("rewrite");
    let tag = (field == "vlan-priority").then_some(Tag { vid: 100, pcp: 1 });
    let size = u16::try_from(point.number("size")).expect("the parameter is bounded");
    let request = echo::request(plane, size, tag);
    let (expected, actions) = rewritten(field, request);
    if plane.speaks_openflow() {
        let from = |port: u128| Match::any().with(Field::InPort, port);
        let from = |port| from(port).expect("the port has no prerequisite");
        let rules = [
            echo::rule(from(1), actions, true),
            echo::rule(from(2), Vec::new(), false),
        ];
        if let Err(reason) = echo::install(plane, &rules)? {
            return Ok(echo::without_figures(point, &reason));
        }
    }
    echo::measure(point, [request, expected], plane)
}

/// Returns the expected form of `frame` after the rewrite, and the actions for it.
fn rewritten(field: &str, mut frame: UdpFrame) -> (UdpFrame, Vec<Action>) {
    let action = match field {
        "mac-destination" => {
            frame.eth_dst[5] ^= 0x10;
            Action::set(Field::EthDst, MacAddr(frame.eth_dst).to_u64().into())
        }
        "ip-destination" => {
            frame.ip_dst = echo::UNUSED_ADDRESS;
            Action::SetNwDst(frame.ip_dst.to_bits())
        }
        "vlan-priority" => {
            frame.tag = frame.tag.map(|tag| Tag { pcp: 6, ..tag });
            Action::SetVlanPcp(6)
        }
        "ip-tos" => {
            frame.dscp = 46;
            Action::SetNwTos(46 << 2)
        }
        "udp-port" => {
            frame.udp_dst = 9_999;
            Action::SetTpDst(frame.udp_dst)
        }
        _ => return (frame, Vec::new()),
    };
    (frame, vec![action])
}
