//! The tables of flow export: `sFlow`, `NetFlow`, `IPFIX` and `Flow_Sample_Collector_Set`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use ovsdb::Database;

use super::BridgeOutcome;
use crate::rows::Record;
use config::{
    BridgeConfig, CollectorSet, Exporters, IpfixCache, IpfixConfig, NetflowConfig, NetflowSettings,
    SflowConfig, parse_collector,
};
use flow_export::ipfix::FLOWS_MAX;
use flow_export::sflow::HEADER_MAX;

/// The default UDP port of sFlow collectors (sFlow version 5, section 5).
const SFLOW_PORT: u16 = 6343;

/// The default UDP port of IPFIX collectors (RFC 7011, 10.3.4).
const IPFIX_PORT: u16 = 4739;

/// The default engine type and engine id: those of Open vSwitch's userspace datapath.
const NETFLOW_ENGINE: [u8; 2] = [0x2f, 0xd1];

/// The largest engine id that fits into interface numbers, and the largest number of ports that
/// then have distinct numbers (ovs-vswitchd.conf.db(5), the table `NetFlow`).
const NETFLOW_ENGINE_MAX: u8 = 0x7f;
const NETFLOW_PORTS_MAX: usize = 508;

/// The defaults (ovs-vswitchd.conf.db(5), the tables `NetFlow`, `sFlow` and `IPFIX`).
const NETFLOW_ACTIVE: Duration = Duration::from_secs(600);
const SFLOW_HEADER: i64 = 128;
const SAMPLING: i64 = 400;
const SFLOW_POLLING: i64 = 30;

/// Reads the exporters of a bridge. `sub_agent` is its number among the bridges with sFlow.
pub(super) fn read_exporters(
    database: &Database,
    row: Record<'_>,
    sub_agent: u32,
    config: &mut BridgeConfig,
    outcome: &mut BridgeOutcome,
) {
    let [mut sflow_notes, mut ipfix_notes, mut netflow_notes] = [const { Vec::new() }; 3];
    let sflow = row.named_by(database, "sflow", "sFlow").next();
    let ipfix = row.named_by(database, "ipfix", "IPFIX").next();
    let netflow = row.named_by(database, "netflow", "NetFlow").next();
    let ports = row.named_by(database, "ports", "Port").count();
    config.exporters = Exporters {
        netflow: netflow.and_then(|row| read_netflow(row, ports, &mut netflow_notes)),
        sflow: sflow.and_then(|row| read_sflow(row, sub_agent, &mut sflow_notes)),
        ipfix: ipfix.and_then(|row| read_ipfix(row, &mut ipfix_notes)),
        sets: read_sets(database, row, outcome),
    };
    for (column, notes) in [
        ("sflow", sflow_notes),
        ("ipfix", ipfix_notes),
        ("netflow", netflow_notes),
    ] {
        if !notes.is_empty() {
            outcome.notes.insert(column.to_owned(), notes.join("; "));
        }
    }
}

/// Reads the collector sets that refer to a bridge; no column of the bridge refers to them. Of two
/// sets with the same id the first applies.
fn read_sets(
    database: &Database,
    bridge: Record<'_>,
    outcome: &mut BridgeOutcome,
) -> BTreeMap<u32, CollectorSet> {
    const TABLE: &str = "Flow_Sample_Collector_Set";
    let mut sets = BTreeMap::new();
    let rows = database.rows(TABLE);
    for set in rows.filter_map(|(uuid, _)| Record::of(database, TABLE, uuid)) {
        let of_bridge = set.named_by(database, "bridge", "Bridge").next();
        let id = set.integer("id").and_then(|id| u32::try_from(id).ok());
        let ipfix = set.named_by(database, "ipfix", "IPFIX").next();
        let (Some(id), Some(ipfix)) = (id, ipfix) else {
            continue;
        };
        if of_bridge.is_none_or(|it| it.uuid != bridge.uuid) {
            continue;
        }
        let mut notes = Vec::new();
        let targets = read_targets(ipfix, Some(IPFIX_PORT), &mut notes);
        let cache = read_cache(ipfix, &mut notes);
        if !targets.is_empty() {
            sets.entry(id).or_insert(CollectorSet { targets, cache });
        }
        if !notes.is_empty() {
            let key = format!("flow_sample_collector_set:{id}");
            outcome.notes.insert(key, notes.join("; "));
        }
    }
    sets
}

/// Reads the settings of the flow cache.
fn read_cache(row: Record<'_>, notes: &mut Vec<String>) -> IpfixCache {
    let number = |column: &str| u32::try_from(row.integer(column).unwrap_or(0)).unwrap_or(0);
    let flows_max = usize::try_from(number("cache_max_flows")).unwrap_or(usize::MAX);
    if flows_max > FLOWS_MAX {
        notes.push(format!("cache_max_flows: the limit is {FLOWS_MAX}"));
    }
    let options = row.map("other_config");
    IpfixCache {
        active: Duration::from_secs(number("cache_active_timeout").into()),
        flows_max: flows_max.min(FLOWS_MAX),
        name: options.get("virtual_obs_id").map(|name| (*name).to_owned()),
    }
}

fn read_sampling(row: Record<'_>, notes: &mut Vec<String>) -> Option<NonZeroU32> {
    let sampling = u32::try_from(row.integer("sampling").unwrap_or(SAMPLING)).ok();
    let sampling = sampling.and_then(NonZeroU32::new);
    if sampling.is_none() {
        notes.push("sampling: the minimum is 1 (every packet)".to_owned());
    }
    sampling
}

/// Reads the NetFlow exporter of a bridge with this number of ports.
fn read_netflow(row: Record<'_>, ports: usize, notes: &mut Vec<String>) -> Option<NetflowConfig> {
    let targets = read_targets(row, None, notes);
    let engine = ["engine_type", "engine_id"].map(|column| row.integer(column));
    let [kind, id] = NETFLOW_ENGINE;
    let [kind, id] = [(engine[0], kind), (engine[1], id)].map(|(value, default_value)| {
        value
            .and_then(|it| it.try_into().ok())
            .unwrap_or(default_value)
    });
    let add_id_to_interface = row.is_true("add_id_to_interface");
    if add_id_to_interface && id > NETFLOW_ENGINE_MAX {
        notes.push(format!(
            "add_id_to_interface: interface numbers are ambiguous with an engine id of {} or more",
            NETFLOW_ENGINE_MAX + 1
        ));
    }
    if add_id_to_interface && ports > NETFLOW_PORTS_MAX {
        notes.push(format!(
            "add_id_to_interface: interface numbers are ambiguous with more than {NETFLOW_PORTS_MAX} ports"
        ));
    }
    let active = match row.integer("active_timeout") {
        None | Some(0) => Some(NETFLOW_ACTIVE),
        Some(seconds) => u64::try_from(seconds).ok().map(Duration::from_secs),
    };
    (!targets.is_empty()).then_some(NetflowConfig {
        targets,
        settings: NetflowSettings {
            active,
            engine: [kind, id],
            add_id_to_interface,
        },
    })
}

fn read_sflow(row: Record<'_>, sub_agent: u32, notes: &mut Vec<String>) -> Option<SflowConfig> {
    let targets = read_targets(row, Some(SFLOW_PORT), notes);
    let number = |column: &str, default_value| row.integer(column).unwrap_or(default_value);
    let sampling = read_sampling(row, notes)?;
    let header = usize::try_from(number("header", SFLOW_HEADER).max(0)).unwrap_or(usize::MAX);
    if header > HEADER_MAX {
        notes.push(format!("header: the limit is {HEADER_MAX} bytes"));
    }
    let polling = u64::try_from(number("polling", SFLOW_POLLING)).unwrap_or(0);
    (!targets.is_empty()).then(|| SflowConfig {
        targets,
        agent: row.text("agent").map(str::to_owned),
        sub_agent,
        header: header.min(HEADER_MAX),
        sampling,
        polling: (polling > 0).then(|| Duration::from_secs(polling)),
    })
}

fn read_ipfix(row: Record<'_>, notes: &mut Vec<String>) -> Option<IpfixConfig> {
    let targets = read_targets(row, Some(IPFIX_PORT), notes);
    let sampling = read_sampling(row, notes)?;
    let number = |column: &str| u32::try_from(row.integer(column).unwrap_or(0)).unwrap_or(0);
    let options = row.map("other_config");
    let is_on = |key: &str| options.get(key).is_none_or(|value| *value == "true");
    for (key, value) in &options {
        match *key {
            "enable-input-sampling" | "enable-output-sampling" | "virtual_obs_id" => {}
            "enable-tunnel-sampling" if *value == "false" => {}
            "enable-tunnel-sampling" => notes.push(format!(
                "other_config:{key}: ignored: tunnel headers are not exported"
            )),
            _ => notes.push(format!("other_config:{key}: ignored: not supported")),
        }
    }
    let cache = read_cache(row, notes);
    (!targets.is_empty()).then(|| IpfixConfig {
        targets,
        sampling,
        observation: (number("obs_domain_id"), number("obs_point_id")),
        cache,
        directions: [
            is_on("enable-input-sampling"),
            is_on("enable-output-sampling"),
        ],
    })
}

/// Reads the collectors of a row, in order; adds a note for each invalid one.
fn read_targets(
    row: Record<'_>,
    usual_port: Option<u16>,
    notes: &mut Vec<String>,
) -> Vec<SocketAddr> {
    let mut targets = Vec::new();
    for text in row.texts("targets") {
        match parse_collector(text, usual_port) {
            Ok(target) => targets.push(target),
            Err(why) => notes.push(format!("targets: {why}")),
        }
    }
    targets.sort_unstable();
    targets.dedup();
    targets
}

#[cfg(test)]
mod tests;
