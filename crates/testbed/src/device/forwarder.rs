//! The smallest forwarder, between the two ports.

use super::{Device, DeviceOptions, PORTS};
use crate::forwarder::Forwarder;
use crate::{DeviceKind, Failure, Namespace};

pub(super) fn start(inside: &Namespace, options: &DeviceOptions) -> Result<Device, Failure> {
    Ok(Device {
        kind: DeviceKind::Forwarder,
        version: "recvmmsg(2) and sendmmsg(2)".to_owned(),
        thread: Some(Forwarder::start(inside, PORTS, &options.cores)?),
        forwarding: None,
        helpers: Vec::new(),
        commands: Vec::new(),
    })
}
