//! Monitoring of a switch by Prometheus and by `comporta top`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use testbed::{Failure, Program};

use crate::support::command::{CommandOutput, comporta_binary, comporta_program, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    metrics_count_ports_tables_workers_and_drops,
    silent_metrics_clients_delay_no_others,
    top_prints_rates_that_match_the_counters,
    top_uses_and_restores_the_terminal,
    top_ends_when_its_terminal_is_closed,
];

/// Address of the metrics in the switch's namespace.
const METRICS_ADDRESS: &str = "127.0.0.1:9477";

/// Longest wait for a reply on a busy machine.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

fn connect(network: &TestNetwork<'_>) -> Result<TcpStream, Failure> {
    let stream = network
        .switch_namespace
        .run(|| TcpStream::connect(METRICS_ADDRESS))?;
    let stream = stream.map_err(Failure::to("connect to the metrics"))?;
    stream
        .set_read_timeout(Some(WAIT_LIMIT))
        .map_err(Failure::to("set a read timeout"))?;
    Ok(stream)
}

/// Reply to an HTTP request.
fn http_request(network: &TestNetwork<'_>, request: &str) -> Result<String, Failure> {
    let mut stream = connect(network)?;
    let mut reply = String::new();
    let message = format!("{request} HTTP/1.1\r\nHost: switch\r\n\r\n");
    stream
        .write_all(message.as_bytes())
        .and_then(|()| stream.read_to_string(&mut reply))
        .map_err(Failure::to("request metrics"))?;
    Ok(reply)
}

fn value(text: &str, sample: &str) -> Option<f64> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(sample)?.trim().parse().ok())
}

fn start_switch<'g>(network: &TestNetwork<'g>) -> Result<SwitchProcess<'g>, Failure> {
    network.start_switch(&format!(
        "--bridge br0 --fail-mode secure --port p1 --port p2 --metrics {METRICS_ADDRESS}"
    ))
}

fn metrics_count_ports_tables_workers_and_drops(context: &TestContext) -> TestResult {
    const FRAME: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(50)";
    let network = TestNetwork::new(context, 2)?;
    let switch = start_switch(&network)?;
    switch.ofctl("add-flow br0 table=0,in_port=1,actions=goto_table:4")?;
    switch.ofctl("add-flow br0 table=4,actions=output:2")?;
    network.host(1).send(&[FRAME; 50])?;
    let sent = r#"comporta_port_transmit_packets_total{bridge="br0",port="p2",number="2"}"#;
    let mut text = String::new();
    context.wait_until("the counters of all frames", || {
        text = http_request(&network, "GET /metrics")?;
        Ok(value(&text, sent).is_some_and(|count| count >= 50.0))
    })?;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    let head = text.to_lowercase();
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"));
    for (sample, minimum) in [
        (r#"comporta_bridge_rules{bridge="br0"}"#, 2.0),
        (r#"comporta_table_rules{bridge="br0",table="4"}"#, 1.0),
        (
            r#"comporta_table_lookups_total{bridge="br0",table="4"}"#,
            50.0,
        ),
        (
            r#"comporta_port_up{bridge="br0",port="p1",number="1"}"#,
            1.0,
        ),
        (
            r#"comporta_port_receive_packets_total{bridge="br0",port="p1",number="1"}"#,
            50.0,
        ),
        ("process_resident_memory_bytes{}", 1e6),
        ("comporta_uptime_seconds{}", 0.0),
    ] {
        let found = value(&text, sample);
        assert!(
            found.is_some_and(|found| found >= minimum),
            "{sample}: {found:?}\n{text}"
        );
    }
    for family in [
        "comporta_worker_busy_seconds_total{",
        "comporta_worker_frames_total{",
    ] {
        let line = text.lines().find(|line| line.starts_with(family));
        assert!(line.is_some_and(|line| !line.ends_with(" 0")), "{text}");
    }
    assert!(text.trim_end().ends_with("# EOF"), "{text}");
    assert!(http_request(&network, "GET /")?.starts_with("HTTP/1.1 404 "));
    assert!(http_request(&network, "POST /metrics")?.starts_with("HTTP/1.1 405 "));
    assert!(http_request(&network, "garbage")?.starts_with("HTTP/1.1 400 "));
    Ok(())
}

fn silent_metrics_clients_delay_no_others(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let _switch = start_switch(&network)?;
    let silent = (0..20)
        .map(|_| connect(&network))
        .collect::<Result<Vec<_>, _>>()?;
    assert!(http_request(&network, "GET /metrics")?.contains("# EOF"));
    drop(silent);
    Ok(())
}

/// Row of a table of `comporta top` that contains this word, as pairs of column and cell.
fn row<'t>(output: &'t str, title: &str, word: &str) -> Vec<(&'t str, &'t str)> {
    let mut lines = output.lines().skip_while(|line| *line != title).skip(1);
    let names = lines.next().unwrap_or_default().split_whitespace();
    let mut rows = lines
        .take_while(|line| !line.is_empty())
        .map(str::split_whitespace);
    let row = rows.find(|row| row.clone().any(|cell| cell == word));
    names.zip(row.into_iter().flatten()).collect()
}

fn cell(row: &[(&str, &str)], name: &str) -> f64 {
    let found = row.iter().find(|(column, _)| *column == name);
    let number = found.and_then(|(_, cell)| cell.parse().ok());
    number.unwrap_or_else(|| panic!("no column {name} in {row:?}"))
}

fn top_program(switch: &SwitchProcess<'_>, words: &str) -> Program<'static> {
    comporta_program()
        .arg("top")
        .args(words.split_whitespace())
        .env("OVS_RUNDIR", switch.file(""))
}

fn top_prints_rates_that_match_the_counters(context: &TestContext) -> TestResult {
    const FRAME: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(86)";
    let network = TestNetwork::new(context, 2)?;
    let switch = start_switch(&network)?;
    switch.ofctl("add-flow br0 priority=9,in_port=1,actions=output:2")?;
    let output = context.unique_path("top");
    let mut top_process = context
        .spawner
        .start(top_program(&switch, "--batch --interval 0.3").output(&output))?;
    let output_text = || std::fs::read_to_string(&output).map_err(Failure::to("read the output"));
    context.wait_until("the first screen", || {
        Ok(output_text()?.contains("CONTROLLERS"))
    })?;
    network.host(1).send(&[FRAME; 60])?;
    switch.wait_for_counter("br0 port 2 tx_packets", 60)?;
    let is_last = |text: &str| {
        let row = row(text, "PORTS", "p2");
        !row.is_empty() && cell(&row, "OUT") >= 60.0
    };
    let screens = |text: &str| -> Vec<String> {
        let blocks = text.split("comporta ").skip(1);
        blocks.map(|block| format!("comporta {block}")).collect()
    };
    context.wait_until("the counters of all frames", || {
        Ok(screens(&output_text()?)
            .iter()
            .rev()
            .skip(1)
            .any(|text| is_last(text)))
    })?;
    top_process.stop()?;
    // The rates, multiplied with their intervals, add up to the counters.
    let mut sums = [0.0; 4];
    let mut last = String::new();
    for screen in screens(&output_text()?) {
        let interval = screen.split("rates over ").nth(1);
        let interval = interval.and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
        let (Some(interval), true) = (interval, screen.ends_with("\n\n")) else {
            continue;
        };
        let port = row(&screen, "PORTS", "p2");
        let rule = row(&screen, "FLOWS", "output:2");
        sums[0] += interval * cell(&port, "OUT/S");
        sums[1] += interval * cell(&port, "OUT-BIT/S") / 800.0;
        if screen.contains("p1") {
            sums[2] += interval * cell(&row(&screen, "PORTS", "p1"), "IN/S");
        }
        if let Some((_, cell)) = rule.iter().find(|(name, _)| *name == "FRAMES") {
            sums[3] = cell.parse().unwrap_or_default();
        }
        last = screen;
    }
    for sum in sums {
        assert!((59.0..=62.0).contains(&sum), "{sums:?}\n{}", output_text()?);
    }
    let table = row(&last, "TABLES", "br0");
    assert_eq!(cell(&table, "RULES"), 1.0);
    assert!(cell(&table, "LOOKUPS") >= 60.0, "{last}");
    assert!(last.contains("WORKERS\n"), "{last}");
    check_top_options(context, &switch)
}

fn check_top_options(context: &TestContext, switch: &SwitchProcess<'_>) -> TestResult {
    let once = "--once --interval 0.1";
    // Without a terminal it writes text; the switch can be selected in several ways.
    for target in ["", "--bridge br0", "--target br0.ctl"] {
        let output = CommandOutput::run(context, top_program(switch, &format!("{once} {target}")))?
            .expect_success()?;
        assert!(
            output.contains("PORTS\n") && output.contains("p1"),
            "{output}"
        );
    }
    for (words, reason) in [
        ("--bridge br7", "br7.ctl"),
        ("--target nobody", "nobody.pid"),
        ("--sort nothing", "no column is called nothing"),
        (
            "--rundir /nowhere",
            "no switch answers at a socket in /nowhere",
        ),
    ] {
        let stderr = CommandOutput::run(context, top_program(switch, &format!("{once} {words}")))?
            .expect_failure()?;
        assert!(stderr.contains(reason), "{words}: {stderr}");
    }
    Ok(())
}

/// Runs `comporta top` in a terminal with these steps of a user.
fn run_top_in_terminal(
    context: &TestContext,
    switch: &SwitchProcess<'_>,
    steps: &[&str],
) -> Result<String, Failure> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/apps/terminal.py");
    let program = program("/usr/bin/python3")
        .arg(script)
        .args(steps.iter().copied())
        .arg("--")
        .arg(comporta_binary())
        .args("top --interval 0.3".split(' '))
        .env("OVS_RUNDIR", switch.file(""))
        .env("TERM", "xterm");
    CommandOutput::run(context, program)?.expect_success()
}

fn top_ends_when_its_terminal_is_closed(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = start_switch(&network)?;
    let output = run_top_in_terminal(context, &switch, &["see:PORTS", "hangup"])?;
    // The exit code is 128 plus the number of SIGHUP.
    assert_eq!(output, "ended 129\n");
    Ok(())
}

fn top_uses_and_restores_the_terminal(context: &TestContext) -> TestResult {
    const LEAVE_ALTERNATE_SCREEN: &str = "\u{1b}[?1049l";
    let network = TestNetwork::new(context, 2)?;
    let switch = start_switch(&network)?;
    network.add_static_neighbours(1, 2)?;
    switch.ofctl("add-flow br0 priority=9,actions=normal")?;
    let ping = program("ping -i 0.05 -w 120").arg(network.host(2).address.to_string());
    let _pings = context
        .spawner
        .start(ping.inside(&network.host(1).namespace))?;
    let output = run_top_in_terminal(
        context,
        &switch,
        &[
            "see:PORTS",
            "see:CONTROLLERS",
            "see:p2",
            "press:5",
            "see:NORMAL",
            "press:\\x1b[D",
            "see:BATCH",
            "press:?",
            "see:Keys",
            "press:?",
            "press: ",
            "see:PAUSED",
            "press:q",
        ],
    )?;
    assert!(
        output.ends_with("ended 0, terminal restored: True\n"),
        "{output}"
    );
    assert!(output.contains(LEAVE_ALTERNATE_SCREEN), "{output}");
    // The loss of the switch is displayed, and SIGTERM ends the program like a key.
    let kill = format!("do:kill {}", switch.process.id());
    let output = run_top_in_terminal(context, &switch, &["see:p1", &kill, "see:retrying", "term"])?;
    assert!(
        output.ends_with("ended 0, terminal restored: True\n"),
        "{output}"
    );
    assert!(output.contains(LEAVE_ALTERNATE_SCREEN), "{output}");
    Ok(())
}
