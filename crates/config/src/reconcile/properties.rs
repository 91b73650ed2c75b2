//! Properties of the steps between any two configurations: they transform one into the other, each
//! is valid when it is executed, and common parts remain untouched.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use proptest::prelude::*;

use super::{ConfigStep, NumberedPort, Parts, reconcile};
use crate::{
    Affinity, BridgeAddress, BridgeConfig, Config, ControllerConfig, ControllerOptions,
    ControllerTarget, FailMode, InterfaceConfig, ListenAddress, SflowConfig, SwitchingConfig,
    TableConfig,
};

/// The state of a bridge after some steps: settings, and parts that are added and removed.
#[derive(Clone, Debug, PartialEq)]
struct AppliedBridge {
    config: BridgeConfig,
    ports: BTreeSet<NumberedPort>,
    controllers: Vec<ControllerConfig>,
    listen: BTreeSet<ListenAddress>,
}

/// Returns a bridge without ports, controllers and sockets.
fn bare(bridge: &BridgeConfig) -> BridgeConfig {
    BridgeConfig {
        ports: Vec::new(),
        controllers: Vec::new(),
        listen: Vec::new(),
        ..bridge.clone()
    }
}

/// Returns the bridges of a configuration.
fn desired(config: &Config) -> BTreeMap<String, AppliedBridge> {
    let applied = |bridge: &BridgeConfig| {
        let parts = Parts::of(bridge);
        let applied = AppliedBridge {
            config: bare(bridge),
            ports: parts.ports.into_iter().collect(),
            controllers: bridge.controllers.clone(),
            listen: parts.listen.into_iter().collect(),
        };
        (bridge.name.clone(), applied)
    };
    config.bridges.iter().map(applied).collect()
}

/// Executes a step, which must be valid in this state.
fn apply(applied: &mut BTreeMap<String, AppliedBridge>, step: &ConfigStep) {
    match step {
        ConfigStep::RemoveBridge(name) => assert!(applied.remove(name).is_some(), "{step}"),
        ConfigStep::AddBridge(bridge) => {
            let new = AppliedBridge {
                config: bare(bridge),
                ports: BTreeSet::new(),
                controllers: Vec::new(),
                listen: BTreeSet::new(),
            };
            assert!(applied.insert(bridge.name.clone(), new).is_none(), "{step}");
        }
        ConfigStep::RemovePort(name, port) => {
            assert!(bridge_mut(applied, name).ports.remove(port), "{step}")
        }
        ConfigStep::AddPort(name, port) => {
            let ports = &mut bridge_mut(applied, name).ports;
            let conflicts =
                |other: &NumberedPort| other.number == port.number || other.name == port.name;
            assert!(!ports.iter().any(conflicts), "{step}");
            ports.insert(port.clone());
        }
        ConfigStep::SetPatchPeer(name, port) => {
            let ports = &mut bridge_mut(applied, name).ports;
            let same = |other: &NumberedPort| other.number == port.number;
            ports.retain(|other| !same(other));
            ports.insert(port.clone());
        }
        ConfigStep::RemoveController(name, controller) => {
            let controllers = &mut bridge_mut(applied, name).controllers;
            let index = controllers.iter().position(|other| other == controller);
            controllers.remove(index.expect("an existing controller"));
        }
        ConfigStep::AddController(name, controller) => {
            bridge_mut(applied, name)
                .controllers
                .push(controller.clone());
        }
        ConfigStep::SetControllerTiming(name, controller) => {
            let mut controllers = bridge_mut(applied, name).controllers.iter_mut();
            let found = controllers.find(|other| other.shares_connection(controller));
            *found.expect("an existing controller") = controller.clone();
        }
        ConfigStep::RemoveListener(name, listen) => {
            assert!(bridge_mut(applied, name).listen.remove(listen), "{step}");
        }
        ConfigStep::AddListener(name, listen) => {
            assert!(
                bridge_mut(applied, name).listen.insert(listen.clone()),
                "{step}"
            );
        }
        in_place => change(
            &mut bridge_mut(applied, bridge_of(in_place)).config,
            in_place,
        ),
    }
}

/// Executes a step that changes settings of an existing bridge.
fn change(config: &mut BridgeConfig, step: &ConfigStep) {
    match step {
        ConfigStep::SetFailMode(_, mode) => config.fail_mode = *mode,
        ConfigStep::SetDatapathId(_, id) => config.datapath_id = *id,
        ConfigStep::SetProtocols(_, versions) => config.protocols = *versions,
        ConfigStep::SetAffinity(_, affinity) => config.affinity.clone_from(affinity),
        ConfigStep::SetExporters(_, exporters) => config.exporters.clone_from(exporters),
        ConfigStep::SetSwitching(_, switching) => config.switching.clone_from(switching),
        ConfigStep::SetMirrors(_, mirrors) => config.mirrors.clone_from(mirrors),
        ConfigStep::SetInBand(_, in_band) => config.in_band.clone_from(in_band),
        ConfigStep::SetInterface(_, port, settings) => {
            config.interfaces.remove(port);
            if **settings != InterfaceConfig::default() {
                let settings = settings.as_ref().clone();
                config.interfaces.insert(port.clone(), settings);
            }
        }
        ConfigStep::SetTable(_, table, table_config) => {
            config.tables.remove(table);
            if *table_config != TableConfig::default() {
                config.tables.insert(*table, table_config.clone());
            }
        }
        other => panic!("{other}: unexpected step for these configurations"),
    }
}

fn bridge_of(step: &ConfigStep) -> &str {
    match step {
        ConfigStep::SetFailMode(name, _)
        | ConfigStep::SetDatapathId(name, _)
        | ConfigStep::SetProtocols(name, _)
        | ConfigStep::SetAffinity(name, _)
        | ConfigStep::SetInterface(name, ..)
        | ConfigStep::SetTable(name, ..)
        | ConfigStep::SetExporters(name, _)
        | ConfigStep::SetSwitching(name, _)
        | ConfigStep::SetMirrors(name, _) => name,
        other => panic!("{other}: unexpected step for these configurations"),
    }
}

fn bridge_mut<'a>(
    applied: &'a mut BTreeMap<String, AppliedBridge>,
    name: &str,
) -> &'a mut AppliedBridge {
    applied.get_mut(name).expect("an existing bridge")
}

/// MTUs of interfaces and limits of tables, by number.
type ExtraSettings = (BTreeMap<u8, u32>, BTreeMap<u8, usize>);

fn extra_settings() -> impl Strategy<Value = ExtraSettings> {
    (
        prop::collection::btree_map(0..4_u8, 1400..1403_u32, 0..3),
        prop::collection::btree_map(0..3_u8, 1..3_usize, 0..2),
    )
}

/// Sets the MTUs of interfaces and the limits of tables.
fn apply_extra_settings(bridge: &mut BridgeConfig, index: usize, (lengths, limits): ExtraSettings) {
    for (name, mtu) in lengths {
        let settings = InterfaceConfig {
            mtu: Some(mtu),
            ..InterfaceConfig::default()
        };
        bridge
            .interfaces
            .insert(format!("p{index}{name}"), settings);
    }
    for (table, limit) in limits {
        let table_config = TableConfig {
            limit: Some(limit),
            ..TableConfig::default()
        };
        bridge.tables.insert(base::TableId(table), table_config);
    }
}

/// Generates one of a few bridges with a few ports, so that names and numbers are reused.
fn bridge(index: usize) -> impl Strategy<Value = BridgeConfig> {
    let kind = prop::sample::select(vec!["", "tap:"]);
    let port = (kind, 0..4_u8, prop::option::of(1..6_u8));
    let ports = prop::collection::vec(port, 0..4);
    let peers = (prop::bits::u8::masked(3), prop::bits::u8::masked(3));
    let inner = (
        0..3_u8,
        prop::option::of(1..3_u64),
        0..2_u8,
        any::<bool>(),
        0..2_usize,
        prop::option::of(1..3_u32),
    );
    (ports, peers, inner, extra_settings()).prop_map(
        move |(ports, peers, inner, extra_settings)| {
            let mut bridge = BridgeConfig::new(format!("br{index}"));
            let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
            for (kind, name, number) in ports {
                let number = number.filter(|number| numbers.insert(*number));
                if names.insert(name) {
                    let number = number.map(|number| format!("={number}"));
                    // An interface belongs to one bridge.
                    let text = format!("{kind}p{index}{name}{}", number.unwrap_or_default());
                    bridge.ports.push(text.parse().expect("a port"));
                }
            }
            for bit in 0..2 {
                if peers.0 & 1 << bit != 0 {
                    let text = format!("tcp:10.0.0.{bit}");
                    bridge.controllers.push(controller(&text, peers.1 != 0));
                }
                if peers.1 & 1 << bit != 0 {
                    bridge
                        .listen
                        .push(format!("ptcp:{}", bit + 1).parse().expect("an address"));
                }
            }
            apply_extra_settings(&mut bridge, index, extra_settings);
            let (mode, id, address, forwards_bpdus, affinity, sampling) = inner;
            if mode == 0 {
                bridge.fail_mode = FailMode::Secure;
            }
            bridge.datapath_id = id.map(base::DatapathId);
            if address == 1 {
                bridge.address = BridgeAddress::Given(packet::MacAddr::from_u64(0x0200_0000_0001));
            }
            if forwards_bpdus {
                bridge.switching = SwitchingConfig {
                    forward_bpdu: true,
                    ..SwitchingConfig::default()
                };
            }
            if address == 1 {
                bridge.in_band.managers = vec!["192.0.2.1:6640".parse().expect("an address")];
            }
            bridge.exporters.sflow = sampling.and_then(sflow);
            bridge.affinity = vec!["p0=0".parse::<Affinity>().expect("an address"); affinity];
            bridge
        },
    )
}

fn sflow(sampling: u32) -> Option<SflowConfig> {
    Some(SflowConfig {
        targets: Vec::new(),
        agent: None,
        sub_agent: 0,
        header: 128,
        sampling: NonZeroU32::new(sampling)?,
        polling: None,
    })
}

fn controller(text: &str, is_probed: bool) -> ControllerConfig {
    let options = match is_probed {
        true => ControllerOptions::default(),
        false => ControllerOptions::for_tools(),
    };
    ControllerConfig {
        target: text.parse::<ControllerTarget>().expect("a target"),
        options,
    }
}

fn config() -> impl Strategy<Value = Config> {
    let bridges = (0..3).map(|index| prop::option::of(bridge(index)));
    bridges.collect::<Vec<_>>().prop_map(|bridges| Config {
        bridges: bridges.into_iter().flatten().collect(),
        ..Config::default()
    })
}

proptest! {
    #[test]
    fn steps_transform_any_configuration_into_any_other(old in config(), new in config()) {
        let mut applied = desired(&old);
        let steps = reconcile(&old, &new);
        for step in &steps {
            apply(&mut applied, step);
        }
        let mut desired = desired(&new);
        // The order of remaining controllers does not change.
        for bridge in applied.values_mut().chain(desired.values_mut()) {
            bridge.controllers.sort_by_key(|controller| format!("{controller:?}"));
        }
        prop_assert_eq!(applied, desired);
        prop_assert_eq!(reconcile(&new, &new), []);
    }

    #[test]
    fn common_ports_remain_untouched(old in config(), new in config()) {
        let (before, after) = (desired(&old), desired(&new));
        for step in reconcile(&old, &new) {
            let (ConfigStep::AddPort(name, port) | ConfigStep::RemovePort(name, port)) = &step else {
                continue;
            };
            let has = |applied: &BTreeMap<String, AppliedBridge>| {
                applied.get(name).is_some_and(|applied| applied.ports.contains(port))
            };
            // A recreated bridge adds all its ports again.
            let address = |applied: &BTreeMap<String, AppliedBridge>| {
                applied.get(name).map(|applied| applied.config.address)
            };
            let is_kept = address(&before) == address(&after);
            prop_assert!(!(is_kept && has(&before) && has(&after)), "{}", step);
        }
    }

    /// An executor may run all removals first, and together.
    #[test]
    fn removals_precede_additions(old in config(), new in config()) {
        let steps = reconcile(&old, &new);
        let is_removal = |step: &ConfigStep| matches!(step, ConfigStep::RemoveBridge(_) | ConfigStep::RemovePort(..));
        let is_addition = |step: &ConfigStep| matches!(step, ConfigStep::AddBridge(_) | ConfigStep::AddPort(..));
        let last = steps.iter().rposition(is_removal);
        let first = steps.iter().position(is_addition);
        if let (Some(last), Some(first)) = (last, first) {
            prop_assert!(last < first);
        }
    }
}
