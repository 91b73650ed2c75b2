//! An external switch, connected to network cards of this machine. It is not started, but its user
//! may define commands that set its mode.

use std::time::Duration;

use super::{Device, DevicePlan, Mode, Settings};
use crate::nic::NicName;
use crate::{Failure, Program, Spawner};

/// Maximum time of a command that sets the mode: some switches reboot.
const SWITCHING: Duration = Duration::from_secs(300);

/// The description of an external switch, as far as a test setup needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct External {
    /// Brand, model and firmware.
    pub version: String,
    /// The cards connected to its ports, in the order of their OpenFlow numbers.
    pub ports: Vec<NicName>,
    /// True if the cards may compute checksums and segment.
    pub offloads: bool,
    /// The command that connects it to its controller, if one is needed: a program and its
    /// arguments.
    pub to_openflow: Vec<String>,
    /// The command that makes it forward without a controller, if one is needed.
    pub to_legacy: Vec<String>,
}

impl External {
    /// The command that sets `mode`; empty if none is needed.
    fn command(&self, mode: Mode) -> &[String] {
        match mode {
            Mode::OpenFlow => &self.to_openflow,
            Mode::Legacy => &self.to_legacy,
        }
    }
}

/// Sets the mode of the switch.
pub(super) fn start(spawner: &Spawner, plan: DevicePlan<'_>) -> Result<Device, Failure> {
    let Settings::External(external) = plan.settings else {
        return Ok(Device::bare(plan, ""));
    };
    let mut commands = Vec::new();
    if let [program, arguments @ ..] = external.command(plan.mode) {
        let program = Program::new(program)
            .args(arguments.iter().cloned())
            .env("MODE", plan.mode.name())
            .log(plan.options.file("mode.log"));
        commands.push(program.command_line());
        spawner.run(program, SWITCHING)?;
    }
    Ok(Device {
        commands,
        ..Device::bare(plan, external.version.clone())
    })
}
