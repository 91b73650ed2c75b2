//! Scenario 1: round trip by the fields that rules match.
//!
//! The experiment uses UDP sockets at both ends, as published. The other scenarios send whole
//! frames and bypass the network stacks of the hosts.

use std::str::FromStr;

use record::{Conditions, OpenFlowEvidence, RoundTrips};

use super::{PACKETS, SIZE_BOUND, WARM_UP};
use crate::catalogue::prelude::*;
use crate::probe::{self, EchoRequest, Echoes, Prober};
use crate::rules::MatchSet;
use crate::setup::{ConditionMonitor, TestSetup};
use crate::tools::Tools;

/// The experiment "echo".
pub(crate) const ECHO: Experiment = Experiment {
    description: Description {
        name: "echo",
        title: "Round trip by match type",
        family: Family::DataPlanes,
        question: "How long is a round trip, by the fields that rules match and by frame size?",
        source: "Costa et al., scenario 1, table 3 and figures 3 to 5",
        steps: &[
            "A client sends UDP packets, a server returns them; one packet is outstanding at a time (closed loop).",
            "One rule per direction forwards them; the fields that it matches are the parameter. A device without rules is measured in the same block.",
            "By default one busy-polling thread has both sockets, so that the wake-up times of processes are excluded; with the prober pair, a client and a server block in their sockets, as published.",
            "A round trip is the time from before the client's send call to after its receive call, both hosts' stacks included. A packet that does not return within 100 ms is lost.",
            "The counters of the rules must equal the packets that the tester sent and received, and no packet may reach the controller; otherwise the trial is void.",
        ],
        parameters: &[
            Parameter::axis(
                "match_set",
                "fields that the rules match",
                Values::words(&MatchSet::NAMES, &MatchSet::NAMES),
            ),
            Parameter::axis(
                "frame_bytes",
                "frame size in bytes, with the checksum (FCS)",
                Values::Numbers {
                    quick: &[64],
                    paper: &[64, 128, 256],
                    rfc: &[64, 128, 256],
                    bound: SIZE_BOUND,
                },
            ),
            Parameter::constant(
                "prober",
                "sender of the echoes: solo (one busy-polling thread) or pair (blocking client and server)",
                Values::Choice {
                    quick: "solo",
                    paper: "solo",
                    rfc: "solo",
                    all: &Prober::NAMES,
                },
            ),
            PACKETS,
            WARM_UP,
        ],
        figures: RoundTrips::FIGURES,
        views: &[
            View::Matrix {
                title: "Mean round trip by match type",
                figure: "mean_us",
                across: "match_set",
                published: "match-types",
            },
            View::Matrix {
                title: "Median round trip by match type",
                figure: "p50_us",
                across: "match_set",
                published: "",
            },
            View::Runs {
                title: "Median round trip, run by run",
                figure: "p50_us",
                across: "match_set",
            },
            View::Shares {
                title: "Round trips",
                values: "round_trip_ns",
            },
            View::Variations {
                title: "Jitter (IPDV)",
                samples: "round_trip_ns",
            },
            View::AboveLink {
                title: "Median round trip above the bare link",
                figure: "p50_us",
                across: "match_set",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "mean_us",
                    "p50_us",
                    "p99_us",
                    "p999_us",
                    "ipdv_mean_us",
                    "pdv_p99_us",
                    "loss",
                    "effective_share",
                ],
            },
            View::Precision {
                title: "Precision of the mean",
                samples: "round_trip_ns",
                at: &[("match_set", Focus::Last)],
            },
        ],
        headlines: &[
            Headline {
                title: "Median round trip",
                figure: HeadlineFigure::Figure("p50_us"),
                at: EXACT_SMALLEST,
            },
            Headline {
                title: "99 % round trip",
                figure: HeadlineFigure::Figure("p99_us"),
                at: EXACT_SMALLEST,
            },
        ],
        ..Description::EMPTY
    },
    is_calibrated: true,
    seconds: |point| 0.3 + (point.number("packets") + point.number("warm-up")) as f64 * 60e-6,
    measure,
    ..Experiment::BASE
};

/// The representative point of the experiment: exact match and the smallest frames.
const EXACT_SMALLEST: &[(&str, Focus)] =
    &[("match_set", Focus::Last), ("frame_bytes", Focus::First)];

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let request = EchoRequest {
        frame_bytes: u16::try_from(point.number("frame_bytes")).expect("the bound is below 2^16"),
        warm_up: point.small("warm-up"),
        packets: point.small("packets"),
        prober: word(point, "prober"),
    };
    setup.prepare(word::<MatchSet>(point, "match_set"))?;
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let echoes = probe::echo(
        &setup.bench,
        request,
        &tools.cores.tester,
        tools.clock,
        tools.interrupt,
    )?;
    let conditions = watch.end(&setup.bench)?;
    let counts = EchoCounts::of(request, &echoes);
    let evidence = setup.evidence(tools.clock, |evidence| counts.agree(evidence))?;
    Ok(measured(point, request, echoes, evidence, conditions))
}

/// Returns the value of a parameter whose words are the names of `T`.
fn word<T: FromStr>(point: &Point, name: &str) -> T {
    let parsed = point.word(name).parse();
    parsed.unwrap_or_else(|_| panic!("the parameter '{name}' has other words"))
}

/// Returns the results of the echoes, with their flaws.
fn measured(
    point: &Point,
    request: EchoRequest,
    echoes: Echoes,
    evidence: Option<OpenFlowEvidence>,
    conditions: Conditions,
) -> TrialResult {
    let counts = EchoCounts::of(request, &echoes);
    let mut reading = Reading::at(point);
    RoundTrips::new(echoes.round_trip_ns).put_into(&mut reading);
    reading.openflow = evidence;
    let mut measured = TrialResult::new(reading, conditions);
    if request.prober == Prober::Solo {
        measured.note_pressure();
    }
    counts.add_flaws(evidence, &mut measured);
    measured
}

/// Counts of the generator, warm-up included.
#[derive(Clone, Copy, Debug)]
struct EchoCounts {
    sent: u64,
    /// Requests that the server received.
    served: u64,
    returned: u64,
}

impl EchoCounts {
    fn of(request: EchoRequest, echoes: &Echoes) -> Self {
        let warm_up = u64::from(request.warm_up - echoes.warm_up_lost);
        let counted = echoes.round_trip_ns.iter().flatten().count();
        Self {
            sent: u64::from(request.warm_up + request.packets),
            served: echoes.served,
            returned: warm_up + counted as u64,
        }
    }

    /// Returns true if the counters of the device's rules agree with those of the generator. A lost
    /// packet may or may not have reached the device.
    fn agree(&self, evidence: &OpenFlowEvidence) -> bool {
        (self.served..=self.sent).contains(&evidence.towards_server)
            && (self.returned..=self.served).contains(&evidence.towards_client)
    }

    fn add_flaws(&self, evidence: Option<OpenFlowEvidence>, measured: &mut TrialResult) {
        let lost = self.sent - self.returned;
        if lost > 0 {
            let share = lost as f64 / self.sent as f64 * 100.0;
            measured.note(format!(
                "{lost} of {} echoes, warm-up included, did not return within 100 ms ({share:.2} %)",
                self.sent
            ));
        }
        let Some(evidence) = evidence else { return };
        if evidence.packet_ins > 0 {
            measured.void(format!(
                "the device sent {} frames to the controller: they did not match the rules",
                evidence.packet_ins
            ));
        }
        if !self.agree(&evidence) {
            measured.void(format!(
                "the rules counted {} and {} frames, but {} were sent and {} returned",
                evidence.towards_server, evidence.towards_client, self.sent, self.served
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::tests::over;
    use record::Value;
    use trafficgen::memory::Path;

    const COUNTS: EchoCounts = EchoCounts {
        sent: 110,
        served: 109,
        returned: 108,
    };

    fn judged(evidence: OpenFlowEvidence) -> Vec<(bool, String)> {
        let mut measured = TrialResult::new(Reading::default(), Conditions::default());
        COUNTS.add_flaws(Some(evidence), &mut measured);
        let flaws = measured.flaws.into_iter();
        flaws.map(|flaw| (flaw.void, flaw.reason)).collect()
    }

    #[test]
    fn losses_are_noted_and_do_not_void() {
        let flaws = judged(OpenFlowEvidence {
            packet_ins: 0,
            towards_server: 110,
            towards_client: 108,
        });
        let note = "2 of 110 echoes, warm-up included, did not return within 100 ms (1.82 %)";
        assert_eq!(flaws, [(false, note.to_owned())]);
    }

    #[test]
    fn counters_that_disagree_void_the_trial() {
        let flaws = judged(OpenFlowEvidence {
            packet_ins: 3,
            towards_server: 107,
            towards_client: 109,
        });
        let void: Vec<&str> = flaws
            .iter()
            .filter(|(void, _)| *void)
            .map(|(_, reason)| reason.as_str())
            .collect();
        assert_eq!(
            void,
            [
                "the device sent 3 frames to the controller: they did not match the rules",
                "the rules counted 107 and 109 frames, but 110 were sent and 109 returned"
            ]
        );
    }

    #[test]
    fn delay_and_losses_of_a_simulated_path_are_the_results() {
        let path = |delay_ns, lose_every| Path {
            delay_ns,
            lose_every,
            ..Path::default()
        };
        let request = EchoRequest {
            frame_bytes: 256,
            warm_up: 20,
            packets: 400,
            prober: Prober::Solo,
        };
        let echoes = || over(path(40_000, None), path(60_000, Some(70)), request).unwrap();
        let point = Point::default().with("match_set", Value::word("port"));
        // Counters of the rules of such a device: six replies are lost after the device.
        let with = |towards_client| {
            let evidence = OpenFlowEvidence {
                packet_ins: 0,
                towards_server: 420,
                towards_client,
            };
            measured(
                &point,
                request,
                echoes(),
                Some(evidence),
                Conditions::default(),
            )
        };
        let good = with(420);
        let samples = &good.reading.samples["round_trip_ns"];
        let returned: Vec<u32> = samples.iter().flatten().copied().collect();
        assert_eq!((samples.len(), returned.len()), (400, 394));
        assert!(returned.iter().all(|ns| (100_000..100_020).contains(ns)));
        assert!((good.reading.figures["loss"] - 6.0 / 400.0).abs() < 1e-12);
        let lost = "6 of 420 echoes, warm-up included, did not return within 100 ms (1.43 %)";
        assert_eq!(good.flaws.len(), 1);
        assert_eq!(good.flaws[0].reason, lost);
        assert!(
            with(413).flaws.iter().any(|flaw| flaw.void),
            "fewer than returned"
        );
    }
}
