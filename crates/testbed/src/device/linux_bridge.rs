//! The kernel's bridge with its defaults: learning, no spanning tree, no filter.

use super::{Device, PORTS};
use crate::{DeviceKind, Failure, Machine, Namespace};

pub(super) fn start(inside: &Namespace) -> Result<Device, Failure> {
    inside.bridge("br0", &PORTS)?;
    let mut commands = vec!["ip link add br0 type bridge".to_owned()];
    commands.extend(PORTS.map(|port| format!("ip link set {port} master br0")));
    Ok(Device {
        kind: DeviceKind::LinuxBridge,
        version: format!("Linux {}", Machine::this().kernel),
        thread: None,
        forwarding: None,
        helpers: Vec::new(),
        commands,
    })
}
