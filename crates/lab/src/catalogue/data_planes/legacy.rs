//! Scenario 2: OpenFlow against the device's own forwarding.

use base::PortNo;
use flow::{Action, Field, FlowMod, FlowModCommand, Instructions, Match};

use super::{PACKETS, SIZE, WARM_UP, echo};
use crate::catalogue::plane::{Plane, on_station};
use crate::catalogue::{Description, Experiment, Family, Parameter, Point, Setting, Values, View};
use crate::rules::{TOWARDS_CLIENT, TOWARDS_SERVER};
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const LEGACY: Experiment = Experiment {
    description: Description {
        name: "echo-legacy",
        title: "OpenFlow against legacy mode",
        family: Family::DataPlanes,
        question: "Is a device slower by OpenFlow's rules than by its own forwarding?",
        source: "Costa et al., scenario 2, figure 6",
        steps: &[
            "In mode openflow one rule a direction matches the port of arrival and outputs to the other port.",
            "In mode legacy the device forwards by the addresses that it has learnt: its own pipeline, which OpenFlow calls NORMAL; devices without OpenFlow know no other.",
            "UDP frames go from the client to the server and back, one under way at a time, by a thread that never sleeps.",
            "The speed-up is the mean round trip in legacy mode divided by that in OpenFlow mode: 1 means that rules cost nothing.",
        ],
        parameters: &[
            Parameter::axis(
                "mode",
                "what the device forwards by",
                Values::Words {
                    quick: MODES,
                    all: MODES,
                },
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
                title: "Speed-up: legacy mode's mean round trip by OpenFlow mode's",
                figure: "mean_us",
                parameter: "mode",
                of: "legacy",
                to: "openflow",
                published: "legacy",
            },
            echo::ALL_FIGURES,
        ],
        topology: None,
    },
    setting: Setting::Usual,
    takes: |device, point| echo::takes(device, point.word("mode") == "openflow"),
    seconds: echo::seconds,
    measure: |point, station, tools| on_station(point, station, tools, measure),
};

const MODES: &[&str] = &["openflow", "legacy"];

pub(super) fn measure(point: &Point, plane: &mut dyn Plane) -> Result<Measured, TrialError> {
    let size = u16::try_from(point.number("size")).expect("the bound says so");
    let request = echo::request(plane, size, None);
    if plane.speaks_openflow() {
        let rules = match point.word("mode") {
            "legacy" => [normal(1), normal(2)],
            _ => [1, 2].map(|port| echo::rule(from(port), Vec::new(), port == 1)),
        };
        if let Err(reason) = echo::install(plane, &rules)? {
            return Ok(echo::nothing(point, &reason));
        }
    }
    echo::measure(point, [request, request], plane)
}

fn from(port: u32) -> Match {
    let from = Match::any().with(Field::InPort, port.into());
    from.expect("the port has no prerequisite")
}

/// What comes in by `port` goes by the device's own forwarding.
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
