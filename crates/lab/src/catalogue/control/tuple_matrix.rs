//! Every field of the OpenFlow 1.0 match, alone and in pairs: acceptance by the device, and the
//! delay of the frames.

use std::time::Duration;

use base::PortNo;
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match, Refusal};
use openflow::Message;
use packet::MacAddr;
use stats::Histogram;

use super::figures::{bad, ns, plain, time};
use super::flows::{COOKIE, FAR, NEAR, delete_all, drop_rest};
use super::rig::{ControlRig, discard_messages, send_batch};
use super::traffic::{FrameArrival, QUIET, Traffic};
use super::{PPS, TrialReport, VERSION, on_device, takes};
use crate::catalogue::prelude::*;
use crate::frames::{Tag, UdpFrame};
use crate::trial::TrialError;

/// The experiment "tuple-matrix".
pub(crate) const TUPLE_MATRIX: Experiment = Experiment {
    description: Description {
        name: "tuple-matrix",
        title: "Match fields and pairs of them",
        family: Family::Oflops,
        question: "Which match fields does a device accept, alone and in pairs, and does the delay depend on them?",
        source: "OFLOPS, branch devel, module snmp_tuple_test",
        steps: &[
            "For each of the twelve fields of OpenFlow 1.0, one rule matches the field alone, and others match it together with another field; the prerequisites (Ethernet type, IP protocol) are included, as required from OpenFlow 1.2 on.",
            "All rules are deleted before the next is added; the load starts after no frame was forwarded, and then all frames.",
            "Frames of 64 bytes are offered at a given rate; for the VLAN fields they have a tag, which the rule removes.",
            "The median is that of the following frames; a cell is empty if the device rejects the rule, or does not forward by it.",
        ],
        parameters: &[
            Parameter::axis(
                "field",
                "field that each rule matches",
                Values::words(&["nw-dst"], NAMES),
            ),
            Parameter::constant(
                "with",
                "rules: of the field alone, or also of its pairs with each other field",
                Values::Choice {
                    quick: "none",
                    paper: "each",
                    rfc: "each",
                    all: &["none", "each"],
                },
            ),
            Parameter::constant(
                "packets",
                "frames per rule",
                Values::numbers(&[200], &[10_000], &[100_000], [10, 200_000]),
            ),
            PPS,
            VERSION,
        ],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "Median delay with a rule of one field",
                figure: "alone_us",
                across: "field",
            },
            View::Table {
                title: "Median delay by field, alone and with fields of the port and of Ethernet",
                figures: &[
                    "alone_us",
                    "in_port_us",
                    "dl_src_us",
                    "dl_dst_us",
                    "dl_vlan_us",
                    "dl_vlan_pcp_us",
                    "dl_type_us",
                ],
            },
            View::Table {
                title: "Median delay by field, with fields of IP and of the transport protocol",
                figures: &[
                    "nw_src_us",
                    "nw_dst_us",
                    "nw_tos_us",
                    "nw_proto_us",
                    "tp_src_us",
                    "tp_dst_us",
                ],
            },
            View::Table {
                title: "Over all rules",
                figures: &["fastest_us", "slowest_us", "refused", "lost"],
            },
        ],
        ..Description::EMPTY
    },
    applies_to: takes,
    seconds: |point| {
        let each = point.number("packets") as f64 / point.number("pps") as f64;
        let rules = if point.word("with") == "each" {
            12.0
        } else {
            1.0
        };
        0.3 + rules * (each + 0.06)
    },
    measure: |point, setup, tools| on_device(point, setup, tools, measure),
    ..Experiment::BASE
};

/// The fields as values of the axis.
const NAMES: &[&str] = &[
    "in-port",
    "dl-src",
    "dl-dst",
    "dl-vlan",
    "dl-vlan-pcp",
    "dl-type",
    "nw-src",
    "nw-dst",
    "nw-tos",
    "nw-proto",
    "tp-src",
    "tp-dst",
];

/// The fields in the order of [`NAMES`].
const FIELDS: [Field; 12] = [
    Field::InPort,
    Field::EthSrc,
    Field::EthDst,
    Field::VlanVid,
    Field::VlanPcp,
    Field::EthType,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::IpDscp,
    Field::IpProto,
    Field::UdpSrc,
    Field::UdpDst,
];

/// The first figure is for the field alone; the others are in the order of [`FIELDS`].
const FIGURES: &[Figure] = &[
    time("alone_us", "Alone", "µs"),
    time("in_port_us", "in_port", "µs"),
    time("dl_src_us", "dl_src", "µs"),
    time("dl_dst_us", "dl_dst", "µs"),
    time("dl_vlan_us", "dl_vlan", "µs"),
    time("dl_vlan_pcp_us", "dl_vlan_pcp", "µs"),
    time("dl_type_us", "dl_type", "µs"),
    time("nw_src_us", "nw_src", "µs"),
    time("nw_dst_us", "nw_dst", "µs"),
    time("nw_tos_us", "nw_tos", "µs"),
    time("nw_proto_us", "nw_proto", "µs"),
    time("tp_src_us", "tp_src", "µs"),
    time("tp_dst_us", "tp_dst", "µs"),
    plain("fastest_us", "Minimum", "µs"),
    time("slowest_us", "Maximum", "µs"),
    bad("refused", "Rejected"),
    bad("lost", "Frames lost"),
];

const PRIORITY: u16 = 0x8000;
const TAG: Tag = Tag { vid: 40, pcp: 3 };

/// Returns the frame, with a VLAN tag if a rule matches it.
fn frame(is_tagged: bool) -> UdpFrame {
    let frame = UdpFrame {
        eth_src: NEAR,
        eth_dst: FAR,
        tag: is_tagged.then_some(TAG),
        ip_src: [10, 32, 0, 1].into(),
        ip_dst: [10, 64, 0, 1].into(),
        dscp: 12,
        udp_src: 40_021,
        udp_dst: 7_721,
        payload: 0,
    };
    frame.sized(64)
}

/// Returns the frame without its tag.
const fn untagged(frame: UdpFrame) -> UdpFrame {
    UdpFrame { tag: None, ..frame }
}

/// Returns the value of a field in `frame`.
fn value(field: Field, frame: &UdpFrame) -> u128 {
    let mac = |address: [u8; 6]| u128::from(MacAddr(address).to_u64());
    match field {
        Field::InPort => 1,
        Field::EthSrc => mac(frame.eth_src),
        Field::EthDst => mac(frame.eth_dst),
        // One bit of the field marks the presence of a tag (OF 1.3.5, 7.2.3.7).
        Field::VlanVid => u128::from(0x1000 | TAG.vid),
        Field::VlanPcp => TAG.pcp.into(),
        Field::EthType => 0x0800,
        Field::Ipv4Src => frame.ip_src.to_bits().into(),
        Field::Ipv4Dst => frame.ip_dst.to_bits().into(),
        Field::IpDscp => frame.dscp.into(),
        Field::IpProto => 17,
        Field::UdpSrc => frame.udp_src.into(),
        Field::UdpDst => frame.udp_dst.into(),
        other => panic!("{other:?} is no field of OpenFlow 1.0"),
    }
}

/// Returns the match of these fields and their prerequisites.
fn matching(fields: &[Field], frame: &UdpFrame) -> Result<Match, Refusal> {
    let wanted = |field: Field| fields.contains(&field);
    let is_udp = wanted(Field::UdpSrc) || wanted(Field::UdpDst);
    let network = [
        Field::Ipv4Src,
        Field::Ipv4Dst,
        Field::IpDscp,
        Field::IpProto,
    ];
    let is_ip = is_udp || network.into_iter().any(wanted);
    let presupposed = |field: Field| match field {
        Field::EthType => is_ip,
        Field::IpProto => is_udp,
        Field::VlanVid => wanted(Field::VlanPcp),
        _ => false,
    };
    // In the order of [`FIELDS`], prerequisites precede the fields that need them.
    let fields = FIELDS.into_iter();
    let mut fields = fields.filter(|&field| wanted(field) || presupposed(field));
    fields.try_fold(Match::any(), |matching, field| {
        matching.with(field, value(field, frame))
    })
}

fn rule(fields: &[Field], frame: &UdpFrame) -> FlowMod {
    let matching = matching(fields, frame).expect("fields follow their prerequisites");
    let mut actions = Vec::from_iter(frame.tag.map(|_| Action::PopVlan));
    actions.push(Action::output(PortNo(2)));
    let actions = Instructions::apply(actions);
    let mut rule = FlowMod::new(FlowModCommand::Add, PRIORITY, matching, actions);
    rule.cookie = COOKIE;
    rule
}

fn measure(point: &Point, rig: &mut dyn ControlRig) -> Result<TrialReport, TrialError> {
    let mut report = TrialReport::at(point);
    let name = point.word("field");
    let index = NAMES.iter().position(|one| *one == name);
    let field = FIELDS[index.expect("the axis has only these names")];
    let others = [field].into_iter().chain(FIELDS);
    let (mut refused, mut lost, mut all) = (0_u32, 0, Vec::new());
    for (figure, other) in FIGURES.iter().zip(others) {
        let is_alone = figure.name == "alone_us";
        if other == field && !is_alone {
            report.reading.lack(figure.name, "the field itself");
            continue;
        }
        if !is_alone && point.word("with") == "none" {
            report.reading.lack(figure.name, "pairs were not requested");
            continue;
        }
        match cell(&[field, other], point, rig)? {
            Ok(cell) => {
                report.reading.put(figure.name, cell.median_us);
                all.push(cell.median_us);
                lost += cell.lost;
            }
            Err(reason) => {
                refused += u32::from(reason.starts_with("refused"));
                report.reading.lack(figure.name, reason);
            }
        }
    }
    let reading = &mut report.reading;
    reading.put("refused", refused.into());
    reading.put("lost", lost as f64);
    all.sort_by(f64::total_cmp);
    for (name, value) in [("fastest_us", all.first()), ("slowest_us", all.last())] {
        match value {
            Some(value) => reading.put(name, *value),
            None => reading.lack(name, "no frame was forwarded by any rule"),
        }
    }
    Ok(report)
}

/// Measurement of one rule.
struct PairCell {
    median_us: f64,
    lost: u64,
}

/// Measures the frames that match a rule of these fields. The inner result has the reason if there
/// are none.
fn cell(
    fields: &[Field],
    point: &Point,
    rig: &mut dyn ControlRig,
) -> Result<Result<PairCell, String>, TrialError> {
    let is_tagged = fields.contains(&Field::VlanVid) || fields.contains(&Field::VlanPcp);
    let frame = frame(is_tagged);
    let pps = point.number("pps");
    send_batch(rig, vec![delete_all(), drop_rest()])?;
    let mut before = Traffic::of(vec![frame], pps, rig.now());
    if before.settle(rig, None)?.is_some() {
        let reason = "frames were still forwarded two seconds after all rules were deleted";
        return Ok(Err(reason.to_owned()));
    }
    let outcome = send_batch(rig, vec![Message::FlowMod(rule(fields, &frame))])?;
    if let Some(reason) = outcome.first_refusal() {
        return Ok(Err(reason));
    }
    let mut traffic = Traffic::of(vec![frame], pps, rig.now());
    traffic.expect_length_of(&untagged(frame));
    traffic.settle(rig, Some(frame.dscp))?;
    let (began, first) = (rig.now(), traffic.sent());
    let most = QUIET * 20 + Duration::from_nanos(point.number("packets") * 2_000_000_000 / pps);
    let mut delays = Vec::new();
    let mut record = |arrival: FrameArrival| {
        if arrival.sent >= began {
            delays.push(ns(arrival.received.since(arrival.sent)));
        }
    };
    while traffic.sent() - first < point.number("packets") && rig.now().since(began) < most {
        traffic.turn(rig)?;
        discard_messages(rig)?;
        traffic.receive_frames(rig, &mut record)?;
    }
    let end = rig.now();
    traffic.stop();
    while traffic.lost_between(began, end) > 0 && rig.now().since(end) < QUIET {
        discard_messages(rig)?;
        traffic.receive_frames(rig, &mut record)?;
    }
    if delays.is_empty() {
        return Ok(Err("no frame was forwarded".to_owned()));
    }
    let median_us = Histogram::of(delays).quantile(0.5) as f64 / 1e3;
    let lost = traffic.lost_between(began, end);
    Ok(Ok(PairCell { median_us, lost }))
}

#[cfg(test)]
mod tests;
