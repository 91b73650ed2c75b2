//! The published experiment of the userspace switch in a 48-port box: one TCP
//! stream by iperf3 for some seconds, and what the switch's process used meanwhile.

use std::time::Duration;

use record::{Outcome, TcpOutcome};
use serde::Deserialize;
use testbed::{Clock, Failure, Process, Program};

use super::Tools;
use crate::cores::Watch;
use crate::station::Station;
use crate::trial::{Measured, TrialError};

/// How long iperf3 may take beyond its own time.
const MARGIN: Duration = Duration::from_secs(10);
/// How often to look for its end and for the user's wish.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn measure(station: &Station, tools: &Tools<'_>) -> Result<Measured, TrialError> {
    let parameters = &tools.parameters.tcp_throughput;
    let seconds = parameters.seconds;
    let mut server = start_server(station, tools)?;
    let watch = Watch::begin(&station.bench, tools.cores, tools.clock)?;
    let mut client = tools.spawner.start(
        iperf3(station, "client")
            .arg("--client")
            .arg(station.bench.server().address.to_string())
            .args(["--json", "--connect-timeout", "3000", "--time"])
            .arg(seconds.to_string())
            .args(["--parallel".to_owned(), parameters.streams.to_string()])
            .args(parameters.reverse.then_some("--reverse"))
            .output(station.directory.join("iperf3-client.json"))
            .inside(&station.bench.client().namespace)
            .on_cores(first(&tools.cores.tester)),
    )?;
    let limit = Duration::from_secs(seconds.into()) + MARGIN;
    let status = wait(&mut client, limit, tools)?;
    let conditions = watch.end(&station.bench)?;
    let told = client.written()?;
    server.stop()?;
    let outcome = parse(&told)
        .map_err(|reason| TrialError::Impossible(format!("iperf3 ({status}): {reason}")))?;
    let short = outcome.seconds < f64::from(seconds) * 0.95;
    let took = outcome.seconds;
    let mut measured = Measured::new(Outcome::TcpThroughput(outcome), conditions);
    if short {
        measured.void(format!("the stream lasted {took:.1} s of {seconds} s"));
    }
    if let Some(evidence) = station.evidence(tools.clock, |_| true)?
        && evidence.packet_ins > 0
    {
        measured.void(format!(
            "the device sent {} frames to the controller: they did not match the rules",
            evidence.packet_ins
        ));
    }
    Ok(measured)
}

/// Starts the receiver, and waits until it listens.
fn start_server(station: &Station, tools: &Tools<'_>) -> Result<Process, TrialError> {
    let program = iperf3(station, "server")
        .args(["--server", "--one-off", "--forceflush"])
        .inside(&station.bench.server().namespace)
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

fn iperf3(station: &Station, role: &str) -> Program<'static> {
    Program::new("iperf3").log(station.directory.join(format!("iperf3-{role}.log")))
}

/// Waits for the end of `process`, or the user's wish.
fn wait(process: &mut Process, limit: Duration, tools: &Tools<'_>) -> Result<String, TrialError> {
    let clock: &Clock = tools.clock;
    let deadline = clock.now() + limit;
    loop {
        if tools.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        match process.wait(LOOK) {
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

/// What iperf3 3.x says with `--json`, as far as it is used here.
#[derive(Deserialize)]
struct Report {
    error: Option<String>,
    #[serde(default)]
    intervals: Vec<IntervalReport>,
    end: Option<End>,
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

/// Everything is missing from the end of a stream that did not begin.
#[derive(Deserialize)]
struct End {
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
    let report: Report = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if let Some(error) = report.error {
        return Err(error);
    }
    let whole = "its report has no sums".to_owned();
    let end = report.end.ok_or_else(|| whole.clone())?;
    let (Some(sent), Some(received), Some(cpu)) =
        (end.sum_sent, end.sum_received, end.cpu_utilization_percent)
    else {
        return Err(whole);
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
    fn a_report_of_iperf3_is_read() {
        let outcome = parse(include_str!("tcp_throughput/iperf3.json")).unwrap();
        assert_eq!(outcome.each_second.len(), 2);
        assert!(outcome.bits_per_second > 1e9, "{}", outcome.bits_per_second);
        assert!((1.9..2.1).contains(&outcome.seconds));
        assert!(outcome.sender_cpu_percent > 0.0 && outcome.receiver_cpu_percent > 0.0);
    }

    #[test]
    fn what_iperf3_says_of_a_failure_is_handed_on() {
        let text = r#"{"start":{},"intervals":[],"end":{},"error":"unable to connect"}"#;
        assert_eq!(parse(text), Err("unable to connect".to_owned()));
        assert!(parse("").is_err());
    }
}
