//! The columns of spanning trees: keys of `status`, `rstp_status`, `statistics` and
//! `rstp_statistics` of bridges and ports (ovs-vswitchd.conf.db(5)).

use std::collections::BTreeMap;

use ovsdb::{DatabaseRow, Datum};

use super::{Columns, Extent, is_alike};
use config::SpanningTreeProtocol;
use l2::spanning_tree::TreePortInfo;
use runtime::TreeFacts;

/// Returns the keys of a bridge with STP.
pub(super) fn of_stp(tree: Option<&TreeFacts>) -> impl Iterator<Item = (String, String)> {
    let tree = tree.filter(|tree| tree.protocol == SpanningTreeProtocol::Stp);
    let stored = tree.map(|tree| {
        [
            ("stp_bridge_id", tree.id.to_string()),
            ("stp_designated_root", tree.root.root.to_string()),
            ("stp_root_path_cost", tree.root.cost.to_string()),
        ]
    });
    named(stored.into_iter().flatten())
}

/// Returns the keys of a bridge with RSTP.
pub(super) fn of_rstp(tree: Option<&TreeFacts>) -> impl Iterator<Item = (String, String)> {
    let tree = tree.filter(|tree| tree.protocol == SpanningTreeProtocol::Rstp);
    let stored = tree.map(|tree| {
        let own = tree.root_port.map_or(0, |port| port.0);
        [
            ("rstp_bridge_id", tree.id.split()),
            ("rstp_root_id", tree.root.root.split()),
            ("rstp_root_path_cost", tree.root.cost.to_string()),
            ("rstp_designated_id", tree.root.bridge.split()),
            (
                "rstp_designated_port_id",
                format!("{:04x}", tree.root.port.0),
            ),
            ("rstp_bridge_port_id", format!("{own:04x}")),
        ]
    });
    named(stored.into_iter().flatten())
}

fn named(
    pairs: impl Iterator<Item = (&'static str, String)>,
) -> impl Iterator<Item = (String, String)> {
    pairs.map(|(key, value)| (key.to_owned(), value))
}

/// Returns the columns of a port whose row is `stored`. Times and counters are written with
/// statistics, and times also with another change.
pub(super) fn port(
    tree: Option<&TreeFacts>,
    name: &str,
    stored: Option<&DatabaseRow>,
    extent: Extent,
) -> Columns {
    let info = |of: SpanningTreeProtocol| {
        let tree = tree.filter(|tree| tree.protocol == of);
        tree.and_then(|tree| tree.ports.get(name))
    };
    let (stp, rstp) = (
        info(SpanningTreeProtocol::Stp),
        info(SpanningTreeProtocol::Rstp),
    );
    let status = stp.map(|(info, _)| stp_status(info)).unwrap_or_default();
    let status = Datum::map(named(status.into_iter()));
    let rstp_status = rstp.map(|(info, _)| rstp_status(info)).unwrap_or_default();
    let mut columns = vec![("rstp_status", Datum::map(named(rstp_status.into_iter())))];
    let is = |column: &str| stored.and_then(|row| row.get(column));
    if extent == Extent::Statistics || !is("status").is_some_and(|is| is_alike(is, &status)) {
        columns.push(("status", status));
    }
    if extent == Extent::Statistics || (stp.is_none() && rstp.is_none()) {
        let counts = stp.map(|(info, _)| {
            let counts = info.counts;
            let always = [
                ("stp_tx_count", counts.sent),
                ("stp_rx_count", counts.received),
                ("stp_error_count", counts.malformed),
            ];
            always
                .into_iter()
                .chain(guard_count(info, "stp_guard_count"))
        });
        columns.push(("statistics", counted(counts.into_iter().flatten())));
        let counts = rstp.map(|(info, seconds)| {
            let counts = info.counts;
            let always = [
                ("rstp_tx_count", counts.sent),
                ("rstp_rx_count", counts.received),
                ("rstp_error_count", counts.malformed),
                ("rstp_uptime", *seconds),
            ];
            always
                .into_iter()
                .chain(guard_count(info, "rstp_guard_count"))
        });
        columns.push(("rstp_statistics", counted(counts.into_iter().flatten())));
    }
    columns
}

/// Returns the counter of a port that has a guard. Ports without one have the keys of Open vSwitch
/// only.
fn guard_count(info: &TreePortInfo, name: &'static str) -> Option<(&'static str, u64)> {
    let guards = info.settings.guards;
    (guards.bpdu || guards.root).then_some((name, info.counts.guarded))
}

/// Returns the key of a port that a guard shut or blocked.
fn guard_status(info: &TreePortInfo, key: &'static str) -> Option<(&'static str, String)> {
    info.guard.map(|guard| (key, guard.name().to_owned()))
}

fn counted(counts: impl Iterator<Item = (&'static str, u64)>) -> Datum {
    Datum::map(counts.map(|(name, count)| (name, i64::try_from(count).unwrap_or(i64::MAX))))
}

fn stp_status(info: &TreePortInfo) -> BTreeMap<&'static str, String> {
    let mut status = BTreeMap::from([
        // A decimal number, as in Open vSwitch 3.1.
        ("stp_port_id", info.settings.id.0.to_string()),
        ("stp_state", info.state.stp_name().to_owned()),
        ("stp_sec_in_state", info.seconds_in_state.to_string()),
        ("stp_role", info.role.stp_name().to_owned()),
    ]);
    status.extend(guard_status(info, "stp_guard"));
    status
}

fn rstp_status(info: &TreePortInfo) -> BTreeMap<&'static str, String> {
    let known = &info.designated;
    let mut status = BTreeMap::from([
        ("rstp_port_id", format!("{:04x}", info.settings.id.0)),
        ("rstp_port_role", info.role.rstp_name().to_owned()),
        ("rstp_port_state", info.state.rstp_name().to_owned()),
        ("rstp_designated_bridge_id", known.bridge.split()),
        ("rstp_designated_port_id", format!("{:04x}", known.port.0)),
        ("rstp_designated_path_cost", known.cost.to_string()),
    ]);
    status.extend(guard_status(info, "rstp_guard"));
    status
}
