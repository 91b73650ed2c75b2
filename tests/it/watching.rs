//! A switch that is watched: by Prometheus, and by a person at a terminal.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use testbed::Failure;

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::rig::{Rig, Switch};

pub(crate) const RULES: &[Rule] = rules![
    prometheus_is_told_what_ports_tables_workers_and_drops_count,
    those_who_ask_for_metrics_and_say_nothing_hold_nobody_up,
];

/// Where metrics are served, in the switch's own namespace.
const METRICS: &str = "127.0.0.1:9477";

/// How long an answer may take on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

fn connect(rig: &Rig<'_>) -> Result<TcpStream, Failure> {
    let stream = rig.home.run(|| TcpStream::connect(METRICS))?;
    let stream = stream.map_err(Failure::to("connect"))?;
    stream
        .set_read_timeout(Some(PATIENCE))
        .map_err(Failure::to("wait"))?;
    Ok(stream)
}

/// What is answered to a request.
fn ask(rig: &Rig<'_>, request: &str) -> Result<String, Failure> {
    let mut stream = connect(rig)?;
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

fn start<'g>(rig: &Rig<'g>) -> Result<Switch<'g>, Failure> {
    rig.start(&format!(
        "--bridge br0 --fail-mode secure --port p1 --port p2 --metrics {METRICS}"
    ))
}

fn prometheus_is_told_what_ports_tables_workers_and_drops_count(ground: &Ground) -> Outcome {
    const FRAME: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(50)";
    let rig = Rig::new(ground, 2)?;
    let switch = start(&rig)?;
    switch.ofctl("add-flow br0 table=0,in_port=1,actions=goto_table:4")?;
    switch.ofctl("add-flow br0 table=4,actions=output:2")?;
    rig.host(1).send(&[FRAME; 50])?;
    let sent = r#"comporta_port_transmit_packets_total{bridge="br0",port="p2",number="2"}"#;
    let mut told = String::new();
    ground.wait_until("all frames to be told of", || {
        told = ask(&rig, "GET /metrics")?;
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
    assert!(ask(&rig, "GET /")?.starts_with("HTTP/1.1 404 "));
    assert!(ask(&rig, "POST /metrics")?.starts_with("HTTP/1.1 405 "));
    assert!(ask(&rig, "garbage")?.starts_with("HTTP/1.1 400 "));
    Ok(())
}

fn those_who_ask_for_metrics_and_say_nothing_hold_nobody_up(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let _switch = start(&rig)?;
    let silent = (0..20)
        .map(|_| connect(&rig))
        .collect::<Result<Vec<_>, _>>()?;
    assert!(ask(&rig, "GET /metrics")?.contains("# EOF"));
    drop(silent);
    Ok(())
}
