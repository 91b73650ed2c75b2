//! Short HTTP connections by real programs: nginx, and wrk with a connection for each request.

use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use testbed::{DeviceKind, Failure, Process, Program};

use super::rule_sets::{POOL, StatefulRules, VIRTUAL};
use super::{prepare_firewall, separate_setup, tracks_connections};
use crate::catalogue::prelude::*;
use crate::setup::{ConditionMonitor, TestSetup};
use crate::tools::Tools;

/// The experiment.
pub(crate) const HTTP: Experiment = Experiment {
    description: Description {
        name: "http-connections",
        title: "Short HTTP connections",
        family: Family::Stateful,
        question: "How many HTTP requests, each in a connection of its own, pass a stateful firewall or a load balancer per second?",
        source: "RFC 9411, section 7.2, with nginx and wrk",
        steps: &[
            "The rules are a firewall, which permits connections from the client and their packets, or a load balancer, which also translates a virtual address to one of two addresses of the server.",
            "nginx replies to each request with 128 bytes and closes the connection; wrk has 32 connections in one thread and opens another one for each request.",
            "The rate is what wrk reports; a request without a reply within two seconds, and a connection that is not established, is an error.",
        ],
        parameters: &[
            Parameter::axis(
                "rules",
                "rules: firewall or load-balancer",
                Values::words(
                    &["firewall", "load-balancer"],
                    &["firewall", "load-balancer"],
                ),
            ),
            Parameter::constant(
                "seconds",
                "duration of a trial in seconds",
                Values::numbers(&[1], &[5], &[10], [1, 3_600]),
            ),
        ],
        figures: FIGURES,
        views: &[
            View::Bars {
                title: "Connections per second",
                figure: "connections_s",
                across: "rules",
            },
            View::Table {
                title: "All figures",
                figures: &["connections_s", "ten_thousand_s", "p99_ms", "errors"],
            },
        ],
        ..Description::EMPTY
    },
    setup: SetupKind::Dedicated(separate_setup),
    applies_to: |device, point| {
        let has_rules = device != DeviceKind::Direct || point.word("rules") == "firewall";
        tracks_connections(device) && has_rules
    },
    measures_tcp: true,
    programs: &[("nginx", "nginx"), ("wrk", "wrk")],
    seconds: |point| 1.0 + point.number("seconds") as f64,
    measure,
    ..Experiment::BASE
};

#[rustfmt::skip]
const FIGURES: &[Figure] = &[
    Figure::new("connections_s", "Connections", "1/s", Better::Higher),
    Figure::new("ten_thousand_s", "Time of 10,000 connections", "s", Better::Lower),
    Figure::new("p99_ms", "99 %", "ms", Better::Lower),
    Figure::new("errors", "Errors", "", Better::Lower),
];

/// TCP port of the server.
const PORT: u16 = 8080;
/// Time limit of programs beyond their own duration.
const MARGIN: Duration = Duration::from_secs(10);
/// Polling interval for the end of wrk and for an interruption.
const POLL: Duration = Duration::from_millis(100);

fn measure(
    point: &Point,
    setup: &mut TestSetup,
    tools: &Tools<'_>,
) -> Result<TrialResult, TrialError> {
    let address = if point.word("rules") == "firewall" {
        prepare_firewall(setup, tools)?;
        setup.bench.server().address
    } else {
        StatefulRules::LoadBalancer.put_in_force(setup, tools)?;
        add_pool(setup)?;
        VIRTUAL
    };
    let _server = start_server(setup, tools)?;
    let watch = ConditionMonitor::begin(&setup.bench, tools.cores, tools.clock)?;
    let text = run_client(address, point.small("seconds"), setup, tools)?;
    let conditions = watch.end(&setup.bench)?;
    let report = parse(&text)
        .ok_or_else(|| TrialError::Impossible(format!("unknown output of wrk: {text}")))?;
    let mut reading = Reading::at(point);
    reading.put("connections_s", report.per_second);
    reading.put("errors", report.errors as f64);
    match report.per_second > 0.0 {
        true => reading.put("ten_thousand_s", 1e4 / report.per_second),
        false => reading.lack("ten_thousand_s", "no connection was completed"),
    }
    match report.p99_ms {
        Some(delay) => reading.put("p99_ms", delay),
        None => reading.lack("p99_ms", "wrk does not report it"),
    }
    Ok(TrialResult::new(reading, conditions))
}

/// Adds the members of the pool to the server, and the virtual address to the client's neighbours.
fn add_pool(setup: &TestSetup) -> Result<(), Failure> {
    let [client, server] = [setup.bench.client(), setup.bench.server()];
    for member in POOL {
        server.namespace.add_address(server.interface, member, 24)?;
    }
    client
        .namespace
        .add_neighbour(client.interface, VIRTUAL, server.mac)
}

/// Starts nginx, and waits until it listens.
fn start_server(setup: &TestSetup, tools: &Tools<'_>) -> Result<Process, TrialError> {
    let directory = setup.directory.display();
    let body = "0123456789abcdef".repeat(8);
    let text = format!(
        "daemon off;\nmaster_process off;\npid {directory}/nginx.pid;\n\
         error_log {directory}/nginx-error.log;\nevents {{ worker_connections 1024; }}\n\
         http {{ access_log off; keepalive_timeout 0;\n\
         server {{ listen {PORT} backlog=1024; location / {{ return 200 \"{body}\"; }} }} }}\n"
    );
    let file = setup.directory.join("nginx.conf");
    fs::write(&file, text).map_err(Failure::to("write the configuration of nginx"))?;
    let server = setup.bench.server();
    let program = Program::new("nginx")
        .arg("-c")
        .arg(&file)
        .log(setup.directory.join("nginx.log"))
        .inside(&server.namespace)
        .on_cores(last(&tools.cores.tester));
    let mut process = tools.spawner.start(program)?;
    tools.clock.wait_for("nginx to listen", MARGIN, || {
        if !process.is_running() {
            let status = process.wait(Duration::ZERO)?;
            return Err(process.failed(status));
        }
        let connect = || std::net::TcpStream::connect((server.address, PORT)).is_ok();
        Ok(server.namespace.run(connect)?.then_some(()))
    })?;
    Ok(process)
}

/// Runs wrk, and returns its report.
fn run_client(
    address: Ipv4Addr,
    seconds: u32,
    setup: &TestSetup,
    tools: &Tools<'_>,
) -> Result<String, TrialError> {
    let program = Program::new("wrk")
        .args(["--threads", "1", "--connections", "32", "--timeout", "2s"])
        .args(["--latency", "--header", "Connection: close", "--duration"])
        .arg(format!("{seconds}s"))
        .arg(format!("http://{address}:{PORT}/"))
        .output(setup.directory.join("wrk.txt"))
        .log(setup.directory.join("wrk.log"))
        .inside(&setup.bench.client().namespace)
        .on_cores(&tools.cores.tester[..tools.cores.tester.len().min(1)]);
    let mut process = tools.spawner.start(program)?;
    let deadline = tools.clock.now() + Duration::from_secs(seconds.into()) + MARGIN;
    loop {
        if tools.interrupt.is_set() {
            return Err(TrialError::Interrupted);
        }
        match process.wait(POLL) {
            Ok(status) if status.success() => return Ok(process.written()?),
            Ok(status) => return Err(process.failed(status).into()),
            Err(Failure::Timeout { .. }) if tools.clock.now() < deadline => {}
            Err(failure) => return Err(failure.into()),
        }
    }
}

fn last(cores: &[usize]) -> &[usize] {
    &cores[cores.len().saturating_sub(1)..]
}

/// Report of wrk 4.
#[derive(Clone, Copy, Debug, PartialEq)]
struct WrkReport {
    per_second: f64,
    p99_ms: Option<f64>,
    errors: u64,
}

fn parse(text: &str) -> Option<WrkReport> {
    let line = |beginning: &str| {
        let mut lines = text.lines().map(str::trim);
        lines
            .find_map(|line| line.strip_prefix(beginning))
            .map(str::trim)
    };
    let p99_ms = line("99%").and_then(milliseconds);
    // Errors of reading are replies without a length: the connection's end ends them.
    let errors = line("Socket errors:").map_or(0, |errors| {
        let parts = errors.split(", ").filter_map(|part| part.split_once(' '));
        let counted = parts.filter(|(name, _)| matches!(*name, "connect" | "timeout"));
        counted
            .filter_map(|(_, count)| count.parse::<u64>().ok())
            .sum()
    });
    Some(WrkReport {
        per_second: line("Requests/sec:")?.parse().ok()?,
        p99_ms,
        errors,
    })
}

/// Parses a duration such as `1.25ms`.
fn milliseconds(text: &str) -> Option<f64> {
    let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3)];
    let of_unit = |(unit, factor): &(&str, f64)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * factor)
    };
    units.iter().find_map(of_unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk_report_is_parsed() {
        let text = "Running 1s test @ http://10.98.0.2:8080/
  Latency Distribution
     50%    1.25ms
     99%    7.50ms
  4691 requests in 1.00s, 1.20MB read
  Socket errors: connect 1, read 12, write 0, timeout 2
Requests/sec:   4691.25
";
        let report = parse(text).expect("a report");
        assert_eq!(report.per_second, 4691.25);
        assert_eq!((report.p99_ms, report.errors), (Some(7.5), 3));
        assert_eq!(parse("unable to connect"), None);
        assert_eq!(milliseconds("250.00us"), Some(0.25));
        assert_eq!(milliseconds("1.5s"), Some(1500.0));
    }
}
