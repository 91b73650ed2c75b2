//! Conversions of rows to configurations, of examples and of random rows.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::{empty, names, pairs, put, put_bridge, put_root, uuid};
use config::reconcile::reconcile;
use config::{FailMode, TagType, VlanLimit, VlanMode, VlanSet};

/// Converts one bridge with these columns, ports and controllers.
fn one(columns: Value, ports: &[(&str, Value)], controllers: &[&str]) -> DesiredState {
    let mut database = empty();
    put_bridge(&mut database, "br0", columns, ports, controllers);
    put_root(&mut database, &["br0"], 3);
    convert_rows(&database, &Config::default())
}

fn ports_of(desired: &DesiredState) -> Vec<String> {
    let ports = desired
        .config
        .bridges
        .iter()
        .flat_map(|bridge| &bridge.ports);
    ports.map(ToString::to_string).collect()
}

fn outcome<'a>(desired: &'a DesiredState, interface: &str) -> &'a InterfaceOutcome {
    &desired.interfaces[&uuid("Interface", interface)]
}

/// Returns the reason why an interface is refused, or its notes.
fn outcome_text(desired: &DesiredState, interface: &str) -> String {
    match outcome(desired, interface) {
        InterfaceOutcome::Refused(why) => format!("refused: {why}"),
        InterfaceOutcome::Port { notes, .. } => notes.join("; "),
    }
}

#[test]
fn bridges_ports_and_controllers_become_a_configuration() {
    let columns = json!({
        "fail_mode": "secure",
        "protocols": ["set", ["OpenFlow10", "OpenFlow13"]],
        "other_config": pairs(&[("datapath-id", "00000000000000cd"), ("disable-in-band", "true")]),
    });
    let ports = [
        ("p1", json!({})),
        ("p2", json!({"type": "system", "ofport_request": 7})),
        ("vm1", json!({"type": "internal"})),
        (
            "x1",
            json!({"type": "afxdp", "options": pairs(&[("xdp-mode", "generic")])}),
        ),
    ];
    let desired = one(columns, &ports, &["tcp:127.0.0.1", "ptcp:6654"]);
    assert_eq!(
        ports_of(&desired),
        ["p1=1", "p2=7", "tap:vm1=2", "xdp:x1,generic,copy=3"]
    );
    let bridge = &desired.config.bridges[0];
    assert_eq!(
        (bridge.fail_mode, bridge.datapath_id.map(|id| id.0)),
        (FailMode::Secure, Some(0xcd))
    );
    assert_eq!(
        bridge.controllers,
        ["tcp:127.0.0.1:6653".parse().expect("a target")]
    );
    assert_eq!(bridge.listen, ["ptcp:6654".parse().expect("a place")]);
    assert_eq!(
        bridge.protocols,
        config::parse_protocols("OpenFlow10,OpenFlow13").expect("legal")
    );
    assert_eq!(desired.next_cfg, Some(3));
    assert!(desired.bridges[&uuid("Bridge", "br0")].notes.is_empty());
    let local = InterfaceOutcome::Port {
        bridge: "br0".to_owned(),
        number: PortNo::LOCAL,
        notes: vec![],
    };
    assert_eq!(*outcome(&desired, "br0"), local);
}

#[test]
fn missing_root_row_yields_empty_configuration() {
    assert_eq!(
        convert_rows(&empty(), &Config::default()),
        DesiredState::default()
    );
}

/// Columns of an interface, and the expected notes.
#[rustfmt::skip]
const INTERFACE_NOTES: [(&str, &str); 11] = [
    (r#"{"type": "vxlan"}"#,                                       "refused: p1: vxlan type requires valid 'remote_ip' argument"),
    (r#"{"type": "gtpu"}"#,                                        "refused: p1: gtpu type requires valid 'remote_ip' argument"),
    (r#"{"type": "stt"}"#,                                         "refused: type stt: not supported"),
    (r#"{"type": "patch"}"#,                                       "refused: p1: patch type requires valid 'peer' argument"),
    (r#"{"type": "patch", "options": ["map", [["peer", "p1"]]]}"#, "refused: a patch port is not its own peer"),
    (r#"{"type": "dance"}"#,                                       "refused: type dance: unknown"),
    (r#"{"type": "dpdk"}"#,                                        "refused: type dpdk: name the device in options:dpdk-devargs"),
    (r#"{"type": "afxdp", "options": ["map", [["xdp-mode", "x"]]]}"#, "refused: options:xdp-mode: 'x' is no mode"),
    (r#"{"options": ["map", [["peer", "x"]]]}"#,                   "options:peer: ignored"),
    (r#"{"mtu_request": 0}"#,                                      "mtu_request: 0 is no valid MTU"),
    (r#"{"mac": "02:00:00:00:00:01", "mtu_request": 9000}"#,       "mac: ignored"),
];

#[test]
fn interface_notes_name_unsupported_settings() {
    for (columns, part) in INTERFACE_NOTES {
        let columns = serde_json::from_str(columns).expect("JSON");
        let desired = one(json!({}), &[("p1", columns)], &[]);
        let outcome_text = outcome_text(&desired, "p1");
        assert!(outcome_text.starts_with(part), "{outcome_text}");
        let opened = desired.config.bridges[0].ports.len() == 1;
        assert_eq!(
            opened,
            !outcome_text.starts_with("refused"),
            "{outcome_text}"
        );
    }
}

#[test]
fn port_with_unsafe_settings_is_refused() {
    for (column, value) in [("tag", json!(7000)), ("vlan_mode", json!("dot1q-tunnel"))] {
        let mut database = empty();
        put(&mut database, "Interface", "p2", &json!({"name": "p2"}));
        let mut port = json!({"name": "p1", "interfaces": names("Interface", &["p1"])});
        port[column] = value;
        put(&mut database, "Port", "p1", &port);
        put_bridge(&mut database, "br0", json!({}), &[("p1", json!({}))], &[]);
        put_root(&mut database, &["br0"], 1);
        let desired = convert_rows(&database, &Config::default());
        let outcome_text = outcome_text(&desired, "p1");
        assert!(
            outcome_text.starts_with("refused: "),
            "{column}: {outcome_text}"
        );
        assert_eq!(ports_of(&desired), [""; 0]);
    }
    let trunk =
        json!({"name": "p1", "interfaces": names("Interface", &["p1"]), "vlan_mode": "trunk"});
    let mut database = empty();
    put(&mut database, "Port", "p1", &trunk);
    put_bridge(&mut database, "br0", json!({}), &[("p1", json!({}))], &[]);
    put_root(&mut database, &["br0"], 1);
    assert_eq!(
        ports_of(&convert_rows(&database, &Config::default())),
        ["p1=1"]
    );
}

#[test]
fn port_vlan_modes_match_manual() {
    let vids = |vids: &[u16]| vids.iter().copied().collect::<VlanSet>();
    let access = |tag| VlanMode::Access { tag };
    let trunk = |trunks| VlanMode::Trunk { trunks };
    let tunnel = |customers, tag_type| VlanMode::Tunnel {
        tag: 7,
        customers,
        tag_type,
    };
    for (columns, mode) in [
        (json!({"tag": 7}), access(7)),
        (json!({"tag": 7, "trunks": ["set", [1, 2]]}), access(7)),
        (json!({"tag": 7, "fake_bridge": true}), access(7)),
        (json!({"vlan_mode": "access"}), access(0)),
        (json!({"trunks": ["set", [1, 2]]}), trunk(vids(&[1, 2]))),
        (
            json!({"tag": 7, "vlan_mode": "trunk"}),
            trunk(VlanSet::all()),
        ),
        (
            json!({"tag": 7, "trunks": ["set", [0, 2]], "vlan_mode": "native-tagged"}),
            VlanMode::native(7, vids(&[2]), true),
        ),
        (
            json!({"tag": 7, "vlan_mode": "native-untagged"}),
            VlanMode::native(7, VlanSet::all(), false),
        ),
        (
            json!({"tag": 7, "vlan_mode": "dot1q-tunnel"}),
            tunnel(VlanSet::all(), TagType::Service),
        ),
        (
            json!({
                "tag": 7, "vlan_mode": "dot1q-tunnel", "cvlans": ["set", [1, 2]],
                "other_config": pairs(&[("qinq-ethtype", "802.1q")]),
            }),
            tunnel(vids(&[1, 2]), TagType::Customer),
        ),
        // Only `dot1q-tunnel` ports use `cvlans`.
        (json!({"tag": 7, "cvlans": ["set", [1, 2]]}), access(7)),
    ] {
        let mut port = json!({"name": "p1", "interfaces": names("Interface", &["p1"])});
        let given = columns.as_object().expect("an object").clone();
        port.as_object_mut().expect("an object").extend(given);
        let mut database = empty();
        put(&mut database, "Port", "p1", &port);
        put_bridge(&mut database, "br0", json!({}), &[("p1", json!({}))], &[]);
        put_root(&mut database, &["br0"], 1);
        let desired = convert_rows(&database, &Config::default());
        let logical = desired.config.bridges[0].switching.ports.first();
        let read = logical.map_or_else(|| trunk(VlanSet::all()), |port| port.vlans.mode.clone());
        assert_eq!(read, mode, "{columns}");
        assert!(logical.is_none_or(|port| port.members == [PortNo(1)]));
    }
}

#[test]
fn vlan_limit_is_read_from_root_row() {
    use VlanLimit::{One, Two};
    for (limit, seen) in [
        (None, One),
        (Some("1"), One),
        (Some("2"), Two),
        (Some("7"), Two),
        (Some("0"), Two),
        (Some("many"), One),
    ] {
        let mut database = empty();
        put_bridge(&mut database, "br0", json!({}), &[("p1", json!({}))], &[]);
        let limit = limit.map(|limit| ("vlan-limit", limit));
        let row = json!({
            "bridges": names("Bridge", &["br0"]), "next_cfg": 1,
            "other_config": pairs(limit.as_slice()),
        });
        put(&mut database, "Open_vSwitch", ".", &row);
        let desired = convert_rows(&database, &Config::default());
        assert_eq!(desired.config.bridges[0].switching.vlan_limit, seen);
        assert!(desired.unsupported.is_empty());
    }
}

#[test]
fn bridge_mac_table_settings_are_read() {
    let columns = json!({
        "flood_vlans": ["set", [3, 4]],
        "other_config": pairs(&[
            ("mac-aging-time", "60"), ("mac-table-size", "100"), ("forward-bpdu", "true"),
            ("mcast-snooping-aging-time", "1"), ("mcast-snooping-table-size", "50"),
            ("mcast-snooping-disable-flood-unregistered", "true"),
        ]),
        "mcast_snooping_enable": true,
    });
    let desired = one(columns, &[], &[]);
    let switching = &desired.config.bridges[0].switching;
    assert!(switching.flood_vlans.iter().eq([3, 4]));
    assert_eq!(switching.ageing, Duration::from_secs(60));
    assert!(switching.fdb_size == 100 && switching.forward_bpdu);
    let snooping = switching.snooping.as_ref().expect("it is asked for");
    assert_eq!(snooping.ageing, Duration::from_secs(15), "no less");
    assert!(snooping.groups_max == 50 && !snooping.flood_unregistered);
    assert!(desired.bridges[&uuid("Bridge", "br0")].notes.is_empty());
}

#[test]
fn bridge_and_controller_notes_name_unsupported_settings() {
    let columns = json!({
        "protocols": "OpenFlow99",
        "other_config": pairs(&[("datapath-id", "x"), ("mac-aging-time", "soon")]),
    });
    let desired = one(columns, &[], &["ptcp:what", "dance"]);
    let outcome = &desired.bridges[&uuid("Bridge", "br0")];
    let columns: Vec<_> = outcome.notes.keys().map(String::as_str).collect();
    let wanted = [
        "other_config:datapath-id",
        "other_config:mac-aging-time",
        "protocols",
    ];
    assert_eq!(columns, wanted);
    assert_eq!(desired.config.bridges.len(), 1, "it is there all the same");
    let endpoint = |target| &desired.controllers[&uuid("Controller", target)].endpoint;
    assert!(
        endpoint("ptcp:what")
            .as_ref()
            .is_err_and(|why| why.contains("use ptcp:"))
    );
    assert!(endpoint("dance").is_err());
    assert!(desired.config.bridges[0].controllers.is_empty());
}

#[test]
fn invalid_name_is_refused_with_dependent_rows() {
    let mut database = empty();
    put_bridge(
        &mut database,
        "a-bridge-with-a-long-name",
        json!({}),
        &[("p1", json!({}))],
        &[],
    );
    put_root(&mut database, &["a-bridge-with-a-long-name"], 1);
    let desired = convert_rows(&database, &Config::default());
    assert!(desired.config.bridges.is_empty());
    assert!(
        outcome_text(&desired, "p1").contains("15 bytes"),
        "{}",
        outcome_text(&desired, "p1")
    );
}

#[test]
fn controllers_have_one_rate_or_each_its_own() {
    let of = |limits: [Value; 2]| {
        let mut database = empty();
        put_bridge(
            &mut database,
            "br0",
            json!({}),
            &[],
            &["tcp:1.1.1.1", "tcp:1.1.1.2"],
        );
        for (target, limit) in ["tcp:1.1.1.1", "tcp:1.1.1.2"].into_iter().zip(limits) {
            let row = json!({"target": target, "controller_rate_limit": limit});
            put(&mut database, "Controller", target, &row);
        }
        put_root(&mut database, &["br0"], 1);
        let desired = convert_rows(&database, &Config::default());
        let notes = desired
            .controllers
            .values()
            .map(|outcome| outcome.notes.len())
            .sum();
        let bridge = &desired.config.bridges[0];
        let own = bridge.controllers.iter();
        let own: Vec<_> = own
            .filter_map(|controller| controller.options.rate_limit)
            .map(|rate| rate.per_second().get())
            .collect();
        (bridge.controller_rate_limit, own, notes)
    };
    let (none, huge) = (json!(["set", []]), json!(20_000_000));
    assert_eq!(of([json!(500), json!(500)]), (Some(500), vec![], 0_usize));
    assert_eq!(of([json!(500), none]), (None, vec![500], 0));
    assert_eq!(of([json!(500), json!(900)]), (None, vec![500, 900], 0));
    assert_eq!(of([huge.clone(), json!(900)]), (None, vec![900], 1));
    assert_eq!(of([huge.clone(), huge]), (None, vec![], 2));
}

#[test]
fn port_numbers_are_kept_or_assigned_on_request() {
    let mut database = empty();
    put_bridge(
        &mut database,
        "br0",
        json!({}),
        &[("a", json!({})), ("b", json!({}))],
        &[],
    );
    put_root(&mut database, &["br0"], 1);
    let before = convert_rows(&database, &Config::default()).config;
    // A third port sorts before them, and requests the number of b, which requests it, too.
    let ports = [
        ("0", json!({"ofport_request": 2})),
        ("a", json!({})),
        ("b", json!({"ofport_request": 2})),
    ];
    put_bridge(&mut database, "br0", json!({}), &ports, &[]);
    let after = convert_rows(&database, &before);
    assert_eq!(ports_of(&after), ["0=3", "a=1", "b=2"]);
    assert!(
        outcome_text(&after, "0").contains("ofport_request: 2"),
        "{}",
        outcome_text(&after, "0")
    );
    // If b requests none, it has to yield.
    let ports = [
        ("0", json!({"ofport_request": 2})),
        ("a", json!({})),
        ("b", json!({})),
    ];
    put_bridge(&mut database, "br0", json!({}), &ports, &[]);
    let after = convert_rows(&database, &before);
    assert_eq!(ports_of(&after), ["0=2", "a=1", "b=3"]);
    // A number is not given again at once.
    let ports = [("0", json!({"ofport_request": 2})), ("c", json!({}))];
    put_bridge(&mut database, "br0", json!({}), &ports, &[]);
    let later = convert_rows(&database, &after.config);
    assert_eq!(ports_of(&later), ["0=2", "c=4"]);
    // After a restart, requests are first; the others have the numbers in the database.
    let ports = [
        ("0", json!({"ofport_request": 2})),
        ("a", json!({"ofport": 9})),
        ("b", json!({"ofport": 2})),
    ];
    put_bridge(&mut database, "br0", json!({}), &ports, &[]);
    assert_eq!(
        ports_of(&convert_rows(&database, &Config::default())),
        ["0=2", "a=9", "b=1"]
    );
}

/// A random port: type, requested number, tag.
type AnyPort = (u8, Option<u8>, Option<u8>);

fn any_bridges() -> impl Strategy<Value = BTreeMap<u8, (BTreeMap<u8, AnyPort>, bool)>> {
    let port = (
        0..5_u8,
        proptest::option::of(1..4_u8),
        proptest::option::weighted(0.2, 0..9_u8),
    );
    let ports = proptest::collection::btree_map(0..6_u8, port, 0..5);
    proptest::collection::btree_map(0..3_u8, (ports, any::<bool>()), 0..4)
}

fn database_of(bridges: &BTreeMap<u8, (BTreeMap<u8, AnyPort>, bool)>) -> Database {
    const TYPES: [&str; 5] = ["", "internal", "tap", "vxlan", "afxdp"];
    let mut database = empty();
    let mut all = Vec::new();
    for (bridge, (ports, secure)) in bridges {
        let bridge = format!("br{bridge}");
        let mut rows = Vec::new();
        for (port, (of, requested, tag)) in ports {
            // Names may collide with those of bridges, or of ports of other bridges.
            let name = if *port == 5 {
                "br1".to_owned()
            } else {
                format!("p{port}")
            };
            if name == bridge {
                continue;
            }
            let mut row = json!({"type": TYPES[usize::from(*of)]});
            if let Some(requested) = requested {
                row["ofport_request"] = json!(requested);
            }
            if let Some(tag) = tag {
                let port =
                    json!({"name": name, "tag": tag, "interfaces": names("Interface", &[&name])});
                put(&mut database, "Port", &name, &port);
            }
            rows.push((name, row));
        }
        let rows: Vec<_> = rows
            .iter()
            .map(|(name, row)| (name.as_str(), row.clone()))
            .collect();
        let mode = if *secure {
            json!("secure")
        } else {
            json!(["set", []])
        };
        put_bridge(
            &mut database,
            &bridge,
            json!({"fail_mode": mode}),
            &rows,
            &["tcp:127.0.0.1"],
        );
        all.push(bridge);
    }
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    put_root(&mut database, &all, 1);
    database
}

proptest! {
    #[test]
    fn random_rows_yield_valid_configuration(
        states in proptest::collection::vec(any_bridges(), 1..5),
    ) {
        let mut current = Config::default();
        for state in states {
            let database = database_of(&state);
            let desired = convert_rows(&database, &current);
            let checked = desired.config.check();
            prop_assert!(desired.config.bridges.is_empty() || checked.is_ok(), "{checked:?}");
            // Every interface of a bridge has an outcome, and every port has an interface.
            prop_assert_eq!(desired.interfaces.len(), database.rows("Interface").count());
            let is_port = |outcome: &&InterfaceOutcome| {
                matches!(outcome, InterfaceOutcome::Port { number, .. } if *number != PortNo::LOCAL)
            };
            let ports: usize = desired.config.bridges.iter().map(|bridge| bridge.ports.len()).sum();
            prop_assert_eq!(desired.interfaces.values().filter(is_port).count(), ports);
            // A second conversion of the same rows changes nothing.
            let again = convert_rows(&database, &desired.config);
            prop_assert_eq!(&again, &desired);
            prop_assert_eq!(reconcile(&desired.config, &again.config), vec![]);
            current = desired.config;
        }
    }

    #[test]
    fn unchanged_port_survives_other_changes(
        before in any_bridges(),
        after in any_bridges(),
    ) {
        // A port without a request, of a bridge that stays.
        let with_it = |mut bridges: BTreeMap<u8, (BTreeMap<u8, AnyPort>, bool)>, current: &Config| {
            let (ports, _) = bridges.entry(0).or_default();
            ports.insert(9, (0, None, None));
            convert_rows(&database_of(&bridges), current)
        };
        let nothing = Config::default();
        let current = with_it(before, &nothing);
        // A port that requests its number takes it.
        let number = current.config.bridges.iter().find(|bridge| bridge.name == "br0")
            .and_then(|bridge| bridge.ports.iter().find(|port| port.name == "p9"))
            .and_then(|port| port.number);
        let requests = |(_, requested, _): &AnyPort| {
            requested.is_some_and(|requested| number == Some(PortNo(requested.into())))
        };
        prop_assume!(!after.values().any(|(ports, _)| ports.values().any(requests)));
        let next = with_it(after, &current.config);
        let touched = reconcile(&current.config, &next.config);
        let touched: Vec<_> = touched.iter().map(ToString::to_string).collect();
        let mine = |step: &&String| step.contains(" port p9 ") || step.ends_with("bridge br0");
        prop_assert_eq!(touched.iter().find(mine), None);
    }
}

#[test]
fn duplicate_tunnel_is_refused() {
    let tunnel = |of: &str, options: &[(&str, &str)]| {
        let options: Vec<_> = options
            .iter()
            .map(|(key, value)| json!([key, value]))
            .collect();
        json!({"type": of, "options": ["map", options]})
    };
    let far = ("remote_ip", "10.0.0.1");
    let ports = [
        ("t1", tunnel("vxlan", &[far, ("key", "0")])),
        ("t2", tunnel("vxlan", &[far])),
        ("t3", tunnel("vxlan", &[far, ("key", "1"), ("exts", "gbp")])),
        ("t4", tunnel("geneve", &[far])),
        ("t5", tunnel("gre", &[far, ("packet_type", "l3")])),
        ("t6", tunnel("gre", &[far, ("egress_pkt_mark", "1")])),
        ("t7", tunnel("geneve", &[far, ("dst_port", "4789")])),
        (
            "a-tunnel-of-a-long-name",
            tunnel("gre", &[far, ("key", "flow")]),
        ),
    ];
    let desired = one(json!({}), &ports, &[]);
    assert_eq!(desired.config.bridges[0].ports.len(), 4);
    for (name, part) in [
        (
            "t2",
            "refused: attempting to add tunnel port 't2' with same config as port 't1'",
        ),
        (
            "t3",
            "refused: t3: VXLAN-GBP, and non-VXLAN-GBP tunnels can't be configured",
        ),
        ("t5", "refused: t5: unknown packet_type 'l3'"),
        ("t6", ""),
        (
            "t7",
            "refused: t7: options:dst_port: a tunnel of another protocol",
        ),
    ] {
        let outcome_text = outcome_text(&desired, name);
        assert!(outcome_text.starts_with(part), "{outcome_text}");
    }
    let is_conflict = |line: &&String| line.ends_with("could not set configuration (File exists)");
    assert_eq!(desired.warnings.iter().filter(is_conflict).count(), 3);
}

#[test]
fn patch_ports_without_peer_have_note() {
    let patch = |peer: &str| json!({"type": "patch", "options": ["map", [["peer", peer]]]});
    let ports = [
        ("a", patch("b")),
        ("b", patch("a")),
        ("c", patch("a")),
        ("d", patch("e")),
    ];
    let desired = one(json!({}), &ports, &[]);
    assert_eq!(desired.config.bridges[0].ports.len(), 4);
    for (name, wanted) in [
        ("a", ""),
        ("b", ""),
        ("c", "peer: a has b as its own peer"),
        ("d", "peer: there is no patch port e"),
    ] {
        assert_eq!(outcome_text(&desired, name), wanted);
    }
}
