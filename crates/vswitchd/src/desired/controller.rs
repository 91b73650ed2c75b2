//! Rows of the table `Controller`.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::path::{Component, Path};
use std::time::Duration;

use ovsdb::Database;

use super::interface::unsupported;
use super::known_keys::{self, is_meant};
use super::{ControllerEndpoint, ControllerOutcome, DesiredState};
use crate::rows::{Record, root};
use config::{
    BridgeConfig, ControllerConfig, ControllerOptions, ControllerRate, ControllerTarget,
    DatabaseRemote, ListenAddress, PacketRate,
};

/// Columns of unsupported tuning options.
const UNSUPPORTED: [&str; 4] = [
    "controller_queue_size",
    "local_ip",
    "local_netmask",
    "local_gateway",
];

/// Columns that apply only to active connections.
const ACTIVE_ONLY: [&str; 4] = [
    "max_backoff",
    "inactivity_probe",
    "enable_async_messages",
    "controller_rate_limit",
];

/// The minimum of `max_backoff`, in milliseconds, as in Open vSwitch (ovs-vswitchd.conf.db(5)).
const BACKOFF_MIN_MS: i64 = 1000;

/// The minimum of `inactivity_probe`, in milliseconds: more frequent probes are traffic of their
/// own.
const PROBE_INTERVAL_MIN_MS: i64 = 1000;

/// The largest DSCP: it has six bits (RFC 2474, 3).
const DSCP_MAX: u8 = 63;

/// The valid rate limits.
const RATES: &str = "the minimum is 100 packets per second, with a burst of 25";

/// Reads the controllers of a bridge.
pub(super) fn read_controllers(
    database: &Database,
    bridge: Record<'_>,
    config: &mut BridgeConfig,
    desired: &mut DesiredState,
) {
    let mut rows: Vec<_> = bridge
        .named_by(database, "controller", "Controller")
        .collect();
    rows.sort_by_key(|row| (row.text("target"), row.uuid));
    let rates: BTreeSet<_> = rows.iter().map(|row| rate(*row)).collect();
    let shared = rates.first().copied().filter(|_| rates.len() == 1);
    if let Some(Ok((limit, burst))) = shared {
        (config.controller_rate_limit, config.controller_burst_limit) = (limit, burst);
    }
    let allows_in_band = bridge.map("other_config").get("disable-in-band") != Some(&"true");
    if allows_in_band {
        config.in_band.managers = managers(database);
    }
    for row in rows {
        let endpoint = row
            .text("target")
            .map_or_else(|| Err("no target".to_owned()), read_endpoint)
            .and_then(|endpoint| match &desired.config.unix_socket_dir {
                Some(rundir) => confined(endpoint, rundir, &config.name).inspect_err(|why| {
                    let target = row.text("target").unwrap_or_default();
                    desired
                        .errors
                        .insert(refused_socket(&config.name, target, why));
                }),
                None => Ok(endpoint),
            });
        match &endpoint {
            Ok(ControllerEndpoint::Target(target)) if !has(config, target) => {
                let mut tuning = tuning(row);
                tuning.in_band &= allows_in_band;
                if shared.is_none() {
                    tuning.rate_limit = rate_limit(row);
                }
                config.controllers.push(ControllerConfig {
                    target: target.clone(),
                    options: tuning,
                });
            }
            Ok(ControllerEndpoint::Listen(listen)) if !config.listen.contains(listen) => {
                config.listen.push(listen.clone());
            }
            _ => {}
        }
        let mut notes = notes_of(row);
        if rate(row).is_err() {
            notes.push(format!("controller_rate_limit: ignored: {RATES}"));
        }
        let outcome = ControllerOutcome {
            bridge: config.name.clone(),
            endpoint,
            notes,
        };
        desired.controllers.insert(row.uuid, outcome);
    }
}

/// Returns the managers that the database connects to and that may be reached through a bridge:
/// those with an IPv4 address that are not out of band in any row.
fn managers(database: &Database) -> Vec<SocketAddrV4> {
    let rows = root(database).into_iter();
    let rows: Vec<_> = rows
        .flat_map(|root| root.named_by(database, "manager_options", "Manager"))
        .collect();
    let is_outside = |row: &&Record<'_>| row.text("connection_mode") == Some("out-of-band");
    let outside: Vec<_> = rows
        .iter()
        .filter(is_outside)
        .map(|row| row.text("target"))
        .collect();
    let targets = rows.iter().map(|row| row.text("target"));
    let targets = targets.filter(|target| !outside.contains(target));
    let places = targets.filter_map(|target| match target?.parse().ok()? {
        DatabaseRemote::Tcp { host, port } | DatabaseRemote::Ssl { host, port } => {
            Some(SocketAddrV4::new(host.parse().ok()?, port))
        }
        DatabaseRemote::Unix(_) => None,
    });
    let places: BTreeSet<_> = places.collect();
    places.into_iter().collect()
}

/// Returns the packet-in rate limit of a controller, if it has one of its own.
fn rate_limit(row: Record<'_>) -> Option<PacketRate> {
    let (limit, burst) = rate(row).ok()?;
    ControllerRate { limit, burst }.rate().ok()?
}

/// Returns true if the bridge has a controller with this target.
fn has(config: &BridgeConfig, target: &ControllerTarget) -> bool {
    let mut controllers = config.controllers.iter();
    controllers.any(|controller| controller.target == *target)
}

/// Reads the options of a controller's connection. Values out of range become the nearest valid
/// ones.
fn tuning(row: Record<'_>) -> ControllerOptions {
    let usual = ControllerOptions::default();
    let milliseconds = |number: i64| Duration::from_millis(number.unsigned_abs());
    let max_backoff = row
        .integer("max_backoff")
        .map_or(usual.max_backoff, |most| {
            milliseconds(most.max(BACKOFF_MIN_MS))
        });
    let inactivity_probe = match row.integer("inactivity_probe") {
        None => usual.inactivity_probe,
        Some(0) => None,
        Some(probe) => Some(milliseconds(probe.max(PROBE_INTERVAL_MIN_MS))),
    };
    ControllerOptions {
        max_backoff,
        inactivity_probe,
        asynchronous: !row.has("enable_async_messages") || row.is_true("enable_async_messages"),
        dscp: dscp(row).ok().flatten(),
        rate_limit: None,
        in_band: row.text("connection_mode") != Some("out-of-band"),
    }
}

/// Reads the DSCP; an error if it is out of range.
fn dscp(row: Record<'_>) -> Result<Option<u8>, ()> {
    let Some(text) = row.map("other_config").get("dscp").copied() else {
        return Ok(None);
    };
    let dscp = text.parse().map_err(|_| ())?;
    (dscp <= DSCP_MAX).then_some(Some(dscp)).ok_or(())
}

/// Reads the packet-in rate limit; an error if it is invalid.
fn rate(row: Record<'_>) -> Result<(Option<u32>, Option<u32>), ()> {
    let number = |column| match row.integer(column) {
        None => Ok(None),
        Some(number) => u32::try_from(number).map(Some).map_err(|_| ()),
    };
    let rate = ControllerRate {
        limit: number("controller_rate_limit")?,
        burst: number("controller_burst_limit")?,
    };
    rate.rate().map_err(|_| ())?;
    Ok((rate.limit, rate.burst))
}

/// Parses a target. A `p` before Open vSwitch's connection methods means a passive connection.
fn read_endpoint(target: &str) -> Result<ControllerEndpoint, String> {
    match target.starts_with('p') {
        true => target
            .parse::<ListenAddress>()
            .map(ControllerEndpoint::Listen),
        false => target
            .parse::<ControllerTarget>()
            .map(ControllerEndpoint::Target),
    }
    .map_err(|error| error.problem)
}

/// Returns `endpoint` if it is allowed to writers of the database: active Unix sockets must be in the
/// run directory; passive ones must also begin with the bridge's name and replace no other socket
/// (as in Open vSwitch without `--no-self-confinement`).
fn confined(
    endpoint: ControllerEndpoint,
    rundir: &Path,
    bridge: &str,
) -> Result<ControllerEndpoint, String> {
    let within = |path: &Path| path.strip_prefix(rundir).map(Path::to_owned).ok();
    let is_plain = |path: &Path| {
        path.components()
            .all(|part| matches!(part, Component::Normal(_)))
    };
    let is_allowed = match &endpoint {
        ControllerEndpoint::Target(ControllerTarget::Unix(path)) => {
            path.components().count() == 1 || within(path).is_some_and(|path| is_plain(&path))
        }
        ControllerEndpoint::Listen(ListenAddress::Unix(path)) => within(path).is_some_and(|path| {
            let name = path.to_string_lossy();
            name.starts_with(&format!("{bridge}.")) && !name.contains('/')
        }),
        ControllerEndpoint::Target(_) | ControllerEndpoint::Listen(_) => true,
    };
    is_allowed.then_some(endpoint).ok_or_else(|| {
        let rundir = rundir.display();
        format!(
            "the socket is outside the run directory: use unix:{rundir}/NAME, punix:{rundir}/{bridge}.NAME, or \
             {rundir}/{bridge}.mgmt, which always exists, or start with --no-self-confinement"
        )
    })
}

/// Returns the log line about a socket outside of the permitted directory.
fn refused_socket(bridge: &str, target: &str, why: &str) -> String {
    let what = match target.starts_with('p') {
        true => "Not adding Unix domain socket controller",
        false => "Not connecting to socket controller",
    };
    format!("bridge {bridge}: {what} \"{target}\": {why}")
}

fn notes_of(row: Record<'_>) -> Vec<String> {
    let is_active = row
        .text("target")
        .is_some_and(|target| !target.starts_with('p'));
    let of_active = ACTIVE_ONLY.into_iter().filter(|_| !is_active);
    let given = UNSUPPORTED.into_iter().chain(of_active);
    let mut notes: Vec<_> = given
        .filter(|column| row.has(column))
        .map(|column| format!("{column}: {}", unsupported(column)))
        .collect();
    for key in row.map("other_config").keys() {
        let is_dscp = *key == "dscp";
        if is_meant(key, &known_keys::CONTROLLER) && !(is_dscp && is_active) {
            notes.push(format!("other_config:{key}: {}", unsupported(key)));
        }
    }
    if dscp(row).is_err() {
        notes.push(format!(
            "other_config:dscp: ignored: it is a number up to {DSCP_MAX}"
        ));
    }
    let service = row.text("type") == Some("service");
    if service && is_active {
        notes.push("type: ignored: active connections are of primary controllers".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::desired::convert_rows;
    use crate::testing::{empty, names, pairs, put, put_bridge};
    use config::Config;

    #[test]
    fn managers_with_address_use_in_band_unless_disabled() {
        let mut database = empty();
        let rows = [
            ("a", "tcp:192.0.2.1", json!([])),
            ("b", "ssl:192.0.2.2:7", json!(["set", ["in-band"]])),
            ("c", "tcp:192.0.2.3", json!(["set", ["out-of-band"]])),
            ("d", "tcp:192.0.2.3", json!(["set", []])),
            ("e", "tcp:[2001:db8::1]", json!(["set", []])),
            ("f", "ptcp:6640", json!(["set", []])),
            ("g", "unix:db.sock", json!(["set", []])),
        ];
        for (name, target, mode) in &rows {
            let mut row = json!({"target": target});
            if *name != "a" {
                row["connection_mode"] = mode.clone();
            }
            put(&mut database, "Manager", name, &row);
        }
        let apart = json!({"other_config": pairs(&[("disable-in-band", "true")])});
        put_bridge(&mut database, "br0", json!({}), &[], &[]);
        put_bridge(&mut database, "br1", apart, &[], &[]);
        let managers = names("Manager", &rows.each_ref().map(|(name, ..)| *name));
        let row = json!({"bridges": names("Bridge", &["br0", "br1"]), "next_cfg": 1, "manager_options": managers});
        put(&mut database, "Open_vSwitch", ".", &row);
        let desired = convert_rows(&database, &Config::default());
        let managers = desired.config.bridges.iter().map(|bridge| {
            let managers = bridge.in_band.managers.iter();
            managers.map(ToString::to_string).collect::<Vec<_>>()
        });
        let [met, none] = [&["192.0.2.1:6640", "192.0.2.2:7"][..], &[]];
        assert_eq!(managers.collect::<Vec<_>>(), [met, none]);
    }
}
