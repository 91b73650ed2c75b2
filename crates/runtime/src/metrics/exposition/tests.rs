//! The metrics for Prometheus, and the queries of the dashboard. The HTTP server is tested in
//! `tests/`.

use super::*;
use control_api::telemetry::{ConntrackTelemetry, ControllerTelemetry, TableTelemetry};

/// The dashboard of this project.
const DASHBOARD: &str = include_str!("../../../../../docs/grafana/comporta.json");

fn telemetry() -> Telemetry {
    let port = PortTelemetry {
        number: "1".to_owned(),
        name: "eth\"1".to_owned(),
        rx_packets: 7,
        counts: Counts::from([("rx_overrun".to_owned(), 2)]),
        ..PortTelemetry::default()
    };
    let master = ControllerTelemetry {
        target: "tcp:127.0.0.1:6653".to_owned(),
        role: Some("master".to_owned()),
    };
    let bridge = BridgeTelemetry {
        name: "br0".to_owned(),
        ports: vec![port],
        tables: vec![TableTelemetry {
            table: 3,
            rules: 1,
            lookups: 9,
            matches: 8,
        }],
        controllers: vec![master],
        ..BridgeTelemetry::default()
    };
    let worker = WorkerTelemetry {
        core: 5,
        busy_ns: 1_500_000_000,
        drops: Counts::from([("port_full".to_owned(), 4)]),
        ..WorkerTelemetry::default()
    };
    Telemetry {
        version: "1.2".to_owned(),
        workers: vec![worker],
        bridges: vec![bridge],
        conntrack: ConntrackTelemetry {
            connections: 5,
            zones: std::collections::BTreeMap::from([(9, 4)]),
            counts: Counts::from([("ct_committed".to_owned(), 6)]),
            ..ConntrackTelemetry::default()
        },
        ..Telemetry::default()
    }
}

#[test]
fn exposition_is_valid_open_metrics() {
    let text = text(telemetry());
    for line in [
        "# TYPE comporta_port_receive_packets counter",
        r#"comporta_port_receive_packets_total{bridge="br0",port="eth\"1",number="1"} 7"#,
        r#"comporta_port_events_total{bridge="br0",port="eth\"1",number="1",event="rx_overrun"} 2"#,
        r#"comporta_drops_total{worker="0",core="5",reason="port_full"} 4"#,
        r#"comporta_worker_busy_seconds_total{worker="0",core="5"} 1.5"#,
        r#"comporta_table_matches_total{bridge="br0",table="3"} 8"#,
        r#"comporta_controller_connected{bridge="br0",target="tcp:127.0.0.1:6653"} 1"#,
        "comporta_connections{} 5",
        r#"comporta_zone_connections{zone="9"} 4"#,
        r#"comporta_conntrack_events_total{event="ct_committed"} 6"#,
        "# EOF",
    ] {
        assert!(
            text.lines().any(|text_line| text_line == line),
            "{line}\n{text}"
        );
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn metrics_have_unique_names_and_samples() {
    let text = text(telemetry());
    let mut seen = std::collections::BTreeSet::new();
    for name in names() {
        let plain = name.strip_suffix("_total").unwrap_or(&name);
        assert!(text.contains(&format!("# HELP {plain} ")), "{name}");
        assert!(seen.insert(name));
    }
}

/// The queries of a dashboard: words with the prefix of our names.
#[test]
fn dashboard_queries_existing_metrics() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).expect("it is JSON");
    let mut queries = Vec::new();
    gather_queries(&dashboard, &mut queries);
    assert!(queries.len() > 10, "{queries:?}");
    let known: Vec<_> = names().collect();
    for query in queries {
        let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names: Vec<_> = words
            .filter(|word| word.starts_with("comporta_") || word.starts_with("process_"))
            .collect();
        assert!(!names.is_empty(), "{query}");
        for word in names {
            assert!(known.iter().any(|name| name == word), "{word} in {query}");
        }
    }
}

fn gather_queries(value: &serde_json::Value, queries: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    ("expr", serde_json::Value::String(query)) => queries.push(query.clone()),
                    (_, member) => gather_queries(member, queries),
                }
            }
        }
        serde_json::Value::Array(members) => members
            .iter()
            .for_each(|member| gather_queries(member, queries)),
        _ => {}
    }
}
