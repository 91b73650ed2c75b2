//! Scenario 2: OpenFlow compared with the device's own forwarding.

use base::PortNo;
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match};

use super::{PACKETS, SIZE, WARM_UP, echo};
use crate::catalogue::plane::{Plane, on_setup};
use crate::catalogue::prelude::*;
use crate::rules::{TOWARDS_CLIENT, TOWARDS_SERVER};

/// The experiment "echo-legacy".
pub(crate) const LEGACY: Experiment = Experiment {
    description: Description {
        name: "echo-legacy",
        title: "OpenFlow mode and legacy mode",
        family: Family::DataPlanes,
        question: "Is a device slower with OpenFlow rules than with its own forwarding?",
        source: "Costa et al., scenario 2, figure 6",
        steps: &[
            "In mode openflow, one rule per direction matches the ingress port and forwards to the other port.",
            "In mode legacy, the device forwards by learned addresses, with its own pipeline, which OpenFlow calls NORMAL; devices without OpenFlow have this mode only.",
            "A busy-polling thread sends UDP frames from the client to the server and back, with one outstanding at a time.",
            "The speedup is the mean round trip in legacy mode divided by that in OpenFlow mode: at 1, rules add no delay.",
        ],
        parameters: &[
            Parameter::axis(
                "mode",
                "forwarding mode: openflow or legacy",
                Values::words(MODES, MODES),
            ),
            SIZE,
            PACKETS,
            WARM_UP,
        ],
        figures: echo::FIGURES,
        views: &[
            View::Bars {
                title: "Mean round trip by mode",
                figure: "mean_us",
                across: "mode",
            },
            View::Runs {
                title: "Mean round trip, run by run",
                figure: "mean_us",
                across: "mode",
            },
            View::Ratio {
                title: "Speedup: mean round trip in legacy mode, relative to OpenFlow mode",
                figure: "mean_us",
                parameter: "mode",
                of: "legacy",
                to: "openflow",
                published: "legacy",
            },
            echo::ALL_FIGURES,
        ],
        ..Description::EMPTY
    },
    applies_to: |device, point| echo::takes(device, point.word("mode") == "openflow"),
    seconds: echo::seconds,
    measure: |point, setup, tools| on_setup(point, setup, tools, measure),
    ..Experiment::BASE
};

const MODES: &[&str] = &["openflow", "legacy"];

pub(super) fn measure(point: &Point, plane: &mut dyn Plane) -> Result<TrialResult, TrialError> {
    let size = u16::try_from(point.number("size")).expect("the parameter is bounded");
    let request = echo::request(plane, size, None);
    if plane.speaks_openflow() {
        let rules = match point.word("mode") {
            "legacy" => [normal(1), normal(2)],
            _ => [1, 2].map(|port| echo::rule(from(port), Vec::new(), port == 1)),
        };
        if let Err(reason) = echo::install(plane, &rules)? {
            return Ok(echo::without_figures(point, &reason));
        }
    }
    echo::measure(point, [request, request], plane)
}

fn from(port: u32) -> Match {
    let from = Match::any().with(Field::InPort, port.into());
    from.expect("the port has no prerequisite")
}

/// Returns a rule by which the device forwards frames from `port` as without OpenFlow (NORMAL).
fn normal(port: u32) -> FlowMod {
    let actions = Instructions::apply(vec![Action::output(PortNo::NORMAL)]);
    let mut rule = FlowMod::new(FlowModCommand::Add, echo::PRIORITY, from(port), actions);
    rule.cookie = if port == 1 {
        TOWARDS_SERVER
    } else {
        TOWARDS_CLIENT
    };
    rule
}
