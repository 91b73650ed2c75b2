//! Conflicts between tunnels: of two that no packet distinguishes, one is refused.

use std::collections::BTreeMap;

use base::PortNo;
use packet::tunnel::{TunnelProtocol, VxlanExtension};

use super::{DesiredState, InterfaceOutcome};
use config::{PortKind, TunnelConfig, TunnelEndpoint, TunnelKey};

/// The key by which arriving packets find a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    port: u16,
    remote: TunnelEndpoint,
    local: TunnelEndpoint,
    key: TunnelKey,
    bare: bool,
}

impl From<&TunnelConfig> for Mark {
    fn from(tunnel: &TunnelConfig) -> Self {
        Self {
            port: tunnel.port,
            remote: tunnel.remote,
            local: tunnel.local,
            // A missing key is zero on the wire.
            key: match tunnel.in_key {
                TunnelKey::None => TunnelKey::Given(0),
                key => key,
            },
            bare: tunnel.is_layer3,
        }
    }
}

const fn is_gbp(protocol: TunnelProtocol) -> bool {
    matches!(protocol, TunnelProtocol::Vxlan(VxlanExtension::Gbp))
}

const fn is_vxlan(protocol: TunnelProtocol) -> bool {
    matches!(protocol, TunnelProtocol::Vxlan(_))
}

/// Refuses duplicate tunnels, and those with a UDP port of another protocol.
pub(super) fn refuse_duplicates(desired: &mut DesiredState) {
    let mut marks: BTreeMap<Mark, String> = BTreeMap::new();
    let mut protocols: BTreeMap<u16, TunnelProtocol> = BTreeMap::new();
    let mut refused: BTreeMap<(String, Option<PortNo>), String> = BTreeMap::new();
    for bridge in &mut desired.config.bridges {
        let name = bridge.name.clone();
        bridge.ports.retain(|port| {
            let PortKind::Tunnel(tunnel) = &port.kind else {
                return true;
            };
            let protocol = *protocols.entry(tunnel.port).or_insert(tunnel.protocol);
            let twin = marks.get(&Mark::from(&**tunnel));
            let why = match twin {
                // In Open vSwitch's words.
                Some(twin) => format!(
                    "attempting to add tunnel port '{}' with same config as port '{twin}'",
                    port.name
                ),
                None if is_gbp(protocol) != is_gbp(tunnel.protocol) && is_vxlan(protocol) => format!(
                    "{}: VXLAN-GBP, and non-VXLAN-GBP tunnels can't be configured on the same dst_port",
                    port.name
                ),
                None if protocol != tunnel.protocol => format!(
                    "{}: options:dst_port: a tunnel of another protocol, or with other extensions, has UDP port {}",
                    port.name, tunnel.port
                ),
                None => {
                    marks.insert(Mark::from(&**tunnel), port.name.clone());
                    return true;
                }
            };
            desired.warnings.insert(why.clone());
            let warning = format!("{}: could not set configuration (File exists)", port.name);
            desired.warnings.insert(warning);
            refused.insert((name.clone(), port.number), why);
            false
        });
    }
    for outcome in desired.interfaces.values_mut() {
        if let InterfaceOutcome::Port { bridge, number, .. } = outcome
            && let Some(why) = refused.remove(&(bridge.clone(), Some(*number)))
        {
            *outcome = InterfaceOutcome::Refused(why);
        }
    }
}
