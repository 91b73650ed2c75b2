//! The state of the switch as columns of the database. Only differences from the database become
//! operations.

mod monitoring;
mod tree;

use std::collections::BTreeMap;

use base::PortNo;
use flow::{PortStats, Role, UNAVAILABLE};
use ovsdb::{Atom, Database, Datum, Operation, Uuid};
use ports::Status;

use super::desired::{
    BridgeOutcome, ControllerEndpoint, ControllerOutcome, DesiredState, InterfaceOutcome,
};
use super::host::HostFacts;
use super::rows::{Record, root};
use crate::OVS_VERSION;
use runtime::VERSION;
use runtime::{BridgeFacts, ControllerFacts, Facts, PortFacts};

/// The datapath types that bridges may have: all are the same datapath.
const DATAPATH_TYPES: [&str; 2] = ["netdev", "system"];

/// The supported types of interfaces, and those that only builds with DPDK have.
const INTERFACE_TYPES: [&str; 8] = [
    "afxdp", "geneve", "gre", "internal", "patch", "system", "tap", "vxlan",
];
const DPDK: &str = "dpdk";

/// A type of a switch that was started with `--enable-dummy`.
const DUMMY: &str = "dummy";
const DUMMY_TYPES: [&str; 3] = [DUMMY, "dummy-internal", "dummy-pmd"];

/// The number of a port that could not be created (ovs-vswitchd.conf.db(5), `ofport`).
const NO_PORT: i64 = -1;

/// The OpenFlow 1.0 number of the local port, which tools use.
const LOCAL: i64 = 0xfffe;

/// The set of columns to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Columns of the state.
    State,
    /// Also columns of counters and of times.
    Statistics,
}

/// Columns of a row and their values.
type Columns = Vec<(&'static str, Datum)>;

/// Returns the operations that write the state of the switch. `configured` is the number of the
/// applied configuration (`cur_cfg`).
pub(super) fn report(
    database: &Database,
    desired: &DesiredState,
    (facts, host): (&Facts, &HostFacts),
    extent: Extent,
) -> Vec<Operation> {
    let mut writer = Writer {
        database,
        operations: Vec::new(),
    };
    for (uuid, outcome) in &desired.interfaces {
        writer.write("Interface", *uuid, interface(outcome, facts, extent));
    }
    for (uuid, (bridge, name)) in &desired.ports {
        let of = facts.bridges.get(bridge);
        let stored = database.row("Port", *uuid);
        let tree = of.and_then(|of| of.tree.as_ref());
        let mut columns = tree::port(tree, name, stored, extent);
        let active = of.and_then(|of| of.active_members.get(name));
        let active = Datum::optional(active.map(ToString::to_string));
        columns.push(("bond_active_slave", active));
        writer.write("Port", *uuid, columns);
    }
    for (uuid, outcome) in &desired.bridges {
        writer.write("Bridge", *uuid, bridge(outcome, facts));
    }
    for uuid in &desired.datapaths {
        let capabilities = facts.capabilities.iter();
        let capabilities = capabilities.map(|(name, value)| (name.clone(), value.clone()));
        let columns = vec![("capabilities", Datum::map(capabilities))];
        writer.write("Datapath", *uuid, columns);
    }
    if extent == Extent::Statistics {
        for (uuid, bridge) in &desired.mirrors {
            writer.write("Mirror", *uuid, mirror(*uuid, bridge, facts));
        }
    }
    for (uuid, outcome) in &desired.controllers {
        let stored = database.row("Controller", *uuid);
        let stored = stored.and_then(|row| row.get("status"));
        writer.write(
            "Controller",
            *uuid,
            controller(outcome, facts, extent, stored),
        );
    }
    if let Some(root) = root(database) {
        writer.write(
            "Open_vSwitch",
            root.uuid,
            whole(desired, host, extent, root),
        );
    }
    writer.operations
}

/// Collects the operations for differences.
struct Writer<'a> {
    database: &'a Database,
    operations: Vec<Operation>,
}

impl Writer<'_> {
    fn write(&mut self, table: &str, uuid: Uuid, columns: Columns) {
        let Some(row) = self.database.row(table, uuid) else {
            return;
        };
        let differs = |(name, datum): &(&str, Datum)| row.get(*name).is_some_and(|is| is != datum);
        let columns = columns.into_iter().filter(differs);
        let columns: Vec<_> = columns
            .map(|(name, datum)| (name.to_owned(), datum))
            .collect();
        if !columns.is_empty() {
            self.operations.push(Operation::Update {
                table: table.to_owned(),
                row: uuid,
                columns,
            });
        }
    }
}

fn whole(desired: &DesiredState, host: &HostFacts, extent: Extent, root: Record<'_>) -> Columns {
    let dpdk = dpdk::IS_ENABLED.then_some(DPDK);
    let has_dummies = desired.config.dummies.is_enabled();
    let dummy = has_dummies.then_some(DUMMY);
    let dummy_types = DUMMY_TYPES.into_iter().filter(|_| has_dummies);
    let mut columns = vec![
        ("ovs_version", Datum::one(OVS_VERSION)),
        (
            "datapath_types",
            Datum::set(DATAPATH_TYPES.into_iter().chain(dummy)),
        ),
        (
            "iface_types",
            Datum::set(INTERFACE_TYPES.into_iter().chain(dpdk).chain(dummy_types)),
        ),
        ("dpdk_initialized", Datum::one(dpdk::IS_ENABLED)),
    ];
    // `ovs-ctl` may have written the operating system already.
    let (system, version) = &host.system;
    for (column, value) in [("system_type", system), ("system_version", version)] {
        let value = value.as_ref().filter(|_| !root.has(column));
        columns.extend(value.map(|value| (column, Datum::one(value.as_str()))));
    }
    if extent == Extent::Statistics {
        let statistics = host.statistics.iter();
        let statistics = statistics.map(|(key, value)| (key.clone(), value.clone()));
        columns.push(("statistics", Datum::map(statistics)));
    }
    columns.extend(
        desired
            .next_cfg
            .map(|number| ("cur_cfg", Datum::one(number))),
    );
    columns
}

fn bridge(outcome: &BridgeOutcome, facts: &Facts) -> Columns {
    let there = facts
        .bridges
        .get(&outcome.name)
        .filter(|_| outcome.refused.is_none());
    let id = there.map(|bridge| format!("{:016x}", bridge.datapath_id.0));
    let failed = outcome
        .refused
        .as_ref()
        .or_else(|| facts.failed.get(&outcome.name));
    let failed = failed.map(|why| ("error".to_owned(), why.clone()));
    let notes = outcome
        .notes
        .iter()
        .map(|(column, why)| (column.clone(), why.clone()));
    let tree = there.and_then(|bridge| bridge.tree.as_ref());
    let status = notes.chain(failed).chain(tree::of_stp(tree));
    vec![
        ("datapath_id", Datum::optional(id)),
        ("datapath_version", Datum::one(VERSION)),
        ("status", Datum::map(status)),
        ("rstp_status", Datum::map(tree::of_rstp(tree))),
    ]
}

/// Returns the columns of a mirror: its counters.
fn mirror(uuid: Uuid, bridge: &str, facts: &Facts) -> Columns {
    let bridge = facts.bridges.get(bridge);
    let counts = bridge.and_then(|bridge| bridge.mirrors.get(&uuid.to_string()));
    let counts = counts.iter().flat_map(|(packets, bytes)| {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        [("tx_packets", count(*packets)), ("tx_bytes", count(*bytes))]
    });
    vec![("statistics", Datum::map(counts))]
}

fn interface(outcome: &InterfaceOutcome, facts: &Facts, extent: Extent) -> Columns {
    match outcome {
        InterfaceOutcome::Refused(why) => closed_port_columns(why),
        InterfaceOutcome::Port {
            bridge,
            number,
            notes,
        } => match find(facts, bridge, *number) {
            Err(why) => closed_port_columns(&why),
            Ok(port) => match &port.device {
                Err(why) => closed_port_columns(why),
                Ok(status) => open_port_columns(*number, status, port, notes, extent),
            },
        },
    }
}

fn find<'a>(facts: &'a Facts, bridge: &str, number: PortNo) -> Result<&'a PortFacts, String> {
    let port = facts
        .bridges
        .get(bridge)
        .map(|bridge| bridge.ports.get(&number));
    match port {
        Some(Some(port)) => Ok(port),
        Some(None) => Err("it could not be created".to_owned()),
        None => Err(match facts.failed.get(bridge) {
            Some(why) => format!("bridge {bridge}: {why}"),
            None => format!("bridge {bridge} could not be created"),
        }),
    }
}

/// Returns the columns of an interface that is no port.
fn closed_port_columns(why: &str) -> Columns {
    let mut columns = vec![
        ("ofport", Datum::one(NO_PORT)),
        ("error", Datum::optional((!why.is_empty()).then_some(why))),
        ("statistics", Datum::Map(BTreeMap::new())),
        ("status", Datum::Map(BTreeMap::new())),
    ];
    let unknown = [
        "mac_in_use",
        "ifindex",
        "admin_state",
        "link_state",
        "link_speed",
        "duplex",
        "link_resets",
        "mtu",
        "lacp_current",
    ];
    columns.extend(unknown.map(|column| (column, Datum::none())));
    columns.extend(monitoring::columns(None, None));
    columns
}

/// Returns the columns of an interface that is a port.
fn open_port_columns(
    number: PortNo,
    status: &Status,
    port: &PortFacts,
    notes: &[String],
    extent: Extent,
) -> Columns {
    let state = |up: bool| if up { "up" } else { "down" };
    let number = match number {
        PortNo::LOCAL => LOCAL,
        PortNo(number) => number.into(),
    };
    let mut notes = notes.to_vec();
    notes.extend(port.complaint.clone());
    let error = (!notes.is_empty()).then(|| notes.join("; "));
    let duplex = status
        .full_duplex
        .map(|full| if full { "full" } else { "half" });
    let index = status.index.map(|index| i64::from(index.0));
    let speed = status.speed_mbps.map(|mbps| i64::from(mbps) * 1_000_000);
    let mtu = (status.mtu > 0).then(|| i64::from(status.mtu));
    let driver = status
        .driver
        .iter()
        .map(|driver| ("driver_name", driver.clone()));
    let way = status.io_mode.iter().map(|way| ("way", way.clone()));
    let mut columns = vec![
        ("ofport", Datum::one(number)),
        ("error", Datum::optional(error)),
        ("mac_in_use", Datum::one(status.address.to_string())),
        ("ifindex", Datum::optional(index)),
        ("admin_state", Datum::one(state(status.up))),
        ("link_state", Datum::one(state(status.carrier))),
        ("link_speed", Datum::optional(speed)),
        ("duplex", Datum::optional(duplex)),
        (
            "link_resets",
            Datum::one(i64::try_from(port.link_resets).unwrap_or(i64::MAX)),
        ),
        ("mtu", Datum::optional(mtu)),
        ("lacp_current", Datum::optional(port.lacp_current)),
        ("status", Datum::map(driver.chain(way))),
    ];
    columns.extend(monitoring::columns(port.bfd.as_ref(), port.cfm.as_ref()));
    if let (Extent::Statistics, Some(counts)) = (extent, &port.statistics) {
        columns.push(("statistics", statistics(counts, port.custom.as_deref())));
    }
    columns
}

/// The counters that a dummy has.
const DUMMY_COUNTERS: [&str; 4] = ["rx_packets", "tx_packets", "rx_bytes", "tx_bytes"];

/// Returns the counters by the names in the database. A dummy has few of them, and `custom` ones.
fn statistics(counts: &PortStats, custom: Option<&[(String, u64)]>) -> Datum {
    let pairs = [
        ("rx_packets", Some(counts.rx_packets)),
        ("tx_packets", Some(counts.tx_packets)),
        ("rx_bytes", Some(counts.rx_bytes)),
        ("tx_bytes", Some(counts.tx_bytes)),
        ("rx_dropped", Some(counts.rx_dropped)),
        ("tx_dropped", Some(counts.tx_dropped)),
        ("rx_errors", Some(counts.rx_errors)),
        ("tx_errors", Some(counts.tx_errors)),
        ("rx_frame_err", counts.rx_frame_errors),
        ("rx_over_err", counts.rx_over_errors),
        ("rx_crc_err", counts.rx_crc_errors),
        ("collisions", counts.collisions),
    ];
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let known = pairs
        .into_iter()
        .filter(|(name, _)| custom.is_none() || DUMMY_COUNTERS.contains(name))
        .filter_map(|(name, value)| Some((name, value.filter(|value| *value != UNAVAILABLE)?)))
        .map(|(name, value)| (name, count(value)));
    let custom = custom.into_iter().flatten();
    let custom = custom.map(|(name, value)| (&**name, count(*value)));
    Datum::map(known.chain(custom))
}

fn controller(
    outcome: &ControllerOutcome,
    facts: &Facts,
    extent: Extent,
    stored: Option<&Datum>,
) -> Columns {
    let bridge = facts.bridges.get(&outcome.bridge);
    let state = match &outcome.endpoint {
        Ok(ControllerEndpoint::Target(target)) => target_state(bridge, &target.to_string()),
        Ok(ControllerEndpoint::Listen(listen)) => {
            let failed = bridge.and_then(|bridge| bridge.not_listening.get(listen).cloned());
            ControllerState {
                problem: failed,
                ..ControllerState::default()
            }
        }
        Err(why) => ControllerState {
            problem: Some(why.clone()),
            ..ControllerState::default()
        },
    };
    let role = state.facts.role.map(|role| match role {
        Role::Equal => "other",
        Role::Master => "master",
        Role::Slave => "slave",
    });
    let mut columns = vec![
        ("is_connected", Datum::one(role.is_some())),
        ("role", Datum::optional(role)),
    ];
    // Times change every second; they are written with statistics or with another change.
    let status = controller_status(&state, &outcome.notes);
    if extent == Extent::Statistics || !stored.is_some_and(|stored| is_alike(stored, &status)) {
        columns.push(("status", status));
    }
    columns
}

/// Returns true if both are equal apart from times.
fn is_alike(one: &Datum, other: &Datum) -> bool {
    let lasting = |datum: &Datum| {
        let pairs = datum.texts().filter(|(key, _)| !key.contains("sec_"));
        pairs
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect::<BTreeMap<_, _>>()
    };
    lasting(one) == lasting(other)
}

/// The connection state of a controller.
#[derive(Default)]
struct ControllerState {
    facts: ControllerFacts,
    /// Open vSwitch's word for the state of an active connection.
    state: Option<&'static str>,
    problem: Option<String>,
}

fn target_state(bridge: Option<&BridgeFacts>, uri: &str) -> ControllerState {
    let facts = bridge.and_then(|bridge| bridge.controllers.get(uri));
    let facts = facts.cloned().unwrap_or_default();
    let problem = facts.last_error.clone().filter(|_| facts.role.is_none());
    ControllerState {
        state: Some(if facts.role.is_some() {
            "ACTIVE"
        } else {
            "BACKOFF"
        }),
        problem,
        facts,
    }
}

fn controller_status(controller_status: &ControllerState, notes: &[String]) -> Datum {
    let mut status: BTreeMap<Atom, Atom> = BTreeMap::new();
    let mut add = |key: &str, value: Option<String>| {
        status.extend(value.map(|value| (key.into(), value.into())));
    };
    let ControllerState {
        facts,
        state,
        problem,
    } = controller_status;
    add("state", state.map(str::to_owned));
    add("last_error", problem.clone());
    add(
        "sec_since_connect",
        facts.since_connect.map(|seconds| seconds.to_string()),
    );
    let since = facts.since_disconnect.filter(|_| facts.role.is_none());
    add(
        "sec_since_disconnect",
        since.map(|seconds| seconds.to_string()),
    );
    add(
        "not_honoured",
        (!notes.is_empty()).then(|| notes.join("; ")),
    );
    Datum::Map(status)
}
