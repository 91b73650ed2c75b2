//! A switch that is watched: by Prometheus, and by a person at a terminal.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use testbed::{Failure, Program};

use crate::support::command::{CommandOutput, comporta_binary, program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;
use crate::support::switch::SwitchProcess;

pub(crate) const TESTS: &[SystemTest] = tests![
    prometheus_is_told_what_ports_tables_workers_and_drops_count,
    those_who_ask_for_metrics_and_say_nothing_hold_nobody_up,
    top_writes_rates_that_are_the_differences_of_counters,
    top_fills_a_terminal_obeys_keys_and_gives_it_back,
];

/// Where metrics are served, in the switch's own namespace.
const METRICS: &str = "127.0.0.1:9477";

/// How long an answer may take on a machine that has much else to do.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

fn connect(network: &TestNetwork<'_>) -> Result<TcpStream, Failure> {
    let stream = network
        .switch_namespace
        .run(|| TcpStream::connect(METRICS))?;
    let stream = stream.map_err(Failure::to("connect"))?;
    stream
        .set_read_timeout(Some(WAIT_LIMIT))
        .map_err(Failure::to("wait"))?;
    Ok(stream)
}

/// What is answered to a request.
fn ask(network: &TestNetwork<'_>, request: &str) -> Result<String, Failure> {
    let mut stream = connect(network)?;
    let mut answer = String::new();
    let said = format!("{request} HTTP/1.1\r\nHost: switch\r\n\r\n");
    stream
        .write_all(said.as_bytes())
        .and_then(|()| stream.read_to_string(&mut answer))
        .map_err(Failure::to("ask for metrics"))?;
    Ok(answer)
}

fn value(text: &str, sample: &str) -> Option<f64> {
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix(sample)?.trim().parse().ok())
}

fn start<'g>(network: &TestNetwork<'g>) -> Result<SwitchProcess<'g>, Failure> {
    network.start_switch(&format!(
        "--bridge br0 --fail-mode secure --port p1 --port p2 --metrics {METRICS}"
    ))
}

fn prometheus_is_told_what_ports_tables_workers_and_drops_count(
    context: &TestContext,
) -> TestResult {
    const FRAME: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(50)";
    let network = TestNetwork::new(context, 2)?;
    let switch = start(&network)?;
    switch.ofctl("add-flow br0 table=0,in_port=1,actions=goto_table:4")?;
    switch.ofctl("add-flow br0 table=4,actions=output:2")?;
    network.host(1).send(&[FRAME; 50])?;
    let sent = r#"comporta_port_transmit_packets_total{bridge="br0",port="p2",number="2"}"#;
    let mut told = String::new();
    context.wait_until("all frames to be told of", || {
        told = ask(&network, "GET /metrics")?;
        Ok(value(&told, sent).is_some_and(|count| count >= 50.0))
    })?;
    assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
    let head = told.to_lowercase();
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"));
    for (sample, least) in [
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
        let found = value(&told, sample);
        assert!(
            found.is_some_and(|found| found >= least),
            "{sample}: {found:?}\n{told}"
        );
    }
    for family in [
        "comporta_worker_busy_seconds_total{",
        "comporta_worker_frames_total{",
    ] {
        let busy = told.lines().find(|line| line.starts_with(family));
        assert!(busy.is_some_and(|line| !line.ends_with(" 0")), "{told}");
    }
    assert!(told.trim_end().ends_with("# EOF"), "{told}");
    assert!(ask(&network, "GET /")?.starts_with("HTTP/1.1 404 "));
    assert!(ask(&network, "POST /metrics")?.starts_with("HTTP/1.1 405 "));
    assert!(ask(&network, "garbage")?.starts_with("HTTP/1.1 400 "));
    Ok(())
}

fn those_who_ask_for_metrics_and_say_nothing_hold_nobody_up(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let _switch = start(&network)?;
    let silent = (0..20)
        .map(|_| connect(&network))
        .collect::<Result<Vec<_>, _>>()?;
    assert!(ask(&network, "GET /metrics")?.contains("# EOF"));
    drop(silent);
    Ok(())
}

/// The row of a sheet that `comporta top` has written, by column: the one that has this word.
fn row<'t>(told: &'t str, title: &str, word: &str) -> Vec<(&'t str, &'t str)> {
    let mut lines = told.lines().skip_while(|line| *line != title).skip(1);
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
    number.unwrap_or_else(|| panic!("no {name} in {row:?}"))
}

fn top(switch: &SwitchProcess<'_>, words: &str) -> Program<'static> {
    program(comporta_binary().to_str().expect("a path is text"))
        .arg("top")
        .args(words.split_whitespace())
        .env("OVS_RUNDIR", switch.file(""))
}

fn top_writes_rates_that_are_the_differences_of_counters(context: &TestContext) -> TestResult {
    const FRAME: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(86)";
    let network = TestNetwork::new(context, 2)?;
    let switch = start(&network)?;
    switch.ofctl("add-flow br0 priority=9,in_port=1,actions=output:2")?;
    let output = context.unique_path("top");
    let mut watched = context
        .spawner
        .start(top(&switch, "--batch --interval 0.3").output(&output))?;
    let told = || std::fs::read_to_string(&output).map_err(Failure::to("read"));
    context.wait_until("the first answers", || Ok(told()?.contains("CONTROLLERS")))?;
    network.host(1).send(&[FRAME; 60])?;
    switch.wait_for_counter("br0 port 2 tx_packets", 60)?;
    let is_last = |text: &str| {
        let row = row(text, "PORTS", "p2");
        !row.is_empty() && cell(&row, "OUT") >= 60.0
    };
    let answers = |text: &str| -> Vec<String> {
        let blocks = text.split("comporta ").skip(1);
        blocks.map(|block| format!("comporta {block}")).collect()
    };
    context.wait_until("all frames to be told of", || {
        Ok(answers(&told()?)
            .iter()
            .rev()
            .skip(1)
            .any(|text| is_last(text)))
    })?;
    watched.stop()?;
    // Rates, each over the time that it says, add up to what was counted.
    let mut sums = [0.0; 4];
    let mut last = String::new();
    for answer in answers(&told()?) {
        let over = answer.split("rates over ").nth(1);
        let over = over.and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
        let (Some(over), true) = (over, answer.ends_with("\n\n")) else {
            continue;
        };
        let port = row(&answer, "PORTS", "p2");
        let rule = row(&answer, "FLOWS", "output:2");
        sums[0] += over * cell(&port, "OUT/S");
        sums[1] += over * cell(&port, "OUT-BIT/S") / 800.0;
        if answer.contains("p1") {
            sums[2] += over * cell(&row(&answer, "PORTS", "p1"), "IN/S");
        }
        if let Some((_, cell)) = rule.iter().find(|(name, _)| *name == "FRAMES") {
            sums[3] = cell.parse().unwrap_or_default();
        }
        last = answer;
    }
    for sum in sums {
        assert!((59.0..=62.0).contains(&sum), "{sums:?}\n{}", told()?);
    }
    let table = row(&last, "TABLES", "br0");
    assert_eq!(cell(&table, "RULES"), 1.0);
    assert!(cell(&table, "LOOKUPS") >= 60.0, "{last}");
    assert!(last.contains("WORKERS\n"), "{last}");
    top_says_what_it_cannot_do(context, &switch)
}

fn top_says_what_it_cannot_do(context: &TestContext, switch: &SwitchProcess<'_>) -> TestResult {
    let once = "--once --interval 0.1";
    // To no terminal it writes text by itself, and whom it asks can be said in several ways.
    for whom in ["", "--bridge br0", "--target br0.ctl"] {
        let said = CommandOutput::run(context, top(switch, &format!("{once} {whom}")))?
            .expect_success()?;
        assert!(said.contains("PORTS\n") && said.contains("p1"), "{said}");
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
        let said = CommandOutput::run(context, top(switch, &format!("{once} {words}")))?
            .expect_failure()?;
        assert!(said.contains(reason), "{words}: {said}");
    }
    Ok(())
}

/// `comporta top` at a terminal, with these steps of a person at it.
fn at_terminal(
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

fn top_fills_a_terminal_obeys_keys_and_gives_it_back(context: &TestContext) -> TestResult {
    const LEFT: &str = "\u{1b}[?1049l";
    let network = TestNetwork::new(context, 2)?;
    let switch = start(&network)?;
    network.add_static_neighbours(1, 2)?;
    switch.ofctl("add-flow br0 priority=9,actions=normal")?;
    let ping = program("ping -i 0.05 -w 120").arg(network.host(2).address.to_string());
    let _pings = context
        .spawner
        .start(ping.inside(&network.host(1).namespace))?;
    let told = at_terminal(
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
        told.ends_with("ended 0, terminal restored: True\n"),
        "{told}"
    );
    assert!(told.contains(LEFT), "{told}");
    // A switch that goes away is told of; and an end from outside is one like any other.
    let kill = format!("do:kill {}", switch.process.id());
    let told = at_terminal(context, &switch, &["see:p1", &kill, "see:asked", "term"])?;
    assert!(
        told.ends_with("ended 0, terminal restored: True\n"),
        "{told}"
    );
    assert!(told.contains(LEFT), "{told}");
    Ok(())
}
