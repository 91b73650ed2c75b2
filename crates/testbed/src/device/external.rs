//! A switch that is there already, at network cards of this machine: nothing is started,
//! but its user may have commands that put it into a mode.

use std::time::Duration;

use super::{Device, Mode, Plan, Settings};
use crate::nic::NicName;
use crate::{Failure, Program, Spawner};

/// How long a command may take that puts the switch into a mode: some switches start anew.
const SWITCHING: Duration = Duration::from_secs(300);

/// What a file says of a switch, as far as a bench needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct External {
    /// What it is: brand, model, firmware.
    pub version: String,
    /// The cards that lead to its ports, in the order of their OpenFlow numbers.
    pub ports: Vec<NicName>,
    /// Whether the cards may be left checksums and segmentation.
    pub offloads: bool,
    /// The command that makes it ask its controller, if one is needed: a program and its
    /// arguments.
    pub to_openflow: Vec<String>,
    /// The command that makes it forward by itself, if one is needed.
    pub to_legacy: Vec<String>,
}

impl External {
    /// The command for `mode`; empty if none is needed.
    fn command(&self, mode: Mode) -> &[String] {
        match mode {
            Mode::OpenFlow => &self.to_openflow,
            Mode::Legacy => &self.to_legacy,
        }
    }
}

/// Puts the switch into its mode.
pub(super) fn start(spawner: &Spawner, plan: Plan<'_>) -> Result<Device, Failure> {
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
