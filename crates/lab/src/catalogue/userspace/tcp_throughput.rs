//! TCP throughput, and the processor time of the switch's process.

use std::time::Duration;

use record::Conditions;
use serde::Deserialize;
use testbed::{Clock, Failure, Process, Program};

use crate::catalogue::IPERF3;
use crate::catalogue::prelude::*;
use crate::setup::{ConditionMonitor, TestSetup};
use crate::tools::Tools;

/// The experiment.
pub(crate) const TCP_THROUGHPUT: Experiment = Experiment {
    description: Description {
        name: "tcp-throughput",
        title: "TCP throughput",
        family: Family::UserspaceSwitch,
        question: "What is the throughput of TCP through the device, and how much processor time does its process use?",
        source: "Yasuda, a userspace OpenFlow switch in a 48-port box",
        steps: &[
            "iperf3 sends TCP streams from the client to the server for the given time.",
            "The throughput is what the receiver reports, in bit/s of payload.",
            "Processor time is that of the device's processes during the streams. If the kernel forwards (Linux bridge, bare link), the work is done on the hosts' cores and is not separable.",
            "Devices that forward whole TCP segments are measured with the hosts' offloads enabled, others without; the report lists the offloads.",
        ],
        parameters: &[SECONDS, STREAMS, DIRECTION],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "TCP throughput",
                figure: "bit_s",
                across: "streams",
            },
            View::Runs {
                title: "TCP throughput, run by run",
                figure: "bit_s",
                across: "streams",
            },
            View::Table {
                title: "All figures",
                figures: &[
                    "bit_s",
                    "cpu_percent",
                    "cpu_user_percent",
                    "cpu_system_percent",
                    "retransmits",
                ],
            },
        ],
        headlines: &[
            Headline {
                title: "TCP throughput",
                figure: HeadlineFigure::Figure("bit_s"),
                at: &[],
            },
            Headline {
                title: "TCP: processor time of the device",
                figure: HeadlineFigure::Figure("cpu_percent"),
                at: &[],
            },
        ],
        ..Description::EMPTY
    },
    measures_tcp: true,
    programs: &[IPERF3],
    seconds: |point| point.number("seconds") as f64,
    measure: |point, setup, tools| {
        let streams = Streams::at(point);
        let (outcome, conditions) = streams.run(setup, tools)?;
        let seconds = outcome.seconds;
        let mut measured = TrialResult::new(outcome.reading(point, &conditions), conditions);
        streams.judge(seconds, setup, tools, &mut measured)?;
        Ok(measured)
    },
    ..Experiment::BASE
};

/// Duration of iperf3.
pub(in crate::catalogue) const SECONDS: Parameter = Parameter::constant(
    "seconds",
    "duration of a trial in seconds",
    Values::numbers(&[2], &[10], &[10], [1, 3_600]),
);

/// Number of streams of iperf3.
pub(in crate::catalogue) const STREAMS: Parameter = Parameter::constant(
    "streams",
    "number of TCP streams",
    Values::numbers(&[1], &[1], &[1], [1, 128]),
);

/// Direction of iperf3.
pub(in crate::catalogue) const DIRECTION: Parameter = Parameter::constant(
    "direction",
    "sender: the client (forward) or the server (reverse)",
    Values::Choice {
        quick: "forward",
        paper: "forward",
        rfc: "forward",
        all: &["forward", "reverse"],
    },
);

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    Figure::new("bit_s", "Throughput", "bit/s", Better::Higher).shown_in("Gbit/s", 1e9),
    Figure::new("retransmits", "TCP retransmissions", "", Better::Lower),
    Figure::new("cpu_percent", "Processor time", "% of a core", Better::Lower),
    Figure::new("cpu_user_percent", "In user code", "% of a core", Better::Lower),
    Figure::new("cpu_system_percent", "In the kernel", "% of a core", Better::Lower),
    Figure::new("sender_cpu_percent", "Sender", "% of a core", Better::Neither),
    Figure::new("receiver_cpu_percent", "Receiver", "% of a core", Better::Neither),
];

/// Figures of the device's process.
const PROCESS: [&str; 3] = ["cpu_percent", "cpu_user_percent", "cpu_system_percent"];

/// Time limit of iperf3 beyond its own duration.
const MARGIN: Duration = Duration::from_secs(10);
/// Polling interval for the end of iperf3 and for an interruption.
const POLL: Duration = Duration::from_millis(100);
/// Least share of the intended duration.
const DURATION_MIN: f64 = 0.95;

/// TCP streams of iperf3.
pub(in crate::catalogue) struct Streams {
    /// Duration in seconds.
    pub(in crate::catalogue) seconds: u32,
    /// Number of streams.
    streams: u32,
    /// True if the server sends.
    reverse: bool,
}

impl Streams {
    /// Returns the streams of a point.
    pub(in crate::catalogue) fn at(point: &Point) -> Self {
        Self {
            seconds: point.small("seconds"),
            streams: point.small("streams"),
            reverse: point.word("direction") == "reverse",
        }
    }

    /// Runs the streams from the client to the server of `setup`.
    pub(in crate::catalogue) fn run(
        &self,
        setup: &TestSetup,
        tools: &Tools<'_>,
    ) -> Result<(TcpOutcome, Conditions), TrialError> {
        let mut server = start_server(setup, tools)?;
        let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
        let mut client = tools.spawner.start(
            iperf3(setup, "client")
                .arg("--client")
                .arg(setup.bench.server().address.to_string())
                .args(["--json", "--connect-timeout", "3000", "--time"])
                .arg(self.seconds.to_string())
                .args(["--parallel".to_owned(), self.streams.to_string()])
                .args(self.reverse.then_some("--reverse"))
                .output(setup.directory.join("iperf3-client.json"))
                .inside(&setup.bench.client().namespace)
                .on_cores(first(&tools.cores.tester)),
        )?;
        let limit = Duration::from_secs(self.seconds.into()) + MARGIN;
        let status = wait(&mut client, limit, tools)?;
        let conditions = watch.end(&setup.bench)?;
        let text = client.written()?;
        server.stop()?;
        let outcome = parse(&text)
            .map_err(|reason| TrialError::Impossible(format!("iperf3 ({status}): {reason}")))?;
        Ok((outcome, conditions))
    }
}

impl Streams {
    /// Voids streams that ended early, or whose packets did not match the rules.
    pub(in crate::catalogue) fn judge(
        &self,
        seconds: f64,
        setup: &TestSetup,
        tools: &Tools<'_>,
        measured: &mut TrialResult,
    ) -> Result<(), TrialError> {
        let intended = self.seconds;
        if seconds < f64::from(intended) * DURATION_MIN {
            measured.void(format!(
                "the streams lasted {seconds:.1} s instead of {intended} s"
            ));
        }
        if let Some(evidence) = setup.evidence(tools.clock, |_| true)?
            && evidence.packet_ins > 0
        {
            measured.void(format!(
                "the device sent {} frames to the controller: they did not match the rules",
                evidence.packet_ins
            ));
        }
        Ok(())
    }
}

/// Results that iperf3 reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::catalogue) struct TcpOutcome {
    /// Throughput at the receiver, in bit/s of payload.
    pub(in crate::catalogue) bits_per_second: f64,
    /// Duration in seconds.
    pub(in crate::catalogue) seconds: f64,
    /// TCP retransmissions.
    pub(in crate::catalogue) retransmits: u64,
    /// Processor time of both ends, in per cent of a core.
    pub(in crate::catalogue) sender_cpu_percent: f64,
    pub(in crate::catalogue) receiver_cpu_percent: f64,
    /// Throughput of the sender in each second, in bit/s.
    pub(in crate::catalogue) each_second: Vec<f64>,
}

impl TcpOutcome {
    /// Returns the figures.
    fn reading(self, point: &Point, conditions: &Conditions) -> Reading {
        let mut reading = Reading::at(point);
        reading.put("bit_s", self.bits_per_second);
        reading.put("retransmits", self.retransmits as f64);
        reading.put("sender_cpu_percent", self.sender_cpu_percent);
        reading.put("receiver_cpu_percent", self.receiver_cpu_percent);
        match conditions.process {
            Some(used) => {
                let percent = |seconds: f64| seconds / conditions.seconds * 100.0;
                let [user, system] = [used.user_seconds, used.system_seconds].map(percent);
                reading.put("cpu_user_percent", user);
                reading.put("cpu_system_percent", system);
                reading.put("cpu_percent", user + system);
            }
            None => reading.lack_each(PROCESS, "the device is not a process of its own"),
        }
        let seconds = (1_u32..).map(f64::from).zip(self.each_second);
        let seconds = seconds.map(|(second, rate)| [second, rate]).collect();
        reading.series.insert("bit_s".to_owned(), seconds);
        reading
    }
}

/// Starts the server, and waits until it listens.
fn start_server(setup: &TestSetup, tools: &Tools<'_>) -> Result<Process, TrialError> {
    let program = iperf3(setup, "server")
        .args(["--server", "--one-off", "--forceflush"])
        .inside(&setup.bench.server().namespace)
        .on_cores(last(&tools.cores.tester));
    let mut server = tools.spawner.start(program)?;
    tools.clock.wait_for("iperf3 to listen", MARGIN, || {
        if !server.is_running() {
            let status = server.wait(Duration::ZERO)?;
            return Err(server.failed(status));
        }
        Ok(server.written()?.contains("listening").then_some(()))
    })?;
    Ok(server)
}

fn iperf3(setup: &TestSetup, role: &str) -> Program<'static> {
    Program::new("iperf3").log(setup.directory.join(format!("iperf3-{role}.log")))
}

/// Waits for the end of `process`, or for an interruption.
fn wait(process: &mut Process, limit: Duration, tools: &Tools<'_>) -> Result<String, TrialError> {
    let clock: &Clock = tools.clock;
    let deadline = clock.now() + limit;
    loop {
        if tools.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        match process.wait(POLL) {
            Ok(status) => return Ok(status.to_string()),
            Err(Failure::Timeout { .. }) if clock.now() < deadline => {}
            Err(failure) => return Err(failure.into()),
        }
    }
}

fn first(cores: &[usize]) -> &[usize] {
    &cores[..cores.len().min(1)]
}

fn last(cores: &[usize]) -> &[usize] {
    &cores[cores.len().saturating_sub(1)..]
}

/// Output of iperf3 3.x with `--json`, as far as it is used.
#[derive(Deserialize)]
struct Iperf3Report {
    error: Option<String>,
    #[serde(default)]
    intervals: Vec<IntervalReport>,
    end: Option<EndReport>,
}

#[derive(Deserialize)]
struct IntervalReport {
    sum: Sum,
}

#[derive(Deserialize)]
struct Sum {
    bits_per_second: f64,
    seconds: f64,
    #[serde(default)]
    retransmits: u64,
}

/// Sums at the end, which are missing if no stream began.
#[derive(Deserialize)]
struct EndReport {
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
    cpu_utilization_percent: Option<Utilization>,
}

#[derive(Deserialize)]
struct Utilization {
    host_total: f64,
    remote_total: f64,
}

fn parse(text: &str) -> Result<TcpOutcome, String> {
    let report: Iperf3Report = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if let Some(error) = report.error {
        return Err(error);
    }
    let no_sums = || "its report has no sums".to_owned();
    let end = report.end.ok_or_else(no_sums)?;
    let (Some(sent), Some(received), Some(cpu)) =
        (end.sum_sent, end.sum_received, end.cpu_utilization_percent)
    else {
        return Err(no_sums());
    };
    Ok(TcpOutcome {
        bits_per_second: received.bits_per_second,
        seconds: received.seconds,
        retransmits: sent.retransmits,
        sender_cpu_percent: cpu.host_total,
        receiver_cpu_percent: cpu.remote_total,
        each_second: report
            .intervals
            .iter()
            .map(|interval| interval.sum.bits_per_second)
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iperf3_report_is_parsed() {
        let outcome = parse(include_str!("tcp_throughput/iperf3.json")).unwrap();
        assert_eq!(outcome.each_second.len(), 2);
        assert!(outcome.bits_per_second > 1e9, "{}", outcome.bits_per_second);
        assert!((1.9..2.1).contains(&outcome.seconds));
        assert!(outcome.sender_cpu_percent > 0.0 && outcome.receiver_cpu_percent > 0.0);
    }

    #[test]
    fn iperf3_error_is_the_reason() {
        let text = r#"{"start":{},"intervals":[],"end":{},"error":"unable to connect"}"#;
        assert_eq!(parse(text), Err("unable to connect".to_owned()));
        assert!(parse("").is_err());
    }
}
