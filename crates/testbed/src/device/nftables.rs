//! The Linux bridge with the kernel's connection tracking: bridged IPv4 packets pass the IP hooks
//! (`br_netfilter`), where nftables and `nf_conntrack` process them. Its rules are the caller's;
//! without rules it forwards as the bridge does.

use super::{Device, DevicePlan, linux_bridge};
use crate::{Failure, Machine};

/// The setting that passes bridged packets to the IP hooks, per namespace.
const HOOKS: &str = "net/bridge/bridge-nf-call-iptables";

pub(super) fn start(plan: DevicePlan<'_>) -> Result<Device, Failure> {
    Ok(Device {
        commands: make(plan)?,
        ..Device::bare(plan, format!("Linux {}", Machine::this().kernel))
    })
}

/// Creates the bridges, and returns the equivalent commands.
pub(super) fn make(plan: DevicePlan<'_>) -> Result<Vec<String>, Failure> {
    let mut commands = linux_bridge::make(plan)?;
    plan.inside.set_sysctl(HOOKS, "1")?;
    commands.push(format!("sysctl {}=1", HOOKS.replace('/', ".")));
    Ok(commands)
}
