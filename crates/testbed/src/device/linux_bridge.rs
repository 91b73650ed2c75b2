//! The Linux bridge with its defaults: learning, no spanning tree, no filter.

use super::{Device, DevicePlan};
use crate::{Failure, Machine};

pub(super) fn start(plan: DevicePlan<'_>) -> Result<Device, Failure> {
    Ok(Device {
        commands: make(plan)?,
        ..behind(plan)
    })
}

/// Creates the bridges, and returns the equivalent commands.
pub(super) fn make(plan: DevicePlan<'_>) -> Result<Vec<String>, Failure> {
    let mut commands = Vec::new();
    for bridge in plan.bridges {
        let name = &bridge.name;
        let ports: Vec<&str> = bridge.ports.iter().map(String::as_str).collect();
        plan.inside.bridge(name, &ports)?;
        commands.push(format!("ip link add {name} type bridge"));
        let ports = ports.iter();
        commands.extend(ports.map(|port| format!("ip link set {port} master {name}")));
    }
    Ok(commands)
}

/// A device that consists only of an existing Linux bridge.
pub(super) fn behind(plan: DevicePlan<'_>) -> Device {
    Device::bare(plan, format!("Linux {}", Machine::this().kernel))
}
