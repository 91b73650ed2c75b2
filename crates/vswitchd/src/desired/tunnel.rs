//! Conflicts between tunnels: of two that no packet distinguishes, one is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::PortNo;
use packet::tunnel::TunnelProtocol;

use super::{DesiredState, InterfaceOutcome};
use config::{PacketTypeMode, PortKind, TunnelConfig, TunnelEndpoint, TunnelKey};

/// The key by which arriving packets find a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    port: u16,
    is_erspan: bool,
    remote: TunnelEndpoint,
    local: TunnelEndpoint,
    key: TunnelKey,
    packet_type: PacketTypeMode,
}

impl From<&TunnelConfig> for Mark {
    fn from(tunnel: &TunnelConfig) -> Self {
        Self {
            port: tunnel.port,
            is_erspan: tunnel.protocol == TunnelProtocol::Erspan,
            remote: tunnel.remote,
            local: tunnel.local,
            // A missing key is zero on the wire.
            key: match tunnel.in_key {
                TunnelKey::None => TunnelKey::Given(0),
                key => key,
            },
            packet_type: tunnel.packet_type,
        }
    }
}

/// Returns the reason why a tunnel cannot have the UDP port of `other`, in Open vSwitch's words
/// where it has any.
fn port_conflict(name: &str, tunnel: &TunnelConfig, other: &TunnelConfig) -> Option<String> {
    if !tunnel.excludes(other) {
        return None;
    }
    Some(match (tunnel.protocol, other.protocol) {
        (TunnelProtocol::Vxlan(_), TunnelProtocol::Vxlan(_)) => format!(
            "{name}: VXLAN-GBP, and non-VXLAN-GBP tunnels can't be configured on the same dst_port"
        ),
        _ => format!(
            "{name}: options:dst_port: a tunnel of another protocol has UDP port {}",
            tunnel.port
        ),
    })
}

/// Refuses duplicate tunnels, and those with a UDP port of another protocol.
pub(super) fn refuse_duplicates(desired: &mut DesiredState) {
    let mut marks: BTreeMap<Mark, String> = BTreeMap::new();
    let mut by_port: BTreeMap<u16, Arc<TunnelConfig>> = BTreeMap::new();
    let mut refused: BTreeMap<(String, Option<PortNo>), String> = BTreeMap::new();
    for bridge in &mut desired.config.bridges {
        let name = bridge.name.clone();
        bridge.ports.retain(|port| {
            let PortKind::Tunnel(tunnel) = &port.kind else {
                return true;
            };
            let mark = Mark::from(&**tunnel);
            let first = by_port.entry(tunnel.port).or_insert_with(|| tunnel.clone());
            let why = match (port_conflict(&port.name, tunnel, first), marks.get(&mark)) {
                (Some(why), _) => why,
                // In Open vSwitch's words.
                (None, Some(twin)) => format!(
                    "attempting to add tunnel port '{}' with same config as port '{twin}'",
                    port.name
                ),
                (None, None) => {
                    marks.insert(mark, port.name.clone());
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
