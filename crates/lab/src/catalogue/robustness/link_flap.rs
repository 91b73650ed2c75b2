//! A cable that is pulled and put back while frames move.

use std::thread;
use std::time::Duration;

use crate::catalogue::offered::{Load, figure, offer_once};
use crate::catalogue::{
    Better, Bound, Experiment, Family, Figure, Parameter, Point, Setting, Values, View,
};
use crate::instrument::{Pace, Rate};
use crate::record::{Outcome, Reading};
use crate::scenario::Tools;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// The experiment.
pub(crate) const LINK_FLAP: Experiment = Experiment {
    name: "link-flap",
    title: "A cable pulled and put back",
    family: Family::Robustness,
    question: "How long after its cable is back does a port forward again?",
    source: "RFC 2544, 26.6, and RFC 6201, of a port in place of the device",
    steps: &[
        "Frames of 64 bytes go from the client to the server at equal gaps.",
        "Amid them the server's interface is taken down, and up again after a while.",
        "The outage is the longest run of lost frames by the gap between two; what it is longer than the interface was down, the device took to come back.",
    ],
    parameters: &[
        Parameter::constant(
            "down-millis",
            "milliseconds for which the interface is down",
            Values::Numbers {
                quick: &[100],
                paper: &[500],
                rfc: &[1_000],
                bound: Bound {
                    least: 10,
                    most: 60_000,
                },
            },
        ),
        Parameter::constant(
            "pps",
            "frames a second",
            Values::Numbers {
                quick: &[10_000],
                paper: &[10_000],
                rfc: &[10_000],
                bound: Bound {
                    least: 100,
                    most: 1_000_000,
                },
            },
        ),
    ],
    figures: FIGURES,
    views: &[View::Table {
        title: "Outage and recovery",
        figures: &["outage_ms", "recovery_ms", "lost"],
    }],
    setting: Setting::Usual,
    takes: |device, _| !device.makes_taps(),
    seconds: |point| point.number("down-millis") as f64 / 1e3 + 2.0,
    measure,
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    figure("outage_ms", "Outage", "ms", Better::Lower),
    figure("recovery_ms", "Beyond the time that the cable was out", "ms", Better::Lower),
    figure("lost", "Lost", "frames", Better::Lower),
];

/// Before the cable is pulled, and after it is back.
const AROUND: Duration = Duration::from_millis(400);

fn measure(
    point: &Point,
    station: &mut Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let down = Duration::from_millis(point.number("down-millis"));
    let pps = point.number("pps");
    let pace = Pace::Constant(Rate::Frames(pps));
    let load = Load::udp(64, pace, AROUND + down + 3 * AROUND);
    let station: &Station = station;
    let server = station.bench.server();
    let (offered, pulled) = thread::scope(|scope| {
        let pulled = scope.spawn(|| {
            let clock = tools.clock;
            clock.sleep_until(clock.now() + AROUND);
            let began = clock.now();
            server.namespace.set_down(server.interface)?;
            clock.sleep_until(clock.now() + down);
            server.namespace.set_up(server.interface)?;
            let pulled = clock.now().since(began);
            // An interface that goes down forgets its neighbours, which later tests need.
            let client = station.bench.client();
            let (address, mac) = (client.address, client.mac);
            let namespace = &server.namespace;
            namespace.add_neighbour(server.interface, address, mac)?;
            Ok::<_, testbed::Failure>(pulled)
        });
        let offered = offer_once(&load, station, tools);
        let pulled = pulled.join();
        (
            offered,
            pulled.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        )
    });
    let (offered, pulled) = (offered?, pulled?);
    let stream = &offered.measurement.streams[0];
    let mut reading = Reading::at(point);
    let outage = stream.loss_runs.max() as f64 / pps as f64 * 1e3;
    reading.put("lost", stream.lost as f64);
    reading.put("outage_ms", outage);
    reading.put(
        "recovery_ms",
        (outage - pulled.as_secs_f64() * 1e3).max(0.0),
    );
    let mut measured = Measured::new(Outcome::Reading(reading), offered.conditions.clone());
    if offered.fell_short() {
        measured.note("the tester did not quite reach its rate".to_owned());
    }
    Ok(measured)
}
