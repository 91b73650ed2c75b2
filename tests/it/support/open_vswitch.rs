//! The real `ovs-vswitchd`, and `ovs-appctl` for it and for Comporta.

use testbed::{Failure, Process};

use crate::support::command::CommandOutput;
use crate::support::deployment::Deployment;

/// Path of the daemon in Debian, independent of the alternative `ovs-vswitchd`.
pub(crate) const OVS_VSWITCHD: &str = "/usr/lib/openvswitch-switch/ovs-vswitchd";

/// Starts Open vSwitch's `ovs-vswitchd`, without the kernel datapath, on a deployment's database.
pub(crate) fn start_ovs_vswitchd(
    deployment: &Deployment<'_, '_>,
    options: &str,
) -> Result<Process, Failure> {
    let context = deployment.network.context;
    let log = context.unique_path("ovs-vswitchd.log");
    let words = format!("{OVS_VSWITCHD} --pidfile --disable-system -vconsole:info {options}");
    let process = context.spawner.start(deployment.program(&words).log(log))?;
    let pidfile = deployment.rundir.join("ovs-vswitchd.pid");
    context.wait_until("the pidfile of ovs-vswitchd", || Ok(pidfile.exists()))?;
    Ok(process)
}

/// Runs `ovs-appctl`, and returns its standard output and standard error without the tool's own
/// last line.
pub(crate) fn appctl(deployment: &Deployment<'_, '_>, words: &str) -> Result<String, Failure> {
    let program = deployment.program("ovs-appctl").args(words.split(' '));
    let output = CommandOutput::run(deployment.network.context, program)?;
    let errors = output.stderr.lines();
    let errors: Vec<_> = errors
        .filter(|line| !line.starts_with("ovs-appctl: "))
        .collect();
    let errors = errors.iter().map(|line| format!("{line}\n"));
    Ok(format!("{}{}", output.stdout, errors.collect::<String>()))
}

/// Waits until the reply to an `ovs-appctl` command contains `text`.
pub(crate) fn wait_for_appctl(
    deployment: &Deployment<'_, '_>,
    words: &str,
    text: &str,
) -> Result<(), Failure> {
    let condition = format!("'{text}' in the reply to '{words}'");
    let is_met = || Ok(appctl(deployment, words)?.contains(text));
    deployment.network.context.wait_until(&condition, is_met)
}
