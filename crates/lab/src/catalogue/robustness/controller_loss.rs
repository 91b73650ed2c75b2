//! Loss of the controller, by a closed connection or by silence, and its return, under load.

use std::thread;
use std::time::Duration;

use base::PortNo;
use controller::{Controller, ControllerError, ControllerSettings, DeviceRequests, Listener};
use flow::{Action, Field, FlowMod, FlowModCommand, FlowStatsRequest, Instructions, Match};
use openflow::Version;
use testbed::{Clock, DeviceKind, FailMode, Failure};
use trafficgen::{Pace, Rate};

use crate::catalogue::in_force;
use crate::catalogue::offered::{Load, LoadResult, figure, offer_once};
use crate::catalogue::prelude::*;
use crate::setup::TestSetup;
use crate::tools::Tools;

/// The experiment.
pub(crate) const CONTROLLER_LOSS: Experiment = Experiment {
    description: Description {
        name: "controller-loss",
        title: "Loss of the controller connection",
        family: Family::Robustness,
        question: "What happens to frames and rules without a controller connection, and how soon is it re-established?",
        source: "OpenFlow 1.0.1, 4.3, and OpenFlow 1.3.5, 6.3.2 and 6.4: fail secure and fail standalone mode",
        steps: &[
            "One rule forwards frames from the client to the server, and one of lower priority drops the others; the load starts when both are active.",
            "Frames of 64 bytes are sent in both directions at equal gaps: those from the server are forwarded only in standalone operation.",
            "Meanwhile the controller closes its connection and listens again later; or it stops reading and replying, and listens for a new connection at once.",
            "The reconnection time runs from the start of listening to the end of the handshake; then the rules of the device are requested.",
            "The outage is the longest sequence of lost frames times their gap.",
        ],
        parameters: &[
            Parameter::axis(
                "loss",
                "loss of the connection: closed, or silent",
                Values::words(&["closed"], &["closed", "silent"]),
            ),
            Parameter::axis(
                "fail",
                "fail mode: secure or standalone",
                Values::words(&["secure"], &["secure", "standalone"]),
            ),
            Parameter::constant(
                "away-millis",
                "time without a listener in milliseconds, for a closed connection",
                Values::numbers(&[100], &[20_000], &[20_000], [1, 600_000]),
            ),
            Parameter::constant(
                "after-millis",
                "duration of the load after the controller listens, in milliseconds",
                Values::numbers(&[1_000], &[20_000], &[20_000], [10, 600_000]),
            ),
            Parameter::constant(
                "pps",
                "frames a second, each way",
                Values::numbers(&[10_000], &[10_000], &[10_000], [100, 1_000_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "Reconnected after",
                figure: "called_ms",
                across: "loss",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "called_ms",
                    "outage_ms",
                    "lost",
                    "p99_us",
                    "rules_kept_percent",
                    "by_itself_ms",
                ],
            },
        ],
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(|point| DedicatedSetup {
        fail_mode: fail_mode(point),
        ..DedicatedSetup::default()
    }),
    applies_to: |device, _| device.speaks_openflow() && !matches!(device, DeviceKind::External(_)),
    seconds: |point| {
        let own = match fail_mode(point) {
            FailMode::Secure => 0.0,
            FailMode::Standalone => 1.2,
        };
        own + 0.4 + length(point).as_secs_f64()
    },
    measure,
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("called_ms", "Reconnected after", "ms", Better::Lower),
    figure("outage_ms", "Outage", "ms", Better::Lower),
    figure("lost", "Lost", "frames", Better::Lower),
    figure("p99_us", "99 % delay", "µs", Better::Lower),
    figure("rules_kept_percent", "Rules kept", "%", Better::Higher),
    figure("by_itself_ms", "Standalone for", "ms", Better::Neither),
];

/// Time before the loss of the controller.
const BEFORE: Duration = Duration::from_millis(150);

/// Time limit for the reconnection. The backoff of most devices grows to eight seconds, and those
/// that probe a silent controller notice it after ten.
const RECONNECT_LIMIT: Duration = Duration::from_secs(25);

fn fail_mode(point: &Point) -> FailMode {
    match point.word("fail") {
        "standalone" => FailMode::Standalone,
        _ => FailMode::Secure,
    }
}

fn is_closed(point: &Point) -> bool {
    point.word("loss") == "closed"
}

/// Returns the time without a listening controller.
fn away(point: &Point) -> Duration {
    match is_closed(point) {
        true => Duration::from_millis(point.number("away-millis")),
        false => Duration::ZERO,
    }
}

/// Returns the duration of the load.
fn length(point: &Point) -> Duration {
    BEFORE + away(point) + Duration::from_millis(point.number("after-millis"))
}

/// Controllers after the reconnection.
struct Reconnection {
    controllers: Vec<Controller>,
    /// Time from the first possible connection to the end of version negotiation; `None` without a
    /// reconnection.
    reconnected: Option<Duration>,
    /// Number of rules after that.
    rules: usize,
}

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let rules = rules();
    setup.install(&rules)?;
    in_force::wait(setup, tools)?;
    let pace = Pace::Constant(Rate::Frames(point.number("pps")));
    let mut load = Load::udp(64, pace, length(point));
    load.bidirectional = true;
    let socket = setup.directory.join("br0.controller");
    let controllers = setup.take_controllers();
    let here: &TestSetup = setup;
    let (offered, back) = thread::scope(|scope| {
        let absence = scope.spawn(|| {
            tools.clock.sleep_until(tools.clock.now() + BEFORE);
            lose_controller(point, controllers, &socket, tools.clock)
        });
        let offered = offer_once(&load, here, tools);
        let back = absence.join();
        (
            offered,
            back.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        )
    });
    let back = back?;
    setup.give_controllers(back.controllers);
    let offered = offered?;
    let kept = back.rules as f64 / rules.len() as f64;
    let reading = reading(point, &offered, back.reconnected, kept);
    let mut measured = TrialResult::new(reading, offered.conditions.clone());
    if offered.fell_short() {
        measured.note("the tester did not quite reach its rate".to_owned());
    }
    Ok(measured)
}

/// Removes the controller, and accepts a new connection.
fn lose_controller(
    point: &Point,
    mut controllers: Vec<Controller>,
    socket: &std::path::Path,
    clock: &Clock,
) -> Result<Reconnection, TrialError> {
    // A silent controller holds the connection without reading from it.
    let held_connection = match is_closed(point) {
        true => {
            controllers.clear();
            clock.sleep_until(clock.now() + away(point));
            None
        }
        false => controllers.first().map(Controller::lend).transpose()?,
    };
    let listener = Listener::bind(socket)?;
    let began = clock.now();
    let manner = ControllerSettings::silent(Version::V10);
    let (controllers, reconnected) =
        match listener.accept_as(manner, clock, RECONNECT_LIMIT, || Ok(())) {
            Ok(controller) => (vec![controller], Some(clock.now().since(began))),
            // The device has not noticed, and the old connection still exists.
            Err(ControllerError::Failure(Failure::Timeout { .. })) if held_connection.is_some() => {
                (controllers, None)
            }
            Err(error) => return Err(error.into()),
        };
    drop(held_connection);
    let Some(mut first) = controllers.first() else {
        return Err(TrialError::Impossible(
            "the device had no controller".to_owned(),
        ));
    };
    let rules = first.flows(FlowStatsRequest::all())?.len();
    Ok(Reconnection {
        controllers,
        reconnected,
        rules,
    })
}

/// Returns the rules of the device.
fn rules() -> [FlowMod; 3] {
    let rule = |priority, matching, actions| {
        let actions = Instructions::apply(actions);
        FlowMod::new(FlowModCommand::Add, priority, matching, actions)
    };
    let from = Match::any().with(Field::InPort, 1);
    let from = from.expect("the port has no prerequisite");
    [
        in_force::rule(),
        rule(0x8000, from, vec![Action::output(PortNo(2))]),
        rule(1, Match::any(), Vec::new()),
    ]
}

/// Returns the figures of the load.
fn reading(
    point: &Point,
    offered: &LoadResult,
    reconnected: Option<Duration>,
    kept: f64,
) -> Reading {
    let mut reading = Reading::at(point);
    let pps = point.number("pps") as f64;
    let (forth, back) = (
        &offered.measurement.streams[0],
        &offered.measurement.streams[1],
    );
    match reconnected {
        Some(reconnected) => reading.put("called_ms", reconnected.as_secs_f64() * 1e3),
        None => {
            let seconds = RECONNECT_LIMIT.as_secs();
            let reason =
                format!("the device did not notice the silent controller within {seconds} s");
            reading.lack("called_ms", reason);
        }
    }
    reading.put("rules_kept_percent", kept * 100.0);
    reading.put("lost", forth.lost as f64);
    let longest = match forth.lost {
        0 => 0,
        _ => forth.loss_runs.max(),
    };
    reading.put("outage_ms", longest as f64 / pps * 1e3);
    match forth.received {
        0 => reading.lack("p99_us", "no frame arrived"),
        _ => {
            let p99 = forth.delay_from_sent.value_at_quantile(0.99);
            reading.put("p99_us", p99 as f64 / 1e3);
        }
    }
    // The rules drop these frames, so every received one was forwarded without a rule.
    reading.put("by_itself_ms", back.received as f64 / pps * 1e3);
    reading
}

#[cfg(test)]
mod tests;
