//! This project's switch, as a process: numbered ports and only the controller's rules, or, without
//! a controller, MAC learning.

use super::{Device, DevicePlan, Mode, PlanPort, version};
use crate::topology::BridgePlan;
use crate::{DeviceKind, Failure, Process, Program, Spawner};

pub(super) fn start(spawner: &Spawner, plan: DevicePlan<'_>) -> Result<Device, Failure> {
    let options = plan.options;
    let process = launch(spawner, plan)?;
    let version = version(spawner, &options.comporta.to_string_lossy(), options)?;
    Ok(Device {
        commands: vec![process.command_line().to_owned()],
        forwarding: Some(process),
        ..Device::bare(plan, version)
    })
}

/// Starts its process.
pub(super) fn launch(spawner: &Spawner, plan: DevicePlan<'_>) -> Result<Process, Failure> {
    let options = plan.options;
    let cores: Vec<String> = options.cores.iter().map(usize::to_string).collect();
    let bridges = plan.bridges.iter();
    let program = Program::new(&options.comporta)
        .arg("switch")
        .args(bridges.flat_map(|bridge| words(plan, bridge)))
        .args(match &cores[..] {
            [] => Vec::new(),
            _ => vec!["--cores".to_owned(), cores.join(",")],
        })
        .arg("--rundir")
        .arg(&options.directory)
        .inside(plan.inside)
        .on_cores(&options.cores)
        .log(options.file("comporta.log"));
    spawner.start(program)
}

/// The options of a bridge, as command-line arguments.
fn words(plan: DevicePlan<'_>, bridge: &BridgePlan) -> Vec<String> {
    let mut words = vec!["--bridge".to_owned(), bridge.name.clone()];
    for place in plan.ports(bridge) {
        words.extend(["--port".to_owned(), port(plan.options.kind, place)]);
    }
    words.push("--fail-mode".to_owned());
    match plan.mode {
        Mode::Legacy => words.push("standalone".to_owned()),
        Mode::OpenFlow => {
            let controller = plan.options.controller(&bridge.name);
            let fail_mode = plan.fail_mode.name().to_owned();
            words.extend([fail_mode, "--controller".to_owned(), controller]);
        }
    }
    words
}

/// A port in the syntax of the command line.
fn port(kind: DeviceKind, port: PlanPort<'_>) -> String {
    let PlanPort {
        name,
        number,
        unique,
    } = port;
    match kind {
        DeviceKind::ComportaXdp => format!("xdp:{name}={number}"),
        DeviceKind::ComportaDpdk => format!("dpdk:net_af_packet{unique}={number},iface={name}"),
        DeviceKind::ComportaTap => format!("tap:{name}={number}"),
        _ => format!("{name}={number}"),
    }
}
