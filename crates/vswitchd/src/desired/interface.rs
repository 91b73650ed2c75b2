//! A row of the table `Interface` with that of its `Port`: the device, and the reasons for settings
//! that are not applied.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::PortNo;
use ovsdb::Uuid;
use ports::dummy::DummyType;
use ports::xdp::{TransferChoice, XdpModeChoice, XdpOptions};

use super::bond::{self, read_member};
use super::dummy::{QUEUE_KEYS, read_dummy};
use super::known_keys::{self, is_meant};
use super::monitoring::{CFM_KEYS, read_monitoring};
use super::settings::{EgressQos, read_settings};
use super::spanning::PORT_KEYS;
use super::switching::read_port;
use crate::rows::Record;
use config::{
    BondMemberConfig, IngressLimit, InterfaceConfig, LogicalPort, PortKind, PortSpec, PortVlans,
    TunnelConfig, TunnelType, VlanMode, VlanSet, parse_peer, qdisc_name,
};

/// An interface that becomes a port.
pub(super) struct PlannedPort {
    /// The row, if there is one.
    pub(super) uuid: Option<Uuid>,
    /// The port, without a number.
    pub(super) spec: PortSpec,
    /// The interface settings.
    pub(super) settings: InterfaceConfig,
    /// The configuration for `NORMAL`, without the port number.
    pub(super) logical: LogicalPort,
    /// The reasons for settings that are not applied.
    pub(super) notes: Vec<String>,
}

impl PlannedPort {
    /// Applies the egress QoS, or notes the reason why not.
    pub(super) fn apply_qos(&mut self, egress: Result<EgressQos, String>) {
        let why = match egress {
            Ok(EgressQos::Freely) => return,
            Ok(_) if is_virtual(&self.spec.kind) => "ignored: the port is virtual".to_owned(),
            Ok(EgressQos::Limited(limit)) => return self.settings.egress = Some(limit),
            Ok(EgressQos::Shaped(shape)) if self.spec.kind == PortKind::Interface => {
                return self.settings.shape = Some(shape);
            }
            Ok(EgressQos::Shaped(shape)) => {
                let kind = qdisc_name(shape.qdisc);
                if matches!(self.spec.kind, PortKind::Dummy(_)) {
                    // Its queues still mark frames.
                    self.settings.shape = Some(shape);
                }
                format!("{kind}: ignored: this backend has no queueing discipline")
            }
            Err(why) => why,
        };
        self.notes.push(format!("qos: {why}"));
    }
}

/// Returns true if the port is virtual: its frames stay in the process, or use other ports.
const fn is_virtual(kind: &PortKind) -> bool {
    matches!(kind, PortKind::Patch(_) | PortKind::Tunnel(_))
}

/// Unsupported types of interfaces; `kind` has the supported ones.
#[rustfmt::skip]
const UNSUPPORTED_TYPES: [&str; 4] = ["stt", "bareudp", "srv6", "dpdkvhostuserclient"];

/// The remedy for a type that is not supported.
const USE_TYPES: &str = "use system, internal, tap, patch, afxdp, dpdk, or a tunnel: vxlan, geneve, \
     gre, ip6gre, erspan, ip6erspan, gtpu or lisp";

/// The names of Open vSwitch's datapaths.
const RESERVED_NAMES: [&str; 3] = ["ovs-netdev", "ovs-dummy", "ovs-system"];

/// The beginnings of the names of its tunnel devices.
#[rustfmt::skip]
const RESERVED_PREFIXES: [&str; 9] = [
    "genev_sys", "gre_sys", "ip6gre_sys", "vxlan_sys", "lisp_sys", "stt_sys", "erspan_sys", "gtpu_sys", "bareudp_sys",
];

/// Columns for bonds that have no effect on a port with one interface.
const BOND_ONLY_COLUMNS: [&str; 2] = ["bond_mode", "bond_fake_iface"];

/// The note for an `other_config` address that has no effect where the bridge's address is chosen.
const ADDRESS: &str = "mac: ignored: the bridge's address does not follow its ports: set other_config:hwaddr of the bridge";

/// The supported keys of a port's `other_config`. The scripts of Open vSwitch use `transient`.
const SUPPORTED_PORT_KEYS: [&str; 4] = [
    "transient",
    "priority-tags",
    "mcast-snooping-flood",
    "mcast-snooping-flood-reports",
];

/// Reads an interface and its port.
///
/// # Errors
/// The interface cannot be a port, with the reason.
pub(super) fn read_interface(
    port: Record<'_>,
    interface: Record<'_>,
    is_dummy: impl Fn(&str) -> bool,
) -> Result<PlannedPort, String> {
    let name = interface.text("name").unwrap_or_default();
    let (mut logical, vlan_notes) = read_port(port)?;
    let mut options = interface.map("options");
    let of = interface.text("type").unwrap_or_default();
    let (kind, name) = match is_dummy(of) {
        true => (
            PortKind::Dummy(DummyType::of_interface(of)),
            name.to_owned(),
        ),
        false => kind(of, name, &mut options)?,
    };
    kind.check_name("name", &name)
        .map_err(|error| error.problem)?;
    let (mut settings, unapplied) = read_settings(interface, None);
    let mut notes = Vec::new();
    if let PortKind::Dummy(dummy) = kind {
        read_dummy(dummy, interface, &mut options, &mut settings, &mut notes);
    }
    notes.extend(
        options
            .keys()
            .filter(|key| is_meant(key, &known_keys::OPTIONS))
            .map(|key| format!("options:{key}: {}", unsupported(key))),
    );
    notes.extend(vlan_notes);
    notes.extend(notes_of(port, interface));
    notes.extend(unapplied);
    settings.monitoring = read_monitoring(interface, &mut notes);
    if is_virtual(&kind) && settings.ingress != IngressLimit::default() {
        settings.ingress = IngressLimit::default();
        notes.push("ingress_policing_rate: ignored: the port is virtual".to_owned());
    }
    if let Some(bond) = &mut logical.bond {
        bond.members.push(BondMemberConfig {
            port: PortNo::ANY,
            name: name.clone(),
            lacp: read_member(interface),
        });
    }
    let spec = PortSpec {
        kind,
        name,
        number: None,
    };
    Ok(PlannedPort {
        uuid: Some(interface.uuid),
        spec,
        settings,
        logical,
        notes,
    })
}

/// Returns the interface with a bond's own name, for old programs: it exists and has a number, but
/// `NORMAL` does not use it (ovs-vswitchd.conf.db(5), `bond_fake_iface`).
pub(super) fn fake_interface(
    port: Record<'_>,
    is_dummy: impl Fn(&str) -> bool,
) -> Option<PlannedPort> {
    if !bond::is_bond(port) || !port.is_true("bond_fake_iface") {
        return None;
    }
    let name = port.text("name").unwrap_or_default().to_owned();
    let kind = match is_dummy("internal") {
        true => PortKind::Dummy(DummyType::Internal),
        false => PortKind::Tap,
    };
    kind.check_name("name", &name).ok()?;
    let nowhere = VlanMode::Trunk {
        trunks: VlanSet::none(),
    };
    let logical = LogicalPort {
        name: format!("{name}, in name"),
        vlans: PortVlans {
            mode: nowhere,
            ..PortVlans::default()
        },
        ..LogicalPort::default()
    };
    Some(PlannedPort {
        uuid: None,
        spec: PortSpec {
            kind,
            name,
            number: None,
        },
        settings: InterfaceConfig::default(),
        logical,
        notes: Vec::new(),
    })
}

/// Returns the notes of the bridge's own interface, which exists in any case.
pub(super) fn local_notes(port: Record<'_>, interface: Record<'_>) -> Vec<String> {
    let mut notes = notes_of(port, interface);
    if interface.has("ofport_request") {
        notes.push("ofport_request: ignored: it is the LOCAL port".to_owned());
    }
    notes
}

/// Returns the notes that apply to ports of every kind.
fn notes_of(port: Record<'_>, interface: Record<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |column: &str| notes.push(format!("{column}: {}", unsupported(column)));
    let is_bond = bond::is_bond(port);
    for column in BOND_ONLY_COLUMNS {
        if port.is_set(column) && !is_bond {
            note(column);
        }
    }
    for (key, value) in port.map("other_config") {
        let is_heeded = SUPPORTED_PORT_KEYS.contains(&key)
            || PORT_KEYS.contains(&key)
            || bond::supports_key(port, key, value);
        if !is_heeded && is_meant(key, &known_keys::PORT) {
            note(&format!("other_config:{key}"));
        }
    }
    let is_dummy = interface
        .text("type")
        .is_some_and(|of| DummyType::of_interface(of) == DummyType::Pmd);
    for key in interface.map("other_config").into_keys() {
        let is_supported = CFM_KEYS.contains(&key)
            || bond::supports_member_key(port, key)
            || is_dummy && QUEUE_KEYS.contains(&key);
        if is_meant(key, &known_keys::INTERFACE) && !is_supported {
            note(&format!("other_config:{key}"));
        }
    }
    if port.has("mac") {
        notes.push(ADDRESS.to_owned());
    }
    notes
}

/// Returns the note for an unsupported setting that affects nothing else.
pub(super) fn unsupported(key: &str) -> String {
    format!("ignored: this switch has no {key}")
}

/// Returns true if Open vSwitch's datapaths and tunnels have this name for themselves.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED_NAMES.contains(&name) || RESERVED_PREFIXES.iter().any(|of| name.starts_with(of))
}

/// Returns the kind of port for an interface type, and the name of its device. Supported keys are
/// removed from `options`.
fn kind(
    of: &str,
    name: &str,
    options: &mut BTreeMap<&str, &str>,
) -> Result<(PortKind, String), String> {
    let port_kind = |kind| Ok((kind, name.to_owned()));
    if let Some(of) = TunnelType::named(of) {
        let tunnel = TunnelConfig::parse(of, name, options)?;
        return port_kind(PortKind::Tunnel(Arc::new(tunnel)));
    }
    match of {
        "" | "system" => port_kind(PortKind::Interface),
        "internal" | "tap" => port_kind(PortKind::Tap),
        "afxdp" | "afxdp-nonpmd" => {
            port_kind(PortKind::Xdp(xdp_options(options.remove("xdp-mode"))?))
        }
        "dpdk" => {
            let device = options.remove("dpdk-devargs");
            let device = device.ok_or("type dpdk: name the device in options:dpdk-devargs")?;
            let arguments: dpdk::Arguments = device
                .parse()
                .map_err(|error: dpdk::BadArguments| error.to_string())?;
            let name = arguments.device().to_owned();
            Ok((PortKind::Dpdk(arguments.into()), name))
        }
        // In Open vSwitch's words.
        "patch" => {
            let peer = options.remove("peer");
            let peer =
                peer.ok_or_else(|| format!("{name}: patch type requires valid 'peer' argument"))?;
            port_kind(PortKind::Patch(parse_peer(name, peer)?))
        }
        missing if UNSUPPORTED_TYPES.contains(&missing) => {
            Err(format!("type {missing}: not supported: {USE_TYPES}"))
        }
        unknown => Err(format!("type {unknown}: unknown: {USE_TYPES}")),
    }
}

/// Parses the AF_XDP modes (ovs-vswitchd.conf.db(5), `options:xdp-mode`).
fn xdp_options(mode: Option<&str>) -> Result<XdpOptions, String> {
    let (hook, transfer) = match mode {
        None | Some("best-effort") => (XdpModeChoice::Best, TransferChoice::Best),
        Some("native-with-zerocopy") => (XdpModeChoice::Native, TransferChoice::ZeroCopy),
        Some("native") => (XdpModeChoice::Native, TransferChoice::Copy),
        Some("generic") => (XdpModeChoice::Generic, TransferChoice::Copy),
        Some(mode) => return Err(format!("options:xdp-mode: '{mode}' is no mode")),
    };
    Ok(XdpOptions {
        mode: hook,
        transfer,
        ..XdpOptions::default()
    })
}

#[cfg(test)]
mod tests {
    use ports::shaping::{Qdisc, QosConfig};

    use super::*;

    #[test]
    fn queues_of_a_dummy_mark_frames_without_a_queueing_discipline() {
        let planned = |kind| PlannedPort {
            uuid: None,
            spec: PortSpec {
                kind,
                name: "p1".to_owned(),
                number: None,
            },
            settings: InterfaceConfig::default(),
            logical: LogicalPort::default(),
            notes: Vec::new(),
        };
        let shape = QosConfig {
            qdisc: Qdisc::Htb,
            max_rate: None,
            queues: BTreeMap::new(),
        };
        let note = "qos: linux-htb: ignored: this backend has no queueing discipline";
        let mut dummy = planned(PortKind::Dummy(DummyType::Dummy));
        dummy.apply_qos(Ok(EgressQos::Shaped(shape.clone())));
        assert_eq!(
            (dummy.settings.shape, dummy.notes),
            (Some(shape.clone()), vec![note.to_owned()])
        );
        let mut tap = planned(PortKind::Tap);
        tap.apply_qos(Ok(EgressQos::Shaped(shape)));
        assert_eq!(
            (tap.settings.shape, tap.notes),
            (None, vec![note.to_owned()])
        );
    }
}
