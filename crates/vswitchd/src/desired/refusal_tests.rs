//! Rows that are refused with a log line, and keys that others keep in the database.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::testing::{empty, names, pairs, put, put_bridge, put_root, uuid};

/// Converts one bridge with this name, these ports and controllers.
fn convert(name: &str, ports: &[(&str, Value)], controllers: &[&str]) -> DesiredState {
    let mut database = empty();
    put_bridge(&mut database, name, json!({}), ports, controllers);
    put_root(&mut database, &[name], 1);
    let current = Config {
        unix_socket_dir: Some(PathBuf::from("/run/ovs")),
        ..Config::default()
    };
    convert_rows(&database, &current)
}

#[test]
fn reserved_name_is_refused_with_a_log_line_only() {
    let desired = convert(
        "br0",
        &[("gre_sys", json!({})), ("ovs-dummy", json!({}))],
        &[],
    );
    for name in ["gre_sys", "ovs-dummy"] {
        let outcome = &desired.interfaces[&uuid("Interface", name)];
        assert_eq!(*outcome, InterfaceOutcome::Refused(String::new()));
        let line = format!("could not create interface {name}, name is reserved");
        assert!(desired.warnings.contains(&line), "{:?}", desired.warnings);
    }
}

#[test]
fn bridge_name_with_slash_is_refused_with_a_log_line_only() {
    let desired = convert("b/c", &[("p1", json!({}))], &[]);
    assert!(desired.config.bridges.is_empty());
    let outcome = &desired.interfaces[&uuid("Interface", "p1")];
    assert_eq!(*outcome, InterfaceOutcome::Refused(String::new()));
    let line = "ignoring bridge with invalid name \"b/c\"".to_owned();
    assert_eq!(desired.warnings, [line].into());
}

#[test]
fn refused_interfaces_have_the_lines_of_open_vswitch() {
    let far = json!({"type": "vxlan"});
    let desired = convert("br0", &[("p1", far), ("p2", json!({"type": "dance"}))], &[]);
    let lines: Vec<_> = desired.warnings.iter().map(String::as_str).collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("could not open network device p2 (type dance: "));
    let expected = [
        "p1: could not set configuration (Invalid argument)",
        "p1: vxlan type requires valid 'remote_ip' argument",
    ];
    assert_eq!(lines[1..], expected);
}

#[test]
fn socket_outside_of_run_directory_is_an_error_in_the_log() {
    let outside = "punix:/run/ovs/br0.void/../overwrite.file";
    let desired = convert("br0", &[], &[outside, "punix:/run/ovs/br0.void"]);
    let lines: Vec<_> = desired.errors.iter().collect();
    let [line] = lines[..] else {
        panic!("{lines:?}");
    };
    let expected = "bridge br0: Not adding Unix domain socket controller \"punix:";
    assert!(
        line.starts_with(expected) && line.contains("overwrite.file"),
        "{line}"
    );
}

#[test]
fn keys_of_others_are_ignored_and_misspelt_ones_reported() {
    let mut database = empty();
    let other = [
        ("net_uuid", "x"),
        ("tag", "7"),
        ("transient", "true"),
        ("lacp-tme", "fast"),
    ];
    let port = json!({
        "name": "p1", "interfaces": names("Interface", &["p1"]), "other_config": pairs(&other),
    });
    put(&mut database, "Port", "p1", &port);
    let interface = json!({
        "options": pairs(&[("ovn-note", "1"), ("n_rxq", "2")]),
        "other_config": pairs(&[("note", "1"), ("pmd-rxq-affinity", "0:1")]),
    });
    put_bridge(&mut database, "br0", json!({}), &[("p1", interface)], &[]);
    let row = json!({
        "bridges": names("Bridge", &["br0"]), "next_cfg": 1,
        "other_config": pairs(&[("ovn-chassis-idx-hv1", ""), ("pmd-cpu-mask", "3")]),
    });
    put(&mut database, "Open_vSwitch", ".", &row);
    let desired = convert_rows(&database, &Config::default());
    let InterfaceOutcome::Port { notes, .. } = &desired.interfaces[&uuid("Interface", "p1")] else {
        panic!("it is a port");
    };
    let keys: Vec<_> = notes
        .iter()
        .filter_map(|note| note.split(": ").next())
        .collect();
    let expected = [
        "options:n_rxq",
        "other_config:lacp-tme",
        "other_config:pmd-rxq-affinity",
    ];
    assert_eq!(keys, expected);
    assert_eq!(desired.unsupported, ["pmd-cpu-mask".to_owned()].into());
}
