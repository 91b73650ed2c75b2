//! Open vSwitch as a device under test.
//!
//! All settings keep their defaults except for the subject of the experiment: the type of the data
//! path, the numbers of ports, the controller, and secure fail mode; in legacy mode no controller
//! and standalone forwarding.

use super::{Device, DeviceOptions, DevicePlan, Mode, PlanPort, version};
use crate::open_vswitch::{DAEMON, DAEMON_WITH_DPDK, DpdkCores, Site, polling_on};
use crate::topology::BridgePlan;
use crate::{Clock, DeviceKind, Failure, OpenVswitch, Process, Spawner};

pub(super) fn start(
    spawner: &Spawner,
    clock: &Clock,
    plan: DevicePlan<'_>,
) -> Result<Device, Failure> {
    let options = plan.options;
    let mut running = launch(site(spawner, plan), clock, options)?;
    for one in plan.bridges {
        running.vsctl(&bridge(plan, one))?;
    }
    let version = version(spawner, daemon(options.kind), options)?;
    Ok(Device {
        commands: running.commands,
        forwarding: Some(running.daemon),
        helpers: vec![running.database],
        ..Device::bare(plan, version)
    })
}

/// Starts the daemon with the existing database, which holds its bridges, ports and controllers.
pub(super) fn restart(spawner: &Spawner, plan: DevicePlan<'_>) -> Result<Process, Failure> {
    let daemon = daemon(plan.options.kind);
    site(spawner, plan).start_daemon((daemon, &[]), &mut Vec::new())
}

fn site<'a>(spawner: &'a Spawner, plan: DevicePlan<'a>) -> Site<'a> {
    Site {
        spawner,
        inside: plan.inside,
        directory: &plan.options.directory,
        cores: &plan.options.cores,
    }
}

/// Starts Open vSwitch with the settings that it reads only at its start.
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

/// The name of the daemon's program.
fn daemon(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::OvsDpdk => DAEMON_WITH_DPDK,
        _ => DAEMON,
    }
}

fn bridge(plan: DevicePlan<'_>, bridge: &BridgePlan) -> String {
    let name = &bridge.name;
    let fail_mode = match plan.mode {
        Mode::OpenFlow => plan.fail_mode.name(),
        Mode::Legacy => "standalone",
    };
    // Without an explicit datapath id a bridge derives it from a port, and reconnects when a port
    // is added: established connections would be lost.
    let id = bridge_id(name);
    let mut words = vec![format!(
        "add-br {name} -- set bridge {name} datapath_type=netdev fail-mode={fail_mode} protocols=OpenFlow10,OpenFlow13 other-config:datapath-id={id:016x}"
    )];
    for port in plan.ports(bridge) {
        let number = port.number;
        let (interface, kind) = interface(plan.options.kind, port);
        words.push(format!(
            "-- add-port {name} {interface} -- set interface {interface} ofport_request={number}{kind}"
        ));
    }
    if plan.mode == Mode::OpenFlow {
        let controller = plan.options.controller(name);
        words.push(format!("-- set-controller {name} {controller}"));
    }
    words.join(" ")
}

/// The datapath id of the bridge `brN`: N + 1.
fn bridge_id(name: &str) -> u64 {
    let number = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    number.parse::<u64>().map_or(1, |number| number + 1)
}

/// The name of a port's interface, and its type settings.
fn interface(kind: DeviceKind, port: PlanPort<'_>) -> (String, String) {
    let PlanPort { name, unique, .. } = port;
    match kind {
        DeviceKind::OvsAfxdp => (name.to_owned(), " type=afxdp".to_owned()),
        DeviceKind::OvsTap => (name.to_owned(), " type=tap".to_owned()),
        DeviceKind::OvsDpdk => {
            let device = format!("net_af_packet{unique},iface={name}");
            let kind = format!(" type=dpdk options:dpdk-devargs=\"{device}\"");
            (format!("d{unique}"), kind)
        }
        _ => (name.to_owned(), String::new()),
    }
}
