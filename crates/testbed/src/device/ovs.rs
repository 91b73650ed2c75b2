//! Open vSwitch as a device under test.
//!
//! Everything is left at its default but what the experiment is about: the data
//! path's type, the ports' numbers, the controller, no forwarding without it.

use super::{Device, DeviceOptions, PORTS, version};
use crate::open_vswitch::Site;
use crate::{Clock, DeviceKind, Failure, Namespace, OpenVswitch, Spawner};

pub(super) fn start(
    spawner: &Spawner,
    clock: &Clock,
    inside: &Namespace,
    options: &DeviceOptions,
) -> Result<Device, Failure> {
    let site = Site {
        spawner,
        inside,
        directory: &options.directory,
        cores: &options.cores,
    };
    let tso = options.kind == DeviceKind::OvsTso;
    let tso = format!("other_config:userspace-tso-enable={tso}");
    let cores: u128 = options.cores.iter().map(|core| 1 << core).sum();
    let polling = format!("other_config:pmd-cpu-mask={cores:#x}");
    let settings: &[&str] = match options.kind {
        DeviceKind::OvsAfxdp => &[&tso, &polling],
        _ => &[&tso],
    };
    let mut running = OpenVswitch::start(site, clock, settings)?;
    running.vsctl(&bridge(options))?;
    Ok(Device {
        kind: options.kind,
        version: version(spawner, "ovs-vswitchd", options)?,
        commands: running.commands,
        thread: None,
        forwarding: Some(running.daemon),
        helpers: vec![running.database],
    })
}

fn bridge(options: &DeviceOptions) -> String {
    let mut words = vec![
        "add-br br0 -- set bridge br0 datapath_type=netdev fail-mode=secure protocols=OpenFlow10,OpenFlow13"
            .to_owned(),
    ];
    let kind = match options.kind {
        DeviceKind::OvsAfxdp => " type=afxdp",
        _ => "",
    };
    for (port, number) in PORTS.iter().zip(1..) {
        words.push(format!(
            "-- add-port br0 {port} -- set interface {port} ofport_request={number}{kind}"
        ));
    }
    words.push(format!("-- set-controller br0 {}", options.controller()));
    words.join(" ")
}
