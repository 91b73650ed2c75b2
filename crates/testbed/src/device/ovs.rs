//! Open vSwitch as a device under test.
//!
//! Everything is left at its default but what the experiment is about: the data
//! path's type, the ports' numbers, the controller, no forwarding without it.

use super::{Device, DeviceOptions, PORTS, version};
use crate::open_vswitch::{DAEMON, DAEMON_WITH_DPDK, DpdkCores, Site, polling_on};
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
    let mut running = launch(site, clock, options)?;
    running.vsctl(&bridge(options))?;
    Ok(Device {
        kind: options.kind,
        version: version(spawner, daemon(options.kind), options)?,
        commands: running.commands,
        thread: None,
        forwarding: Some(running.daemon),
        helpers: vec![running.database],
    })
}

/// Starts it with the settings that it reads only then.
fn launch(site: Site<'_>, clock: &Clock, options: &DeviceOptions) -> Result<OpenVswitch, Failure> {
    let tso = options.kind == DeviceKind::OvsTso;
    let tso = format!("other_config:userspace-tso-enable={tso}");
    if options.kind == DeviceKind::OvsDpdk {
        let cores = DpdkCores {
            main: &options.cores,
            polling: &options.cores,
        };
        return OpenVswitch::start_with_dpdk(site, clock, cores, &[&tso]);
    }
    let polling = polling_on(&options.cores);
    let settings: &[&str] = match options.kind {
        DeviceKind::OvsAfxdp => &[&tso, &polling],
        _ => &[&tso],
    };
    OpenVswitch::start(site, clock, settings)
}

/// The daemon's program.
fn daemon(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::OvsDpdk => DAEMON_WITH_DPDK,
        _ => DAEMON,
    }
}

fn bridge(options: &DeviceOptions) -> String {
    let mut words = vec![
        "add-br br0 -- set bridge br0 datapath_type=netdev fail-mode=secure protocols=OpenFlow10,OpenFlow13"
            .to_owned(),
    ];
    for (port, number) in PORTS.iter().zip(1..) {
        let (name, kind) = match options.kind {
            DeviceKind::OvsAfxdp => (*port, " type=afxdp".to_owned()),
            DeviceKind::OvsTap => (*port, " type=tap".to_owned()),
            DeviceKind::OvsDpdk => {
                let device = format!("net_af_packet{number},iface={port}");
                let kind = format!(" type=dpdk options:dpdk-devargs=\"{device}\"");
                (["d1", "d2"][number - 1], kind)
            }
            _ => (*port, String::new()),
        };
        words.push(format!(
            "-- add-port br0 {name} -- set interface {name} ofport_request={number}{kind}"
        ));
    }
    words.push(format!("-- set-controller br0 {}", options.controller()));
    words.join(" ")
}
