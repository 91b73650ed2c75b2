//! The forwarder with known faults, between the two ports.

use super::{Device, DevicePlan, ForwardingThread, Settings};
use crate::impairment::Impairment;
use crate::{Clock, Failure, Impairments};

pub(super) fn start(clock: &Clock, plan: DevicePlan<'_>) -> Result<Device, Failure> {
    let [first, second] = &plan.bridges[0].ports[..] else {
        unreachable!("its topology has two ports");
    };
    let usual = Impairments::default();
    let faults = match plan.settings {
        Settings::Impairments(faults) => faults.as_ref(),
        Settings::None | Settings::External(_) => &usual,
    };
    let ports = [first.as_str(), second];
    let cores = &plan.options.cores;
    let impairment = Impairment::start(plan.inside, ports, faults, clock, cores)?;
    Ok(Device {
        thread: Some(ForwardingThread::Impairment(impairment)),
        ..Device::bare(plan, faults.to_string())
    })
}
