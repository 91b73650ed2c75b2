//! TCP throughput through a stateful firewall.

use super::{prepare_firewall, separate_setup, tracks_connections};
use crate::catalogue::IPERF3;
use crate::catalogue::prelude::*;
use crate::catalogue::userspace::tcp_throughput::{DIRECTION, SECONDS, STREAMS, Streams};
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const FIREWALL_THROUGHPUT: Experiment = Experiment {
    description: Description {
        name: "firewall-throughput",
        title: "TCP through a firewall",
        family: Family::Stateful,
        question: "What is the throughput of TCP through a stateful firewall?",
        source: "RFC 9411, section 7.3: TCP throughput",
        steps: &[
            "The device tracks all packets: connections from port 1 are permitted, and from port 2 only packets of such connections; a packet of port 2 without a connection is checked to be dropped.",
            "iperf3 sends TCP streams from the client to the server for the given time.",
            "The throughput is what the receiver reports, in bit/s of payload.",
        ],
        parameters: &[SECONDS, STREAMS, DIRECTION],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "TCP throughput",
                figure: "bit_s",
                across: "streams",
            },
            View::Table {
                title: "All figures",
                figures: &["bit_s", "retransmits"],
            },
        ],
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(separate_setup),
    applies_to: |device, _| tracks_connections(device),
    measures_tcp: true,
    programs: &[IPERF3],
    seconds: |point| 0.5 + point.number("seconds") as f64,
    measure,
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    Figure::new("bit_s", "Throughput", "bit/s", Better::Higher).shown_in("Gbit/s", 1e9),
    Figure::new("retransmits", "TCP retransmissions", "", Better::Lower),
];

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    prepare_firewall(setup, tools)?;
    let streams = Streams::at(point);
    let (outcome, conditions) = streams.run(setup, tools)?;
    let mut reading = Reading::at(point);
    reading.put("bit_s", outcome.bits_per_second);
    reading.put("retransmits", outcome.retransmits as f64);
    let mut measured = TrialResult::new(reading, conditions);
    streams.judge(outcome.seconds, setup, tools, &mut measured)?;
    Ok(measured)
}
