//! The columns of `Bridge` and `Port` for spanning trees (ovs-vswitchd.conf.db(5), "Spanning Tree
//! Configuration" and "Rapid Spanning Tree").

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use base::PortNo;
use ovsdb::{Database, Uuid};

use super::bridge::read_address;
use super::{BridgeOutcome, DesiredState, InterfaceOutcome, by_name};
use crate::rows::Record;
use config::{
    BridgeConfig, SpanningTreeConfig, SpanningTreePort, SpanningTreeProtocol, TreeGuards,
};

/// The keys of a bridge's `other_config`.
pub(super) const BRIDGE_KEYS: [&str; 11] = [
    "stp-system-id",
    "stp-priority",
    "stp-hello-time",
    "stp-max-age",
    "stp-forward-delay",
    "rstp-address",
    "rstp-priority",
    "rstp-force-protocol-version",
    "rstp-max-age",
    "rstp-forward-delay",
    "rstp-transmit-hold-count",
];

/// The keys of a port's `other_config`.
pub(super) const PORT_KEYS: [&str; 17] = [
    "stp-enable",
    "stp-port-num",
    "stp-port-priority",
    "stp-path-cost",
    "rstp-enable",
    "rstp-port-num",
    "rstp-port-priority",
    "rstp-path-cost",
    "rstp-port-admin-edge",
    "rstp-port-auto-edge",
    "rstp-port-mcheck",
    "stp-bpdu-guard",
    "stp-bpdu-guard-timeout",
    "stp-root-guard",
    "rstp-bpdu-guard",
    "rstp-bpdu-guard-timeout",
    "rstp-root-guard",
];

/// The range of the time after which a port that BPDU guard shut down is opened, in seconds.
const GUARD_TIMEOUT: RangeInclusive<u32> = 1..=86_400;

/// The ranges of times, in seconds (IEEE 802.1D-2004, table 17-1).
const HELLO_TIME: RangeInclusive<u16> = 1..=10;
const MAX_AGE: RangeInclusive<u16> = 6..=40;
const FORWARD_DELAY: RangeInclusive<u16> = 4..=30;

/// The hello time of RSTP, in seconds; it is fixed.
const RAPID_HELLO_TIME: u16 = 2;

/// Reader of a row's `other_config` that collects errors.
struct Keys<'a> {
    pairs: BTreeMap<&'a str, &'a str>,
    /// The prefix of the protocol's keys.
    prefix: &'static str,
    wrong: Vec<(String, String)>,
}

impl<'a> Keys<'a> {
    fn of(row: Record<'a>, protocol: SpanningTreeProtocol) -> Self {
        Self {
            pairs: row.map("other_config"),
            prefix: match protocol {
                SpanningTreeProtocol::Stp => "stp-",
                SpanningTreeProtocol::Rstp => "rstp-",
            },
            wrong: Vec::new(),
        }
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        let key = format!("{}{key}", self.prefix);
        self.pairs.get(&*key).copied()
    }

    /// Returns the number under `key`, if there is one within these bounds.
    fn number<T>(&mut self, key: &str, bounds: RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<u64> + PartialOrd + std::fmt::Display,
    {
        let text = self.text(key)?;
        let number = text.parse().ok();
        let number = number.and_then(|number| T::try_from(number).ok());
        let number = number.filter(|number| bounds.contains(number));
        if number.is_none() {
            let (least, most) = (bounds.start(), bounds.end());
            self.refuse(key, format!("'{text}' is no number from {least} to {most}"));
        }
        number
    }

    fn truth(&self, key: &str, otherwise: bool) -> bool {
        self.text(key).map_or(otherwise, |text| text == "true")
    }

    fn refuse(&mut self, key: &str, why: String) {
        let key = format!("other_config:{}{key}", self.prefix);
        self.wrong.push((key, why));
    }
}

/// Reads the spanning tree of a bridge and the ports in it, after the ports themselves.
pub(super) fn read_spanning(
    database: &Database,
    row: Record<'_>,
    config: &mut BridgeConfig,
    outcome: &mut BridgeOutcome,
    desired: &mut DesiredState,
) {
    let protocol = match (row.is_true("stp_enable"), row.is_true("rstp_enable")) {
        (_, true) => SpanningTreeProtocol::Rstp,
        (true, false) => SpanningTreeProtocol::Stp,
        (false, false) => return,
    };
    if row.is_true("stp_enable") && protocol == SpanningTreeProtocol::Rstp {
        let why = "ignored: rstp_enable takes precedence";
        outcome
            .notes
            .insert("stp_enable".to_owned(), why.to_owned());
    }
    let mut keys = Keys::of(row, protocol);
    let mut tree = match protocol {
        SpanningTreeProtocol::Stp => read_stp(&mut keys),
        SpanningTreeProtocol::Rstp => read_rstp(&mut keys),
    };
    outcome.notes.extend(keys.wrong);
    read_ports(database, row, &config.name, &mut tree, desired);
    config.spanning = Some(tree);
}

fn read_stp(keys: &mut Keys<'_>) -> SpanningTreeConfig {
    let defaults = SpanningTreeConfig::new(SpanningTreeProtocol::Stp);
    let hello_time = keys.number("hello-time", HELLO_TIME);
    let hello_time = hello_time.unwrap_or(defaults.hello_time);
    // The maximum age covers at least two hello intervals, and the forward delay at least half of
    // the maximum age (IEEE 802.1D-1998, 8.10.2): like Open vSwitch, take the nearest valid values.
    let max_age = keys.number("max-age", MAX_AGE).unwrap_or(defaults.max_age);
    let max_age = max_age.max(2 * (hello_time + 1));
    let forward_delay = keys.number("forward-delay", FORWARD_DELAY);
    let forward_delay = forward_delay.unwrap_or(defaults.forward_delay);
    SpanningTreeConfig {
        address: read_id(keys, "system-id"),
        priority: keys
            .number("priority", 0..=u16::MAX)
            .unwrap_or(defaults.priority),
        hello_time,
        max_age,
        forward_delay: forward_delay.max(max_age / 2 + 1),
        ..defaults
    }
}

fn read_rstp(keys: &mut Keys<'_>) -> SpanningTreeConfig {
    let defaults = SpanningTreeConfig::new(SpanningTreeProtocol::Rstp);
    let max_age = keys.number("max-age", MAX_AGE).unwrap_or(defaults.max_age);
    let forward_delay = keys.number("forward-delay", FORWARD_DELAY);
    let mut forward_delay = forward_delay.unwrap_or(defaults.forward_delay);
    // The forward delay covers at least half of the maximum age (17.14).
    let least = max_age / 2 + 1;
    if forward_delay < least {
        let why = format!("with a max-age of {max_age} the minimum is {least}");
        keys.refuse("forward-delay", why);
        forward_delay = least;
    }
    let force_stp = match keys.text("force-protocol-version") {
        None | Some("2") => false,
        Some("0") => true,
        Some(other) => {
            let why = format!("'{other}' is no version: 0 or 2");
            keys.refuse("force-protocol-version", why);
            false
        }
    };
    let priority = keys.number("priority", 0..=0xf000);
    let count = keys.number("transmit-hold-count", 1..=10);
    SpanningTreeConfig {
        address: read_id(keys, "address"),
        force_stp,
        // Only the upper four bits are the priority (9.2.5).
        priority: priority.map_or(defaults.priority, |priority: u16| priority & 0xf000),
        hello_time: RAPID_HELLO_TIME,
        max_age,
        forward_delay,
        transmit_hold_count: count.unwrap_or(defaults.transmit_hold_count),
        ..defaults
    }
}

fn read_id(keys: &mut Keys<'_>, key: &str) -> Option<packet::MacAddr> {
    let text = keys.text(key)?;
    let address = read_address(text);
    address.map_err(|why| keys.refuse(key, why)).ok()
}

/// Reads the ports of the tree: all except bonds, internal ports and mirror outputs.
fn read_ports(
    database: &Database,
    row: Record<'_>,
    bridge: &str,
    tree: &mut SpanningTreeConfig,
    desired: &mut DesiredState,
) {
    let mirrors = row.named_by(database, "mirrors", "Mirror");
    let outputs = mirrors.flat_map(|mirror| mirror.named_by(database, "output_port", "Port"));
    let outputs: BTreeSet<Uuid> = outputs.map(|port| port.uuid).collect();
    let mut members = Vec::new();
    for port in by_name(row.named_by(database, "ports", "Port").collect()) {
        let interfaces: Vec<_> = port.named_by(database, "interfaces", "Interface").collect();
        let [interface] = interfaces[..] else {
            continue;
        };
        let outcome = desired.interfaces.get(&interface.uuid);
        let number = match outcome {
            Some(InterfaceOutcome::Port {
                bridge: of, number, ..
            }) if of == bridge && *number != PortNo::LOCAL => *number,
            _ => continue,
        };
        let is_internal = interface.text("type") == Some("internal");
        let keys = Keys::of(port, tree.protocol);
        if !is_internal && !outputs.contains(&port.uuid) && keys.truth("enable", true) {
            members.push((number, port, interface.uuid, keys));
        }
    }
    members.sort_by_key(|(number, ..)| *number);
    let requested = members
        .iter_mut()
        .map(|(_, _, _, keys)| read_number(keys, tree.protocol));
    let numbers = number_all(&requested.collect::<Vec<_>>());
    for ((number, port, interface, mut keys), (own, is_refused)) in members.into_iter().zip(numbers)
    {
        if is_refused {
            let why = "the number belongs to another port: using a free one".to_owned();
            keys.refuse("port-num", why);
        }
        if own > most(tree.protocol) {
            let why = "ignored: the tree has the maximum number of ports".to_owned();
            keys.refuse("enable", why);
        } else {
            let name = port.text("name").unwrap_or_default().to_owned();
            let port = read_port(&mut keys, SpanningTreePort::new(name, own), tree.protocol);
            tree.ports.insert(number, port);
        }
        let outcome = desired.interfaces.get_mut(&interface);
        if let Some(InterfaceOutcome::Port { notes, .. }) = outcome {
            let wrong = keys.wrong.into_iter();
            notes.extend(wrong.map(|(key, why)| format!("{key}: {why}")));
        }
    }
}

/// Returns the largest port number: 8 bits and 12 (IEEE 802.1D-1998, 8.5.5.1; 2004, 9.2.7).
const fn most(protocol: SpanningTreeProtocol) -> u16 {
    match protocol {
        SpanningTreeProtocol::Stp => 255,
        SpanningTreeProtocol::Rstp => 4095,
    }
}

fn read_number(keys: &mut Keys<'_>, protocol: SpanningTreeProtocol) -> Option<u16> {
    keys.number("port-num", 1..=most(protocol))
}

/// Returns a number for each port, and true if the requested one belongs to another port. Ports
/// without a request get the lowest free numbers.
fn number_all(requested: &[Option<u16>]) -> Vec<(u16, bool)> {
    let mut taken = BTreeSet::new();
    let given: Vec<_> = requested
        .iter()
        .map(|requested| requested.filter(|number| taken.insert(*number)))
        .collect();
    let mut free = (1..).filter(|number| !taken.contains(number));
    let numbers = given.into_iter().zip(requested).map(|(given, requested)| {
        let number = given.or_else(|| free.next()).unwrap_or(u16::MAX);
        (number, given.is_none() && requested.is_some())
    });
    numbers.collect()
}

fn read_port(
    keys: &mut Keys<'_>,
    defaults: SpanningTreePort,
    protocol: SpanningTreeProtocol,
) -> SpanningTreePort {
    let priority = keys.number("port-priority", 0..=u8::MAX);
    let priority = priority.unwrap_or(defaults.priority);
    let guards = TreeGuards {
        bpdu: keys.truth("bpdu-guard", false),
        recovery_seconds: keys.number("bpdu-guard-timeout", GUARD_TIMEOUT),
        root: keys.truth("root-guard", false),
    };
    match protocol {
        SpanningTreeProtocol::Stp => SpanningTreePort {
            priority,
            path_cost: keys.number("path-cost", 0..=0xffff),
            guards,
            ..defaults
        },
        SpanningTreeProtocol::Rstp => SpanningTreePort {
            priority: priority & 0xf0,
            path_cost: keys.number("path-cost", 1..=200_000_000),
            admin_edge: keys.truth("port-admin-edge", defaults.admin_edge),
            auto_edge: keys.truth("port-auto-edge", defaults.auto_edge),
            mcheck: keys.truth("port-mcheck", defaults.mcheck),
            guards,
            ..defaults
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::desired::convert_rows;
    use crate::testing::{empty, names, pairs, put, put_bridge, put_root, uuid};
    use config::Config;

    /// A port: name, columns of its interface, and keys of its `other_config`.
    type AnyPort<'a> = (&'a str, Value, &'a [(&'a str, &'a str)]);

    /// Converts a bridge with these columns and ports.
    fn one(columns: Value, ports: &[AnyPort<'_>]) -> DesiredState {
        let mut database = empty();
        let interfaces: Vec<_> = ports
            .iter()
            .map(|(name, interface, _)| (*name, interface.clone()))
            .collect();
        for (name, _, keys) in ports {
            let row = json!({
                "name": name,
                "interfaces": names("Interface", &[name]),
                "other_config": pairs(keys),
            });
            put(&mut database, "Port", name, &row);
        }
        put_bridge(&mut database, "br0", columns, &interfaces, &[]);
        put_root(&mut database, &["br0"], 3);
        convert_rows(&database, &Config::default())
    }

    fn tree(desired: &DesiredState) -> &SpanningTreeConfig {
        let tree = desired.config.bridges[0].spanning.as_ref();
        tree.expect("it was asked for")
    }

    fn notes(desired: &DesiredState) -> Vec<&str> {
        let notes = &desired.bridges[&uuid("Bridge", "br0")].notes;
        notes.keys().map(String::as_str).collect()
    }

    #[test]
    fn stp_times_are_consistent() {
        let keys = [
            ("stp-priority", "4096"),
            ("stp-hello-time", "5"),
            ("stp-max-age", "6"),
            ("stp-forward-delay", "4"),
            ("stp-system-id", "02:00:00:00:00:09"),
            ("rstp-priority", "nonsense of the other tree"),
        ];
        let desired = one(
            json!({"stp_enable": true, "other_config": pairs(&keys)}),
            &[],
        );
        let tree = tree(&desired);
        assert_eq!(
            (tree.protocol, tree.priority),
            (SpanningTreeProtocol::Stp, 4096)
        );
        assert_eq!(
            (tree.hello_time, tree.max_age, tree.forward_delay),
            (5, 12, 7)
        );
        assert_eq!(
            tree.address,
            Some("02:00:00:00:00:09".parse().expect("one"))
        );
        assert!(notes(&desired).is_empty());
    }

    #[test]
    fn rstp_overrides_stp_and_errors_are_reported() {
        let keys = [
            ("rstp-priority", "8193"),
            ("rstp-forward-delay", "4"),
            ("rstp-max-age", "41"),
            ("rstp-force-protocol-version", "1"),
            ("rstp-transmit-hold-count", "3"),
            ("rstp-ageing-time", "30"),
        ];
        let columns =
            json!({"stp_enable": true, "rstp_enable": true, "other_config": pairs(&keys)});
        let desired = one(columns, &[]);
        let tree = tree(&desired);
        assert_eq!(
            (tree.protocol, tree.priority),
            (SpanningTreeProtocol::Rstp, 8192)
        );
        assert_eq!((tree.max_age, tree.forward_delay), (20, 11));
        assert_eq!((tree.transmit_hold_count, tree.force_stp), (3, false));
        let wanted = [
            "other_config:rstp-ageing-time",
            "other_config:rstp-force-protocol-version",
            "other_config:rstp-forward-delay",
            "other_config:rstp-max-age",
            "stp_enable",
        ];
        assert_eq!(notes(&desired), wanted);
        assert!(one(json!({}), &[]).config.bridges[0].spanning.is_none());
    }

    #[test]
    fn spanning_tree_ports_have_own_numbers() {
        let system = json!({});
        let desired = one(
            json!({"rstp_enable": true}),
            &[
                ("p1", system.clone(), &[]),
                (
                    "p2",
                    system.clone(),
                    &[("rstp-port-num", "1"), ("rstp-path-cost", "7")],
                ),
                (
                    "p3",
                    system.clone(),
                    &[("rstp-port-num", "1"), ("rstp-port-priority", "33")],
                ),
                ("p4", system, &[("rstp-enable", "false")]),
                ("p5", json!({"type": "internal"}), &[]),
            ],
        );
        let ports = tree(&desired).ports.values();
        let numbers: Vec<_> = ports
            .map(|port| {
                (
                    port.name.as_str(),
                    port.number,
                    port.priority,
                    port.path_cost,
                )
            })
            .collect();
        let wanted = [
            ("p1", 2, 0x80, None),
            ("p2", 1, 0x80, Some(7)),
            ("p3", 3, 0x20, None),
        ];
        assert_eq!(numbers, wanted);
        let outcome = &desired.interfaces[&uuid("Interface", "p3")];
        let InterfaceOutcome::Port { notes, .. } = outcome else {
            panic!("it is a port");
        };
        assert!(notes[0].contains("rstp-port-num"), "{notes:?}");
    }

    #[test]
    fn guards_of_spanning_tree_ports_are_read_and_misspelt_ones_reported() {
        for (column, prefix) in [("stp_enable", "stp"), ("rstp_enable", "rstp")] {
            let key = |rest: &str| format!("{prefix}-{rest}");
            let [bpdu, timeout, root] =
                ["bpdu-guard", "bpdu-guard-timeout", "root-guard"].map(&key);
            let misspelt = key("bpdu-gard");
            let desired = one(
                json!({column: true}),
                &[
                    ("p1", json!({}), &[(&bpdu, "true"), (&timeout, "300")]),
                    ("p2", json!({}), &[(&root, "true")]),
                    ("p3", json!({}), &[(&timeout, "0"), (&misspelt, "true")]),
                ],
            );
            let guards: Vec<_> = tree(&desired)
                .ports
                .values()
                .map(|port| port.guards)
                .collect();
            let none = TreeGuards::default();
            let [first, second] = [
                TreeGuards {
                    bpdu: true,
                    recovery_seconds: Some(300),
                    ..none
                },
                TreeGuards { root: true, ..none },
            ];
            assert_eq!(guards, [first, second, none]);
            let outcome = &desired.interfaces[&uuid("Interface", "p3")];
            let InterfaceOutcome::Port { notes, .. } = outcome else {
                panic!("it is a port");
            };
            for key in [&timeout, &misspelt] {
                let is_noted = notes.iter().any(|note| note.contains(key));
                assert!(is_noted, "{key}: {notes:?}");
            }
        }
    }
}
