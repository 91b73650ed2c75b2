//! Conversions of the flow-export tables.

use serde_json::{Value, json};

use super::*;
use crate::desired::{DesiredState, convert_rows};
use crate::testing::{empty, names, pairs, put, put_bridge, put_root, uuid};
use config::Config;

/// Converts bridges `br0` and `br1`, which share this row.
fn both(table: &str, column: &str, row: &Value) -> DesiredState {
    let mut database = empty();
    put(&mut database, table, "it", row);
    for bridge in ["br0", "br1"] {
        let columns = json!({column: names(table, &["it"])});
        put_bridge(&mut database, bridge, columns, &[], &[]);
    }
    put_root(&mut database, &["br0", "br1"], 1);
    convert_rows(&database, &Config::default())
}

fn targets(texts: &[&str]) -> Value {
    json!(["set", texts])
}

#[test]
fn sflow_settings_are_read_with_defaults() {
    let row = json!({"targets": targets(&["10.0.0.2", "10.0.0.1:7"])});
    let desired = both("sFlow", "sflow", &row);
    let exporter: Vec<_> = desired.config.bridges.iter().collect();
    let first = exporter[0].exporters.sflow.as_ref().expect("it is told");
    let text: Vec<_> = first.targets.iter().map(ToString::to_string).collect();
    assert_eq!(text, ["10.0.0.1:7", "10.0.0.2:6343"]);
    assert_eq!((first.header, first.sampling.get()), (128, 400));
    assert_eq!(first.polling, Some(Duration::from_secs(30)));
    assert_eq!((&first.agent, first.sub_agent), (&None, 0));
    let second = exporter[1].exporters.sflow.as_ref().expect("it is told");
    assert_eq!(second.sub_agent, 1, "agents of one host are told apart");
    let row = json!({
        "targets": targets(&["10.0.0.1:7"]), "header": 64, "sampling": 10, "polling": 0, "agent": "lo",
    });
    let desired = both("sFlow", "sflow", &row);
    let exporter = desired.config.bridges[0].exporters.sflow.as_ref();
    let exporter = exporter.expect("it is told");
    assert_eq!((exporter.header, exporter.sampling.get()), (64, 10));
    assert_eq!(
        (exporter.polling, exporter.agent.as_deref()),
        (None, Some("lo"))
    );
    assert!(desired.bridges[&uuid("Bridge", "br0")].notes.is_empty());
}

#[test]
fn sflow_errors_are_reported() {
    let notes_of_row = |row: Value| {
        let desired = both("sFlow", "sflow", &row);
        let notes = &desired.bridges[&uuid("Bridge", "br0")].notes;
        let exporter = desired.config.bridges[0].exporters.sflow.is_some();
        (exporter, notes.get("sflow").cloned().unwrap_or_default())
    };
    let (exporter, why) =
        notes_of_row(json!({"targets": targets(&["collector.example", "10.0.0.1"])}));
    assert!(exporter && why.contains("'collector.example' is not a collector"));
    let (exporter, why) = notes_of_row(json!({"targets": targets(&["10.0.0.1"]), "sampling": 0}));
    assert!(!exporter && why.contains("sampling"), "{why}");
    let (exporter, why) = notes_of_row(json!({"targets": targets(&["10.0.0.1"]), "header": 9000}));
    assert!(exporter && why.contains("1024"), "{why}");
    assert_eq!(
        notes_of_row(json!({"targets": targets(&[])})),
        (false, String::new())
    );
}

#[test]
fn netflow_settings_are_read_with_defaults() {
    let read = |row: Value| {
        let desired = both("NetFlow", "netflow", &row);
        let notes = &desired.bridges[&uuid("Bridge", "br0")].notes;
        let exporter = desired.config.bridges[0].exporters.netflow.clone();
        (exporter, notes.get("netflow").cloned().unwrap_or_default())
    };
    let (exporter, why) = read(json!({"targets": targets(&["10.0.0.2:9", "10.0.0.1:7"])}));
    let exporter = exporter.expect("it is told");
    let text: Vec<_> = exporter.targets.iter().map(ToString::to_string).collect();
    assert_eq!(
        (text, why),
        (
            vec!["10.0.0.1:7".to_owned(), "10.0.0.2:9".to_owned()],
            String::new()
        )
    );
    let settings = NetflowSettings {
        active: Some(Duration::from_secs(600)),
        engine: [0x2f, 0xd1],
        add_id_to_interface: false,
    };
    assert_eq!(exporter.settings, settings);
    let (exporter, why) = read(json!({
        "targets": targets(&["[::1]:7"]), "engine_type": 4, "engine_id": 130,
        "active_timeout": -1, "add_id_to_interface": true,
    }));
    let settings = NetflowSettings {
        active: None,
        engine: [4, 130],
        add_id_to_interface: true,
    };
    assert_eq!(exporter.map(|it| it.settings), Some(settings));
    assert!(why.contains("128"), "{why}");
    let (exporter, _) = read(json!({"targets": targets(&["10.0.0.1:7"]), "active_timeout": 5}));
    let active = exporter.and_then(|it| it.settings.active);
    assert_eq!(active, Some(Duration::from_secs(5)));
    let (exporter, why) = read(json!({"targets": targets(&["collector.example:7", "10.0.0.1"])}));
    assert!(exporter.is_none() && why.contains("'10.0.0.1' is not a collector: use ADDRESS:PORT"));
}

#[test]
fn ipfix_settings_are_read_with_defaults() {
    let row = json!({"targets": targets(&["10.0.0.2"])});
    let desired = both("IPFIX", "ipfix", &row);
    let exporter = desired.config.bridges[1].exporters.ipfix.as_ref();
    let exporter = exporter.expect("it is told");
    assert_eq!(exporter.targets[0].to_string(), "10.0.0.2:4739");
    assert_eq!(
        (exporter.sampling.get(), exporter.observation),
        (400, (0, 0))
    );
    assert_eq!(
        (&exporter.cache, exporter.directions),
        (&IpfixCache::default(), [true; 2])
    );
    let row = json!({
        "targets": targets(&["[::1]:7"]), "sampling": 3, "obs_domain_id": 4, "obs_point_id": 5,
        "cache_active_timeout": 6, "cache_max_flows": 7,
        "other_config": pairs(&[("enable-output-sampling", "false"), ("virtual_obs_id", "me")]),
    });
    let desired = both("IPFIX", "ipfix", &row);
    let exporter = desired.config.bridges[0].exporters.ipfix.as_ref();
    let exporter = exporter.expect("it is told");
    assert_eq!((exporter.sampling.get(), exporter.observation), (3, (4, 5)));
    let cache = IpfixCache {
        active: Duration::from_secs(6),
        flows_max: 7,
        name: Some("me".to_owned()),
    };
    assert_eq!(
        (&exporter.cache, exporter.directions),
        (&cache, [true, false])
    );
    assert!(desired.bridges[&uuid("Bridge", "br0")].notes.is_empty());
}

#[test]
fn collector_set_belongs_to_its_bridge() {
    let mut database = empty();
    for (name, target) in [("i", "10.0.0.1"), ("j", "nobody")] {
        let row = json!({"targets": targets(&[target, "10.0.0.2:9"]), "cache_max_flows": 5, "sampling": 0});
        put(&mut database, "IPFIX", name, &row);
    }
    for bridge in ["br0", "br1"] {
        put_bridge(&mut database, bridge, json!({}), &[], &[]);
    }
    for (name, id, bridge, ipfix) in [("s", 7, "br0", "i"), ("t", 8, "br1", "j")] {
        let (bridge, ipfix) = (names("Bridge", &[bridge]), names("IPFIX", &[ipfix]));
        let row = json!({"id": id, "bridge": bridge, "ipfix": ipfix});
        put(&mut database, "Flow_Sample_Collector_Set", name, &row);
    }
    put_root(&mut database, &["br0", "br1"], 1);
    let desired = convert_rows(&database, &Config::default());
    let sets = |bridge: usize| &desired.config.bridges[bridge].exporters.sets;
    let exporter = |set: &CollectorSet| {
        let targets = set.targets.iter().map(ToString::to_string);
        (targets.collect::<Vec<_>>().join(" "), set.cache.flows_max)
    };
    assert_eq!((sets(0).len(), sets(1).len()), (1, 1));
    assert_eq!(
        exporter(&sets(0)[&7]),
        ("10.0.0.1:4739 10.0.0.2:9".to_owned(), 5)
    );
    assert_eq!(exporter(&sets(1)[&8]), ("10.0.0.2:9".to_owned(), 5));
    let notes = &desired.bridges[&uuid("Bridge", "br1")].notes;
    assert!(notes["flow_sample_collector_set:8"].contains("'nobody'"));
    assert!(desired.bridges[&uuid("Bridge", "br0")].notes.is_empty());
}

#[test]
fn ipfix_errors_are_reported() {
    let row = json!({
        "targets": targets(&["10.0.0.1", "nobody"]), "cache_max_flows": 4_000_000_000_u32,
        "other_config": pairs(&[("enable-tunnel-sampling", "true"), ("dance", "yes")]),
    });
    let desired = both("IPFIX", "ipfix", &row);
    let why = &desired.bridges[&uuid("Bridge", "br0")].notes["ipfix"];
    for part in [
        "'nobody'",
        "enable-tunnel-sampling",
        "dance",
        "cache_max_flows",
    ] {
        assert!(why.contains(part), "{why}");
    }
    assert!(desired.config.bridges[0].exporters.ipfix.is_some());
    let row = json!({"targets": targets(&["10.0.0.1"]), "sampling": 0});
    let desired = both("IPFIX", "ipfix", &row);
    assert!(desired.config.bridges[0].exporters.ipfix.is_none());
    assert!(desired.bridges[&uuid("Bridge", "br0")].notes["ipfix"].contains("sampling"));
}
