//! A small database for tests: the columns of the schema that they need, and rows by name.

use ovsdb::{Database, Schema, UpdateFormat, Uuid};
use serde_json::{Map, Value, json};

use super::TABLES;

fn rows_of(table: &str) -> Value {
    json!({"type": {"key": {"type": "uuid", "refTable": table}, "min": 0, "max": "unlimited"}})
}

fn rows_by(key: &str, table: &str) -> Value {
    let value = json!({"type": "uuid", "refTable": table});
    json!({"type": {"key": key, "value": value, "min": 0, "max": "unlimited"}})
}

fn optional(kind: &str) -> Value {
    json!({"type": {"key": kind, "min": 0, "max": 1}})
}

/// Returns the tables of the schema, with the columns that tests need.
#[expect(
    clippy::too_many_lines,
    reason = "one list of tables, each a few lines"
)]
pub(crate) fn tables() -> Value {
    let map = json!({"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}});
    let counts =
        json!({"type": {"key": "string", "value": "integer", "min": 0, "max": "unlimited"}});
    let counts_by_number =
        json!({"type": {"key": "integer", "value": "integer", "min": 0, "max": "unlimited"}});
    let several = |kind: &str| json!({"type": {"key": kind, "min": 0, "max": "unlimited"}});
    let truth = json!({"type": "boolean"});
    let table = |columns: Value| json!({"columns": columns});
    json!({
        "Manager": table(json!({
            "target": {"type": "string"}, "connection_mode": optional("string"),
        })),
        "Open_vSwitch": table(json!({
            "manager_options": rows_of("Manager"),
            "bridges": rows_of("Bridge"), "next_cfg": {"type": "integer"},
            "datapaths": rows_by("string", "Datapath"),
            "cur_cfg": {"type": "integer"}, "other_config": map, "ovs_version": optional("string"),
            "datapath_types": several("string"), "iface_types": several("string"),
            "dpdk_initialized": truth,
        })),
        "Datapath": table(json!({
            "ct_zones": rows_by("integer", "CT_Zone"), "capabilities": map,
        })),
        "CT_Zone": table(json!({"timeout_policy": rows_of("CT_Timeout_Policy")})),
        "CT_Timeout_Policy": table(json!({"timeouts": counts})),
        "Bridge": table(json!({
            "name": {"type": "string"}, "ports": rows_of("Port"), "controller": rows_of("Controller"),
            "fail_mode": optional("string"), "protocols": several("string"), "other_config": map,
            "stp_enable": truth, "rstp_enable": truth, "rstp_status": map, "mcast_snooping_enable": truth, "flood_vlans": several("integer"), "mirrors": rows_of("Mirror"),
            "netflow": rows_of("NetFlow"), "auto_attach": rows_of("AutoAttach"), "sflow": rows_of("sFlow"), "ipfix": rows_of("IPFIX"), "datapath_id": optional("string"),
            "datapath_version": {"type": "string"}, "status": map,
        })),
        "NetFlow": table(json!({
            "targets": several("string"), "engine_type": optional("integer"),
            "engine_id": optional("integer"), "active_timeout": {"type": "integer"},
            "add_id_to_interface": truth,
        })),
        "Flow_Sample_Collector_Set": table(json!({
            "id": {"type": "integer"}, "bridge": rows_of("Bridge"), "ipfix": rows_of("IPFIX"),
        })),
        "AutoAttach": table(json!({"system_name": {"type": "string"}, "system_description": {"type": "string"}, "mappings": counts_by_number})),
        "Mirror": table(json!({
            "name": {"type": "string"}, "select_all": truth, "select_src_port": rows_of("Port"),
            "select_dst_port": rows_of("Port"), "select_vlan": several("integer"),
            "output_port": rows_of("Port"), "output_vlan": optional("integer"),
            "snaplen": optional("integer"), "filter": optional("string"), "statistics": counts,
        })),
        "Port": table(json!({
            "name": {"type": "string"}, "interfaces": rows_of("Interface"), "tag": optional("integer"),
            "trunks": several("integer"), "vlan_mode": optional("string"), "fake_bridge": truth,
            "cvlans": several("integer"), "protected": truth, "other_config": map,
            "status": map, "statistics": counts, "rstp_status": map, "rstp_statistics": counts,
            "bond_mode": optional("string"), "bond_updelay": {"type": "integer"},
            "bond_downdelay": {"type": "integer"}, "lacp": optional("string"),
            "bond_active_slave": optional("string"), "bond_fake_iface": truth, "mac": optional("string"),
        })),
        "Interface": table(json!({
            "name": {"type": "string"}, "type": {"type": "string"}, "options": map,
            "ofport_request": optional("integer"), "ofport": optional("integer"),
            "mac": optional("string"), "mtu_request": optional("integer"),
            "ingress_policing_rate": {"type": "integer"}, "ingress_policing_burst": {"type": "integer"},
            "error": optional("string"), "mac_in_use": optional("string"),
            "admin_state": optional("string"), "link_state": optional("string"),
            "mtu": optional("integer"), "ifindex": optional("integer"), "other_config": map,
            "bfd": map, "bfd_status": map, "lldp": map, "cfm_mpid": optional("integer"),
            "status": map, "statistics": counts,
        })),
        "IPFIX": table(json!({
            "targets": several("string"), "sampling": optional("integer"),
            "obs_domain_id": optional("integer"), "obs_point_id": optional("integer"),
            "cache_active_timeout": optional("integer"), "cache_max_flows": optional("integer"),
            "other_config": map,
        })),
        "sFlow": table(json!({
            "targets": several("string"), "agent": optional("string"), "header": optional("integer"),
            "sampling": optional("integer"), "polling": optional("integer"),
        })),
        "Controller": table(json!({
            "target": {"type": "string"}, "controller_rate_limit": optional("integer"),
            "controller_burst_limit": optional("integer"), "max_backoff": optional("integer"),
            "is_connected": truth, "role": optional("string"), "status": map,
        })),
    })
}

/// Returns a database without rows.
pub(crate) fn empty() -> Database {
    let schema = Schema::from_json(&json!({"tables": tables()})).expect("a schema");
    Database::monitoring(&schema, TABLES.iter().copied())
}

/// Returns the UUID of a row with a readable name.
pub(crate) fn uuid(table: &str, name: &str) -> Uuid {
    let bytes = table.bytes().chain(name.bytes());
    Uuid(bytes.fold(7, |hash: u128, byte| {
        hash.wrapping_mul(257).wrapping_add(byte.into())
    }))
}

/// Returns a column that refers to rows.
pub(crate) fn names(table: &str, rows: &[&str]) -> Value {
    let rows = rows
        .iter()
        .map(|name| json!(["uuid", uuid(table, name).to_string()]));
    json!(["set", rows.collect::<Vec<_>>()])
}

/// Returns a column of pairs.
pub(crate) fn pairs(pairs: &[(&str, &str)]) -> Value {
    json!(["map", pairs])
}

/// Inserts or replaces a row.
pub(crate) fn put(database: &mut Database, table: &str, name: &str, columns: &Value) {
    let uuid = uuid(table, name);
    if database.row(table, uuid).is_some() {
        apply_change(database, table, uuid, &json!({"delete": null}));
    }
    apply_change(database, table, uuid, &json!({"insert": columns}));
}

/// Applies operations to the database, like ovsdb-server.
pub(crate) fn apply_operations(database: &mut Database, operations: &[ovsdb::Operation]) {
    for operation in operations {
        if let ovsdb::Operation::Update {
            table,
            row,
            columns,
        } = operation
        {
            let columns = columns.iter();
            let columns: Map<_, _> = columns
                .map(|(name, datum)| (name.clone(), datum.to_json()))
                .collect();
            let change = json!({"old": {}, "new": columns});
            let change = json!({table: {row.to_string(): change}});
            database
                .apply(&change, UpdateFormat::Values)
                .expect("legal");
        }
    }
}

fn apply_change(database: &mut Database, table: &str, uuid: Uuid, change: &Value) {
    let change = json!({table: {uuid.to_string(): change}});
    database
        .apply(&change, UpdateFormat::Differences)
        .expect("legal");
}

/// Inserts a bridge with its own interface, these ports (each with one interface of the same name
/// and these columns), and controllers with these targets.
pub(crate) fn put_bridge(
    database: &mut Database,
    name: &str,
    mut columns: Value,
    ports: &[(&str, Value)],
    controllers: &[&str],
) {
    let own = (name, json!({"type": "internal"}));
    let ports: Vec<_> = ports.iter().cloned().chain([own]).collect();
    for (port, interface) in &ports {
        let mut interface = interface.clone();
        interface["name"] = json!(port);
        put(database, "Interface", port, &interface);
        if database.row("Port", uuid("Port", port)).is_none() {
            let row = json!({"name": port, "interfaces": names("Interface", &[port])});
            put(database, "Port", port, &row);
        }
    }
    for target in controllers {
        put(database, "Controller", target, &json!({"target": target}));
    }
    let port_names: Vec<_> = ports.iter().map(|(port, _)| *port).collect();
    columns["name"] = json!(name);
    columns["ports"] = names("Port", &port_names);
    columns["controller"] = names("Controller", controllers);
    put(database, "Bridge", name, &columns);
}

/// Inserts the row of the table `Open_vSwitch`.
pub(crate) fn put_root(database: &mut Database, bridges: &[&str], next_cfg: i64) {
    let row = json!({"bridges": names("Bridge", bridges), "next_cfg": next_cfg});
    put(database, "Open_vSwitch", ".", &row);
}
