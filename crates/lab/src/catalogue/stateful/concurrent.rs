//! Number of connections that are held at the same time.

use super::conversation::ConversationPlan;
use super::conversation_frame::CONNECTIONS_MAX;
use super::{prepare_firewall, run, separate_setup, tracks_connections};
use crate::catalogue::prelude::*;
use crate::setup::{ConditionMonitor, TestSetup};
use crate::tools::Tools;

/// The experiment.
pub(crate) const CONCURRENT: Experiment = Experiment {
    description: Description {
        name: "concurrent-connections",
        title: "Concurrent connections",
        family: Family::Stateful,
        question: "How many connections does a stateful firewall hold at the same time, and how much memory does each need?",
        source: "RFC 9411, section 7.5: concurrent TCP connection capacity",
        steps: &[
            "The device tracks all packets: connections from port 1 are permitted, and from port 2 only packets of such connections; a packet of port 2 without a connection is checked to be dropped.",
            "As many connections of UDP as given are opened by a request and a reply, at most 64 at a time.",
            "Then the server sends a datagram in each of them: one that arrives belongs to a held connection.",
            "The memory of a connection is the growth of the resident memory of the device's process, divided by the held connections; that of the kernel's tracker is not visible.",
        ],
        parameters: &[Parameter::axis(
            "connections",
            "connections to be held",
            Values::numbers(
                &[10_000],
                &[1_000, 100_000, 1_000_000],
                &[1_000, 100_000, 1_000_000],
                [1, CONNECTIONS_MAX],
            ),
        )],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "Held connections",
                figure: "held",
                across: "connections",
            },
            View::Table {
                title: "All figures",
                figures: &["held", "opened_s", "connection_bytes"],
            },
        ],
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(separate_setup),
    applies_to: |device, _| tracks_connections(device),
    seconds: |point| 0.5 + point.number("connections") as f64 * 60e-6,
    measure,
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    Figure::new("held", "Held", "connections", Better::Higher),
    Figure::new("opened_s", "Opened", "1/s", Better::Higher),
    Figure::new("connection_bytes", "Memory of a connection", "bytes", Better::Lower),
];

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    prepare_firewall(setup, tools)?;
    let resident = |setup: &TestSetup| -> Result<Option<u64>, TrialError> {
        let usage = setup.bench.device().usage()?;
        Ok(usage.map(|usage| usage.resident_bytes))
    };
    let plan = ConversationPlan::udp(1..1 + point.small("connections"));
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let before = resident(setup)?;
    let opened = run(&plan, setup, tools)?;
    let after = resident(setup)?;
    let held = run(&plan.steps(1, 2), setup, tools)?;
    let conditions = watch.end(&setup.bench)?;
    let mut reading = Reading::at(point);
    let held = f64::from(held.completed);
    reading.put("held", held);
    match opened.completed {
        0 => reading.lack("opened_s", "no connection was opened"),
        count => reading.put("opened_s", f64::from(count) / opened.seconds),
    }
    match (before, after) {
        (Some(before), Some(after)) if held > 0.0 => {
            let growth = after.saturating_sub(before);
            reading.put("connection_bytes", growth as f64 / held);
        }
        _ => reading.lack("connection_bytes", "the device is not a process of its own"),
    }
    let mut measured = TrialResult::new(reading, conditions);
    measured.note_pressure();
    Ok(measured)
}
