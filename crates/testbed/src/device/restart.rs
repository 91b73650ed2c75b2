//! A device that is ended and started again, among cables that stay where they are.

use super::{Device, DeviceKind, Mode, Plan, comporta, linux_bridge, ovs};
use crate::{Failure, Spawner};

/// How a device is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is asked to end (SIGTERM), and has the time for it.
    Asked,
    /// It is killed (SIGKILL), amid whatever it does.
    Killed,
}

impl DeviceKind {
    /// Whether it can be ended and started again while its cables lie. TAP interfaces go with
    /// the process that made them, and a switch of its user's is not the lab's to end.
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
            | Self::LinuxBridge => true,
            Self::ComportaTap
            | Self::OvsTap
            | Self::Forwarder
            | Self::Direct
            | Self::Impaired(_)
            | Self::External(_) => false,
        }
    }

    /// Whether it is the kernel's, which nobody can kill: its bridge is taken away.
    #[must_use]
    pub const fn is_in_kernel(self) -> bool {
        matches!(self, Self::LinuxBridge)
    }
}

impl Device {
    /// Ends what forwards, and returns when it is gone. What it depends on goes on, such as the
    /// database in which an Open vSwitch keeps its settings.
    pub(crate) fn end(&mut self, ending: Ending, plan: Plan<'_>) -> Result<(), Failure> {
        if self.kind.is_in_kernel() {
            let mut bridges = plan.bridges.iter();
            return bridges.try_for_each(|bridge| plan.inside.remove(&bridge.name));
        }
        match (&mut self.forwarding, ending) {
            (Some(process), Ending::Asked) => process.stop().map(drop),
            (Some(process), Ending::Killed) => process.kill().map(drop),
            (None, _) => Err(unfit(self.kind, self.mode)),
        }
    }

    /// Starts what forwards again, as it was.
    pub(crate) fn start_again(&mut self, spawner: &Spawner, plan: Plan<'_>) -> Result<(), Failure> {
        self.forwarding = match self.kind {
            DeviceKind::LinuxBridge => return linux_bridge::make(plan).map(drop),
            DeviceKind::Comporta
            | DeviceKind::ComportaXdp
            | DeviceKind::ComportaDpdk
            | DeviceKind::VlanBridge => Some(comporta::launch(spawner, plan)?),
            DeviceKind::Ovs
            | DeviceKind::OvsTso
            | DeviceKind::OvsAfxdp
            | DeviceKind::OvsDpdk
            | DeviceKind::OvsVlanBridge => Some(ovs::start_again(spawner, plan)?),
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
    Failure::Unfit(format!("{kind} cannot be started again in the mode {mode}"))
}
