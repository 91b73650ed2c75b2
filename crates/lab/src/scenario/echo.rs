//! Scenario 1 of the published evaluation: UDP echoes between two hosts, with one
//! rule each way, the controller silent.

use record::{Conditions, EchoOutcome, OpenFlowEvidence, Outcome};
use record::{MatchSet, Prober};

use super::Tools;
use crate::cores::Watch;
use crate::probe::{self, EchoRequest, Echoes};
use crate::station::Station;
use crate::trial::{Measured, TrialError};

pub(super) fn measure(
    match_set: MatchSet,
    frame_bytes: u16,
    station: &Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let parameters = &tools.parameters.echo;
    let request = EchoRequest {
        frame_bytes,
        warm_up: parameters.warm_up,
        packets: parameters.packets,
        prober: parameters.prober,
    };
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let echoes = probe::echo(
        &station.bench,
        request,
        &tools.cores.tester,
        tools.clock,
        tools.interrupt,
    )?;
    let conditions = watch.end(&station.bench)?;
    let counts = Counts::of(request, &echoes);
    let openflow = station.evidence(tools.clock, |evidence| counts.agree(evidence))?;
    Ok(measured(match_set, request, echoes, openflow, conditions))
}

/// The echoes as an outcome, with what speaks against them.
fn measured(
    match_set: MatchSet,
    request: EchoRequest,
    echoes: Echoes,
    openflow: Option<OpenFlowEvidence>,
    conditions: Conditions,
) -> Measured {
    let counts = Counts::of(request, &echoes);
    let outcome = Outcome::Echo(EchoOutcome {
        match_set,
        frame_bytes: request.frame_bytes,
        prober: request.prober,
        warm_up: request.warm_up,
        warm_up_lost: echoes.warm_up_lost,
        served: echoes.served,
        seconds: echoes.seconds,
        round_trip_ns: echoes.round_trip_ns,
        openflow,
    });
    let mut measured = Measured::new(outcome, conditions);
    if request.prober == Prober::Solo {
        measured.note_pressure();
    }
    counts.judge(openflow, &mut measured);
    measured
}

/// What the tester counted, warm-up included.
#[derive(Clone, Copy, Debug)]
struct Counts {
    sent: u64,
    served: u64,
    returned: u64,
}

impl Counts {
    fn of(request: EchoRequest, echoes: &Echoes) -> Self {
        let warm_up = u64::from(request.warm_up - echoes.warm_up_lost);
        let counted = echoes.round_trip_ns.iter().flatten().count();
        Self {
            sent: u64::from(request.warm_up + request.packets),
            served: echoes.served,
            returned: warm_up + u64::try_from(counted).expect("bounded by the options"),
        }
    }

    /// Whether the device's rules counted what the tester did. A lost frame may or
    /// may not have reached the device.
    fn agree(&self, evidence: &OpenFlowEvidence) -> bool {
        (self.served..=self.sent).contains(&evidence.towards_server)
            && (self.returned..=self.served).contains(&evidence.towards_client)
    }

    fn judge(&self, evidence: Option<OpenFlowEvidence>, measured: &mut Measured) {
        let lost = self.sent - self.returned;
        if lost > 0 {
            let share = lost as f64 / self.sent as f64 * 100.0;
            measured.note(format!(
                "{lost} of {} echoes, warm-up included, did not come back within 100 ms ({share:.2} %)",
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
    use trafficgen::memory::Path;

    const COUNTS: Counts = Counts {
        sent: 110,
        served: 109,
        returned: 108,
    };

    fn judged(evidence: OpenFlowEvidence) -> Vec<(bool, String)> {
        let outcome = record::fixture::echo_trial("ovs", 1, MatchSet::Ip, 64).outcome;
        let mut measured = Measured::new(outcome.unwrap(), Conditions::default());
        COUNTS.judge(Some(evidence), &mut measured);
        let flaws = measured.flaws.into_iter();
        flaws.map(|flaw| (flaw.void, flaw.reason)).collect()
    }

    #[test]
    fn losses_are_told_and_do_not_void() {
        let flaws = judged(OpenFlowEvidence {
            packet_ins: 0,
            towards_server: 110,
            towards_client: 108,
        });
        let told = "2 of 110 echoes, warm-up included, did not come back within 100 ms (1.82 %)";
        assert_eq!(flaws, [(false, told.to_owned())]);
    }

    #[test]
    fn counts_that_do_not_agree_void() {
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
    fn the_delay_and_the_losses_of_a_device_in_memory_are_the_outcome() {
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
        // What rules of such a device count: six answers are lost behind them.
        let told = |towards_client| {
            let evidence = OpenFlowEvidence {
                packet_ins: 0,
                towards_server: 420,
                towards_client,
            };
            let conditions = Conditions::default();
            measured(
                MatchSet::Port,
                request,
                echoes(),
                Some(evidence),
                conditions,
            )
        };
        let good = told(420);
        let Outcome::Echo(outcome) = &good.outcome else {
            panic!("{good:?}");
        };
        let came: Vec<u32> = outcome.round_trip_ns.iter().flatten().copied().collect();
        assert_eq!((outcome.round_trip_ns.len(), came.len()), (400, 394));
        assert!(came.iter().all(|ns| (100_000..100_020).contains(ns)));
        assert_eq!((outcome.served, outcome.warm_up_lost), (420, 0));
        let lost = "6 of 420 echoes, warm-up included, did not come back within 100 ms (1.43 %)";
        assert_eq!(good.flaws.len(), 1);
        assert_eq!(good.flaws[0].reason, lost);
        assert!(
            told(413).flaws.iter().any(|flaw| flaw.void),
            "fewer than came back"
        );
    }
}
