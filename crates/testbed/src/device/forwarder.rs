//! The minimal forwarder, between the two ports.

use super::{Device, DevicePlan, ForwardingThread};
use crate::Failure;
use crate::forwarder::Forwarder;

pub(super) fn start(plan: DevicePlan<'_>) -> Result<Device, Failure> {
    let [first, second] = &plan.bridges[0].ports[..] else {
        unreachable!("its topology has two ports");
    };
    let ports = [first.as_str(), second];
    let forwarder = Forwarder::start(plan.inside, ports, plan.mtu, &plan.options.cores)?;
    Ok(Device {
        thread: Some(ForwardingThread::Forwarder(forwarder)),
        ..Device::bare(plan, "recvmmsg(2) and sendmmsg(2)")
    })
}
