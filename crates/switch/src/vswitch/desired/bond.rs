//! The columns of `Port` and `Interface` that say how a port that is several interfaces carries
//! its frames (ovs-vswitchd.conf.db(5), "Bonding Configuration" and "LACP Configuration").

use std::time::Duration;

use ovsdb::Datum;

use crate::bond::{REBALANCE_INTERVAL, REBALANCE_INTERVAL_MIN};
use crate::config::{Activity, BondConfig, BondMode, LacpConfig, LacpMember};
use crate::vswitch::rows::Record;

/// Columns of a port that only a bond heeds.
pub(super) const COLUMNS: [&str; 2] = ["bond_mode", "lacp"];

/// Keys of its `other_config` that only a bond heeds.
const KEYS: [&str; 7] = [
    "bond-rebalance-interval",
    "bond-hash-basis",
    "bond-primary",
    "lacp-system-id",
    "lacp-system-priority",
    "lacp-time",
    "lacp-fallback-ab",
];

/// The same of its interfaces.
const KEYS_OF_MEMBERS: [&str; 3] = ["lacp-port-id", "lacp-port-priority", "lacp-aggregation-key"];

/// The priority of a system in LACP, if nobody says another, as Open vSwitch has it for bonds.
const SYSTEM_PRIORITY: u16 = 65534;

/// Whether a port is several interfaces.
pub(super) fn is_bond(port: Record<'_>) -> bool {
    let interfaces = port.datum("interfaces").into_iter();
    interfaces.flat_map(Datum::uuids).count() > 1
}

/// Whether a bond does as this key of the port's `other_config` says.
pub(super) fn heeds(key: &str, value: &str) -> bool {
    KEYS.contains(&key) || (key, value) == ("bond-detect-mode", "carrier")
}

/// Whether a bond does as all of an interface's `other_config` says.
pub(super) fn heeds_all_of(interface: Record<'_>) -> bool {
    let mut keys = interface.map("other_config").into_keys();
    keys.all(|key| KEYS_OF_MEMBERS.contains(&key))
}

/// What is asked of a bond, without its members.
pub(super) fn read_bond(port: Record<'_>) -> BondConfig {
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
        lacp: read_lacp(port),
        falls_back: key("lacp-fallback-ab") == Some("true"),
        members: Vec::new(),
    }
}

fn read_lacp(port: Record<'_>) -> Option<LacpConfig> {
    let activity = match port.text("lacp")? {
        "active" => Activity::Active,
        "passive" => Activity::Passive,
        _ => return None,
    };
    let other = port.map("other_config");
    let key = |key| other.get(key).copied();
    let system = key("lacp-system-id").and_then(|text| super::bridge::read_address(text).ok());
    let priority = key("lacp-system-priority").and_then(positive);
    Some(LacpConfig {
        activity,
        is_fast: key("lacp-time") == Some("fast"),
        system,
        priority: priority.unwrap_or(SYSTEM_PRIORITY),
    })
}

/// What an interface is in LACP.
pub(super) fn read_member(interface: Record<'_>) -> LacpMember {
    let other = interface.map("other_config");
    let number = |key| other.get(key).copied().and_then(positive);
    let lacp = LacpMember::default();
    LacpMember {
        number: number("lacp-port-id"),
        priority: number("lacp-port-priority").unwrap_or(lacp.priority),
        key: number("lacp-aggregation-key"),
    }
}

/// A number of LACP; zero stands for none.
fn positive(text: &str) -> Option<u16> {
    text.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::{Config, LogicalPort};
    use crate::vswitch::desired::{InterfaceFate, desire};
    use crate::vswitch::testing::{empty, names, pairs, put, put_bridge, put_root, uuid};

    /// The logical ports of a bridge with a bond of these columns, and what is said of one of its
    /// interfaces, which has these.
    fn bond(columns: &[(&str, Value)], interface: Value) -> (Vec<LogicalPort>, String) {
        let mut database = empty();
        put(&mut database, "Interface", "p2", &json!({"name": "p2"}));
        let members = names("Interface", &["p2", "p1"]);
        let mut port = json!({"name": "bond0", "interfaces": members});
        for (column, value) in columns {
            port[column] = value.clone();
        }
        put(&mut database, "Port", "p1", &port);
        put_bridge(&mut database, "br0", json!({}), &[("p1", interface)], &[]);
        put_root(&mut database, &["br0"], 1);
        let desired = desire(&database, &Config::default());
        let said = match &desired.interfaces[&uuid("Interface", "p1")] {
            InterfaceFate::Refused(why) => format!("refused: {why}"),
            InterfaceFate::Port { notes, .. } => notes.join("; "),
        };
        let bridges = desired.config.bridges.into_iter();
        let ports = bridges.flat_map(|bridge| bridge.switching.ports);
        (ports.collect(), said)
    }

    #[test]
    fn several_interfaces_are_one_port_as_the_manual_has_it() {
        let (ports, said) = bond(&[], json!({}));
        assert_eq!(said, "");
        let [port] = &ports[..] else {
            panic!("{ports:?}");
        };
        let asked = port.bond.as_ref().expect("it is a bond");
        assert_eq!((port.name.as_str(), port.members.len()), ("bond0", 2));
        let names: Vec<_> = asked.members.iter().map(|of| of.name.as_str()).collect();
        assert_eq!(names, ["p1", "p2"]);
        let numbers: Vec<_> = asked.members.iter().map(|of| of.port).collect();
        assert_eq!(numbers, port.members);
        assert_eq!(asked.mode, BondMode::ActiveBackup);
        assert_eq!(asked.rebalance_interval, Some(REBALANCE_INTERVAL));
        assert_eq!((asked.lacp, asked.falls_back), (None, false));
    }

    #[test]
    fn what_a_bond_is_asked_is_read() {
        let other = pairs(&[
            ("bond-rebalance-interval", "500"),
            ("bond-hash-basis", "7"),
            ("bond-primary", "p2"),
            ("lacp-system-id", "02:00:00:00:00:09"),
            ("lacp-time", "fast"),
            ("lacp-fallback-ab", "true"),
            ("bond-detect-mode", "miimon"),
        ]);
        let columns = [
            ("bond_mode", json!("balance-tcp")),
            ("bond_updelay", json!(100)),
            ("bond_downdelay", json!(-1)),
            ("lacp", json!("passive")),
            ("other_config", other),
        ];
        let interface = json!({"other_config": pairs(&[("lacp-port-id", "5")])});
        let (ports, said) = bond(&columns, interface);
        assert_eq!(
            said,
            "other_config:bond-detect-mode: not honoured: this switch has no other_config:bond-detect-mode"
        );
        let asked = ports[0].bond.clone().expect("it is a bond");
        let lacp = LacpConfig {
            activity: Activity::Passive,
            is_fast: true,
            system: Some("02:00:00:00:00:09".parse().expect("an address")),
            priority: 65534,
        };
        assert_eq!((asked.mode, asked.lacp), (BondMode::BalanceTcp, Some(lacp)));
        assert_eq!(asked.updelay, Duration::from_millis(100));
        assert_eq!(asked.downdelay, Duration::ZERO);
        assert_eq!(asked.rebalance_interval, Some(REBALANCE_INTERVAL_MIN));
        assert_eq!((asked.hash_basis, asked.falls_back), (7, true));
        assert_eq!(asked.primary.as_deref(), Some("p2"));
        let numbers = asked.members.iter().map(|of| of.lacp.number);
        assert_eq!(numbers.collect::<Vec<_>>(), [Some(5), None]);
    }

    #[test]
    fn what_has_no_carrier_of_its_own_is_no_member() {
        let patch = json!({"type": "patch", "options": pairs(&[("peer", "x")])});
        let (ports, said) = bond(&[], patch);
        assert!(
            said.starts_with("refused: bonds are of interfaces"),
            "{said}"
        );
        assert_eq!(ports[0].members.len(), 1);
    }
}
