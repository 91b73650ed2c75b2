//! The columns of `Port` and `Interface` for bonds and LACP (ovs-vswitchd.conf.db(5), "Bonding
//! Configuration" and "LACP Configuration").

use std::time::Duration;

use ovsdb::Datum;
use packet::MacAddr;

use crate::rows::Record;
use config::{BondConfig, BondMode, LacpActivity, LacpConfig, LacpMemberConfig, LogicalPort};
use l2::bond::{REBALANCE_INTERVAL, REBALANCE_INTERVAL_MIN};

/// Keys of a port's `other_config` that apply to bonds. `lb-output-action` changes texts only: a bond
/// never recirculates frames.
const KEYS: [&str; 7] = [
    "bond-rebalance-interval",
    "bond-miimon-interval",
    "bond-hash-basis",
    "bond-primary",
    "all-members-active",
    "lb-output-action",
    "lacp-fallback-ab",
];

/// The methods to detect a failed member. Both are the kernel's link state, which is reported
/// without polling.
const DETECT_MODES: [&str; 2] = ["carrier", "miimon"];

/// Keys of `other_config` that apply to every LACP port.
const LACP_KEYS: [&str; 3] = ["lacp-system-id", "lacp-system-priority", "lacp-time"];

/// Keys of `other_config` that apply to the interfaces of a LACP port.
const MEMBER_KEYS: [&str; 3] = ["lacp-port-id", "lacp-port-priority", "lacp-aggregation-key"];

/// The default LACP system priorities, those of Open vSwitch: a partner prefers bonds.
const SYSTEM_PRIORITY: u16 = 65535;
const SYSTEM_PRIORITY_OF_BOND: u16 = 65534;

/// Returns true if a port has several interfaces.
pub(super) fn is_bond(port: Record<'_>) -> bool {
    let interfaces = port.datum("interfaces").into_iter();
    interfaces.flat_map(Datum::uuids).count() > 1
}

/// Returns true if a port uses LACP.
fn uses_lacp(port: Record<'_>) -> bool {
    matches!(port.text("lacp"), Some("active" | "passive"))
}

/// Returns true if a port supports this key of its `other_config`.
pub(super) fn supports_key(port: Record<'_>, key: &str, value: &str) -> bool {
    let is_bond = is_bond(port);
    (is_bond && KEYS.contains(&key))
        || (is_bond && key == "bond-detect-mode" && DETECT_MODES.contains(&value))
        || ((is_bond || uses_lacp(port)) && LACP_KEYS.contains(&key))
}

/// Returns true if a port supports this key of its interface's `other_config`.
pub(super) fn supports_member_key(port: Record<'_>, key: &str) -> bool {
    (is_bond(port) || uses_lacp(port)) && MEMBER_KEYS.contains(&key)
}

/// Reads the settings of a bond, or of a single LACP interface, without members.
pub(super) fn read_bond(port: Record<'_>) -> Option<BondConfig> {
    (is_bond(port) || uses_lacp(port)).then(|| read(port))
}

fn read(port: Record<'_>) -> BondConfig {
    let other = port.map("other_config");
    let key = |key| other.get(key).copied();
    let delay = |column| {
        let millis = port.integer(column).unwrap_or_default();
        Duration::from_millis(u64::try_from(millis).unwrap_or_default())
    };
    let mut modes = BondMode::ALL.into_iter();
    let mode = modes.find(|mode| port.text("bond_mode") == Some(mode.name()));
    let interval = key("bond-rebalance-interval").and_then(|text| text.parse().ok());
    let interval = interval.map_or(REBALANCE_INTERVAL, Duration::from_millis);
    let basis = key("bond-hash-basis").and_then(|text| text.parse().ok());
    BondConfig {
        mode: mode.unwrap_or_default(),
        updelay: delay("bond_updelay"),
        downdelay: delay("bond_downdelay"),
        rebalance_interval: (!interval.is_zero()).then(|| interval.max(REBALANCE_INTERVAL_MIN)),
        hash_basis: basis.unwrap_or_default(),
        primary: key("bond-primary").map(str::to_owned),
        last_active: port
            .text("bond_active_slave")
            .and_then(|text| text.parse().ok()),
        all_members_active: key("all-members-active") == Some("true"),
        lacp: read_lacp(port),
        lacp_fallback: key("lacp-fallback-ab") == Some("true"),
        lb_output: key("lb-output-action") == Some("true"),
        is_single_member: !is_bond(port),
        members: Vec::new(),
    }
}

/// Keeps the active member of existing bonds: they know it themselves, and have written the column.
pub(super) fn keep_active_members(ports: &mut [LogicalPort], before: &[LogicalPort]) {
    for port in ports {
        let same = before.iter().find(|before| before.name == port.name);
        let before = same.and_then(|before| before.bond.as_ref());
        if let (Some(bond), Some(before)) = (&mut port.bond, before) {
            bond.last_active = before.last_active;
        }
    }
}

fn read_lacp(port: Record<'_>) -> Option<LacpConfig> {
    let activity = match port.text("lacp")? {
        "active" => LacpActivity::Active,
        "passive" => LacpActivity::Passive,
        _ => return None,
    };
    let other = port.map("other_config");
    let key = |key| other.get(key).copied();
    // Open vSwitch accepts a group address, too.
    let system = key("lacp-system-id").and_then(|text| text.parse().ok());
    let system = system.filter(|address| *address != MacAddr::default());
    let priority = key("lacp-system-priority").and_then(positive);
    let default_priority = match is_bond(port) {
        true => SYSTEM_PRIORITY_OF_BOND,
        false => SYSTEM_PRIORITY,
    };
    Some(LacpConfig {
        activity,
        is_fast: key("lacp-time") == Some("fast"),
        system,
        priority: priority.unwrap_or(default_priority),
    })
}

/// Reads the LACP settings of an interface.
pub(super) fn read_member(interface: Record<'_>) -> LacpMemberConfig {
    let other = interface.map("other_config");
    let number = |key| other.get(key).copied().and_then(positive);
    let lacp = LacpMemberConfig::default();
    LacpMemberConfig {
        number: number("lacp-port-id"),
        priority: number("lacp-port-priority").unwrap_or(lacp.priority),
        key: number("lacp-aggregation-key"),
    }
}

/// Parses a LACP number; zero means none.
fn positive(text: &str) -> Option<u16> {
    text.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use ovsdb::Database;
    use serde_json::{Value, json};

    use super::*;
    use crate::desired::{InterfaceOutcome, convert_rows};
    use crate::testing::{empty, names, pairs, put, put_bridge, put_root, uuid};
    use config::Config;

    /// Returns the logical ports of a bridge whose bond has these columns, and the notes of one
    /// interface with the given columns.
    fn bond(columns: &[(&str, Value)], interface: Value) -> (Vec<LogicalPort>, String) {
        let desired = convert_rows(&rows(columns, interface), &Config::default());
        let notes = match &desired.interfaces[&uuid("Interface", "p1")] {
            InterfaceOutcome::Refused(why) => format!("refused: {why}"),
            InterfaceOutcome::Port { notes, .. } => notes.join("; "),
        };
        let bridges = desired.config.bridges.into_iter();
        let ports = bridges.flat_map(|bridge| bridge.switching.ports);
        (ports.collect(), notes)
    }

    /// Returns the rows of this bridge.
    fn rows(columns: &[(&str, Value)], interface: Value) -> Database {
        let mut database = empty();
        put(&mut database, "Interface", "p2", &json!({"name": "p2"}));
        let mut port = json!({"name": "bond0", "interfaces": names_of_both()});
        for (column, value) in columns {
            port[column] = value.clone();
        }
        put(&mut database, "Port", "p1", &port);
        put_bridge(&mut database, "br0", json!({}), &[("p1", interface)], &[]);
        put_root(&mut database, &["br0"], 1);
        database
    }

    fn names_of_both() -> Value {
        names("Interface", &["p2", "p1"])
    }

    #[test]
    fn bond_interfaces_form_one_port() {
        let (ports, notes) = bond(&[], json!({}));
        assert_eq!(notes, "");
        let [port] = &ports[..] else {
            panic!("{ports:?}");
        };
        let config = port.bond.as_ref().expect("it is a bond");
        assert_eq!((port.name.as_str(), port.members.len()), ("bond0", 2));
        let names: Vec<_> = config.members.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["p1", "p2"]);
        let numbers: Vec<_> = config.members.iter().map(|of| of.port).collect();
        assert_eq!(numbers, port.members);
        assert_eq!(config.mode, BondMode::ActiveBackup);
        assert_eq!(config.rebalance_interval, Some(REBALANCE_INTERVAL));
        assert_eq!((config.lacp, config.lacp_fallback), (None, false));
    }

    #[test]
    fn bond_settings_are_read() {
        let other = pairs(&[
            ("bond-rebalance-interval", "500"),
            ("bond-hash-basis", "7"),
            ("bond-primary", "p2"),
            ("lacp-system-id", "02:00:00:00:00:09"),
            ("lacp-time", "fast"),
            ("lacp-fallback-ab", "true"),
            ("bond-detect-mode", "miimon"),
            ("bond-miimon-interval", "50"),
            ("all-members-active", "true"),
            ("lb-output-action", "true"),
        ]);
        let columns = [
            ("bond_mode", json!("balance-tcp")),
            ("bond_updelay", json!(100)),
            ("bond_downdelay", json!(-1)),
            ("bond_active_slave", json!("02:00:00:00:00:0a")),
            ("lacp", json!("passive")),
            ("other_config", other),
        ];
        let interface = json!({"other_config": pairs(&[("lacp-port-id", "5")])});
        let (ports, notes) = bond(&columns, interface);
        assert_eq!(notes, "");
        let config = ports[0].bond.clone().expect("it is a bond");
        let lacp = LacpConfig {
            activity: LacpActivity::Passive,
            is_fast: true,
            system: Some("02:00:00:00:00:09".parse().expect("an address")),
            priority: 65534,
        };
        assert_eq!(
            (config.mode, config.lacp),
            (BondMode::BalanceTcp, Some(lacp))
        );
        assert_eq!(config.updelay, Duration::from_millis(100));
        assert_eq!(config.downdelay, Duration::ZERO);
        assert_eq!(config.rebalance_interval, Some(REBALANCE_INTERVAL_MIN));
        assert_eq!((config.hash_basis, config.lacp_fallback), (7, true));
        assert!(config.lb_output);
        assert_eq!(
            (config.all_members_active, config.is_single_member),
            (true, false)
        );
        let last = config.last_active.map(|address| address.to_string());
        assert_eq!(last.as_deref(), Some("02:00:00:00:00:0a"));
        assert_eq!(config.primary.as_deref(), Some("p2"));
        let numbers = config.members.iter().map(|of| of.lacp.number);
        assert_eq!(numbers.collect::<Vec<_>>(), [Some(5), None]);
    }

    #[test]
    fn lacp_works_on_single_interface() {
        let mut database = empty();
        let other = pairs(&[("lacp-time", "fast"), ("bond-primary", "p1")]);
        let port = json!({
            "name": "p1", "interfaces": names("Interface", &["p1"]), "lacp": "active",
            "other_config": other, "mac": "02:00:00:00:00:01",
        });
        put(&mut database, "Port", "p1", &port);
        put_bridge(&mut database, "br0", json!({}), &[("p1", json!({}))], &[]);
        put_root(&mut database, &["br0"], 1);
        let desired = convert_rows(&database, &Config::default());
        let ports = &desired.config.bridges[0].switching.ports;
        let config = ports[0].bond.as_ref().expect("it speaks");
        assert!(config.is_single_member && config.lacp.is_some_and(|lacp| lacp.is_fast));
        assert_eq!((ports.len(), config.members.len()), (1, 1));
        let InterfaceOutcome::Port { notes, .. } = &desired.interfaces[&uuid("Interface", "p1")]
        else {
            panic!("it is a port");
        };
        let parts = ["other_config:bond-primary: ", "mac: ignored: "];
        assert!(
            notes.len() == 2
                && parts
                    .iter()
                    .zip(notes)
                    .all(|(part, note)| note.starts_with(part)),
            "{notes:?}"
        );
    }

    #[test]
    fn bond_active_member_is_read_once_with_fake_interface() {
        let columns = [
            ("bond_fake_iface", json!(true)),
            ("bond_active_slave", json!("02:00:00:00:00:0a")),
        ];
        let mut database = rows(&columns, json!({}));
        let before = convert_rows(&database, &Config::default()).config;
        let names: Vec<_> = before.bridges[0]
            .ports
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names, ["p1=1", "p2=2", "tap:bond0=3"]);
        let ports = &before.bridges[0].switching.ports;
        assert_eq!(
            ports
                .iter()
                .map(|port| port.bond.is_some())
                .collect::<Vec<_>>(),
            [true, false]
        );
        // The column that the switch writes itself has no effect.
        let mut port = json!({"name": "bond0", "interfaces": names_of_both()});
        port["bond_active_slave"] = json!("02:00:00:00:00:0b");
        port["bond_fake_iface"] = json!(true);
        put(&mut database, "Port", "p1", &port);
        assert_eq!(convert_rows(&database, &before).config, before);
    }

    #[test]
    fn patch_port_is_a_bond_member() {
        let patch = json!({"type": "patch", "options": pairs(&[("peer", "x")])});
        let (ports, notes) = bond(&[], patch);
        assert_eq!(notes, "peer: there is no patch port x");
        assert_eq!(ports[0].members.len(), 2);
    }
}
