//! Small frames one way, flat out and at set rates: how many come out, and where
//! the others were last seen.
//!
//! Frames are counted by the interfaces at both ends and, where there are any, by
//! the device's ports and its rule: the difference between two neighbours on the
//! path is what was lost between them.

mod path_check;

use std::time::Duration;

use controller::ControllerError;
use record::{OpenFlowEvidence, Outcome, PathCheck, RateOutcome, RatePath};
use testbed::{Bench, Failure, InterfaceCounters, RawSocket};

use super::Tools;
use crate::cores::Watch;
use crate::generator::{self, Frames, Sent};
use crate::plan::Offer;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// How long to wait for stragglers (RFC 2544, section 23, has two seconds).
const STRAGGLERS: Duration = Duration::from_secs(2);
/// Nothing more for so long, and nothing more comes.
const QUIET: Duration = Duration::from_millis(100);
/// How much less than intended may be offered, as a share.
const SHORTFALL: f64 = 0.01;
/// A device that lets so large a share of a flat-out offer through may not be what limited it.
const ALL: f64 = 0.98;

pub(super) fn measure(
    offer: Offer,
    station: &Station,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let evidence = |enough: &Enough<'_>| station.evidence(tools.clock, enough);
    measure_on(&station.bench, offer, evidence, tools)
}

/// Whether the counts of rules need not be waited for any longer.
type Enough<'a> = dyn Fn(&OpenFlowEvidence) -> bool + 'a;

fn measure_on(
    bench: &Bench,
    offer: Offer,
    evidence: impl Fn(&Enough<'_>) -> Result<Option<OpenFlowEvidence>, ControllerError>,
    tools: &Tools<'_>,
) -> Result<Measured, TrialError> {
    let parameters = &tools.parameters.forwarding_rate;
    let (client, server) = (bench.client(), bench.server());
    let mut frames = Frames::new(client, server, parameters.frame_bytes);
    let sender = client.namespace.raw_sender(client.interface)?;
    let check = path_check::check_path(bench, &sender, &mut frames, tools)?;
    let matched_before = evidence(&|_| true)?;
    let before = Path::read(bench)?;
    let watch = Watch::begin(bench, tools.cores, tools.clock)?;
    let sent = generate(&sender, &mut frames, offer, tools)?;
    let conditions = watch.end(bench)?;
    let path = settle(bench, &before, tools)?;
    let matched = match matched_before {
        Some(before) => {
            let reached = path.server_received + before.towards_server;
            let after = evidence(&|now| now.towards_server >= reached)?;
            after.map(|after| (before, after))
        }
        None => None,
    };
    let outcome = RateOutcome {
        frame_bytes: parameters.frame_bytes,
        intended_pps: match offer {
            Offer::Paced(pps) => Some(pps),
            Offer::FlatOut => None,
        },
        seconds: sent.seconds,
        offered: sent.frames,
        received: path.server_received,
        path: RatePath {
            device_matched: matched
                .map(|(before, after)| after.towards_server - before.towards_server),
            ..path
        },
        check,
    };
    let packet_ins = matched.map_or(0, |(_, after)| after.packet_ins);
    Ok(judge(outcome, packet_ins, conditions))
}

/// Sends on a thread of its own, on the first of the tester's cores.
fn generate(
    sender: &RawSocket,
    frames: &mut Frames,
    offer: Offer,
    tools: &Tools<'_>,
) -> Result<Sent, TrialError> {
    let milliseconds = tools.parameters.forwarding_rate.milliseconds;
    let cores = &tools.cores.tester;
    let (clock, interrupt) = (tools.clock, tools.interrupt);
    let sent = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            testbed::pin_current_thread(&cores[..cores.len().min(1)])?;
            generator::offer(sender, frames, offer, milliseconds, clock, interrupt)
                .map_err(Failure::to("send frames"))
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    sent.ok_or(TrialError::Interrupted)
}

/// The counters along the path.
struct Path {
    client: InterfaceCounters,
    ports: Option<[InterfaceCounters; 2]>,
    server: InterfaceCounters,
}

impl Path {
    fn read(bench: &Bench) -> Result<Self, Failure> {
        Ok(Self {
            client: bench.client().counters()?,
            ports: bench.port_counters()?,
            server: bench.server().counters()?,
        })
    }

    fn since(&self, earlier: &Self) -> RatePath {
        let client = self.client.since(&earlier.client);
        let ports = match (&self.ports, &earlier.ports) {
            (Some([first, second]), Some([first_before, second_before])) => {
                Some((first.since(first_before), second.since(second_before)))
            }
            _ => None,
        };
        RatePath {
            client_sent: client.tx_packets,
            client_dropped: client.tx_dropped,
            device_in: ports.map(|(first, _)| first.rx_packets),
            device_matched: None,
            device_out: ports.map(|(_, second)| second.tx_packets),
            device_out_dropped: ports.map(|(_, second)| second.tx_dropped),
            server_received: self.server.since(&earlier.server).rx_packets,
        }
    }
}

/// Waits until no more frames come out, and reads the counters.
fn settle(bench: &Bench, before: &Path, tools: &Tools<'_>) -> Result<RatePath, Failure> {
    let clock = tools.clock;
    let deadline = clock.now() + STRAGGLERS;
    let mut last = Path::read(bench)?;
    loop {
        clock.sleep_until(clock.now() + QUIET);
        let next = Path::read(bench)?;
        if next.server.rx_packets == last.server.rx_packets || clock.now() >= deadline {
            return Ok(next.since(before));
        }
        last = next;
    }
}

fn judge(outcome: RateOutcome, packet_ins: u64, conditions: record::Conditions) -> Measured {
    let (check, offered, received) = (outcome.check, outcome.offered, outcome.received);
    let (offered_pps, intended) = (outcome.offered_pps(), outcome.intended_pps);
    let has_device = outcome.path.device_in.is_some();
    let mut measured = Measured::new(Outcome::ForwardingRate(outcome), conditions);
    measured.note_pressure();
    if check.intact < check.sent {
        let PathCheck {
            sent,
            intact,
            changed,
            ..
        } = check;
        let reason =
            format!("of {sent} frames sent one by one {intact} came out intact, {changed} changed");
        if intact == 0 {
            measured.void(reason);
        } else {
            measured.note(reason);
        }
    }
    if check.duplicates > 0 || received > offered {
        measured.void(format!(
            "{received} frames came out of {offered}, and {} of the check twice",
            check.duplicates
        ));
    }
    if packet_ins > 0 {
        measured.void(format!(
            "the device sent {packet_ins} frames to the controller: they did not match the rules"
        ));
    }
    match intended {
        Some(pps) if offered_pps < f64::from(pps) * (1.0 - SHORTFALL) => measured.void(format!(
            "the generator offered {offered_pps:.0} frames a second instead of {pps}"
        )),
        None if has_device && received as f64 >= offered as f64 * ALL => measured.note(
            "nearly all that was offered came out: the generator may be what limits this"
                .to_owned(),
        ),
        _ => {}
    }
    measured
}

#[cfg(test)]
mod tests;
