//! Rate of packets of established connections.

use super::conversation::ConversationPlan;
use super::conversation_frame::CONNECTIONS_MAX;
use super::{prepare_firewall, run, separate_setup, tracks_connections};
use crate::catalogue::prelude::*;
use crate::setup::{ConditionMonitor, TestSetup};
use crate::tools::Tools;

/// The experiment.
pub(crate) const ESTABLISHED_RATE: Experiment = Experiment {
    description: Description {
        name: "established-rate",
        title: "Packets of established connections",
        family: Family::Stateful,
        question: "How many packets of established connections per second pass a stateful firewall, and does their rate depend on the number of connections?",
        source: "RFC 9411, section 7.3; Open vSwitch's tutorial of connection tracking",
        steps: &[
            "The device tracks all packets: connections from port 1 are permitted, and from port 2 only packets of such connections; a packet of port 2 without a connection is checked to be dropped.",
            "As many connections of UDP as given are opened by a request and a reply.",
            "Then each of them in turn carries a datagram, in rounds; one busy-polling thread has both ends, and at most 64 datagrams are on their way. The bare link shows the thread's own limit.",
        ],
        parameters: &[
            Parameter::axis(
                "connections",
                "established connections",
                Values::numbers(
                    &[1_000],
                    &[1_000, 100_000, 1_000_000],
                    &[1_000, 100_000, 1_000_000],
                    [1, CONNECTIONS_MAX],
                ),
            ),
            Parameter::constant(
                "packets",
                "packets of a trial, at least one for each connection",
                Values::numbers(&[20_000], &[1_000_000], &[1_000_000], [1, 100_000_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Lines {
                title: "Packets per second by number of connections",
                figure: "packets_s",
                along: "connections",
                log: false,
            },
            View::Table {
                title: "All figures",
                figures: &["packets_s", "lost"],
            },
        ],
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(separate_setup),
    applies_to: |device, _| tracks_connections(device),
    is_calibrated: true,
    seconds: |point| {
        let packets = point.number("packets").max(point.number("connections"));
        0.5 + point.number("connections") as f64 * 40e-6 + packets as f64 * 10e-6
    },
    measure,
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    Figure::new("packets_s", "Packets", "1/s", Better::Higher),
    Figure::new("lost", "Lost", "packets", Better::Lower),
];

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    prepare_firewall(setup, tools)?;
    let connections = point.small("connections");
    let plan = ConversationPlan::udp(1..1 + connections);
    let opened = run(&plan, setup, tools)?;
    if opened.failed > 0 {
        let failed = opened.failed;
        let text = format!("{failed} of {connections} connections were not opened");
        return Err(TrialError::Impossible(text));
    }
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let (mut arrived, mut lost, mut seconds) = (0_u64, 0_u64, 0.0);
    for _ in 0..point.number("packets").div_ceil(connections.into()) {
        let round = run(&plan.clone().steps(2, 3), setup, tools)?;
        arrived += u64::from(round.completed);
        lost += u64::from(round.failed);
        seconds += round.seconds;
        if round.completed == 0 {
            break;
        }
    }
    let conditions = watch.end(&setup.bench)?;
    let mut reading = Reading::at(point);
    reading.put("lost", lost as f64);
    match arrived {
        0 => reading.lack("packets_s", "no packet arrived"),
        _ => reading.put("packets_s", arrived as f64 / seconds),
    }
    let mut measured = TrialResult::new(reading, conditions);
    measured.note_pressure();
    Ok(measured)
}
