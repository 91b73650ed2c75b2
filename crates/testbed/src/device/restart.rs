//! Devices that are stopped and restarted while their links remain.

use super::{Device, DeviceKind, DevicePlan, Mode, comporta, linux_bridge, nftables, ovs};
use crate::{Failure, Spawner};

/// The method of stopping a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// SIGTERM, with time to end.
    Term,
    /// SIGKILL, in the middle of its work.
    Kill,
}

impl DeviceKind {
    /// Returns true if it can be stopped and restarted while its links remain. TAP interfaces
    /// disappear with the process that created them, and an external switch belongs to its user.
    #[must_use]
    pub const fn can_restart(self) -> bool {
        match self {
            Self::Comporta
            | Self::ComportaXdp
            | Self::ComportaDpdk
            | Self::Ovs
            | Self::OvsTso
            | Self::OvsAfxdp
            | Self::OvsDpdk
            | Self::VlanBridge
            | Self::OvsVlanBridge
            | Self::LinuxBridge
            | Self::Nftables => true,
            Self::ComportaTap
            | Self::OvsTap
            | Self::Forwarder
            | Self::Direct
            | Self::Impaired(_)
            | Self::External(_) => false,
        }
    }

    /// Returns true if it runs in the kernel and cannot be killed: its bridge is deleted instead.
    #[must_use]
    pub const fn is_in_kernel(self) -> bool {
        matches!(self, Self::LinuxBridge | Self::Nftables)
    }
}

impl Device {
    /// Stops the data path and waits for its end. Its dependencies continue, for example the
    /// database with the settings of an Open vSwitch.
    pub(crate) fn end(&mut self, signal: StopSignal, plan: DevicePlan<'_>) -> Result<(), Failure> {
        if self.kind.is_in_kernel() {
            let mut bridges = plan.bridges.iter();
            return bridges.try_for_each(|bridge| plan.inside.remove(&bridge.name));
        }
        match (&mut self.forwarding, signal) {
            (Some(process), StopSignal::Term) => process.stop().map(drop),
            (Some(process), StopSignal::Kill) => process.kill().map(drop),
            (None, _) => Err(unfit(self.kind, self.mode)),
        }
    }

    /// Restarts the data path with the same settings.
    pub(crate) fn restart(
        &mut self,
        spawner: &Spawner,
        plan: DevicePlan<'_>,
    ) -> Result<(), Failure> {
        self.forwarding = match self.kind {
            DeviceKind::LinuxBridge => return linux_bridge::make(plan).map(drop),
            DeviceKind::Nftables => return nftables::make(plan).map(drop),
            DeviceKind::Comporta
            | DeviceKind::ComportaXdp
            | DeviceKind::ComportaDpdk
            | DeviceKind::VlanBridge => Some(comporta::launch(spawner, plan)?),
            DeviceKind::Ovs
            | DeviceKind::OvsTso
            | DeviceKind::OvsAfxdp
            | DeviceKind::OvsDpdk
            | DeviceKind::OvsVlanBridge => Some(ovs::restart(spawner, plan)?),
            DeviceKind::ComportaTap
            | DeviceKind::OvsTap
            | DeviceKind::Forwarder
            | DeviceKind::Direct
            | DeviceKind::Impaired(_)
            | DeviceKind::External(_) => return Err(unfit(self.kind, self.mode)),
        };
        Ok(())
    }
}

fn unfit(kind: DeviceKind, mode: Mode) -> Failure {
    Failure::Unfit(format!("{kind} cannot be restarted in mode {mode}"))
}
