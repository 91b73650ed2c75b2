//! Forwarding rate of small frames in one direction, at set rates and flat-out, and the location of
//! losses.
//!
//! Frames are counted by the interfaces at both ends and, if there are any, by the device's ports
//! and its rule. The difference between two neighbours on the path is the loss between them.

mod path_check;

use std::time::Duration;

use controller::ControllerError;
use record::{Conditions, OpenFlowEvidence};
use testbed::{Bench, Failure, InterfaceCounters, RawSocket};

use crate::catalogue::prelude::*;
use crate::generator::{self, Frames, IntendedLoad, SentLoad};
use crate::setup::ConditionMonitor;
use crate::tools::Tools;
use path_check::PathCheck;

/// The experiment.
pub(crate) const FORWARDING_RATE: Experiment = Experiment {
    description: Description {
        name: "forwarding-rate",
        title: "Forwarding rate",
        family: Family::Robustness,
        question: "How many small frames per second does a device forward, at set rates and flat-out, and where are the others lost?",
        source: "RFC 2544, 26.3, with interface counters in place of received frames",
        steps: &[
            "A generator sends frames of one flow from the client to an address behind the server, at equal gaps or flat-out; flat-out overloads most devices on purpose. One rule per direction matches the ingress port.",
            "Offered load is the number of frames that the kernel accepts from the generator; received frames are those that the server's interface counts, up to two seconds after the last.",
            "Interface counters of both hosts, of the device's ports and of its rule locate losses.",
            "Before each trial a hundred frames are sent one by one and compared byte for byte: if none arrives intact, the trial is void.",
            "A trial whose offered load misses the intended rate by more than 1 per cent is void. Flat-out, a device that forwards 98 per cent may not be the limit, which is noted.",
        ],
        parameters: &[
            Parameter::axis(
                "offer",
                "intended load in frames per second, or flat-out",
                Values::NumbersAndWord {
                    quick: &[100_000, 200_000],
                    paper: &[50_000, 100_000, 150_000, 200_000, 300_000, 400_000],
                    bound: Bound {
                        least: 1,
                        most: 100_000_000,
                    },
                    word: FLAT_OUT,
                },
            ),
            Parameter::constant(
                "frame_bytes",
                "frame size in bytes, with the checksum (FCS)",
                Values::numbers(&[64], &[64], &[64], [64, 1_518]),
            ),
            Parameter::constant(
                "millis",
                "duration of the load in milliseconds",
                Values::numbers(&[500], &[2_000], &[2_000], [100, 3_600_000]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Against {
                title: "Received frames against offered load",
                x: "offered_pps",
                y: "received_pps",
                along: "offer",
                diagonal: true,
            },
            View::Against {
                title: "Loss against offered load",
                x: "offered_pps",
                y: "loss",
                along: "offer",
                diagonal: false,
            },
            View::Matrix {
                title: "Loss by intended load",
                figure: "loss",
                across: "offer",
                published: "",
            },
            View::Table {
                title: "Rates",
                figures: &["offered_pps", "received_pps", "loss", "process_frame_ns"],
            },
            View::Table {
                title: "Share of the offered frames at each point of the path",
                figures: &[
                    "sent_share",
                    "ingress_share",
                    "matched_share",
                    "egress_share",
                    "received_share",
                ],
            },
        ],
        headlines: &[
            Headline {
                title: "Forwarding rate, flat-out",
                figure: HeadlineFigure::Figure("received_pps"),
                at: AT_FLAT_OUT,
            },
            Headline {
                title: "Forwarding rate without loss",
                figure: HeadlineFigure::Highest {
                    along: "offer",
                    figure: "loss",
                    limit: 0.001,
                    unit: "kpps",
                    per: 1e3,
                },
                at: &[],
            },
            Headline {
                title: "Processor time per frame, flat-out",
                figure: HeadlineFigure::Figure("process_frame_ns"),
                at: AT_FLAT_OUT,
            },
        ],
        ..Description::EMPTY
    },
    seconds: |point| 0.5 + point.number("millis") as f64 / 1e3,
    measure: |point, setup, tools| {
        let evidence = |enough: &Enough<'_>| setup.evidence(tools.clock, enough);
        measure_on(&setup.bench, point, evidence, tools)
    },
    ..Experiment::BASE
};

const FLAT_OUT: &str = "flat-out";
const AT_FLAT_OUT: &[(&str, Focus)] = &[("offer", Focus::Word(FLAT_OUT))];

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    Figure::new("offered_pps", "Offered load", "frames/s", Better::Neither).shown_in("kpps", 1e3),
    Figure::new("received_pps", "Received", "frames/s", Better::Higher).shown_in("kpps", 1e3),
    Figure::new("loss", "Loss", "", Better::Lower).shown_in("%", 0.01),
    Figure::new("process_frame_ns", "Processor time per frame", "ns", Better::Lower),
    Figure::new("sent_share", "Sent by the client", "", Better::Neither).shown_in("%", 0.01),
    Figure::new("ingress_share", "Received at port 1", "", Better::Neither).shown_in("%", 0.01),
    Figure::new("matched_share", "Matched the rule", "", Better::Neither).shown_in("%", 0.01),
    Figure::new("egress_share", "Sent at port 2", "", Better::Neither).shown_in("%", 0.01),
    Figure::new("received_share", "Received by the server", "", Better::Neither).shown_in("%", 0.01),
    Figure::new("check_intact", "Intact before the trial", "frames", Better::Neither),
    Figure::new("check_modified", "Modified before the trial", "frames", Better::Neither),
    Figure::new("check_duplicates", "Duplicated before the trial", "frames", Better::Neither),
];

/// Time limit for late frames (RFC 2544, section 23, has two seconds).
const DRAIN_LIMIT: Duration = Duration::from_secs(2);
/// Time without a frame after which no more are expected.
const DRAIN_INTERVAL: Duration = Duration::from_millis(100);
/// Greatest share by which the offered load may miss the intended one.
const SHORTFALL_MAX: f64 = 0.01;
/// Share of a flat-out load from which on the device may not be the limit.
const NEARLY_ALL: f64 = 0.98;

/// Condition for counters of rules that need no longer wait.
type Enough<'a> = dyn Fn(&OpenFlowEvidence) -> bool + 'a;

fn measure_on(
    bench: &Bench,
    point: &Point,
    evidence: impl Fn(&Enough<'_>) -> Result<Option<OpenFlowEvidence>, ControllerError>,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let (client, server) = (bench.client(), bench.server());
    let bytes = u16::try_from(point.number("frame_bytes")).expect("the bound is below 2^16");
    let load = match point.get("offer").and_then(record::Value::number) {
        Some(_) => IntendedLoad::Constant(point.small("offer")),
        None => IntendedLoad::FlatOut,
    };
    let mut frames = Frames::new(client, server, bytes);
    let sender = client.namespace.raw_sender(client.interface)?;
    let check = path_check::check_path(bench, &sender, &mut frames, tools)?;
    let matched_before = evidence(&|_| true)?;
    let before = PathSnapshot::read(bench)?;
    let watch = ConditionMonitor::begin(bench, tools.cores, tools.clock)?;
    let sent = generate(&sender, &mut frames, (load, point.small("millis")), tools)?;
    let conditions = watch.end(bench)?;
    let path = drain(bench, &before, tools)?;
    let matched = match matched_before {
        Some(before) => {
            let reached = path.server_received + before.towards_server;
            let after = evidence(&|now| now.towards_server >= reached)?;
            after.map(|after| (before, after))
        }
        None => None,
    };
    let outcome = RateOutcome {
        load,
        seconds: sent.seconds,
        offered: sent.frames,
        path: RatePath {
            device_matched: matched
                .map(|(before, after)| after.towards_server - before.towards_server),
            ..path
        },
        check,
    };
    let packet_ins = matched.map_or(0, |(_, after)| after.packet_ins);
    Ok(outcome.measured(point, packet_ins, conditions))
}

/// Results of a trial.
#[derive(Clone, Debug)]
struct RateOutcome {
    load: IntendedLoad,
    seconds: f64,
    /// Frames that the kernel accepted from the generator.
    offered: u64,
    path: RatePath,
    /// Check of the path before the trial.
    check: PathCheck,
}

/// Counts along the path of the frames, in its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RatePath {
    client_sent: u64,
    /// Frames received at the device's port; `None` without a device.
    device_in: Option<u64>,
    /// Frames that matched the device's rule; `None` without OpenFlow.
    device_matched: Option<u64>,
    /// Frames sent at the device's other port; `None` without a device.
    device_out: Option<u64>,
    server_received: u64,
}

/// Sends frames for some milliseconds, on a thread on the first of the tester's cores.
fn generate(
    sender: &RawSocket,
    frames: &mut Frames,
    (load, milliseconds): (IntendedLoad, u32),
    tools: &Tools<'_>,
) -> Result<SentLoad, TrialError> {
    let cores = &tools.cores.tester;
    let (clock, interrupt) = (tools.clock, tools.interrupt);
    let sent = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            testbed::pin_current_thread(&cores[..cores.len().min(1)])?;
            generator::offer(sender, frames, load, milliseconds, clock, interrupt)
                .map_err(Failure::to("send frames"))
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    sent.ok_or(TrialError::Interrupted)
}

/// Interface counters along the path.
struct PathSnapshot {
    client: InterfaceCounters,
    ports: Option<[InterfaceCounters; 2]>,
    server: InterfaceCounters,
}

impl PathSnapshot {
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
            device_in: ports.map(|(first, _)| first.rx_packets),
            device_matched: None,
            device_out: ports.map(|(_, second)| second.tx_packets),
            server_received: self.server.since(&earlier.server).rx_packets,
        }
    }
}

/// Waits until no more frames arrive, and reads the counters.
fn drain(bench: &Bench, before: &PathSnapshot, tools: &Tools<'_>) -> Result<RatePath, Failure> {
    let clock = tools.clock;
    let deadline = clock.now() + DRAIN_LIMIT;
    let mut last = PathSnapshot::read(bench)?;
    loop {
        clock.sleep_until(clock.now() + DRAIN_INTERVAL);
        let next = PathSnapshot::read(bench)?;
        if next.server.rx_packets == last.server.rx_packets || clock.now() >= deadline {
            return Ok(next.since(before));
        }
        last = next;
    }
}

impl RateOutcome {
    /// Returns the figures, and the flaws of the trial.
    fn measured(self, point: &Point, packet_ins: u64, conditions: Conditions) -> TrialResult {
        let mut measured = TrialResult::new(self.reading(point, &conditions), conditions);
        measured.note_pressure();
        self.judge_path(packet_ins, &mut measured);
        self.judge_load(&mut measured);
        measured
    }

    fn reading(&self, point: &Point, conditions: &Conditions) -> Reading {
        let (offered, received) = (self.offered, self.path.server_received);
        let mut reading = Reading::at(point);
        reading.put("offered_pps", offered as f64 / self.seconds);
        reading.put("received_pps", received as f64 / self.seconds);
        reading.put_share("loss", offered.saturating_sub(received), offered);
        match conditions.process {
            Some(used) => {
                let nanoseconds = (used.user_seconds + used.system_seconds) * 1e9;
                reading.put("process_frame_ns", nanoseconds / (received as f64).max(1.0));
            }
            None => {
                let reason = "the device is not a process of its own";
                reading.lack("process_frame_ns", reason);
            }
        }
        let path = &self.path;
        for (name, frames, reason) in [
            ("sent_share", Some(path.client_sent), ""),
            ("ingress_share", path.device_in, "the bare link has no port"),
            (
                "matched_share",
                path.device_matched,
                "the device has no rules",
            ),
            ("egress_share", path.device_out, "the bare link has no port"),
            ("received_share", Some(received), ""),
        ] {
            match frames {
                Some(frames) => reading.put_share(name, frames, offered),
                None => reading.lack(name, reason),
            }
        }
        reading.put("check_intact", self.check.intact.into());
        reading.put("check_modified", self.check.modified.into());
        reading.put("check_duplicates", self.check.duplicates.into());
        reading
    }

    /// Judges the path of the frames.
    fn judge_path(&self, packet_ins: u64, measured: &mut TrialResult) {
        let (offered, received) = (self.offered, self.path.server_received);
        let PathCheck {
            sent,
            intact,
            modified,
            duplicates,
        } = self.check;
        if intact < sent {
            let reason = format!(
                "of {sent} frames sent one by one, {intact} arrived intact and {modified} modified"
            );
            if intact == 0 {
                measured.void(reason);
            } else {
                measured.note(reason);
            }
        }
        if duplicates > 0 || received > offered {
            measured.void(format!(
                "{received} of {offered} frames arrived, and {duplicates} duplicates before the trial"
            ));
        }
        if packet_ins > 0 {
            measured.void(format!(
                "the device sent {packet_ins} frames to the controller: they did not match the rules"
            ));
        }
    }

    /// Judges the offered load.
    fn judge_load(&self, measured: &mut TrialResult) {
        let offered_pps = self.offered as f64 / self.seconds;
        let received = self.path.server_received as f64;
        let has_device = self.path.device_in.is_some();
        match self.load {
            IntendedLoad::Constant(pps) if offered_pps < f64::from(pps) * (1.0 - SHORTFALL_MAX) => {
                measured.void(format!(
                    "the generator offered {offered_pps:.0} frames per second instead of {pps}"
                ));
            }
            IntendedLoad::FlatOut if has_device && received >= self.offered as f64 * NEARLY_ALL => {
                let reason = "nearly all offered frames arrived: the generator may be the limit";
                measured.note(reason.to_owned());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
